-- The way of an agent with a customer and a unit: how many steps it has, one for each interaction, and if it led to a deal.
select
  AgentId,
  CustomerId,
  UnitId,
  count(*) as steps,
  count_if(StatusId = {{ var('closed_status') }}) as deals
from {{ ref('sales') }}
group by AgentId, CustomerId, UnitId
