"""`window(ts, '1 hour')`: tumbling and sliding windows of time. Owns their arithmetic, and the SELECT without them.

A window starts at a multiple of its slide, counted in microseconds from 1970-01-01 00:00 UTC and moved by the offset;
time zones and months have no part in it. A row whose time is NULL is in none, and dropped. A row is in several sliding
windows: it is repeated by a constant array of how far each starts before the last of them. As a key, a window is its
start, from which its end follows. Source: Spark 3.5 `TimeWindowing` and `TimeWindow`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlmesh_like.analyze.binding.expression_copies import WRITTEN, replace_nodes
from sqlmesh_like.analyze.binding.generators import with_view
from sqlmesh_like.analyze.binding.grouping import canonical, key_expression
from sqlmesh_like.analyze.binding.grouping_sets import has_sets
from sqlmesh_like.analyze.binding.joining import filter_rows
from sqlmesh_like.analyze.binding.scope import Scope, Unsupported, require_pure
from sqlmesh_like.analyze.expressions import types
from sqlmesh_like.dialects import SPARK

NAME, SESSION = "window", "session_window"
_UNITS = {"week": 604_800_000_000, "day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000,
          "second": 1_000_000, "millisecond": 1_000, "microsecond": 1}  # fmt: skip
_TERM = re.compile(rf"([+-]?\d{{1,15}})\s+({'|'.join(_UNITS)})s?(?:\s+|$)", re.IGNORECASE)
_MOST_REPEATED = 200
"""Most windows that a row is in."""
_PARTS = ("expressions", "group", "having", "qualify", "order")
_BACK = ("_sml_window", "_sml_back")
"""Table and column of how many microseconds a window starts before the last one that a row is in."""


@dataclass(frozen=True)
class TimeWindow:
    """The windows that a SELECT groups its rows by; `time` is as written, durations are in microseconds."""

    time: exp.Expr
    duration: int
    slide: int
    offset: int = 0

    @property
    def is_sliding(self) -> bool:
        return self.slide < self.duration

    @property
    def count(self) -> int:
        """How many windows a row is in, or one more than that where the slide does not divide the duration."""
        return -(-self.duration // self.slide)

    def start(self) -> exp.Expr:
        moment = exp.UnixMicros(this=self.time.copy())
        since = exp.Sub(this=moment, expression=_number(self.offset)) if self.offset else moment
        slide = _number(self.slide)
        behind = exp.Mod(this=_paren(since), expression=slide)  # as in Spark, negative before 1970
        behind = exp.Mod(this=_paren(exp.Add(this=behind, expression=slide.copy())), expression=slide.copy())
        first = exp.Sub(this=moment.copy(), expression=behind)
        if self.is_sliding:
            first = exp.Sub(this=first, expression=exp.column(_BACK[1], table=_BACK[0]))
        return _moment(first)

    def end(self) -> exp.Expr:
        return _moment(exp.Add(this=exp.UnixMicros(this=self.start()), expression=_number(self.duration)))

    def whole(self) -> exp.Expr:
        fields = (("start", self.start()), ("end", self.end()))
        return exp.Struct(
            expressions=[exp.PropertyEQ(this=exp.to_identifier(n), expression=value) for n, value in fields]
        )

    def field(self, name: str) -> exp.Expr:
        """A field read from the whole, for an engine that groups by structs."""
        return exp.Bracket(this=self.whole(), expressions=[exp.Literal.string(name)])

    def condition(self) -> exp.Expr:
        """Whether a row is in the window: its time is known, and before the end."""
        if self.duration % self.slide:
            return exp.LT(this=exp.UnixMicros(this=self.time.copy()), expression=exp.UnixMicros(this=self.end()))
        return exp.Not(this=exp.Is(this=exp.Paren(this=self.time.copy()), expression=exp.Null()))

    def lateral_view(self) -> exp.Lateral:
        """The LATERAL VIEW that repeats a row for each of its sliding windows."""
        numbers = exp.Array(expressions=[_number(number) for number in range(0, self.count * self.slide, self.slide)])
        alias = exp.TableAlias(this=exp.to_identifier(_BACK[0]), columns=[exp.to_identifier(_BACK[1])])
        return exp.Lateral(this=exp.Explode(this=numbers), view=True, outer=False, alias=alias)


def microseconds(written: exp.Expr) -> int | None:
    """A duration in microseconds, which is a text of whole numbers of units or a number; None for any other.

    >>> [microseconds(exp.Literal.string(text)) for text in ("1 day 30 minutes", "interval -5 minutes", "1 month")]
    [88200000000, -300000000, None]
    """
    if not isinstance(written, exp.Literal):
        return None
    if not written.is_string:
        return int(written.name) if written.is_int else None
    text = re.sub(r"^interval\s+", "", written.name.strip(), flags=re.IGNORECASE)
    terms = list(_TERM.finditer(text))
    if not terms or "".join(term[0] for term in terms) != text:
        return None
    return sum(int(term[1]) * _UNITS[term[2].lower()] for term in terms)


def time_window_of(select: exp.Select) -> TimeWindow | None:
    """The windows that the SELECT list and GROUP BY of a query call; None where they call none. Raises Unsupported."""
    calls = [call for part in ("expressions", "group") for call in _calls(select, part)]
    if not calls:
        return None
    first = calls[0]
    if len({canonical(call) for call in calls}) > 1:
        raise Unsupported("QRY009", "several windows of time in one SELECT", calls[-1])
    numbers = [microseconds(argument) for argument in first.expressions[1:]]
    if not 1 <= len(numbers) <= 3 or None in numbers:
        raise Unsupported(
            "QRY009", f"{first.sql(SPARK)}, whose durations are not whole numbers of weeks or less", first
        )
    duration, slide, offset = (*numbers, *(numbers[0], 0)[len(numbers) - 1 :])
    window = TimeWindow(first.expressions[0], duration or 0, slide or 0, offset or 0)
    if not 0 < window.slide <= window.duration or abs(window.offset) >= window.slide:
        raise Unsupported("QRY009", f"{first.sql(SPARK)}, which Spark refuses", first)
    if window.count > _MOST_REPEATED:
        raise Unsupported("QRY009", f"{first.sql(SPARK)}, of more than {_MOST_REPEATED} windows a row", first)
    return window


def replace_window_calls(
    select: exp.Select, whole: exp.Expr, start: exp.Expr, end: exp.Expr, taken: Collection[str] = ()
) -> exp.Select:
    """The SELECT with expressions for its window and the fields of that; `taken`: names that FROM has.

    HAVING knows the window by its name only, as in Spark.
    """
    fields = {"start": start, "end": end}
    copy = select.copy()
    copy.set("expressions", [_name_window_item(item) for item in copy.expressions])
    names = {
        item.alias.lower() for item in copy.expressions if isinstance(item, exp.Alias) and is_window_call(item.this)
    }
    names = (names - {name.lower() for name in taken}) | {NAME}

    def part_of_window(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Dot) and is_window_call(node.this):
            return fields.get(node.name.lower(), node)
        if isinstance(node, exp.Column) and node.table.lower() in names and not node.db:
            return fields.get(node.name.lower(), node)
        is_name = isinstance(node, exp.Column) and not node.table and node.name.lower() == NAME
        return whole if is_name or is_window_call(node) else node

    def change(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Query):
            return node.copy()
        if (made := part_of_window(node)) is node:
            return node
        made = made.copy()
        made.meta[WRITTEN] = node.sql(SPARK, comments=False)
        return made

    def change_name(node: exp.Expr) -> exp.Expr:
        return node.copy() if is_window_call(node) else change(node)

    for part in _PARTS:
        value = copy.args.get(part)
        made = change_name if part == "having" else change
        if isinstance(value, list):
            copy.set(part, [replace_nodes(each, made) for each in value])
        elif isinstance(value, exp.Expr):
            copy.set(part, replace_nodes(value, made))
    return copy


def with_time_window(select: exp.Select, scope: Scope) -> tuple[exp.Select, Scope]:
    """The SELECT without its window of time, and the scope of the rows that are in one. Raises Unsupported."""
    if session := next((call for part in ("expressions", "group") for call in _calls(select, part, SESSION)), None):
        message = "SESSION_WINDOW, which depends on the rows before: mark gaps by LAG, and add them up"
        raise Unsupported("QRY009", message, session)
    window = time_window_of(select)
    if window is None:
        return select, scope
    if (group := select.args.get("group")) is not None and has_sets(group):
        raise Unsupported("QRY010", "a window of time beside ROLLUP, CUBE or GROUPING SETS", window.time)
    taken = scope.bare | {source.alias for source in scope.sources}
    if NAME in taken:
        raise Unsupported("QRY009", "a window of time beside a column or table of the name 'window'", window.time)
    if aggregate := window.time.find(exp.AggFunc, exp.Window):
        raise Unsupported("QRY009", "a window of time of an aggregate", aggregate)
    resolved = scope.resolve(window.time)
    require_pure(resolved)
    match types.infer(resolved, scope.known):
        case "timestamp":
            pass
        case "date" | "string":
            window = replace(window, time=exp.cast(window.time.copy(), "timestamp", dialect="spark"))
        case type_:
            raise Unsupported("TYP001", f"windows of time over values of type {type_ or 'unknown'}", window.time)
    if window.is_sliding:
        scope = with_view(scope, window.lateral_view(), 0, is_outer=False)
    kept = filter_rows(scope.relation, [scope.resolve(window.condition())])
    return replace_window_calls(select, window.whole(), window.start(), window.end(), taken), replace(
        scope, relation=kept
    )


def by_start(select: exp.Select, items: list[exp.Alias], scope: Scope) -> exp.Select:
    """The SELECT grouped by starts where it is grouped by whole windows, be it by their alias or position."""
    group = select.args.get("group")
    keys = [(key, _start_of(key_expression(key, items, scope))) for key in group.expressions] if group else []
    if all(start is None for _, start in keys):
        return select
    copy = select.copy()
    copy.args["group"].set("expressions", [(key if start is None else start).copy() for key, start in keys])
    return copy


def _start_of(value: exp.Expr) -> exp.Expr | None:
    """The start of a whole window; None for any other value."""
    value = value.unnest()
    if not isinstance(value, exp.Struct) or [field.name for field in value.expressions] != ["start", "end"]:
        return None
    start, end = (field.expression for field in value.expressions)
    inner = end.find(exp.UnixMicros)
    follows = {column.sql() for column in end.find_all(exp.Column)} <= {c.sql() for c in start.find_all(exp.Column)}
    return start if inner is not None and inner.this == start and follows else None


def _calls(select: exp.Select, part: str, name: str = NAME) -> Iterator[exp.Expr]:
    value = select.args.get(part)
    for each in value if isinstance(value, list) else [value] if isinstance(value, exp.Expr) else []:
        for node in each.walk(prune=lambda node: isinstance(node, exp.Query)):
            if is_window_call(node, name):
                yield node


def is_window_call(node: exp.Expr, name: str = NAME) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == name and bool(node.expressions)


def _name_window_item(item: exp.Expr) -> exp.Expr:
    """An item with the name that Spark gives a window, or a field of its column."""
    is_column = isinstance(item, exp.Column) and NAME in (item.table.lower(), item.name.lower())
    name = NAME if is_window_call(item) else item.name if is_column else None
    return item if name is None else exp.Alias(this=item.copy(), alias=exp.to_identifier(name, quoted=True))


def _moment(micros: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="timestamp_micros", expressions=[micros])


def _paren(value: exp.Expr) -> exp.Expr:
    return exp.Paren(this=value.copy())


def _number(value: int) -> exp.Expr:
    return exp.Neg(this=exp.Literal.number(-value)) if value < 0 else exp.Literal.number(value)
