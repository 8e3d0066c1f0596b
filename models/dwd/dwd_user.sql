-- One row per user of the shop; empty texts are NULL.
select
  id as user_id,
  {{ clean_text('name') }} as user_name,
  {{ clean_text('device_model') }} as device_model,
  lower({{ clean_text('email') }}) as email,
  create_time,
  year_month
from {{ source('shop', 'user') }}
