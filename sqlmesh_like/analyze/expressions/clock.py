"""The clock of a run in SQL. Owns which calls read it and the literals that replace them in one run.

A run has one current time, in UTC. An expression may be evaluated as of two runs: `frozen` writes the time of this run
and, for calls marked by `as_then`, that of the previous run, whose result the table still holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from sqlglot import exp

from sqlmesh_like.dialects import spark_type

THEN = "_sml_then"
"""Function around a call that is evaluated at the time of the previous run."""

CLOCKS = (exp.StrToUnix, exp.Anonymous, exp.CurrentDate, exp.CurrentTimestamp, exp.Localtimestamp)
"""Classes of the calls that may read the clock."""
_EPOCH = datetime(1970, 1, 1)


def is_clock_call(node: exp.Expr) -> bool:
    """Whether a call reads the clock and can be frozen; calls that depend on the session do not count.

    >>> import sqlglot
    >>> [is_clock_call(sqlglot.parse_one(sql, dialect="spark")) for sql in ("now()", "current_date", "current_user()")]
    [True, True, False]
    """
    if isinstance(node, exp.StrToUnix):  # unix_timestamp()
        return isinstance(node.this, exp.CurrentTimestamp)
    if isinstance(node, exp.Anonymous):
        return node.name.upper() == "NOW" and not node.expressions
    return isinstance(node, exp.CurrentDate | exp.CurrentTimestamp | exp.Localtimestamp) and not node.this


def clock_calls(tree: exp.Expr) -> list[exp.Expr]:
    """Calls that read the clock, outermost first."""
    calls = [node for node in tree.walk() if is_clock_call(node)]
    return [node for node in calls if node.parent is None or not is_clock_call(node.parent)]


def clock_type(call: exp.Expr) -> str:
    """Spark type of a clock call."""
    match call:
        case exp.CurrentDate():
            return "date"
        case exp.Localtimestamp():
            return "timestamp_ntz"
        case exp.StrToUnix():
            return "bigint"
    return "timestamp"


def literal(call: exp.Expr, now: datetime) -> exp.Expr:
    """The value of a clock call in a run at `now` (UTC if it has no zone)."""
    at = now.astimezone(UTC).replace(tzinfo=None) if now.tzinfo else now
    type_ = clock_type(call)
    match type_:
        case "date":
            value: exp.Expr = exp.Literal.string(at.strftime("%Y-%m-%d"))
        case "bigint":
            value = exp.Literal.number((at - _EPOCH) // timedelta(seconds=1))
        case _:
            value = exp.Literal.string(at.strftime("%Y-%m-%d %H:%M:%S.%f"))
    return exp.Cast(this=value, to=spark_type(type_))


def as_then(expression: exp.Expr) -> exp.Expr:
    """A copy of the expression as of the previous run: `frozen` gives its clock calls the earlier time."""

    def mark(node: exp.Expr) -> exp.Expr:
        return exp.Anonymous(this=THEN, expressions=[node.copy()]) if is_clock_call(node) else node

    return expression.copy().transform(mark, copy=False)


def frozen(tree: exp.Expr, now: datetime, then: datetime | None = None) -> exp.Expr:
    """A copy of the tree with its clock calls as literals of `now`, or of `then` where `as_then` marked them.

    >>> import sqlglot
    >>> frozen(sqlglot.parse_one("select current_date()", dialect="spark"), datetime(2024, 5, 1)).sql("spark")
    "SELECT CAST('2024-05-01' AS DATE)"
    """

    def freeze(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Anonymous) and node.name == THEN:
            return literal(node.expressions[0], then or now)
        return literal(node, now) if is_clock_call(node) else node

    return tree.copy().transform(freeze, copy=False)


def has_moved(calls: Iterable[exp.Expr], then: datetime, now: datetime) -> bool:
    """Whether any of these calls has different values in the two runs.

    >>> import sqlglot
    >>> calls = clock_calls(sqlglot.parse_one("select current_date", dialect="spark"))
    >>> has_moved(calls, datetime(2024, 5, 1, 8), datetime(2024, 5, 1, 9))
    False
    """
    return any(repr(literal(call, then)) != repr(literal(call, now)) for call in calls)
