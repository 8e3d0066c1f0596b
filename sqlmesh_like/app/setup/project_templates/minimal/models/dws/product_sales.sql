select product, count(*) as orders, sum(cast(amount as decimal(10, 2))) as total
from {{ ref('orders') }}
group by product
