"""Which expressions an incremental plan may contain. Owns the verdict; `deterministic_functions` is the table."""

from __future__ import annotations

from typing import Literal

from sqlglot import exp

from sqlmesh_like.analyze.expressions.clock import CLOCKS, is_clock_call
from sqlmesh_like.analyze.expressions.deterministic_functions import CLASSES, is_pure
from sqlmesh_like.analyze.expressions.node_kinds import forms_of, has_any
from sqlmesh_like.analyze.functions.aggregates import aggregate_of
from sqlmesh_like.analyze.functions.table import FUNCTIONS

FunctionClass = Literal["pure", "clock", "random", "unknown"]

_BY_CHANCE = {name: function.kind for name, function in FUNCTIONS.items() if function.decided_by == "chance"}
_RANDOM: tuple[type[exp.Expr], ...] = tuple(kind for kind in _BY_CHANCE.values() if kind is not None)

_BY_CONTENT: tuple[type[exp.Expr], ...] = (*CLOCKS, *_RANDOM, exp.Anonymous, exp.Lambda, exp.FromJson, exp.Cast)
_ALWAYS_PURE = frozenset(kind for kind in CLASSES if not issubclass(kind, _BY_CONTENT))
"""Classes whose nodes are pure whatever they contain: a fast path for most of the thousands of nodes."""
_WINDOW = (exp.Window, exp.WindowSpec, exp.Order, exp.Ordered, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Lag,
           exp.Lead, exp.Ntile, exp.Star, exp.PercentRank, exp.CumeDist, exp.NthValue, exp.IgnoreNulls,
           exp.RespectNulls)  # fmt: skip


def classify_function(node: exp.Expr, *, in_window: bool = False) -> FunctionClass:
    """The class of one node of an expression tree, regardless of its children.

    >>> import sqlglot
    >>> calls = [sqlglot.parse_one(sql, dialect="spark") for sql in ("upper(a)", "now()", "rand()", "my_udf(a)")]
    >>> [classify_function(call) for call in calls]
    ['pure', 'clock', 'random', 'unknown']
    """
    if type(node) in _ALWAYS_PURE:
        return "pure"
    if is_clock_call(node):
        return "clock"
    if isinstance(node, _RANDOM):
        return "random"
    if isinstance(node, exp.Anonymous) and node.name.lower() in _BY_CHANCE:
        return "random"
    if is_pure(node) or (in_window and _is_of_windows(node)):
        return "pure"
    return "unknown"


def _is_of_windows(node: exp.Expr) -> bool:
    record = aggregate_of(node)
    return isinstance(node, _WINDOW) or (record is not None and record.in_window)


def first_random(tree: exp.Expr) -> exp.Expr | None:
    """The first call in a query whose result differs from run to run."""
    if not has_any(forms_of(tree), (*_RANDOM, exp.Anonymous)):
        return None
    return next((node for node in tree.walk() if classify_function(node) == "random"), None)


def first_impure(expression: exp.Expr, *, in_window: bool = False) -> tuple[exp.Expr, FunctionClass] | None:
    """The first node of the tree that is not known to be a pure function of its row and the run's clock."""
    frozen: set[int] = set()
    for node in expression.walk():
        verdict = classify_function(node, in_window=in_window)
        if verdict == "clock":
            frozen.update(id(part) for part in node.walk())
        elif verdict != "pure" and id(node) not in frozen and not _is_looked_up(node):
            return node, verdict
    return None


def _is_looked_up(node: exp.Expr) -> bool:
    """Whether a map is only asked for the value of a key: maps cannot be compared, such a value can."""
    return isinstance(node, exp.VarMap | exp.Map) and isinstance(node.parent, exp.Bracket) and node.arg_key == "this"
