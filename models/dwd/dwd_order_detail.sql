-- One row per order with its user and product; the amount is at the product's price of now.
{{ config(partition_by='year_month') }}
select
  o.order_id,
  o.order_number,
  o.user_id,
  u.user_name,
  u.device_model,
  o.product_id,
  p.product_name,
  o.quantity,
  p.price,
  o.quantity * p.price as amount,
  o.year_month
from {{ ref('dwd_order') }} as o
join {{ ref('dwd_user') }} as u on u.user_id = o.user_id
join {{ ref('dwd_product') }} as p on p.product_id = o.product_id
