-- Commission by agent; the rule is the seed `commission_rule`: a share of the contract for each status that is reached.
select
  s.AgentId,
  sum(s.ContractSubtotal * r.share) as commission
from {{ ref('sales') }} as s
join {{ ref('commission_rule') }} as r on r.StatusId = s.StatusId
group by s.AgentId
