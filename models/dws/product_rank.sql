-- Products of each month by revenue: a window cannot be merged, so the months that a change touches are ranked anew.
{{ config(partition_by='year_month') }}
select
  year_month,
  product_id,
  sum(amount) as revenue,
  rank() over (partition by year_month order by sum(amount) desc) as place
from {{ ref('dwd_order_detail') }}
group by year_month, product_id
