-- Sales by state.
select
  store_state,
  count(*) as sales,
  sum(quantity) as quantity,
  sum(total) as total,
  min(total) as smallest,
  max(total) as largest
from {{ source('retail', 'retail_transactions') }}
group by store_state
