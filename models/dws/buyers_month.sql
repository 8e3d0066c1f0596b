-- Distinct buyers by month: a distinct count cannot be merged, so the months that a change touches are rescanned.
{{ config(partition_by='year_month') }}
select
  year_month,
  count(distinct user_id) as buyers
from {{ ref('dwd_order') }}
group by year_month
