-- One row per interaction of an agent with a customer: the last record of it counts, which corrects earlier ones.
select
  SaleId,
  UnitId,
  StatusId,
  ContractSubtotal,
  ContractSigningDate,
  AgentId,
  CustomerId,
  EventAt
from {{ source('erp', 'sales_log') }}
where SaleId is not null
qualify row_number() over (partition by SaleId order by RecordedAt desc) = 1
