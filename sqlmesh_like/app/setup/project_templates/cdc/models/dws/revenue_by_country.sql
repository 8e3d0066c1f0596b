select country, count(*) as orders, sum(amount) as revenue
from {{ ref('order_detail') }}
group by country
