-- One row per order that orders something; `year_month` is the month it was created in.
select
  id as order_id,
  oid as order_number,
  uid as user_id,
  pid as product_id,
  onum as quantity,
  create_time,
  year_month
from {{ source('shop', 'user_order') }}
where onum > 0
