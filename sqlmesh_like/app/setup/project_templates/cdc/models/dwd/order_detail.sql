select
    o.id as order_id,
    c.id as customer_id,
    c.country,
    o.amount
from {{ source('shop', 'orders') }} as o
join {{ source('shop', 'customers') }} as c on c.id = o.customer_id
