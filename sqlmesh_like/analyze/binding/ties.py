"""Functions whose result depends on the order of rows. Owns how the row key breaks ties in aggregates and windows."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from sqlmesh_like.analyze.binding.expression_copies import WRITTEN, operand, replace_nodes
from sqlmesh_like.analyze.functions.aggregates import aggregate_of
from sqlmesh_like.dialects import SPARK

_LISTED: exp.Expr = sqlglot.parse_one(
    "transform(array_sort(collect_list(_sml_filled)), _sml_e -> _sml_e._sml_v)", dialect="spark"
)


def by_row_key(call: exp.Expr, key: exp.Expr) -> exp.Expr:
    """A copy of a call, possibly with FILTER, in which the row key breaks ties; other calls are copied unchanged.

    `max_by` and `min_by` compare the key after the value, `first` and `last` read the row with the smallest and the
    largest key; lists are ordered by key, sets by element. All skip NULL, so FILTER is folded into the arguments.

    >>> import sqlglot
    >>> by_row_key(sqlglot.parse_one("first(a)", dialect="spark"), exp.column("id")).sql("spark")
    'MIN_BY(a, id)'
    """
    function = core(call)
    if not is_decided(function):
        return call.copy()
    wanted, value = _row_conditions(call), function.this
    match function:
        case exp.ArgMax() | exp.ArgMin():
            compared = exp.Struct(expressions=[_field("_sml_o", function.expression), _field("_sml_k", key)])
            order = _where([*wanted, _is_known(function.expression)], compared)
            return type(function)(this=value.copy(), expression=order)
        case exp.Last() | exp.LastValue():
            return exp.ArgMax(this=value.copy(), expression=_where(wanted, key))
        case exp.ArrayAgg():
            pair = exp.Struct(expressions=[_field("_sml_k", key), _field("_sml_v", value)])
            return _with(_LISTED, _where([*wanted, _is_known(value)], pair))
        case exp.ArrayUniqueAgg():
            return exp.ArraySort(this=exp.ArrayUniqueAgg(this=_where(wanted, value)))
    return exp.ArgMin(this=value.copy(), expression=_where(wanted, key))


def order_of_choice(call: exp.Expr, key: exp.Expr) -> exp.Expr:
    """By what a call chooses the row whose value it has, before the row key: NULL for rows that it passes over.

    That is the row key alone for `first`, `last` and `any_value`.
    """
    function = core(call)
    order = function.expression if isinstance(function, exp.ArgMax | exp.ArgMin) else key
    return _where(_row_conditions(call), order)


def _row_conditions(call: exp.Expr) -> list[exp.Expr]:
    """The conditions on rows that a call asks for."""
    conditions = [call.expression.this] if isinstance(call, exp.Filter) else []
    return [*conditions, _is_known(core(call).this)] if call.find(exp.IgnoreNulls) else conditions


def is_decided(function: exp.Expr) -> bool:
    """Whether `by_row_key` rewrites a function: not with DISTINCT or ORDER BY, and not for the n largest."""
    record = aggregate_of(function)
    return (
        record is not None
        and record.order == "key"
        and not isinstance(function.this, exp.Distinct | exp.Order | exp.Limit)
        and not function.args.get("count")
    )


def is_tied(window: exp.Window) -> bool:
    """Whether the order of rows that ORDER BY leaves tied decides a window function's result.

    The row key as a last term of ORDER BY then chooses one of the results that the query allows: it narrows no frame,
    for these frames are of rows or unbounded.
    """
    return isinstance(core(window.this), _BY_POSITION) or (
        window.args.get("order") is not None and (_is_of_rows(window) or isinstance(core(window.this), _BY_ROW))
    )


def window_fault(window: exp.Window) -> str | None:
    """Why a window function's result is not decided by its rows and the row key; None if it is.

    >>> import sqlglot
    >>> texts = ("last_value(a) over (partition by b order by c)", "first_value(a) over (partition by b order by c)")
    >>> [window_fault(sqlglot.parse_one(text, dialect="spark")) for text in texts]
    ['a frame by RANGE that ends at tied rows, where one by ROWS is followed', None]
    """
    function, has_order = core(window.this), window.args.get("order") is not None
    is_by_row = isinstance(function, _BY_ROW)
    if not has_order and (
        isinstance(function, _BY_POSITION) or is_by_row or (_is_of_rows(window) and not _is_whole(window))
    ):
        return "a window function whose result depends on an order that is not given"
    if is_by_row and not _is_of_rows(window) and not _is_whole(window) and not _is_first_of_all(window):
        return "a frame by RANGE that ends at tied rows, where one by ROWS is followed"
    return None


def over_peers(expression: exp.Expr) -> exp.Expr:
    """The expression with windows that take the last or first of the rows tied with the current one as such.

    A frame by RANGE that ends at the current row ends at the last row that ORDER BY leaves tied with it: its last value
    is the last one of these rows, the order among which the row key decides, whatever else the frame has. The same
    holds for the first value of a frame that starts there. The last value that is not NULL, of all rows up to there, is
    that of these rows; if they have none, it is the last one up to the current row, in whatever order they are.

    >>> import sqlglot
    >>> text = "last_value(a) over (partition by b order by c desc)"
    >>> print(over_peers(sqlglot.parse_one(text, dialect="spark")).sql("spark"))
    LAST_VALUE(a) OVER (PARTITION BY b, c ORDER BY c DESC ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
    """
    if not any(_is_of_peers(window) or _is_filled(window) for window in expression.find_all(exp.Window)):
        return expression
    return replace_nodes(
        expression,
        lambda node: _over_peers(node) if _is_of_peers(node) else _peers_or_frame(node) if _is_filled(node) else node,
    )


def _range(window: exp.Expr) -> tuple[str, str] | None:
    """Start and end of a window's frame by RANGE in an order; None for any other window."""
    if not isinstance(window, exp.Window) or window.args.get("order") is None:
        return None
    spec = window.args.get("spec")
    if spec is None:
        return "UNBOUNDED", "CURRENT ROW"
    if str(spec.args.get("kind")).upper() != "RANGE":
        return None
    return str(spec.args.get("start")).upper(), str(spec.args.get("end")).upper()


def _is_of_peers(window: exp.Expr) -> bool:
    if (ends := _range(window)) is None:
        return False
    start, end = ends
    if isinstance(window.this, exp.Last | exp.LastValue):
        return end == "CURRENT ROW"
    return isinstance(window.this, exp.First | exp.FirstValue | exp.AnyValue) and start == "CURRENT ROW"


def _over_peers(window: exp.Expr) -> exp.Expr:
    peers = window.copy()
    peers.set("partition_by", [*peers.args.get("partition_by", ()), *(t.this.copy() for t in peers.args["order"])])
    return _with_frame(peers, window, end="UNBOUNDED", end_side="FOLLOWING")


def _is_filled(window: exp.Expr) -> bool:
    function = window.this
    is_last = isinstance(function, exp.IgnoreNulls) and isinstance(function.this, exp.Last | exp.LastValue)
    return is_last and _range(window) == ("UNBOUNDED", "CURRENT ROW")


def _peers_or_frame(window: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=_over_peers(window), expressions=[_with_frame(window.copy(), window, end="CURRENT ROW")])


def _with_frame(made: exp.Expr, window: exp.Expr, **end: str) -> exp.Expr:
    """The window over rows from the first one on; `window` is how it is written."""
    made.set("spec", exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", **end))
    made.meta[WRITTEN] = window.sql(SPARK, comments=False)
    return made


_BY_POSITION = (exp.RowNumber, exp.Lag, exp.Lead, exp.Ntile)
"""Window functions that count rows; they have no frame."""
_BY_ROW = (exp.First, exp.FirstValue, exp.AnyValue, exp.Last, exp.LastValue, exp.NthValue)
"""Functions that take one row of their frame."""


def _is_of_rows(window: exp.Window) -> bool:
    spec = window.args.get("spec")
    return spec is not None and str(spec.args.get("kind")).upper() == "ROWS"


def _is_whole(window: exp.Window) -> bool:
    """Whether the frame is the whole partition."""
    spec = window.args.get("spec")
    return spec is not None and [str(spec.args.get(part)).upper() for part in ("start", "end")] == ["UNBOUNDED"] * 2


def _is_first_of_all(window: exp.Window) -> bool:
    """Whether this is the first row of the partition, which any frame from its start on has."""
    spec = window.args.get("spec")
    is_from_start = spec is None or str(spec.args.get("start")).upper() == "UNBOUNDED"
    return is_from_start and isinstance(window.this, exp.First | exp.FirstValue | exp.AnyValue)


def core(call: exp.Expr) -> exp.Expr:
    """The aggregate function inside FILTER and IGNORE NULLS."""
    while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        call = call.this
    return call


def _where(conditions: list[exp.Expr], value: exp.Expr) -> exp.Expr:
    """The value where all conditions hold, else NULL."""
    return exp.Case().when(exp.and_(*conditions), value.copy()) if conditions else value.copy()


def _is_known(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=operand(value), expression=exp.Null()))


def _field(name: str, value: exp.Expr) -> exp.Expr:
    return exp.PropertyEQ(this=exp.to_identifier(name), expression=value.copy())


def _with(template: exp.Expr, filled: exp.Expr) -> exp.Expr:
    def fill(node: exp.Expr) -> exp.Expr:
        return filled if isinstance(node, exp.Column) and node.name == "_sml_filled" else node

    return template.copy().transform(fill, copy=False)
