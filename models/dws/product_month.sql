-- Orders by product and month.
{{ config(partition_by='year_month') }}
select
  year_month,
  product_id,
  count(*) as orders,
  sum(quantity) as quantity,
  avg(quantity) as average_quantity,
  min(quantity) as smallest_order,
  max(quantity) as largest_order
from {{ ref('dwd_order') }}
group by year_month, product_id
