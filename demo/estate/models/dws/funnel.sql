-- Each step of a customer towards a unit, counted from the first one: its number and the hours since then.
select
  CustomerId,
  UnitId,
  SaleId,
  StatusId,
  row_number() over (partition by CustomerId, UnitId order by EventAt, SaleId) as step,
  timestampdiff(hour, min(EventAt) over (partition by CustomerId, UnitId), EventAt) as hours
from {{ ref('sales') }}
