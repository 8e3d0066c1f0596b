-- Sales by day.
select
  tran_date,
  count(*) as sales,
  sum(quantity) as quantity,
  sum(total) as total,
  min(total) as smallest,
  max(total) as largest
from {{ source('retail', 'retail_transactions') }}
group by tran_date
