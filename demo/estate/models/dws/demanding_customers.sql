-- Customers by how many short ways (two steps at most) they went without a deal: many of them compare all the time.
select
  CustomerId,
  count(*) as paths,
  avg(steps) as average_steps,
  count_if(steps <= 2 and deals = 0) as short_paths
from {{ ref('paths') }}
group by CustomerId
