# ruff: noqa: E501
"""Random queries over the nasty values: expressions of any two types meet in each clause that combines or compares them.

Owns the queries; `nasty_values` owns values and expressions. Rows are in the table `v`, which numbers them by `k`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from tests.spark.sql.nasty_values import LITERALS, NAMES

_JOINS = ("join", "left join", "right join", "full join", "left semi join", "left anti join")
_SETS = ("union all", "union", "union distinct", "intersect", "intersect all", "except", "except all", "minus")
_SIGNS = ("=", "<>", "<", ">=", "<=>")
_CLAUSES = (
    "select {e} as x from {a} {set} select {f} from {b}",
    "select {e} as x, {f} as y from {a} {set} select {f}, {e} from {b}",
    "with s as (select {e} as x from {a}) select x from s {set} select {f} from {b} {set} select {g} from {a}",
    "select x, count(*) as n from (select {e} as x from {a} {set} select {f} from {b}) u group by x",
    "select x = {l} as y from (select {e} as x from {a} union all select {f} from {b}) u",
    "select count(*) as n from (select {e} as x from {a}) s {join} (select {f} as x from {b}) t using (x)",
    "select s.l, t.r, x from (select {e} as x, k as l from {a}) s full join (select {f} as x, k as r from {b}) t using (x)",
    "select l, x from (select {e} as x, k as l from {a}) s left join (select {f} as x, k as r from {b}) t using (x)",
    "select s.l, t.r from (select {e} as x, k as l from {a}) s {join} (select {f} as x, k as r from {b}) t on s.x {sign} t.x",
    "select x, l, r from (select {e} as x, k as l from {a}) s natural join (select {f} as x, k as r from {b}) t",
    "select k from {a} and {e} in (select {f} from {b})",
    "select k from {a} and {e} not in (select {f} from {b})",
    "select k from {a} and ({e}, k) in (select {f}, k from {b})",
    "select k from {a} and {e} {sign} (select max({f}) from {b})",
    "select k, {e} {sign} (select min({f}) from {b}) as x from {a}",
    "select k from {a} and exists (select 1 from {b} and {f} is not null)",
    "select count(*) as n, {e} as x from {a} group by {e}",
    "select count(*) as n, {e} as x, {f} as y from {a} group by 2, 3",
    "select distinct {e} as x, {f} as y from {a}",
    "select max({e}) as x from {a} group by a_boolean having min({f}) {sign} {l}",
    "select sum({e}) as x, sum({f}) as y from {a} group by a_boolean",
    "select sum({e}) + sum({f}) as x, sum({e}) / sum({f}) as y from {a}",
    "select sum({e}) * {l} as x, coalesce(sum({f}), {m}) as y from {a}",
    "select cast(sum({e}) as double) as x, cast(avg({f}) as string) as y from {a}",
    "select k, row_number() over (partition by {e} order by k) as x from {a}",
    "select k, sum({e}) over (partition by {f}) as x from {a}",
    "select k, min({e}) over (partition by a_boolean) as x from {a} qualify rank() over (order by {f}, k) < 3",
    "select k from {a} order by {e}, k limit 2",
    "select k from {a} order by {e} desc nulls last, {f}, k limit 2",
    "select k, case when {e} {sign} {f} then {g} else {e} end as x from {a}",
    "select k, coalesce({e}, {f}, {g}) as x from {a}",
    "select k, greatest({e}, {f}) as x, least({e}, {f}, {g}) as y from {a}",
    "select k, case {e} when {f} then 1 when {l} then 2 else 3 end as x from {a}",
    "select k from {a} and {e} between {f} and {g}",
    "select k from {a} and {e} in ({f}, {l}, {g})",
    "select k, nullif({e}, {f}) as x, if({g} is null, {e}, {f}) as y from {a}",
    "select k, c from {a} lateral view explode(array({e}, {f})) x as c",
    "select col1 as x from values ({l}), ({m}), (null)",
    "select k, x from v join values ({l}, 1), ({m}, 2) as t(x, y) on {e} = t.x where {a_rows}",
    "select k, lag({e}, 1, {f}) over (order by k) as x from {a}",
    "select {e} as x, count(distinct {f}) as y, max({g}) as z from {a} group by {e}",
    "select x / 3 as y, x * x as z from (select {e} as x from {a} union all select {f} from {b}) u",
)  # fmt: skip


def queries(scalars: Sequence[str], count: int, seed: int) -> Iterator[str]:
    """Queries over the columns of `v`. Most parts are bare columns, of one type or of types that have a common one."""
    random = Random(seed)
    every = list(NAMES.values())
    for number in range(count):
        first = random.choice(every)
        parts = {}
        for name in "efg":
            type_ = first if random.random() < 0.6 else random.choice(_ALIKE.get(first, every))
            type_ = type_ if random.random() < 0.9 else random.choice(every)
            column = f"{random.choice('ab')}_{type_}"
            own = [text for text in scalars if column in text] if random.random() < 0.4 else []
            parts[name] = f"({random.choice(own)})" if own else column
        rows = {
            name: f"k in ({', '.join(str(random.randrange(1089)) for _ in range(random.choice((1, 2, 4))))})"
            for name in "ab"
        }
        literals = {name: random.choice(LITERALS) for name in "lm"}
        yield _CLAUSES[number % len(_CLAUSES)].format(
            a=f"v where {rows['a']}", b=f"v where {rows['b']}", a_rows=rows["a"],
            join=random.choice(_JOINS), set=random.choice(_SETS), sign=random.choice(_SIGNS), **parts, **literals,
        )  # fmt: skip


_NUMBERS = ("int", "bigint", "decimal2", "decimal18", "double")
_ALIKE = {**dict.fromkeys(_NUMBERS, _NUMBERS), **dict.fromkeys(("date", "timestamp"), ("date", "timestamp"))}
