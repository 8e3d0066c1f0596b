-- All sales, in one row.
select
  count(*) as sales,
  sum(quantity) as quantity,
  sum(total) as total
from {{ source('retail', 'retail_transactions') }}
