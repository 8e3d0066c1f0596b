-- Units by how hard they are to sell: many agents and long ways make a hard one.
select
  UnitId,
  count(distinct AgentId) as agents,
  avg(steps) as average_steps,
  sum(deals) as deals
from {{ ref('paths') }}
group by UnitId
