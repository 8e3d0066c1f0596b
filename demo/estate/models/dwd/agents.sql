-- Agents, each under the name of the last record about them.
{{ last_record('AgentId', ['AgentName']) }}
