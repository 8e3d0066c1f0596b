-- Agents, each under the name of the last record about them.
select
  AgentId,
  AgentName
from {{ source('erp', 'sales_log') }}
where AgentId is not null
qualify row_number() over (partition by AgentId order by RecordedAt desc) = 1
