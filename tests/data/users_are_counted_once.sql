-- The counts by device model add up to the number of users.
select totals.num, users.num as users
from (select sum(num) as num from {{ ref('user_agg') }}) as totals
cross join (select count(*) as num from {{ ref('dwd_user') }}) as users
where totals.num <> users.num
