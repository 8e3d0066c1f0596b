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
-- sessionization: duration and bounce rate by day
with g as (select user_id, at, page, unix_timestamp(at) - unix_timestamp(lag(at) over (partition by user_id order by at, id)) as gap, id from events),
s as (select user_id, at, page, count_if(gap is null or gap > 1800) over (partition by user_id order by at, id rows between unbounded preceding and current row) as nr from g),
w as (select user_id, nr, min(at) as started, unix_timestamp(max(at)) - unix_timestamp(min(at)) as seconds, count(*) as pages from s group by user_id, nr)
select to_date(started) as day, count(*) as sessions, sum(seconds) as seconds, count_if(pages = 1) as bounced from w group by to_date(started);
-- sessionization: landing and exit page of each session
with g as (select id, user_id, at, page, case when lag(at) over (partition by user_id order by at, id) >= at - interval 30 minutes then 0 else 1 end as f from events),
s as (select id, user_id, at, page, sum(f) over (partition by user_id order by at, id) as nr from g)
select user_id, nr, min_by(page, at) as landed, max_by(page, at) as left_from, count(distinct page) as pages from s group by user_id, nr;
-- sessionization: a session ends at a purchase
select user_id, nr, count(*) as n, max(at) as last from (
  select user_id, at, coalesce(sum(case when kind = 'buy' then 1 else 0 end) over (partition by user_id order by at, id rows between unbounded preceding and 1 preceding), 0) as nr from events) s
group by user_id, nr;
-- funnel: strict order by lead within a day
with e as (select user_id, kind, at, lead(kind) over (partition by user_id order by at, id) as k2, lead(at) over (partition by user_id order by at, id) as t2 from events)
select to_date(at) as day, count(*) as views, count_if(k2 = 'cart' and t2 < at + interval 1 day) as carted from e where kind = 'view' group by to_date(at);
-- funnel: the furthest step of each user
select step, count(*) as users from (select user_id, max(case kind when 'view' then 1 when 'cart' then 2 when 'buy' then 3 end) as step from events group by user_id) x group by step;
-- funnel: users who viewed and never bought
select distinct v.user_id from events v where v.kind = 'view' and not exists (select 1 from events b where b.user_id = v.user_id and b.kind = 'buy' and b.at > v.at);
-- funnel: cumulative counts by a window over steps
with m as (select user_id, max(case kind when 'view' then 1 when 'cart' then 2 else 3 end) as reached from events group by user_id),
c as (select reached, count(*) as n from m group by reached)
select reached, sum(n) over (order by reached desc) as at_least from c;
-- funnel: time from view to cart, percentiles
with f as (select user_id, min(case when kind = 'view' then at end) as v, min(case when kind = 'cart' then at end) as c from events group by user_id)
select percentile(unix_timestamp(c) - unix_timestamp(v), 0.5) as half, max(unix_timestamp(c) - unix_timestamp(v)) as slowest from f where c > v;
-- SCD2: intervals merged where the price did not change
with d as (select product_id, price, valid_from, id, case when price <=> lag(price) over (partition by product_id order by valid_from, id) then 0 else 1 end as is_new from prices),
g as (select product_id, price, valid_from, sum(is_new) over (partition by product_id order by valid_from, id) as grp from d)
select product_id, grp, min(price) as price, min(valid_from) as since, count(*) as versions from g group by product_id, grp;
-- SCD2: point in time join of an order with the plan that was active
select o.id, s.plan, s.fee from orders o left join subscriptions s on s.customer_id = o.customer_id and o.day >= s.starts and o.day < coalesce(s.ends, date'9999-12-31');
-- SCD2: versions that overlap another one
select s.id from subscriptions s where exists (select 1 from subscriptions x where x.customer_id = s.customer_id and x.id <> s.id and x.starts < s.ends and s.starts < x.ends);
-- SCD2: is current, and how long each version held
select id, product_id, valid_from, coalesce(date_sub(lead(valid_from) over (partition by product_id order by valid_from, id), 1), date'9999-12-31') as valid_to,
  lead(valid_from) over (partition by product_id order by valid_from, id) is null as is_current from prices;
-- as-of join: the rate of the day, else the one before, by a lateral maximum
select o.id, (select max_by(r.rate, r.day) from rates r where r.currency = o.currency and r.day <= o.day) as rate from orders o;
-- as-of join: union of both sides and carry forward
with u as (select product_id, valid_from as day, price, 0 as is_item, id from prices union all select i.product_id, o.day, null, 1, i.id from order_items i join orders o on i.order_id = o.id),
f as (select *, last_value(price) ignore nulls over (partition by product_id order by day, is_item, id rows between unbounded preceding and current row) as asof from u)
select id, product_id, asof from f where is_item = 1;
-- as-of join: nearest rate in either direction
select id, rate from (select o.id, r.rate, rank() over (partition by o.id order by abs(datediff(o.day, r.day)), r.day) as nr from orders o join rates r on r.currency = o.currency) x where nr = 1;
-- running balance: the lowest one of each account
with b as (select account_id, day, id, sum(amount) over (partition by account_id order by day, id rows between unbounded preceding and current row) as balance from bookings)
select account_id, min(balance) as lowest, count_if(balance > 100) as over from b group by account_id;
-- running balance: opening and closing of each day
with d as (select account_id, day, sum(amount) as delta from bookings group by account_id, day),
r as (select account_id, day, delta, sum(delta) over (partition by account_id order by day) as closing from d)
select account_id, day, closing - delta as opening, closing, rank() over (partition by day order by closing desc) as place from r;
-- running balance: share of the running total
select id, account_id, sum(amount) over (partition by account_id order by day, id) / sum(amount) over (partition by account_id) as share from bookings;
-- running maximum and drawdown
select id, account_id, day, amount - max(amount) over (partition by account_id order by day, id rows between unbounded preceding and current row) as drawdown from bookings;
-- month over month: by channel, with missing months
with m as (select distinct trunc(day, 'MM') as month from orders), c as (select distinct channel from orders),
s as (select channel, trunc(day, 'MM') as month, sum(amount) as revenue from orders group by channel, trunc(day, 'MM'))
select c.channel, m.month, coalesce(s.revenue, 0) as revenue, coalesce(s.revenue, 0) - lag(coalesce(s.revenue, 0)) over (partition by c.channel order by m.month) as growth
from m cross join c left join s on s.channel = c.channel and s.month = m.month;
-- month over month: self join by add_months
with m as (select country, date_trunc('month', day) as month, sum(amount) as revenue from orders group by 1, 2)
select a.country, a.month, a.revenue, b.revenue as before from m a left join m b on b.country = a.country and b.month = add_months(a.month, -1);
-- quarter to date by country
select country, id, sum(amount) over (partition by country, year(day), quarter(day) order by day, id) as qtd from orders;
-- year to date against the year before
with y as (select country, year(day) as y, sum(amount) as total from orders group by country, year(day))
select a.country, a.y, a.total, a.total - coalesce(b.total, 0) as more from y a left join y b on a.country = b.country and b.y = a.y - 1;
-- year to date: cumulative customers
with f as (select customer_id, min(day) as first from orders group by customer_id), d as (select first as day, count(*) as n from f group by first)
select day, sum(n) over (partition by year(day) order by day) as new_ytd from d;
-- cohort retention: months since the first order
with f as (select customer_id, trunc(min(day), 'MM') as cohort from orders group by customer_id),
a as (select distinct customer_id, trunc(day, 'MM') as month from orders)
select f.cohort, cast(months_between(a.month, f.cohort) as int) as age, count(*) as customers from f join a on f.customer_id = a.customer_id group by 1, 2;
-- cohort retention: share of the cohort
with f as (select customer_id, trunc(min(day), 'MM') as cohort from orders group by customer_id),
n as (select cohort, count(*) as size from f group by cohort),
a as (select f.cohort, trunc(o.day, 'MM') as month, count(distinct o.customer_id) as active from orders o join f on o.customer_id = f.customer_id group by f.cohort, trunc(o.day, 'MM'))
select a.cohort, a.month, a.active, n.size, cast(a.active as double) / n.size as share from a join n on a.cohort = n.cohort;
-- cohort: revenue in the first 30 days after signing up
select trunc(c.signed_up, 'MM') as cohort, count(distinct c.id) as customers, sum(case when o.day <= date_add(c.signed_up, 30) then o.amount end) as ltv30 from customers c left join orders o on o.customer_id = c.id group by trunc(c.signed_up, 'MM');
-- churn: customers active before and not now
select a.customer_id from (select distinct customer_id from orders where day < date'2024-01-02') a left anti join (select customer_id from orders where day >= date'2024-01-02') b on a.customer_id = b.customer_id;
-- churn: days since the last order, by buckets
select case when d <= 1 then 'new' when d <= 30 then 'warm' else 'cold' end as bucket, count(*) as n from (select customer_id, datediff(date'2024-02-05', max(day)) as d from orders group by customer_id) x group by 1;
-- reactivation: a gap of more than 30 days
select customer_id, count_if(gap > 30) as returns from (select customer_id, datediff(day, lag(day) over (partition by customer_id order by day, id)) as gap from orders) x group by customer_id;
-- pivot: counts and amounts by month
select country, count_if(month(day) = 1) as jan, count_if(month(day) = 12) as dec, sum(amount) filter (where month(day) = 1) as jan_sum from orders group by country;
-- pivot: first value of each key
select order_id, max(case when nr = 1 then product_id end) as p1, max(case when nr = 2 then product_id end) as p2 from (select order_id, product_id, row_number() over (partition by order_id order by product_id, id) as nr from order_items) x group by order_id;
-- pivot: max_by of attributes
select customer_id, max_by(status, ordered_at) filter (where channel = 'web') as web_status, max_by(status, ordered_at) filter (where channel = 'shop') as shop_status from orders group by customer_id;
-- top: the best three with ties, of each country
select country, customer_id, total from (select country, customer_id, sum(amount) as total, rank() over (partition by country order by sum(amount) desc) as r from orders group by country, customer_id) x where r <= 3;
-- top: dense ranks of salaries
select dept, name, salary, dense_rank() over (partition by dept order by salary desc) as place from employees qualify place <= 2;
-- top: second newest order of each customer
select customer_id, id from orders qualify row_number() over (partition by customer_id order by ordered_at desc, id desc) = 2;
-- top: percent of total and cumulative share
with p as (select product_id, sum(quantity) as q from order_items group by product_id)
select product_id, q, q / sum(q) over () as share, sum(q) over (order by q desc, product_id) as running from p;
-- top: quartile of customers by spending
select customer_id, ntile(4) over (order by total desc, customer_id) as quartile from (select customer_id, sum(amount) as total from orders group by customer_id) x;
-- gaps and islands: days without bookings
select account_id, day, datediff(lead(day) over (partition by account_id order by day), day) - 1 as missing from (select distinct account_id, day from bookings) x qualify missing > 0;
-- gaps and islands: consecutive increases
with c as (select id, account_id, day, amount, case when amount > lag(amount) over (partition by account_id order by day, id) then 0 else 1 end as f from bookings),
g as (select account_id, amount, sum(f) over (partition by account_id order by day, id) as run from c)
select account_id, run, count(*) as length, max(amount) as peak from g group by account_id, run having count(*) > 1;
-- gaps and islands: merged subscription intervals
with o as (select customer_id, starts, ends, id, max(ends) over (partition by customer_id order by starts, id rows between unbounded preceding and 1 preceding) as reach from subscriptions),
g as (select customer_id, starts, ends, sum(case when starts <= reach then 0 else 1 end) over (partition by customer_id order by starts, id) as island from o)
select customer_id, island, min(starts) as since, max(ends) as until from g group by customer_id, island;
-- gaps: missing numbers of a sequence
select id + 1 as gap from orders o where not exists (select 1 from orders n where n.id = o.id + 1);
-- percentiles: interquartile outliers
with q as (select country, percentile(amount, 0.25) as q1, percentile(amount, 0.75) as q3 from orders group by country)
select o.id from orders o join q on o.country = q.country where o.amount > q.q3 + 1.5 * (q.q3 - q.q1);
-- percentiles: rank of each order in its country
select id, percent_rank() over (partition by country order by amount) as pr, cume_dist() over (partition by country order by amount) as cd from orders;
-- percentiles: median of gaps between touches
select customer_id, percentile_cont(0.5) within group (order by gap) as median from (select customer_id, unix_timestamp(at) - unix_timestamp(lag(at) over (partition by customer_id order by at, id)) as gap from touches) x where gap is not null group by customer_id;
-- JSON: counts by an attribute that may be missing
select coalesce(get_json_object(props, '$.item.id'), 'none') as item, count(*) as n, count(distinct user_id) as users from events group by 1;
-- JSON: written from columns
select id, to_json(named_struct('id', id, 'country', country)) as doc from customers;
-- arrays: the share of products with each tag
select t.tag, count(*) as n, count(*) / (select count(*) from products) as share from products p lateral view explode(p.tags) t as tag group by t.tag;
-- arrays: products that share a tag
select distinct a.id as one, b.id as two from (select id, explode(tags) as tag from products) a join (select id, explode(tags) as tag from products) b on a.tag = b.tag and a.id < b.id;
-- arrays: size, first element, membership
select id, size(tags) as n, tags[0] as first, array_contains(tags, 'sale') as is_sale from products where size(tags) > 0;
-- arrays: an ordered list of products of each order
select order_id, array_sort(collect_list(product_id)) as ids, size(collect_set(product_id)) as kinds from order_items group by order_id;
-- arrays: positions
select p.id, t.pos, t.tag from products p lateral view posexplode(p.tags) t as pos, tag where t.pos > 0;
-- hierarchies: depth by chained left joins
select e.id, case when m.id is null then 0 when g.id is null then 1 else 2 end as depth from employees e left join employees m on m.id = e.manager_id left join employees g on g.id = m.manager_id;
-- hierarchies: salary of teams with their manager
select m.id, m.salary + coalesce(sum(e.salary), 0) as cost from employees m left join employees e on e.manager_id = m.id group by m.id, m.salary;
-- hierarchies: siblings
select a.id, b.id as sibling from employees a join employees b on a.manager_id <=> b.manager_id and a.id <> b.id;
-- referrals: two levels
select r.id, count(a.id) as direct, count(b.id) as indirect from customers r left join customers a on a.referrer_id = r.id left join customers b on b.referrer_id = a.id group by r.id;
-- inventory: sold against priced, FULL JOIN of sums
with s as (select product_id, sum(quantity) as sold from order_items group by product_id), p as (select product_id, max_by(price, valid_from) as price from prices group by product_id)
select coalesce(s.product_id, p.product_id) as product_id, s.sold, p.price, s.sold * p.price as worth from s full join p on s.product_id = p.product_id;
-- SLA: breached tickets by week
select date_trunc('week', opened) as week, priority, count_if(closed > opened + interval 1 day or closed is null) as breached, count(*) as n from tickets group by 1, 2;
-- SLA: concurrency by a running sum of +1 and -1
with m as (select opened as at, 1 as d from tickets union all select closed, -1 from tickets where closed is not null),
s as (select at, sum(d) as d from m group by at)
select at, sum(d) over (order by at) as open from s;
-- attribution: position based, 40/20/40
with t as (select o.id, t.channel, row_number() over (partition by o.id order by t.at, t.id) as f, row_number() over (partition by o.id order by t.at desc, t.id desc) as l from orders o join touches t on t.customer_id = o.customer_id and t.at <= o.ordered_at)
select channel, sum(case when f = 1 then 40 else 0 end + case when l = 1 then 40 else 0 end + case when f > 1 and l > 1 then 20 else 0 end) as points from t group by channel;
-- revenue by a currency table with a default
select o.country, sum(cast(o.amount * coalesce(r.rate, 1.0) as decimal(12,2))) as eur from orders o left join rates r on r.currency = o.currency and r.day = o.day group by o.country;
-- weekday profile as shares of the week
with d as (select dayofweek(day) as wd, count(*) as n from orders group by dayofweek(day)) select wd, n, n / (select sum(n) from d) as share from d;
-- customers of all channels (relational division)
select customer_id from orders group by customer_id having count(distinct channel) = (select count(distinct channel) from orders);
-- the latest status by a correlated maximum in a tuple
select id, customer_id, status from orders where (customer_id, ordered_at) in (select customer_id, max(ordered_at) from orders group by customer_id);
-- skip the three largest
select id, amount from orders order by amount desc, id offset 3;
-- union of totals and details
select country, channel, sum(amount) as total from orders group by country, channel union all select country, 'all', sum(amount) from orders group by country union all select 'all', 'all', sum(amount) from orders;

-- structs: the newest order of each customer as one value
select customer_id, max_by(struct(id, ordered_at as at, amount), ordered_at) as newest, count(*) as n from orders group by customer_id;

-- structs: fields of an address, with defaults
select id, coalesce(address.city, 'none') as city, address.zip as zip, named_struct('name', name, 'at', signed_up) as person from customers;

-- structs: the order before as one value
select id, lag(struct(id, amount)) over (partition by customer_id order by ordered_at, id) as before from orders;

-- structs: read from a struct made below
select s.country, s.channel, sum(amount) as total from (select struct(country, channel) as s, amount from orders) group by s.country, s.channel;

-- structs: a nested one, filtered by its field
select id, o.money.amount as amount from (select id, struct(status, struct(amount, currency) as money) as o from orders) where o.money.currency = 'eur';

-- sessionization: events within an hour before
select id, count(*) over (partition by user_id order by at range between interval 1 hour preceding and current row) as recent from events;

-- sessionization: first event of a day by user, later ones flagged
select id, user_id, row_number() over (partition by user_id, cast(at as date) order by at, id) = 1 as is_first from events;

-- sessionization: sessions by a gap in seconds of unix_timestamp
with g as (select *, unix_timestamp(at) - unix_timestamp(lag(at) over (partition by user_id order by at, id)) as gap from events),
s as (select *, sum(case when gap is null or gap > 1800 then 1 else 0 end) over (partition by user_id order by at, id) as nr from g)
select user_id, nr, min(at) as begun, count(*) as n, count(distinct page, kind) as steps from s group by user_id, nr;

-- running totals: amounts of the seven days before
select id, customer_id, sum(amount) over (partition by customer_id order by day range between 6 preceding and current row) as week from orders;

-- running totals: orders of the same and the next day
select id, count(*) over (partition by country order by day range between current row and 1 following) as n from orders;

-- running totals: mean of amounts within ten of each other
select id, avg(amount) over (partition by channel order by amount range between 10 preceding and 10 following) as near from orders;

-- running balance: by bookings, reset each month
select id, account_id, sum(amount) over (partition by account_id, trunc(day, 'MM') order by day, id) as balance from bookings;

-- running balance: days on which it was low
select account_id, day, balance from (select account_id, day, sum(sum(amount)) over (partition by account_id order by day) as balance from bookings group by account_id, day) where balance < 50;

-- running balance: minimum so far
select id, min(balance) over (partition by account_id order by day, id rows between unbounded preceding and current row) as low from (select id, account_id, day, sum(amount) over (partition by account_id order by day, id) as balance from bookings);

-- year to date: orders and mean by month
select year(day) as y, month(day) as m, count(*) as n, avg(amount) as mean, sum(count(*)) over (partition by year(day) order by month(day)) as ytd from orders group by year(day), month(day);

-- year to date: fiscal years that begin in April
select country, year(add_months(day, -3)) as fiscal, sum(amount) as total from orders group by country, year(add_months(day, -3));

-- month to date against the whole month
select id, sum(amount) over (partition by trunc(day, 'MM') order by day, id) as so_far, sum(amount) over (partition by trunc(day, 'MM')) as whole from orders;

-- cohort: customers by month of signing up and month of each order
select trunc(c.signed_up, 'MM') as cohort, trunc(o.day, 'MM') as month, count(distinct o.customer_id) as customers from customers c join orders o on o.customer_id = c.id group by trunc(c.signed_up, 'MM'), trunc(o.day, 'MM');

-- cohort: size, and who ordered within 30 days
select trunc(signed_up, 'MM') as cohort, count(*) as size, count_if(exists (select 1 from orders o where o.customer_id = c.id and datediff(o.day, c.signed_up) between 0 and 30)) as bought from customers c group by trunc(signed_up, 'MM');

-- cohort: order number of each order
select id, row_number() over (partition by customer_id order by ordered_at, id) as nr, datediff(day, min(day) over (partition by customer_id)) as age from orders;

-- funnel: each step with the step before
select kind, n, lag(n) over (order by place) as before from (select kind, case kind when 'view' then 1 when 'cart' then 2 else 3 end as place, count(distinct user_id) as n from events group by kind, case kind when 'view' then 1 when 'cart' then 2 else 3 end);

-- funnel: users by the set of their steps
select viewed, carted, bought, count(*) as users from (select user_id, bool_or(kind = 'view') as viewed, bool_or(kind = 'cart') as carted, bool_or(kind = 'buy') as bought from events group by user_id) group by cube(viewed, carted, bought);

-- funnel: views without a cart on the same day
select v.user_id, v.day, v.n from (select user_id, cast(at as date) as day, count(*) as n from events where kind = 'view' group by user_id, cast(at as date)) v left anti join (select distinct user_id, cast(at as date) as day from events where kind = 'cart') c on c.user_id = v.user_id and c.day = v.day;

-- SCD2: from prices, with the next date as the end
select product_id, price, valid_from, coalesce(date_sub(lead(valid_from) over (partition by product_id order by valid_from, id), 1), date '9999-12-31') as valid_to from prices;

-- SCD2: how often a price changed in a quarter
select product_id, trunc(valid_from, 'QUARTER') as quarter, count(*) as changes from (select *, lag(price) over (partition by product_id order by valid_from, id) as before from prices) where before is distinct from price group by product_id, trunc(valid_from, 'QUARTER');

-- SCD2: gaps between versions
select product_id, valid_from, datediff(valid_from, lag(valid_from) over (partition by product_id order by valid_from, id)) as days from prices;

-- as-of join: the price valid on the day of an order, by QUALIFY
select i.id, p.price from order_items i join orders o on o.id = i.order_id left join prices p on p.product_id = i.product_id and p.valid_from <= o.day qualify row_number() over (partition by i.id order by p.valid_from desc, p.id desc) = 1;

-- as-of join: the rate before as a lateral struct
select o.id, (select max(r.day) from rates r where r.currency = o.currency and r.day <= o.day) as rated from orders o;

-- as-of join: last touch within seven days
select o.id, max(t.at) as touched from orders o left join touches t on t.customer_id = o.customer_id and t.at <= o.ordered_at and t.at > o.ordered_at - interval 7 days group by o.id;

-- date spine: every day between two dates beside the orders
select d.day, o.country, coalesce(sum(o.amount), 0) as total from (select explode(sequence(date '2023-12-30', date '2024-01-05', interval 1 day)) as day) d left join orders o on o.day = d.day group by d.day, o.country;

-- date spine: months by sequence of months
select d.month, count(s.id) as active from (select explode(sequence(date '2023-12-01', date '2024-03-01', interval 1 month)) as month) d left join subscriptions s on s.starts <= last_day(d.month) and (s.ends is null or s.ends >= d.month) group by d.month;

-- date spine: days of each subscription
select id, explode(array(starts, date_add(starts, 1), ends)) as day from subscriptions where starts is not null;

-- date spine: calendar crossed with countries
select c.day, k.country, count(o.id) as n from calendar c cross join (select distinct country from customers) k left join orders o on o.day = c.day and o.country = k.country group by c.day, k.country;

-- pivot: statuses as columns with FILTER
select country, count(*) filter (where status = 'paid') as paid, count(*) filter (where status = 'open') as open, sum(amount) filter (where status = 'paid') as revenue from orders group by country;

-- pivot: of months by first letters
select channel, max(case when month(day) = 1 then amount end) as jan, max(case when month(day) = 2 then amount end) as feb from orders group by channel;

-- unpivot: measures of tickets with stack
select id, kind, moment from tickets lateral view stack(2, 'opened', opened, 'closed', closed) t as kind, moment;

-- top: best customer of each month
select month, customer_id, total from (select trunc(day, 'MM') as month, customer_id, sum(amount) as total, rank() over (partition by trunc(day, 'MM') order by sum(amount) desc) as r from orders group by trunc(day, 'MM'), customer_id) where r = 1;

-- top: three newest tickets without order of ties
select id, priority from tickets qualify row_number() over (partition by priority order by opened desc) <= 3;

-- top: largest bookings overall with an offset
select id, amount from bookings order by amount desc, id limit 5 offset 2;

-- gaps and islands: bookings of one sign in a row
select account_id, sign, min(day) as since, count(*) as n from (select *, amount > 5 as sign, row_number() over (partition by account_id order by day, id) - row_number() over (partition by account_id, amount > 5 order by day, id) as island from bookings) group by account_id, sign, island;

-- gaps and islands: weeks with orders in a row
select customer_id, count(*) as weeks from (select distinct customer_id, date_trunc('WEEK', day) as week from orders) group by customer_id having count(*) > 1;

-- gaps and islands: first day after a pause of ten days
select customer_id, day from (select customer_id, day, lag(day) over (partition by customer_id order by day, id) as before from orders) where before is null or datediff(day, before) > 10;

-- percentiles: deciles of amounts by ntile
select decile, min(amount) as low, max(amount) as high, count(*) as n from (select amount, ntile(10) over (order by amount, id) as decile from orders) group by decile;

-- percentiles: share of orders that are smaller
select id, cume_dist() over (partition by country order by amount) as share from orders;

-- percentiles: mean without the smallest and the largest
select country, avg(amount) as mean from (select country, amount, row_number() over (partition by country order by amount, id) as low, row_number() over (partition by country order by amount desc, id desc) as high from orders) where low > 1 and high > 1 group by country;

-- JSON: price beside the value
select id, get_json_object(props, '$.item.id') as item, value from events where get_json_object(props, '$.price') is not null;

-- arrays: tags by position, exploded in SELECT
select id, posexplode(tags) as (place, tag) from products;

-- arrays: products by their first tag
select tags[0] as first, count(*) as n from products group by tags[0];

-- hierarchies: chain of managers as a text
select e.id, concat(coalesce(b.name, '-'), '/', coalesce(m.name, '-'), '/', e.name) as path from employees e left join employees m on e.manager_id = m.id left join employees b on m.manager_id = b.id;

-- hierarchies: salary against the manager's and the department's mean
select e.id, e.salary - m.salary as to_manager, e.salary - avg(e.salary) over (partition by e.dept) as to_mean from employees e left join employees m on m.id = e.manager_id;

-- NOT IN of two columns
select id from orders where (customer_id, day) not in (select customer_id, starts from subscriptions where starts is not null and customer_id is not null);

-- NOT EXISTS with a range
select id from subscriptions s where not exists (select 1 from orders o where o.customer_id = s.customer_id and o.day between s.starts and coalesce(s.ends, date '9999-12-31'));

-- HAVING: countries above the mean of countries
select country, sum(amount) as total from orders group by country having sum(amount) > (select avg(t) from (select sum(amount) as t from orders group by country));

-- HAVING: customers with more orders than tickets
select customer_id, count(*) as n from orders o group by customer_id having count(*) > (select count(*) from tickets t where t.customer_id = o.customer_id);

-- UNION of dates and timestamps, integers and decimals
select id, day as at, amount as value from orders union all select id, opened, id from tickets;

-- UNION: a log of all that happened to a customer
select customer_id, ordered_at as at, 'order' as what, cast(amount as string) as detail from orders union all select customer_id, opened, 'ticket', priority from tickets union all select customer_id, at, 'touch', channel from touches;

-- LATERAL: the two newest orders of each customer
select c.id, l.id as order_id, l.amount from customers c, lateral (select o.id, o.amount, row_number() over (partition by o.customer_id order by o.ordered_at desc, o.id) as nr from orders o where o.customer_id = c.id) l where l.nr <= 2;

-- LATERAL: amount classes by a values list
select o.id, k.name from orders o join (values (0, 2, 'small'), (2, 100, 'middle'), (100, 1000, 'large')) k(low, high, name) on o.amount >= k.low and o.amount < k.high;

-- QUALIFY with an aggregate
select country, channel, sum(amount) as total from orders group by country, channel qualify rank() over (partition by country order by total desc) = 1;

-- inventory: sold quantity against the running total of all products
select product_id, sold, sum(sold) over (order by sold desc, product_id) as running from (select product_id, sum(quantity) as sold from order_items group by product_id);

-- SLA: hours open, by weekday and hour
select dayofweek(opened) as weekday, hour(opened) as hour, count(*) as n, avg(cast(closed as bigint) - cast(opened as bigint)) as seconds from tickets group by dayofweek(opened), hour(opened);

-- attribution: first and last channel beside each other
select o.id, first.channel as first, last.channel as last from orders o left join (select customer_id, min_by(channel, at) as channel from touches group by customer_id) first on first.customer_id = o.customer_id left join (select customer_id, max_by(channel, at) as channel from touches group by customer_id) last on last.customer_id = o.customer_id;

-- market basket: products never bought together with product 1
select distinct i.product_id from order_items i where not exists (select 1 from order_items a join order_items b on a.order_id = b.order_id where a.product_id = 1 and b.product_id = i.product_id);

-- texts: domains of mail addresses
select substring(email, locate('@', email) + 1, 20) as domain, count(*) as n from customers group by substring(email, locate('@', email) + 1, 20);
-- funnel: conditional window counts
select id, user_id, kind, count(case when kind = 'view' then 1 end) over (partition by user_id order by at, id) as views,
  sum(case when kind = 'buy' then value else 0 end) over (partition by user_id order by at, id rows unbounded preceding) as spent from events;
-- funnel: first buy after the last cart of each user
with w as (select id, user_id, at, kind, max(case when kind = 'cart' then at end) over (partition by user_id order by at, id rows between unbounded preceding and 1 preceding) as carted from events)
select user_id, min(at) as bought, min(carted) as carted from w where kind = 'buy' and carted is not null group by user_id;
-- anti join: by LEFT JOIN and IS NULL
select c.id, c.name from customers c left join orders o on o.customer_id = c.id where o.id is null;
-- anti join: by LEFT JOIN and IS NULL of a nullable column
select c.id, c.name from customers c left join orders o on o.customer_id = c.id where o.status is null;
-- anti join: null-safe keys
select b.id from bookings b left anti join subscriptions s on b.account_id <=> s.customer_id;
-- anti join: NOT IN with IS NOT NULL inside
select id from customers where id not in (select customer_id from orders where customer_id is not null);
-- anti join: NOT EXISTS of two tables
select c.id from customers c where not exists (select 1 from orders o where o.customer_id = c.id) and not exists (select 1 from tickets t where t.customer_id = c.id and t.closed is null);
-- reconciliation: FULL OUTER of bookings and orders by day with differences
with a as (select day, sum(amount) as booked, count(*) as n from bookings group by day), b as (select day, sum(amount) as ordered, count(*) as n from orders group by day)
select coalesce(a.day, b.day) as day, a.booked, b.ordered, coalesce(a.booked, 0) - coalesce(b.ordered, 0) as diff,
  case when a.day is null then 'order only' when b.day is null then 'booking only' when a.booked = b.ordered then 'match' else 'differs' end as state
from a full outer join b on a.day = b.day;
-- reconciliation: FULL OUTER JOIN USING
select day, a.amount as booked, b.amount as ordered from bookings a full outer join orders b using (day);
-- reconciliation: symmetric difference by EXCEPT ALL both ways
(select customer_id, day, amount from orders except all select account_id, day, amount from bookings) union all (select account_id, day, amount from bookings except all select customer_id, day, amount from orders);
-- reconciliation: three tables by FULL JOIN on a coalesce
select coalesce(a.day, b.day, c.day) as day, a.n, b.n as m, c.n as k from (select day, count(*) as n from orders group by day) a
full join (select day, count(*) as n from bookings group by day) b on a.day = b.day
full join (select starts as day, count(*) as n from subscriptions group by starts) c on coalesce(a.day, b.day) = c.day;
-- GROUPING SETS with grouping and labels
select case when grouping(country) = 1 then 'all' else country end as country, case when grouping(channel) = 1 then 'all' else channel end as channel,
  grouping_id(country, channel) as level, sum(amount) as total, count(distinct customer_id) as customers
from orders group by grouping sets ((country, channel), (country), ());
-- CUBE with HAVING on grouping_id
select country, channel, status, grouping_id() as g, count(*) as n from orders group by cube(country, channel, status);
-- ROLLUP of dates
select year(day) as y, month(day) as m, sum(amount) as total from orders group by rollup(year(day), month(day));
-- ROLLUP over a join with a share of the subtotal
with r as (select c.country, o.channel, sum(o.amount) as total from orders o join customers c on o.customer_id = c.id group by rollup(c.country, o.channel))
select country, channel, total, total / sum(total) over (partition by country) as share from r;
-- GROUPING SETS with average and max_by
select country, channel, avg(amount) as mean, max_by(id, amount) as best from orders group by grouping sets ((country), (channel), (country, channel));
-- intervals: due dates by months
select id, starts + interval 1 month as due, ends - interval 2 weeks as warn, add_months(starts, 12) as year_on, datediff(ends, starts) as days from subscriptions;
-- intervals: hours between timestamps
select id, (unix_timestamp(closed) - unix_timestamp(opened)) / 3600 as hours, closed - opened as took from tickets;
-- intervals: SLA deadline by priority
select id, case when priority = 'high' then opened + interval 4 hours else opened + interval 1 day end as due,
  closed > case when priority = 'high' then opened + interval 4 hours else opened + interval 1 day end as late from tickets;
-- intervals: timestampdiff
select id, timestampdiff(HOUR, opened, closed) as hours, timestampdiff(DAY, opened, closed) as days from tickets;
-- intervals: date_diff with a unit
select id, datediff(DAY, opened, closed) as days from tickets;
-- CASE with a semi join
select o.id, case when o.customer_id in (select customer_id from tickets where priority = 'high') then 'watch' when exists (select 1 from subscriptions s where s.customer_id = o.customer_id and s.plan = 'pro') then 'pro' else 'other' end as class from orders o;
-- CASE with a semi join, aggregated
select o.country, sum(case when o.customer_id in (select customer_id from subscriptions) then o.amount else 0 end) as subscribed, sum(o.amount) as total from orders o group by o.country;
-- nested aggregates over windows: share of group totals
select country, channel, sum(amount) as total, sum(sum(amount)) over (partition by country) as of_country, round(100.0 * sum(amount) / sum(sum(amount)) over (), 2) as pct from orders group by country, channel;
-- nested aggregates over windows: running total of monthly counts
select trunc(day, 'MM') as month, count(*) as n, sum(count(*)) over (order by trunc(day, 'MM')) as running, avg(count(*)) over (order by trunc(day, 'MM') rows between 2 preceding and current row) as mean3 from orders group by trunc(day, 'MM');
-- nested aggregates over windows: rank of distinct counts
select country, count(distinct customer_id) as n, dense_rank() over (order by count(distinct customer_id) desc) as place from orders group by country;
-- nested aggregates over windows: lag of sums and growth
select country, day, sum(amount) as total, sum(amount) - lag(sum(amount)) over (partition by country order by day) as growth from orders group by country, day;
-- top-n with ties: products by quantity
with s as (select product_id, sum(quantity) as q from order_items group by product_id), r as (select product_id, q, rank() over (order by q desc) as place from s)
select p.name, r.q, r.place from r left join products p on p.id = r.product_id where r.place <= 3;
-- top-n with ties: by a correlated count
select e.id, e.name, e.salary from employees e where (select count(distinct f.salary) from employees f where f.dept = e.dept and f.salary > e.salary) < 2;
-- top-n: LIMIT per whole with a join
select c.name, sum(o.amount) as total from orders o join customers c on c.id = o.customer_id group by c.name order by total desc nulls last, c.name limit 3;
-- distinct counts over rolling windows by a range self join
select d.day, count(distinct o.customer_id) as active7 from calendar d left join orders o on o.day between date_sub(d.day, 6) and d.day group by d.day;
-- distinct counts over rolling windows by dense_rank
select id, day, country, dense_rank() over (partition by country order by customer_id) + dense_rank() over (partition by country order by customer_id desc) - 1 as n from orders;
-- distinct so far: first occurrences summed
with f as (select id, day, country, customer_id, row_number() over (partition by country, customer_id order by day, id) as nr from orders)
select id, country, day, sum(case when nr = 1 then 1 else 0 end) over (partition by country order by day, id) as distinct_so_far from f;
-- forward fill: LAST_VALUE IGNORE NULLS
select id, product_id, valid_from, last_value(price) ignore nulls over (partition by product_id order by valid_from, id) as filled from prices;
-- forward fill: last_value with true as argument
select id, product_id, last_value(price, true) over (partition by product_id order by valid_from, id rows between unbounded preceding and current row) as filled from prices;
-- backward fill: FIRST_VALUE IGNORE NULLS of what follows
select id, product_id, first_value(price) ignore nulls over (partition by product_id order by valid_from, id rows between current row and unbounded following) as filled from prices;
-- forward fill: LAG IGNORE NULLS
select id, product_id, lag(price) ignore nulls over (partition by product_id order by valid_from, id) as before from prices;
-- forward fill: by groups of a running count
with g as (select id, product_id, valid_from, price, count(price) over (partition by product_id order by valid_from, id) as grp from prices)
select id, product_id, valid_from, max(price) over (partition by product_id, grp) as filled from g;
-- arrays: built from columns
select id, array(status, channel, country) as a, size(array(status, channel)) as n, array_contains(array(status, channel), 'web') as is_web from orders;
-- arrays: array_distinct, array_union, array_except
select id, array_distinct(tags) as d, array_union(tags, array('new')) as u, array_except(tags, array('sale')) as e, array_intersect(tags, array('new', 'x1')) as i from products;
-- arrays: element_at, slice, reverse, array_max
select id, element_at(tags, 1) as first, slice(tags, 1, 2) as two, reverse(tags) as r, array_max(tags) as most, array_position(tags, 'sale') as p from products;
-- arrays: collected structs sorted
select order_id, sort_array(collect_list(struct(product_id, quantity))) as lines from order_items group by order_id;
-- arrays: collected structs in an order, as texts
select order_id, concat_ws(', ', transform(sort_array(collect_list(struct(product_id, id, quantity))), x -> concat(cast(x.product_id as string), 'x', cast(x.quantity as string)))) as lines from order_items group by order_id;
-- arrays: exists and forall
select id, exists(tags, t -> t = 'new') as has_new, forall(tags, t -> length(t) > 2) as is_long, filter(tags, t -> t <> 'sale') as others from products;
-- arrays: zipped
select id, arrays_zip(tags, transform(tags, t -> length(t))) as z from products;
-- arrays: flattened collected tags
select category, size(flatten(collect_list(tags))) as n from products group by category;
-- arrays: sequence exploded with a join
select s.id, d.day from subscriptions s lateral view explode(sequence(s.starts, date_add(s.starts, 2))) d as day;
-- maps: from columns
select id, map('status', status, 'channel', channel) as m from orders;
-- maps: exploded
select id, k, v from orders lateral view explode(map('status', status, 'channel', channel)) m as k, v;
-- structs: named, compared and grouped
select s.country as country, s.channel as channel, count(*) as n from (select named_struct('country', country, 'channel', channel) as s from orders) x group by s.country, s.channel;
-- structs: max of a struct
select customer_id, max(struct(day, id, amount)).amount as last_amount from orders group by customer_id;
-- texts: sorted list joined by array_join
select customer_id, array_join(array_sort(collect_list(status)), '|') as statuses, array_join(sort_array(collect_set(channel), false), ',') as channels from orders group by customer_id;
-- JSON: json_tuple
select id, t.price, t.item from events lateral view json_tuple(props, 'price', 'item') t as price, item;
-- JSON: grouped by a path
select get_json_object(props, '$.item.id') as item, count(*) as n, sum(cast(get_json_object(props, '$.price') as decimal(10,2))) as total from events group by get_json_object(props, '$.item.id');
-- as-of: self join by a maximum earlier row
select a.id, b.id as before from bookings a left join bookings b on b.account_id = a.account_id and b.day = (select max(c.day) from bookings c where c.account_id = a.account_id and c.day < a.day);
-- as-of: latest rate by ROW_NUMBER in a CTE
with r as (select o.id, o.amount, x.rate, row_number() over (partition by o.id order by x.day desc, x.rate) as nr from orders o left join rates x on x.currency = o.currency and x.day <= o.day)
select id, amount, rate, round(amount * rate, 2) as converted from r where nr = 1;
-- as-of: the previous order's status by a self join on row numbers
with n as (select id, customer_id, status, row_number() over (partition by customer_id order by ordered_at, id) as nr from orders)
select a.id, a.status, b.status as before from n a left join n b on a.customer_id = b.customer_id and a.nr = b.nr + 1;
-- date spine: SELECT explode without FROM, cross joined with accounts
with days as (select explode(sequence(date'2023-12-30', date'2024-01-05', interval 1 day)) as day), accounts as (select distinct account_id from bookings)
select a.account_id, d.day, coalesce(sum(b.amount), 0) as balance from accounts a cross join days d left join bookings b on b.account_id = a.account_id and b.day <= d.day group by a.account_id, d.day;
-- date spine: from min to max of the data
with r as (select min(day) as lo, max(day) as hi from orders), d as (select explode(sequence(lo, hi)) as day from r)
select d.day, count(o.id) as n from d left join orders o on o.day = d.day group by d.day;
-- date spine: hours of a day
select h.hour, count(t.id) as n from (select explode(sequence(0, 23)) as hour) h left join tickets t on hour(t.opened) = h.hour group by h.hour;
-- QUALIFY: newest row of a key
select * from prices qualify row_number() over (partition by product_id order by valid_from desc, id desc) = 1;
-- QUALIFY: rows above the average of their group
select id, country, amount from orders qualify amount > avg(amount) over (partition by country);
-- QUALIFY: with an alias of a window and WHERE
select id, customer_id, lag(status) over (partition by customer_id order by ordered_at, id) as before, status from orders where amount > 0 qualify before <> status;
-- QUALIFY: duplicates
select id, email from customers qualify count(*) over (partition by email) > 1;
-- PIVOT: averages by status
select * from (select country, status, amount from orders) pivot (avg(amount) for status in ('paid', 'open'));
-- PIVOT: of two columns
select * from (select day, country, channel, amount from orders) pivot (sum(amount) for (country, channel) in (('de', 'web') as de_web, ('fr', 'shop') as fr_shop));
-- PIVOT: max_by of attributes
select * from (select customer_id, channel, status from orders) pivot (max(status) as s, min(status) as t for channel in ('web' as web, 'shop' as shop));
-- lateral aliases: net, tax and gross
select id, amount - coalesce(discount, 0) as net, net * 0.19 as tax, net + tax as gross, case when gross > 100 then 'big' else 'small' end as class from orders;
-- lateral aliases: over aggregates
select country, sum(amount) as total, count(*) as n, total / n as mean from orders group by country;
-- deep CTE chain: orders to customers to cohorts
with o as (select customer_id, day, amount from orders where status <> 'open'), f as (select customer_id, min(day) as first from o group by customer_id),
m as (select o.customer_id, trunc(f.first, 'MM') as cohort, cast(months_between(trunc(o.day, 'MM'), trunc(f.first, 'MM')) as int) as age, o.amount from o join f on f.customer_id = o.customer_id),
s as (select cohort, age, sum(amount) as revenue, count(distinct customer_id) as customers from m group by cohort, age),
z as (select cohort, max(case when age = 0 then customers end) as size from s group by cohort)
select s.cohort, s.age, s.revenue, s.customers, z.size, s.customers / z.size as retention, sum(s.revenue) over (partition by s.cohort order by s.age) as ltv from s join z on z.cohort = s.cohort;
-- deep CTE chain: a CTE read three times
with b as (select customer_id, count(*) as n, sum(amount) as total from orders group by customer_id), t as (select avg(total) as mean from b), k as (select max(n) as most from b)
select b.customer_id, b.n, b.total, b.total > t.mean as above, b.n = k.most as best from b cross join t cross join k;
-- sets: INTERSECT of customers of three kinds
select customer_id from orders intersect select customer_id from tickets intersect select customer_id from subscriptions;
-- sets: INTERSECT ALL
select customer_id, channel from orders intersect all select customer_id, channel from touches;
-- sets: MINUS
select customer_id from orders minus select customer_id from tickets;
-- sets: UNION then EXCEPT in brackets
(select customer_id from orders union select customer_id from tickets) except select customer_id from subscriptions;
-- sets: UNION ALL by name
select id, country, 'o' as src from orders union all select id, country, 'c' from customers;
-- bank: interest by tiers
select account_id, sum(amount) as balance, case when sum(amount) < 100 then round(sum(amount) * 0.01, 2) when sum(amount) < 200 then round(1 + (sum(amount) - 100) * 0.02, 2) else round(3 + (sum(amount) - 200) * 0.03, 2) end as interest from bookings group by account_id;
-- bank: overdrawn days per account
with d as (select account_id, day, sum(amount) as moved from bookings group by account_id, day), r as (select account_id, day, sum(moved) over (partition by account_id order by day) as balance, lead(day) over (partition by account_id order by day) as next from d)
select account_id, sum(datediff(coalesce(next, date'2025-01-01'), day)) as days from r where balance < 100 group by account_id;
-- bank: duplicates within three days
select a.id, b.id as twin from bookings a join bookings b on a.account_id = b.account_id and a.amount = b.amount and a.id < b.id and datediff(b.day, a.day) between 0 and 3;
-- logistics: transit percentiles by route
select country, percentile(datediff(day, to_date(ordered_at)), 0.5) as p50, percentile(datediff(day, to_date(ordered_at)), array(0.9, 0.95)) as p from orders group by country;
-- logistics: percentile_disc and percentile_cont
select country, percentile_cont(0.5) within group (order by amount) as c, percentile_disc(0.5) within group (order by amount) as d from orders group by country;
-- logistics: open tickets per day of the calendar
select c.day, count(t.id) as open from calendar c left join tickets t on to_date(t.opened) <= c.day and (t.closed is null or to_date(t.closed) > c.day) group by c.day;
-- logistics: utilization by width_bucket
select width_bucket(amount, 0, 200, 4) as bucket, count(*) as n, min(amount) as lo, max(amount) as hi from orders group by width_bucket(amount, 0, 200, 4);
-- SaaS: MRR by month with churn
with m as (select explode(sequence(date'2023-12-01', date'2024-03-01', interval 1 month)) as month)
select m.month, sum(s.fee) as mrr, count(distinct s.customer_id) as customers, count(case when trunc(s.ends, 'MM') = m.month then 1 end) as churned from m left join subscriptions s on s.starts <= last_day(m.month) and (s.ends is null or s.ends >= m.month) group by m.month;
-- SaaS: upgrades and downgrades
select customer_id, starts, plan, lag(plan) over w as before, case when lag(plan) over w is null then 'new' when fee > lag(fee) over w then 'up' when fee < lag(fee) over w then 'down' else 'same' end as move from subscriptions window w as (partition by customer_id order by starts, id);
-- SaaS: trial conversion within 14 days
select date_trunc('month', c.signed_up) as month, count(*) as trials, count(s.first) as paid, round(count(s.first) * 100 / count(*), 1) as pct from customers c left join (select customer_id, min(starts) as first from subscriptions group by customer_id) s on s.customer_id = c.id and s.first between c.signed_up and c.signed_up + interval 14 days group by 1;
-- SaaS: DAU over MAU
with d as (select to_date(at) as day, count(distinct user_id) as dau from events group by to_date(at)), m as (select trunc(at, 'MM') as month, count(distinct user_id) as mau from events group by trunc(at, 'MM'))
select d.day, d.dau, m.mau, d.dau / m.mau as stickiness from d join m on trunc(d.day, 'MM') = m.month;
-- correlation and covariance by group
select country, corr(amount, discount) as c, covar_samp(amount, discount) as cov, regr_slope(amount, discount) as slope from orders group by country;
-- texts: initcap, lpad, split_part, regexp_replace
select id, initcap(name) as n, lpad(cast(id as string), 5, '0') as code, split_part(email, '@', 2) as domain, regexp_replace(email, '[aeiou]', '*') as masked, left(name, 1) as l, reverse(name) as r from customers;
-- texts: split and count words
select word, count(*) as n from products lateral view explode(split(lower(name), ' ')) w as word group by word;
-- texts: substring_index and translate
select id, substring_index(email, '@', 1) as who, translate(email, '@', '_') as t, instr(email, '@') as p, repeat(name, 2) as rr from customers;
-- numbers: pmod, bround, greatest, sign
select id, pmod(id, 3) as p, bround(amount, 1) as b, greatest(amount, discount) as g, sign(amount) as s, ceil(amount) as c, floor(discount) as f, amount % 2 as m, id div 2 as h from orders;
-- numbers: try_divide and nullif
select country, try_divide(sum(amount), count(discount)) as per, sum(amount) / nullif(count(discount), 0) as same from orders group by country;
-- dates: parts and formats
select id, dayofweek(day) as w, weekofyear(day) as wk, quarter(day) as q, date_format(day, 'yyyy-MM') as m, last_day(day) as e, next_day(day, 'MON') as mon, date_part('YEAR', day) as y, extract(month from day) as mm, weekday(day) as wd from orders;
-- dates: to_date with a format and from_unixtime
select id, to_date(cast(day as string), 'yyyy-MM-dd') as d, from_unixtime(unix_timestamp(ordered_at)) as f, date_trunc('hour', ordered_at) as h, to_timestamp(cast(day as string)) as t, make_date(2024, month(day), 1) as mk from orders;
-- window frames: following rows, and exclusive ends
select id, sum(amount) over (partition by country order by day, id rows between 1 following and 3 following) as next3, max(amount) over (partition by country order by day, id rows between 3 preceding and 1 preceding) as before3 from orders;
-- window frames: nth_value and ratio to first
select id, nth_value(amount, 2) over (partition by country order by day, id rows between unbounded preceding and unbounded following) as second, amount / first_value(amount) over (partition by country order by day, id) as ratio from orders;
-- window frames: median over a partition
select id, median(amount) over (partition by country) as m, percent_rank() over (partition by country order by amount) as pr, cume_dist() over (partition by country order by amount) as cd from orders;
-- window frames: count distinct emulated by max of dense_rank
select id, country, max(dr) over (partition by country) as customers from (select id, country, dense_rank() over (partition by country order by customer_id) as dr from orders) x;
-- window frames: collect_list over the last three
select id, collect_list(status) over (partition by customer_id order by ordered_at, id rows between 2 preceding and current row) as last3 from orders;
-- subquery: IN of a group with HAVING
select * from orders where customer_id in (select customer_id from orders group by customer_id having count(*) > 1 and sum(amount) > 2);
-- subquery: scalar beside a correlated count
select c.id, c.name, (select count(*) from orders o where o.customer_id = c.id) as n, (select max(day) from orders) as last, (select sum(amount) from orders o where o.customer_id = c.id and o.status = 'paid') as paid from customers c;
-- subquery: in FROM with an outer join to an aggregate of an outer join
select c.country, sum(x.n) as n from customers c left join (select o.customer_id, count(i.id) as n from orders o left join order_items i on i.order_id = o.id group by o.customer_id) x on x.customer_id = c.id group by c.country;
-- recursive hierarchy
with recursive h as (select id, manager_id, 0 as depth from employees where manager_id is null union all select e.id, e.manager_id, h.depth + 1 from employees e join h on e.manager_id = h.id) select * from h;
-- VALUES mapping joined
select o.id, v.label from orders o left join (values ('paid', 'closed'), ('open', 'pending')) as v(status, label) on v.status = o.status;
-- bool aggregates and count_if
select customer_id, bool_or(status = 'vip') as is_vip, every(amount > 1) as all_big, count_if(discount is null) as none, some(channel = 'web') as web from orders group by customer_id;
-- any_value, first and last of groups
select customer_id, any_value(country) as country, first(status) as f, last(status, true) as l from orders group by customer_id;
-- bits and hashes
select id, md5(email) as m, sha2(email, 256) as s, hash(id) as h, xxhash64(id) as x, crc32(email) as c from customers;
-- CASE with a simple form of NULLs
select id, case status when 'paid' then 1 when null then 2 else 0 end as c, decode(status, 'paid', 1, 'open', 2, 0) as d, nvl2(discount, 'y', 'n') as e, if(amount > 2, 'a', 'b') as f, ifnull(channel, '-') as g from orders;
-- LIKE, RLIKE, BETWEEN, IN lists and <=>
select id from customers where (email like '%@x' or name rlike '^[a-b]' or id between 1 and 3 or country in ('de', 'fr')) and not (referrer_id <=> id);
-- ROLLUP of dates
select year(day) as y, month(day) as m, sum(amount) as total from orders group by rollup(year(day), month(day));
-- CUBE of dates
select year(day) as y, quarter(day) as q, trunc(day, 'MM') as mm, count(*) as n, year(day) * 100 + quarter(day) as yq, grouping_id() as g from orders group by cube(year(day), quarter(day), trunc(day, 'MM'));
-- ROLLUP with positions
select year(day) as y, month(day) as m, country, sum(amount) as total from orders group by rollup(1, 2, 3);
-- ROLLUP with HAVING
select year(day) as y, month(day) as m, sum(amount) as total from orders group by rollup(year(day), month(day)) having sum(amount) > 5 and grouping(month(day)) = 0;
-- maps: a value by key
select id, map('web', 1, 'shop', 2)[channel] as code from orders;
-- maps: a value by key, element_at
select id, element_at(map('web', 1, 'shop', 2), channel) as code, count(*) over (partition by element_at(map('web', 1, 'shop', 2), channel)) as n from orders;
-- maps: grouped by a value
select map('de', 'EU', 'us', 'NA')[country] as region, sum(amount) as s from orders group by map('de', 'EU', 'us', 'NA')[country];
