-- Contracts signed today (UTC): one row, 0 where there is none yet.
select count(*) as deals
from {{ ref('sales') }}
where StatusId = {{ var('closed_status') }}
  and to_date(EventAt) = current_date()
