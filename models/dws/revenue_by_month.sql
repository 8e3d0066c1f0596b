-- Revenue by month.
{{ config(partition_by='year_month') }}
select
  year_month,
  count(*) as orders,
  sum(quantity) as quantity,
  sum(amount) as revenue,
  min(amount) as smallest_order,
  max(amount) as largest_order
from {{ ref('dwd_order_detail') }}
group by year_month
