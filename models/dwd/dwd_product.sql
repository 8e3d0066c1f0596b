-- One row per product that has a price.
select
  pid as product_id,
  {{ clean_text('pname') }} as product_name,
  pprice as price
from {{ source('shop', 'product') }}
where pprice is not null
