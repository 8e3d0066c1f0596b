-- Interactions by hour over the past 24 hours; those that grow older leave, whether anything new is recorded or not.
select
  date_trunc('hour', EventAt) as hour,
  count(*) as events
from {{ ref('sales') }}
where EventAt > current_timestamp() - interval 24 hours
  and EventAt <= current_timestamp()
group by date_trunc('hour', EventAt)
