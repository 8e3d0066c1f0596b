"""Random GROUP BY, HAVING, scalar aggregates, DISTINCT, windows and top-N."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.properties.expressions import OTHER, Col, expression, filled, of
from tests.properties.query import Builder, Built, Maker, made

# DuckDB averages decimals as doubles: nothing here looks at the digits or the type of an average.
CALLS = (
    ("count(*)", "int"), ("count({any})", "int"), ("sum({int})", "int"), ("sum({decimal})", OTHER),
    ("cast(sum({decimal}) as decimal(10,2))", "decimal(10,2)"), ("avg({int})", OTHER), ("min({int})", "int"),
    ("max({int})", "int"), ("min({string})", "string"), ("max({date})", "date"), ("max({decimal})", "decimal(10,2)"),
    ("min({boolean})", "boolean"), ("sum({int}) > 0", "boolean"), ("coalesce(sum({int}), 0)", "int"),
    ("sum({int}) + count(*)", "int"), ("case when count(*) > 1 then sum({int}) end", "int"),
    ("sum({decimal}) / nullif(count(*), 0)", OTHER), ("count(null)", "int"),
    ("regr_count({int}, {int})", "int"), ("regr_syy({int}, {int})", OTHER), ("stddev({int})", OTHER),
    ("case when stddev({int}) > 0.9 then 1 else 0 end", "int"),
    ("sum(case when {boolean} then {int} else 0 end)", "int"), ("count(case when {boolean} then 1 end)", "int"),
)  # fmt: skip
FILTERED = (
    ("count(*) filter (where {boolean})", "int"), ("sum({int}) filter (where {boolean})", "int"),
    ("max({string}) filter (where {boolean})", "string"), ("avg({int}) filter (where {boolean})", OTHER),
)  # fmt: skip
RESCANNED = (
    ("count(distinct {int})", "int"), ("count(distinct {string})", "int"), ("sum(distinct {int})", "int"),
    ("percentile_disc(0.5) within group (order by {int} desc)", OTHER),
    ("percentile_cont(0.3) within group (order by {int} desc)", OTHER),
    ("max({int}) - count(distinct {date})", "int"), ("median({int})", OTHER), ("stddev(distinct {int})", OTHER),
)  # fmt: skip
BOOLEAN = (
    ("bool_and({boolean})", "boolean"), ("every({boolean})", "boolean"), ("bool_or({boolean})", "boolean"),
    ("any({boolean})", "boolean"), ("count_if({boolean})", "int"),
    ("bool_and({boolean}) filter (where {boolean})", "boolean"),
    ("coalesce(bool_or({boolean}), count_if({boolean}) > 1)", "boolean"),
)  # fmt: skip
TIED = (
    ("max_by({int}, {string})", "int"), ("min_by({string}, {int})", "string"), ("first({date})", "date"),
    ("max_by({string}, {int}) filter (where {boolean})", "string"), ("last({int})", "int"),
    ("any_value({boolean})", "boolean"), ("collect_list({int})", OTHER), ("collect_set({string})", OTHER),
)  # fmt: skip
_CALLS_OF = {"aggregate filter": FILTERED, "rescan aggregate": RESCANNED, "boolean aggregate": BOOLEAN,
             "tied aggregate": TIED}  # fmt: skip


_OVER = {"aggregate over aggregate": "group by", "aggregate over window": "window"}


def grouped(b: Builder, size: int, construct: str) -> Built:
    if construct in _OVER:
        inner = b.query(size + 1, _OVER[construct])
        text, built = f"({inner.sql}) as g", inner
        columns = [Col(f"g.{c.name}", c.type, c.copied) for c in inner.columns]
    else:
        source = b.source(size, "g")
        text, built, columns = source.sql, source.query, source.columns
    keys = _keys(b, columns, construct)
    calls = _calls(b, columns, construct)
    shown = [*(key for key in keys if not b.sometimes(5)), *calls]
    listed, named = b.named(shown)
    group = ", ".join(_by(b, key, shown, named) for key in keys)
    having = _having(b, columns) if construct == "having" else ""
    if construct == "group by" and set(keys) <= set(shown) and b.sometimes(3):
        group = "all"
    return Built(f"select {listed} from {text}{b.where(columns, 4)} group by {group}{having}", named, made(built))


def _keys(b: Builder, columns: Sequence[Col], construct: str) -> list[Col]:
    if construct == "group by expression":
        types = [b.one_of(["int", "string", "date", "boolean"]) for _ in range(b.one_of([1, 1, 2]))]
        # A key without a column would be a position or a constant.
        plain = Col(f"({b.one_of(of(columns)).name} is null)", "boolean")
        keys = [key if "`" in key.name else plain for key in b.computed(columns, types, 1)]
        return list(dict.fromkeys(keys))
    return list(dict.fromkeys(b.one_of(of(columns)) for _ in range(b.one_of([1, 1, 2]))))


def _calls(b: Builder, columns: Sequence[Col], construct: str) -> list[Col]:
    """One of the construct's calls at least, and an integer at least."""
    first = b.one_of(_CALLS_OF.get(construct, CALLS))
    others = [b.one_of(CALLS) for _ in range(b.one_of([0, 1, 2]))]
    calls = [Col(filled(b.draw, template, columns, 2), type_) for template, type_ in [first, *others]]
    return calls if of(calls, "int") else [*calls, Col("count(*)", "int")]


def _by(b: Builder, key: Col, shown: Sequence[Col], named: Sequence[Col]) -> str:
    """The key as an expression, or by its position where it is shown."""
    return str(shown.index(key) + 1) if key in shown and b.sometimes(3) else key.name


def _having(b: Builder, columns: Sequence[Col]) -> str:
    template, _ = b.one_of([call for call in CALLS if call[1] == "int"])
    if b.sometimes(3):
        other = b.source(0, "h")
        if b.sometimes():
            mine, theirs = filled(b.draw, template, columns, 1), b.one_of(of(other.columns, "int")).name
            return f" having {mine} {b.one_of(['in', 'not in'])} (select {theirs} from {other.sql})"
        value = f"(select {b.one_of(['max', 'count'])}({b.one_of(of(other.columns, 'int')).name}) from {other.sql})"
        return f" having {filled(b.draw, template, columns, 1)} {b.one_of(['<', '>=', '<>'])} {value}"
    return (
        f" having {filled(b.draw, template, columns, 2)} {b.one_of(['> 0', 'is not null', 'is null', '>= 1', '<> 1'])}"
    )


_SETS = ("rollup({k}, {o})", "cube({o}, {k})", "{k}, rollup({o})", "grouping sets (({k}, {o}), {k})",
         "grouping sets (({o}), ({k}), ({o}), ())", "rollup({k})")  # fmt: skip


def by_sets(b: Builder, size: int, construct: str) -> Built:
    """GROUPING SETS, ROLLUP or CUBE of two columns."""
    source = b.source(size, "g")
    keys = of(source.columns)
    key = b.one_of(keys)
    other = b.one_of([column for column in keys if column != key] or [Col(f"({key.name} is null)", "boolean")])
    calls = [Col(column.name, column.type) for column in _calls(b, source.columns, construct)]
    listed, named = b.named([key, *calls, Col(f"grouping({key.name})", OTHER)])
    having = b.one_of(["", "", " having count(*) > 1", f" having grouping({key.name}) = 0"])
    sets = b.one_of(_SETS).format(k=key.name, o=other.name)
    sql = f"select {listed} from {source.sql}{b.where(source.columns, 4)} group by {sets}{having}"
    return Built(sql, (replace(named[0], copied=False), *named[1:]), made(source))


_DURATIONS = ("'1 day'", "'1 week'", "'30 days', '10 days'", "'25 days', '10 days', '-1 day'", "'60 days'")


def in_time_windows(b: Builder, size: int, construct: str) -> Built:
    """Groups, or rows, by windows of time."""
    source = b.source(size, "g")
    dates = [column.name for column in of(source.columns, "date")]
    time = b.one_of([*dates, expression(b.draw, source.columns, "date", 1)])
    window = f"window({time}, {b.one_of(_DURATIONS)})"
    start = Col(b.one_of([f"cast({window}.start as date)", f"to_date({window}.end)"]), "date")
    if b.sometimes(4):
        listed, named = b.named([*b.some(source.columns, 1, 2), start])
        return Built(f"select {listed} from {source.sql}{b.where(source.columns, 4)}", named, made(source))
    key = b.one_of(of(source.columns))
    listed, named = b.named([start, key, *_calls(b, source.columns, construct)])
    group = b.one_of([f"{window}, {key.name}", f"{key.name}, {window}"])
    return Built(f"select {listed} from {source.sql}{b.where(source.columns, 4)} group by {group}", named, made(source))


def overlapping_sets(b: Builder, size: int, construct: str) -> Built:
    """ROLLUP of a column and of an expression over it."""
    source = b.source(size, "g")
    key = b.one_of(of(source.columns, "int")).name
    sql = f"select {key} + 1 as k, {key} as l, count(*) as n from {source.sql} group by rollup({key} + 1, {key})"
    return Built(sql, tuple(Col(name, "int") for name in "kln"), made(source))


def scalar(b: Builder, size: int, construct: str) -> Built:
    """Aggregates without GROUP BY."""
    source = b.source(size, "g")
    listed, named = b.named(_calls(b, source.columns, construct))
    having = " having count(*) > 1" if b.sometimes(4) else ""
    return Built(f"select {listed} from {source.sql}{b.where(source.columns, 4)}{having}", named, made(source))


def distinct(b: Builder, size: int, construct: str) -> Built:
    source = b.source(size, "d")
    listed, named = b.named(b.some(of(source.columns), 1, 3))
    return Built(f"select distinct {listed} from {source.sql}{b.where(source.columns, 4)}", named, made(source))


_WINDOWS = (
    ("row_number() over ({p} {o})", "int"), ("rank() over ({p} {o})", "int"), ("dense_rank() over ({p} {o})", "int"),
    ("sum({int}) over ({p})", "int"), ("sum({int}) over ({p} {o})", "int"), ("count(*) over ({p} {o})", "int"),
    ("max({date}) over ({p}, {x})", "date"), ("lag({int}) over ({p} {o})", "int"),
    ("lead({string}) over ({p} {o})", "string"), ("ntile(2) over ({p} {o})", "int"),
    ("case when row_number() over ({p} {o}) = 1 then {int} end", "int"),
    ("avg({int}) over ({p})", OTHER), ("count({any}) over ({p})", "int"), ("stddev({int}) over ({p})", OTHER),
    ("case when var_pop({int}) over ({p} {o}) > 0.9 then 1 else 0 end", "int"),
    ("sum({int}) over ({p} {o} rows between 1 preceding and current row)", "int"),
    ("min({int}) over ({p} {o} rows between 1 following and 2 following)", "int"),
    ("count({any}) over ({p} {o} rows between current row and unbounded following)", "int"),
    ("max({int}) over ({p} {o} rows between 2 preceding and 1 preceding)", "int"),
    ("percent_rank() over ({p} {o})", OTHER), ("cume_dist() over ({p} {o})", OTHER),
    ("first_value({int}) over ({p} {o})", "int"), ("last_value({date}) over ({p} {o} {whole})", "date"),
    ("last_value({int}) over ({p} {o})", "int"), ("last({int}, true) over ({p} {o})", "int"),
    ("first_value({date}) over ({p} {o} range between current row and unbounded following)", "date"),
    ("nth_value({int}, 2) over ({p} {o} rows between unbounded preceding and current row)", "int"),
)  # fmt: skip
_WHOLE = "rows between unbounded preceding and unbounded following"


def windowed(b: Builder, size: int, construct: str) -> Built:
    source = b.source(size, "w")
    key = _window_key(b, source.columns)
    calls = [_window(b, source.columns, key) for _ in range(b.one_of([1, 1, 2]))]
    kept = b.some(source.columns, 1, 3)
    clause = ""
    if b.sometimes(4):
        clause = f" window w1 as (partition by {key.name} {_order(b, source.columns)})"
        calls = [*calls, Col("row_number() over w1", "int"), Col("count(*) over (W1)", "int")]
    listed, named = b.named([*([key] if key.copied and key not in kept else []), *kept, *calls])
    if b.sometimes(3):  # its result under an alias that is no column of FROM
        place = f"row_number() over (partition by {key.name} {_order(b, source.columns)})"
        listed += f", {place} as place1, place1 + 1 as place2"
        named = (*named, Col("place1", "int"), Col("place2", "int"))
    return Built(f"select {listed} from {source.sql}{clause}", named, made(source))


_RANGES = (
    "{n} preceding and current row", "1 preceding and 1 following", "unbounded preceding and {n} preceding",
    "{n} following and 2 following", "current row and unbounded following", "0 preceding and 0 following",
)  # fmt: skip


def in_range(b: Builder, size: int, construct: str) -> Built:
    """Windows over the rows whose value is within a distance."""
    source = b.source(size, "w")
    order = b.one_of(of(source.columns, "int")).name + b.one_of(["", "", " desc"])
    calls = []
    for _ in range(b.one_of([1, 1, 2])):
        call, type_ = b.one_of([("sum({int})", "int"), ("count(*)", "int"), ("max({date})", "date"),
                                ("min({int})", "int"), ("count({any})", "int"), ("avg({int})", OTHER)])  # fmt: skip
        frame = b.one_of(_RANGES).format(n=b.one_of("12"))
        window = f"partition by {_window_key(b, source.columns).name} order by {order} range between {frame}"
        calls.append(Col(f"{filled(b.draw, call, source.columns)} over ({window})", type_))
    listed, named = b.named([*b.some(source.columns, 1, 3), *calls])
    return Built(f"select {listed} from {source.sql}{b.where(source.columns, 4)}", named, made(source))


def _window_key(b: Builder, columns: Sequence[Col]) -> Col:
    if b.sometimes(5):
        return Col(f"coalesce({expression(b.draw, columns, 'int', 1)}, 0)", "int")
    return b.one_of(of(columns, "int", "string", "date", "boolean"))


def _window(b: Builder, columns: Sequence[Col], key: Col) -> Col:
    other = b.one_of(of(columns)).name
    template, type_ = b.one_of(_WINDOWS)
    placed = template.replace("{p}", f"partition by {key.name}").replace("{x}", other).replace("{whole}", _WHOLE)
    return Col(filled(b.draw, placed.replace("{o}", _order(b, columns)), columns), type_)


def _order(b: Builder, columns: Sequence[Col]) -> str:
    by = [b.one_of(of(columns)).name + b.one_of(["", "", " desc"]) for _ in range(b.one_of([1, 1, 2]))]
    return f"order by {', '.join(by)}"


def windowed_groups(b: Builder, size: int, construct: str) -> Built:
    """A window function over the groups of the same SELECT."""
    source = b.source(size, "g")
    key, other = b.one_of(of(source.columns)), Col(f"({b.one_of(of(source.columns)).name} is null)", "boolean")
    calls = _calls(b, source.columns, construct)
    by = b.one_of(of(calls, "int")).name
    word = b.one_of(
        ["row_number() over ({p} order by {x})", "rank() over ({p} order by {x} desc)", "sum({x}) over ({p})"]
    )
    place = word.format(p=f"partition by {b.one_of([key, other]).name}", x=by)
    listed, named = b.named([key, *calls, Col(place, OTHER)])
    where = b.where(source.columns, 4)
    return Built(f"select {listed} from {source.sql}{where} group by {key.name}, {other.name}", named, made(source))


def ranked(b: Builder, size: int, construct: str) -> Built:
    """The first rows of each group, by QUALIFY or in a query around."""
    source = b.source(size, "w")
    key = _window_key(b, source.columns)
    word = b.one_of(["row_number", "row_number", "rank", "dense_rank"])
    place = f"{word}() over (partition by {key.name} {_order(b, source.columns)})"
    kept = b.some(source.columns, 1, 4)
    if construct == "qualify":
        listed, named = b.named(kept)
        return Built(f"select {listed} from {source.sql} qualify {place} <= {b.one_of('12')}", named, made(source))
    listed, named = b.named(kept)
    if b.sometimes(3):
        named = (*named, Col("nr", "int"))
    shown = ", ".join(column.name for column in named)
    inner = f"select {listed}, {place} as nr from {source.sql}{b.where(source.columns, 4)}"
    return Built(f"select {shown} from ({inner}) as ranked where nr {b.one_of(['= 1', '<= 2'])}", named, made(source))


_OVER_ALL = (
    ("rank() over ({o})", "int"), ("dense_rank() over ({o})", "int"), ("row_number() over ({o})", "int"),
    ("sum({int}) over ()", "int"), ("sum({int}) over ({o})", "int"), ("lag({int}) over ({o})", "int"),
    ("count(*) over ({o} rows between 1 preceding and 1 following)", "int"), ("lead({string}, 2) over ({o})", "string"),
    ("case when count(*) over () > 3 then {int} end", "int"), ("ntile(2) over ({o})", "int"),
    ("max({date}) over (partition by {x})", "date"),
)  # fmt: skip


def over_all(b: Builder, size: int, construct: str) -> Built:
    """Window functions over all rows: of the query itself, over its groups, or the first ranks of all."""
    source = b.source(size, "w")
    columns = source.columns
    form = b.one_of(["rows", "rows", "groups", "first"])
    if form == "groups":
        key, by = b.one_of(of(columns)), b.one_of(of(columns, "int")).name
        if b.sometimes():
            key = Col(f"abs({by})", "int")
        place = b.one_of(["rank() over (order by sum({x}) desc)", "lag(sum({x})) over (order by {k})",
                          "sum(count(*)) over ()", "sum(count(*)) over (order by {k})",
                          "sum(count(*)) over (partition by {k} is null)"])  # fmt: skip
        call = Col(place.format(x=by, k=key.name), OTHER)
        listed, named = b.named([key, Col(f"sum({by})", "int"), call])
        return Built(f"select {listed} from {source.sql} group by {key.name}", named, made(source))
    templates = [b.one_of(_OVER_ALL[:3] if form == "first" else _OVER_ALL) for _ in range(b.one_of([1, 1, 2]))]
    placed = [
        (t.replace("{o}", _order(b, columns)).replace("{x}", b.one_of(of(columns)).name), y) for t, y in templates
    ]
    calls = [Col(filled(b.draw, template, columns), type_) for template, type_ in placed]
    if all("partition" in template for template, _ in placed):
        calls.append(Col("count(*) over ()", "int"))
    kept = b.some(columns, 1, 3)
    listed, named = b.named([*kept, *calls])
    if form == "rows":
        return Built(f"select {listed} from {source.sql}{b.where(columns, 4)}", named, made(source))
    inner = f"select {listed} from {source.sql}"
    shown = ", ".join(column.name for column in named[: len(kept)])
    where = f"{named[-1].name} <= {b.one_of('12')}"
    return Built(f"select {shown} from ({inner}) as ranked where {where}", named[: len(kept)], made(source))


def pivoted(b: Builder, size: int, construct: str) -> Built:
    """Groups with aggregates of one value each; not counts, which DuckDB gives as 0 where a group lacks the value."""
    source = b.source(size, "g")
    listed, named = b.named(b.some(source.columns, 1, 2))
    by, value = (b.one_of(of(source.columns, "int")).name for _ in range(2))
    inner = f"select {listed}, {by} as wanted, {value} as number from {source.sql}{b.where(source.columns, 4)}"
    calls = b.one_of([("sum(number) as s", "max(number) as t"), ("min(number) as t", "avg(number) as s")])
    rows = f"({inner}) as p pivot ({', '.join(calls)} for wanted in (1 as one, 2 as two))"
    shown = [f"{each}_{call[-1]}" for each in ("one", "two") for call in calls]
    return Built(
        f"select * from {rows}",
        (*named, *(Col(name, "int" if name.endswith("t") else OTHER) for name in shown)),
        made(source),
    )


MAKERS: dict[str, Maker] = {
    "pivot": pivoted,
    **dict.fromkeys(
        ("group by", "group by expression", "having", "aggregate filter", "rescan aggregate", "boolean aggregate",
         "tied aggregate", *_OVER), grouped,
    ),
    "grouping sets": by_sets,
    "time window": in_time_windows,
    "scalar aggregate": scalar,
    "distinct": distinct,
    "window": windowed,
    "range frame": in_range,
    "window over groups": windowed_groups,
    "window over all": over_all,
    **dict.fromkeys(("qualify", "top-n"), ranked),
}  # fmt: skip
