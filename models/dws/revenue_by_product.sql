-- Revenue by product.
select
  product_id,
  count(*) as orders,
  sum(quantity) as quantity,
  sum(amount) as revenue
from {{ ref('dwd_order_detail') }}
group by product_id
