-- sessionization: a new session after 30 minutes
with marked as (
  select id, user_id, at, case when unix_timestamp(at) - unix_timestamp(lag(at) over (partition by user_id order by at, id)) > 1800
    or lag(at) over (partition by user_id order by at, id) is null then 1 else 0 end as is_new
  from events),
numbered as (select id, user_id, at, sum(is_new) over (partition by user_id order by at, id) as session from marked)
select user_id, session, min(at) as started, max(at) as ended, count(*) as n from numbered group by user_id, session;
-- sessionization: the gap written as an interval
with gaps as (select user_id, at, lag(at) over (partition by user_id order by at) as before from events),
flags as (select user_id, at, case when before is null or at > before + interval 30 minutes then 1 else 0 end as f from gaps),
s as (select user_id, at, sum(f) over (partition by user_id order by at rows unbounded preceding) as nr from flags)
select user_id, nr, count(*) as pages, max(at) as last from s group by user_id, nr;
-- sessionization: sessions a day, with a named window
with f as (select user_id, at, if(datediff(at, lag(at) over w) >= 1, 1, 0) as is_new from events window w as (partition by user_id order by at)),
s as (select user_id, at, sum(is_new) over (partition by user_id order by at) as s from f)
select to_date(at) as day, count(distinct user_id, s) as sessions from s group by to_date(at);
-- gaps and islands: days in a row
with days as (select distinct user_id, to_date(at) as day from events),
ranked as (select user_id, day, date_sub(day, row_number() over (partition by user_id order by day)) as island from days)
select user_id, min(day) as since, max(day) as until, count(*) as days from ranked group by user_id, island;
-- gaps and islands: the longest streak of each user
with days as (select distinct user_id, to_date(at) as day from events),
ranked as (select user_id, day, date_sub(day, cast(row_number() over (partition by user_id order by day) as int)) as island from days),
streaks as (select user_id, island, count(*) as n from ranked group by 1, 2)
select user_id, max(n) as longest from streaks group by user_id;
-- gaps and islands: runs of one status
with r as (select id, customer_id, status, ordered_at, row_number() over (partition by customer_id order by ordered_at, id)
  - row_number() over (partition by customer_id, status order by ordered_at, id) as run from orders)
select customer_id, status, run, count(*) as n, min(ordered_at) as started from r group by customer_id, status, run;
-- page path: previous and next page
select user_id, at, page, lag(page) over (partition by user_id order by at, id) as before,
  lead(page) over (partition by user_id order by at, id) as after from events;
-- page path: the pages of a user as one text
select user_id, concat_ws(' > ', collect_list(page)) as path from (select user_id, page from events where kind = 'view') as v group by user_id;
-- page path: counts of transitions
with steps as (select page, lead(page) over (partition by user_id order by at, id) as next from events)
select page, next, count(*) as n from steps where next is not null group by page, next;
-- funnel: three steps by EXISTS
select count(distinct v.user_id) as viewed,
  count(distinct case when c.user_id is not null then v.user_id end) as carted,
  count(distinct case when p.user_id is not null then v.user_id end) as bought
from (select distinct user_id from events where kind = 'view') as v
left join (select distinct user_id from events where kind = 'cart') as c on v.user_id = c.user_id
left join (select distinct user_id from events where kind = 'buy') as p on c.user_id = p.user_id;
-- funnel: first time of each step in order
with f as (select user_id, min(case when kind = 'view' then at end) as viewed, min(case when kind = 'cart' then at end) as carted,
  min(case when kind = 'buy' then at end) as bought from events group by user_id)
select count(viewed) as a, count_if(carted > viewed) as b, count_if(bought > carted and carted > viewed) as c from f;
-- funnel: a union of counts
select 'view' as step, count(distinct user_id) as users from events where kind = 'view'
union all select 'cart', count(distinct user_id) from events where kind = 'cart'
union all select 'buy', count(distinct user_id) from events where kind = 'buy';
-- funnel: conversion within a week of signing up
select c.signed_up, count(*) as signed, count_if(exists (select 1 from orders o where o.customer_id = c.id and o.day <= date_add(c.signed_up, 7))) as ordered
from customers c group by c.signed_up;
-- SCD2: validity from a log of changes
select product_id, price, valid_from, lead(valid_from) over (partition by product_id order by valid_from) as valid_to from prices;
-- SCD2: only rows that differ from the version before
select product_id, valid_from, price from (
  select product_id, valid_from, price, lag(price) over (partition by product_id order by valid_from, id) as old from prices) as p
where old is null or old <> price;
-- SCD2: the current version
select product_id, price from prices qualify row_number() over (partition by product_id order by valid_from desc, id desc) = 1;
-- as-of join: price at the time by a validity range
with v as (select product_id, price, valid_from, lead(valid_from) over (partition by product_id order by valid_from, id) as valid_to from prices)
select i.id, i.quantity * v.price as worth from order_items i join orders o on i.order_id = o.id
join v on v.product_id = i.product_id and o.day >= v.valid_from and (o.day < v.valid_to or v.valid_to is null);
-- as-of join: the last rate before, by a correlated maximum
select o.id, o.amount * r.rate as eur from orders o join rates r on r.currency = o.currency
and r.day = (select max(x.day) from rates x where x.currency = o.currency and x.day <= o.day);
-- as-of join: the last rate before, by max_by over a range join
select o.id, max_by(r.rate, r.day) as rate from orders o left join rates r on r.currency = o.currency and r.day <= o.day group by o.id;
-- as-of join: by row_number over a range join
select id, rate from (select o.id, r.rate, row_number() over (partition by o.id order by r.day desc) as nr
from orders o join rates r on r.currency = o.currency and r.day <= o.day) as t where nr = 1;
-- as-of join: forward filled by last_value
select id, account_id, day, last_value(amount) ignore nulls over (partition by account_id order by day, id rows between unbounded preceding and current row) as filled from bookings;
-- range join: users active in the 7 days before each day (WAU)
select c.day, count(distinct e.user_id) as wau from calendar c join events e on to_date(e.at) between date_sub(c.day, 6) and c.day group by c.day;
-- running balance of an account
select id, account_id, day, sum(amount) over (partition by account_id order by day, id) as balance from bookings;
-- running balance over all, by rows
select id, sum(amount) over (order by day, id rows between unbounded preceding and current row) as balance from bookings;
-- running balance at the end of each day
with d as (select account_id, day, sum(amount) as delta from bookings group by account_id, day)
select account_id, day, sum(delta) over (partition by account_id order by day) as balance from d;
-- moving average of 7 rows
select day, avg(revenue) over (order by day rows between 6 preceding and current row) as smooth from (select day, sum(amount) as revenue from orders group by day) as d;
-- moving sum of 30 days by range
select account_id, day, sum(amount) over (partition by account_id order by datediff(day, date'2020-01-01') range between 29 preceding and current row) as recent from bookings;
-- month over month
with m as (select date_trunc('month', ordered_at) as month, sum(amount) as revenue from orders group by 1)
select month, revenue, revenue - lag(revenue) over (order by month) as growth, revenue / lag(revenue) over (order by month) - 1 as rate from m;
-- month over month by country
with m as (select country, trunc(day, 'MM') as month, sum(amount) as revenue from orders group by country, trunc(day, 'MM'))
select country, month, revenue, lag(revenue) over (partition by country order by month) as before from m;
-- year over year by a self join on add_months
with m as (select trunc(day, 'MM') as month, sum(amount) as revenue from orders group by trunc(day, 'MM'))
select a.month, a.revenue, b.revenue as year_ago from m a left join m b on b.month = add_months(a.month, -12);
-- year to date
select day, sum(sum(amount)) over (partition by year(day) order by day) as ytd from orders group by day;
-- year to date of two years beside each other
select month(day) as m, sum(case when year(day) = 2024 then amount else 0 end) as this, sum(case when year(day) = 2023 then amount else 0 end) as last from orders group by month(day);
-- share of the total
select country, sum(amount) as revenue, sum(amount) / sum(sum(amount)) over () as share from orders group by country;
-- share of the total by a scalar subquery
select country, sum(amount) / (select sum(amount) from orders) as share from orders group by country;
-- cumulative share and ABC classes
with r as (select product_id, sum(quantity * price) as revenue from order_items group by product_id),
c as (select product_id, revenue, sum(revenue) over (order by revenue desc, product_id) / sum(revenue) over () as share from r)
select product_id, revenue, case when share <= 0.8 then 'A' when share <= 0.95 then 'B' else 'C' end as class from c;
-- RFM by ntile
with r as (select customer_id, max(day) as last, count(*) as n, sum(amount) as total from orders group by customer_id)
select customer_id, ntile(5) over (order by last) as r, ntile(5) over (order by n) as f, ntile(5) over (order by total) as m from r;
-- cohort retention by month of the first order
with first as (select customer_id, min(trunc(day, 'MM')) as cohort from orders group by customer_id)
select f.cohort, cast(months_between(trunc(o.day, 'MM'), f.cohort) as int) as month, count(distinct o.customer_id) as customers
from orders o join first f on o.customer_id = f.customer_id group by 1, 2;
-- cohort retention as shares of the cohort
with first as (select customer_id, min(day) over (partition by customer_id) as start, day from orders),
k as (select trunc(start, 'MM') as cohort, floor(datediff(day, start) / 30) as period, count(distinct customer_id) as n from first group by 1, 2)
select cohort, period, n, n / first_value(n) over (partition by cohort order by period) as share from k;
-- churn: customers without an order in the 90 days before the last day
select c.id, c.name from customers c where not exists (select 1 from orders o where o.customer_id = c.id and o.day > date'2024-01-01');
-- new, returning and lost customers of a month
with m as (select distinct customer_id, trunc(day, 'MM') as month from orders)
select coalesce(a.month, add_months(b.month, 1)) as month, count_if(b.customer_id is null) as new, count_if(a.customer_id is null) as lost, count(a.customer_id) as active
from m a full join m b on a.customer_id = b.customer_id and a.month = add_months(b.month, 1) group by 1;
-- pivot by CASE
select country, sum(case when channel = 'web' then amount else 0 end) as web, sum(case when channel = 'shop' then amount else 0 end) as shop from orders group by country;
-- PIVOT
select * from (select country, channel, amount from orders) pivot (sum(amount) for channel in ('web', 'shop'));
-- PIVOT of several columns
select * from (select country, channel, status, amount from orders) pivot (sum(amount) for (channel, status) in (('web', 'paid') as web_paid, ('shop', 'paid') as shop_paid));
-- PIVOT of a join
select * from (select c.country, o.channel, o.amount from orders o join customers c on o.customer_id = c.id) pivot (sum(amount) as total, count(*) as n for channel in ('web', 'shop'));
-- UNPIVOT of a subquery
select id, metric, val from (select id, amount, discount from orders) unpivot (val for metric in (amount, discount)) where val > 0;
-- rows from columns by stack
select id, metric, val from orders lateral view stack(2, 'amount', amount, 'discount', discount) s as metric, val;
-- rows from columns by stack in SELECT
select id, stack(2, 'amount', amount, 'discount', discount) as (metric, val) from orders;
-- top 3 of each group
select category, name, revenue from (select p.category, p.name, sum(i.quantity * i.price) as revenue,
  row_number() over (partition by p.category order by sum(i.quantity * i.price) desc, p.name) as nr
  from order_items i join products p on i.product_id = p.id group by p.category, p.name) as t where nr <= 3;
-- top 10 over all
select customer_id, sum(amount) as total from orders group by customer_id order by total desc, customer_id limit 10;
-- top 10 without a tiebreak
select id, amount from orders order by amount desc limit 10;
-- top categories, all others as one row
with r as (select category, sum(cost) as total from products group by category),
k as (select category, total, rank() over (order by total desc) as place from r)
select case when place <= 2 then category else 'other' end as category, sum(total) as total from k group by 1;
-- second highest salary of each department
select dept, max(salary) as second from employees e where salary < (select max(salary) from employees m where m.dept = e.dept) group by dept;
-- employees above the average of their department
select e.id, e.name from employees e where e.salary > (select avg(m.salary) from employees m where m.dept = e.dept);
-- departments whose total is above the average total
with d as (select dept, sum(salary) as total from employees group by dept)
select dept, total from d where total > (select avg(total) from d);
-- HAVING against a subquery
select customer_id, count(*) as n from orders group by customer_id having count(*) > (select avg(n) from (select count(*) as n from orders group by customer_id) as x);
-- HAVING against a correlated subquery
select customer_id, sum(amount) as total from orders o group by customer_id having sum(amount) > (select max(b.amount) from bookings b where b.account_id = o.customer_id);
-- thresholds: EXISTS below OR
select o.id from orders o where o.amount > 100 or exists (select 1 from order_items i where i.order_id = o.id and i.quantity > 5);
-- thresholds: IN below OR
select id from orders where status = 'vip' or customer_id in (select id from customers where country = 'de');
-- thresholds: a flag by EXISTS
select c.id, case when exists (select 1 from orders o where o.customer_id = c.id) then 'buyer' else 'lead' end as kind from customers c;
-- NOT IN of a nullable column
select id from customers where id not in (select referrer_id from customers);
-- GROUP BY ALL
select country, channel, count(*) as n, sum(amount) as total from orders group by all;
-- ROLLUP with totals named
select coalesce(country, 'all') as country, coalesce(channel, 'all') as channel, sum(amount) as total from orders group by rollup (country, channel);
-- median and quartiles
select country, percentile(amount, 0.5) as median, percentile(amount, array(0.25, 0.75)) as quartiles from orders group by country;
-- percentile_approx
select country, percentile_approx(amount, 0.5) as median from orders group by country;
-- PERCENTILE_CONT WITHIN GROUP
select country, percentile_cont(0.9) within group (order by amount) as p90 from orders group by country;
-- PERCENTILE_CONT WITHIN GROUP, descending
select country, percentile_cont(0.9) within group (order by amount desc) as p10 from orders group by country;
-- PERCENTILE_DISC WITHIN GROUP
select country, percentile_disc(0.5) within group (order by amount) as m from orders group by country;
-- the mode of a group
select country, mode(channel) as usual from orders group by country;
-- the most frequent value by a window
select country, channel from (select country, channel, count(*) as n, row_number() over (partition by country order by count(*) desc, channel) as nr from orders group by country, channel) as t where nr = 1;
-- standard deviation and outliers
with s as (select country, avg(amount) as m, stddev(amount) as d from orders group by country)
select o.id from orders o join s on o.country = s.country where o.amount > s.m + 0.5 * s.d;
-- correlation of two measures
select country, corr(amount, discount) as c, covar_samp(amount, discount) as v, regr_slope(amount, discount) as b from orders group by country;
-- histogram by width_bucket
select width_bucket(cast(amount as double), 0, 1000, 10) as bucket, count(*) as n from orders group by 1;
-- JSON fields
select id, get_json_object(props, '$.item.id') as item, cast(get_json_object(props, '$.price') as decimal(10,2)) as price from events;
-- JSON parsed by a schema
select id, p.item, p.price from (select id, from_json(props, 'struct<item:string,price:decimal(10,2)>') as p from events) as e;
-- JSON arrays exploded
select id, explode(from_json(props, 'array<string>')) as word from events;
-- JSON by the colon operator of fields in a struct
select a.city, count(*) as n from (select address as a from customers) as c group by a.city;
-- arrays: tags counted
select tag, count(*) as n from products lateral view explode(tags) t as tag group by tag;
-- arrays: OUTER view beside an aggregate
select p.id, min(tag) as first, count(tag) as n from products p lateral view outer explode(p.tags) t as tag group by p.id;
-- arrays: filter and transform
select id, size(filter(tags, t -> t like 'x%')) as xs, transform(tags, t -> upper(t)) as loud from products;
-- arrays: aggregate with a lambda
select id, aggregate(transform(tags, t -> length(t)), 0, (acc, n) -> acc + n) as letters from products where exists(tags, t -> t = 'new');
-- arrays: products with a tag of a list
select id from products where arrays_overlap(tags, array('sale', 'new'));
-- maps made from entries
select order_id, map_from_entries(collect_list(struct(product_id, quantity))) as basket from order_items group by order_id;
-- distinct values as a sorted list
select customer_id, concat_ws(',', sort_array(collect_set(channel))) as channels from orders group by customer_id;
-- hierarchies: chief and chief's chief
select e.name, m.name as chief, g.name as top from employees e left join employees m on e.manager_id = m.id left join employees g on m.manager_id = g.id;
-- hierarchies: head counts below each manager, three levels
select m.id, count(distinct e.id) + count(distinct f.id) as reports from employees m left join employees e on e.manager_id = m.id left join employees f on f.manager_id = e.id group by m.id;
-- hierarchies: those without reports
select id, name from employees where id not in (select manager_id from employees where manager_id is not null);
-- date spine by sequence, LEFT JOIN
with spine as (select explode(sequence(date'2024-01-01', date'2024-01-31', interval 1 day)) as day)
select s.day, coalesce(sum(o.amount), 0) as revenue from spine s left join orders o on o.day = s.day group by s.day;
-- date spine by a values list
select v.status, count(o.id) as n from (values ('paid'), ('open'), ('void')) as v(status) left join orders o on o.status = v.status group by v.status;
-- date spine from the data's own range
with b as (select min(day) as first, max(day) as last from orders), spine as (select explode(sequence(first, last, interval 1 day)) as day from b)
select s.day, count(o.id) as n from spine s left join orders o on o.day = s.day group by s.day;
-- date spine by range
select d.id, count(o.id) as n from range(0, 31) as d left join orders o on day(o.day) = d.id + 1 group by d.id;
-- subscriptions: active at the end of each month
select c.day, count(*) as active, sum(s.fee) as mrr from calendar c join subscriptions s on s.starts <= c.day and (s.ends is null or s.ends > c.day) group by c.day;
-- subscriptions: overlapping ones of a customer
select a.id, b.id as other from subscriptions a join subscriptions b on a.customer_id = b.customer_id and a.id < b.id and a.starts < coalesce(b.ends, date'9999-12-31') and b.starts < coalesce(a.ends, date'9999-12-31');
-- subscriptions: MRR movements
with m as (select customer_id, trunc(starts, 'MM') as month, sum(fee) as fee from subscriptions group by 1, 2),
d as (select customer_id, month, fee - coalesce(lag(fee) over (partition by customer_id order by month), 0) as delta from m)
select month, sum(case when delta > 0 then delta else 0 end) as expansion, sum(case when delta < 0 then delta else 0 end) as contraction from d group by month;
-- attribution: first touch
select distinct customer_id, first_value(channel) over (partition by customer_id order by at, id) as first_touch from touches;
-- attribution: last touch before the order
select o.id, max_by(t.channel, t.at) as channel from orders o join touches t on t.customer_id = o.customer_id and t.at <= o.ordered_at group by o.id;
-- attribution: linear shares
with t as (select o.id, o.amount, t.channel, count(*) over (partition by o.id) as n from orders o join touches t on t.customer_id = o.customer_id and t.at <= o.ordered_at)
select channel, sum(amount / n) as revenue from t group by channel;
-- attribution: last touch by last_value over the whole window
select id, last_value(channel) over (partition by customer_id order by at rows between unbounded preceding and unbounded following) as last_touch from touches;
-- market basket: pairs of products
select a.product_id as one, b.product_id as two, count(*) as n from order_items a join order_items b on a.order_id = b.order_id and a.product_id < b.product_id group by 1, 2;
-- market basket: lift of pairs
with p as (select product_id, count(distinct order_id) as n from order_items group by product_id),
k as (select a.product_id as one, b.product_id as two, count(distinct a.order_id) as n from order_items a join order_items b on a.order_id = b.order_id and a.product_id < b.product_id group by 1, 2)
select k.one, k.two, k.n * (select count(distinct order_id) from order_items) / (x.n * y.n) as lift from k join p x on k.one = x.product_id join p y on k.two = y.product_id;
-- inventory: days until empty
select product_id, sum(quantity) as sold, sum(quantity) / nullif(datediff(max(o.day), min(o.day)), 0) as pace from order_items i join orders o on i.order_id = o.id group by product_id;
-- deduplication: the newest row of a key
select * from (select *, row_number() over (partition by email order by signed_up desc, id) as nr from customers) as t where nr = 1;
-- deduplication: by EXCEPT of the number
select id, email from (select id, email, count(*) over (partition by lower(trim(email))) as n from customers) as t where n > 1;
-- data quality: orphans of three tables
select 'item' as what, count(*) as n from order_items i left anti join orders o on i.order_id = o.id
union all select 'order', count(*) from orders o left anti join customers c on o.customer_id = c.id;
-- data quality: nulls by column
select count(*) as n, count(*) - count(email) as no_email, avg(case when country is null then 1.0 else 0 end) as share from customers;
-- changes between two states by FULL JOIN
select coalesce(a.id, b.id) as id, case when a.id is null then 'gone' when b.id is null then 'new' else 'same' end as state
from (select id from orders where day = date'2024-01-02') a full join (select id from orders where day = date'2024-01-01') b on a.id = b.id;
-- union of differently typed branches
select id, amount, null as note from orders union all select id, 0, cast(day as string) from bookings;
-- SLA: median of hours by priority
select priority, median((unix_timestamp(closed) - unix_timestamp(opened)) / 3600) as hours, count_if(closed is null) as open from tickets group by priority;
-- SLA: busy hours as a matrix
select dayofweek(opened) as d, hour(opened) as h, count(*) as n from tickets group by 1, 2;
-- SLA: open tickets at each opening
select t.id, (select count(*) from tickets x where x.opened <= t.opened and (x.closed is null or x.closed > t.opened)) as open from tickets t;
-- lateral column aliases
select id, amount - discount as net, net * 0.19 as tax, net + tax as gross from orders;
-- LATERAL: totals of each customer
select c.id, l.n, l.total from customers c, lateral (select count(*) as n, sum(amount) as total from orders o where o.customer_id = c.id) as l;
-- LATERAL: a computed column
select o.id, l.net from orders o, lateral (select o.amount - o.discount as net) as l;
-- SELECT * EXCEPT
select * except (email) from customers;
-- alias.* beside USING
select o.*, c.name from orders o join (select id as customer_id, name from customers) as c using (customer_id);
-- sums of doubles
select page, sum(value) as total, avg(value) as mean from events group by page;
-- a filter above sums of doubles
select page, total from (select page, sum(value) as total from events group by page) as t where total > 10;
-- distinct users of 28 days by a window over a set
select day, size(collect_set(user_id) over (order by day range between interval 27 days preceding and current row)) as users from (select to_date(at) as day, user_id from events) as e;
-- count of distinct by two keys
select country, count(distinct customer_id, channel) as n, approx_count_distinct(customer_id) as about from orders group by country;
-- time between orders
select customer_id, avg(gap) as mean from (select customer_id, datediff(day, lag(day) over (partition by customer_id order by day, id)) as gap from orders) as g where gap is not null group by customer_id;
-- first and repeat orders of a day
select day, count_if(nr = 1) as first, count_if(nr > 1) as repeated from (select day, row_number() over (partition by customer_id order by ordered_at, id) as nr from orders) as n group by day;
-- best day of each country
select country, max_by(day, revenue) as best, max(revenue) as revenue from (select country, day, sum(amount) as revenue from orders group by country, day) as d group by country;
-- weekly active by tumbling windows
select window(at, '7 days').start as week, count(distinct user_id) as users from events group by window(at, '7 days');
