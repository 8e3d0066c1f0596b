-- Agents by the length of their ways: the shorter, the more successful.
select
  p.AgentId,
  a.AgentName,
  count(*) as paths,
  avg(p.steps) as average_steps,
  sum(p.deals) as deals
from {{ ref('paths') }} as p
join {{ ref('agents') }} as a on a.AgentId = p.AgentId
group by p.AgentId, a.AgentName
