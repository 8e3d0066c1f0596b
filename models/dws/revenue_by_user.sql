-- Revenue by user.
select
  user_id,
  count(*) as orders,
  sum(quantity) as quantity,
  sum(amount) as revenue
from {{ ref('dwd_order_detail') }}
group by user_id
