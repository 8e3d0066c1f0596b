-- One row per interaction of an agent with a customer: the last record of it counts, which corrects earlier ones.
{{ last_record('SaleId', ['UnitId', 'StatusId', 'ContractSubtotal', 'ContractSigningDate', 'AgentId', 'CustomerId', 'EventAt']) }}
