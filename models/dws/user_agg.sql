-- Users by device model.
select
  count(1) as num,
  device_model
from {{ ref('dwd_user') }}
group by device_model
