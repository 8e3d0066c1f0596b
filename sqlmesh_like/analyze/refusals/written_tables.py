"""Tables that a query writes out, VALUES and functions in FROM, which Spark's analysis refuses. Owns finding them.

Source: `ResolveInlineTables` and `ResolveTableValuedFunctions` of Spark 3.5.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sqlmesh_like.analyze.functions.aggregates import AGGREGATES
from sqlmesh_like.analyze.illegal_clauses import Misplaced
from sqlmesh_like.dialects import SPARK

WRITTEN_OUT = (
    *(exp.Values, exp.Explode, exp.Posexplode, exp.Inline, exp.Stack, exp.Anonymous, exp.Pivot),
    *(exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile),
)
"""A query without any of these needs no check."""
_NOT_CONSTANT = (exp.Column, exp.Rand, exp.Randn, exp.Uuid, *AGGREGATES)


def refused_tables(tree: exp.Expr) -> Iterator[Misplaced]:
    """Rows of VALUES that differ in width or kind, or are not constant; aliases of functions in FROM for other columns.

    >>> import sqlglot
    >>> query = "select * from values (1, rand()) as v(a, b)"
    >>> [found.message for found in refused_tables(sqlglot.parse_one(query, dialect="spark"))]
    ['VALUES holds constants, not RAND()']
    """
    for values in tree.find_all(exp.Values):
        yield from _values(values)
    for table in tree.find_all(exp.Table):
        yield from _function(table)
    for pivot in tree.find_all(exp.Pivot):
        yield from _pivot(pivot)


def _function(table: exp.Table) -> Iterator[Misplaced]:
    if isinstance(table.this, exp.Window):
        yield Misplaced(f"{table.this.sql(SPARK)} is not a table", table.this, "select it from the table that it ranks")
    alias = table.args.get("alias")
    names = alias.columns if isinstance(alias, exp.TableAlias) else []
    width = _width(table.this) if names else None
    if width is not None and width != len(names):
        yield _wrong_alias_count(table.this.sql(SPARK), width, names)


def _wrong_alias_count(what: str, width: int, names: list[exp.Expr]) -> Misplaced:
    message = f"{what} has {width} column(s), and its alias {len(names)}"
    return Misplaced(message, names[0], "name each column once, or none of them")


def _pivot(pivot: exp.Pivot) -> Iterator[Misplaced]:
    """PIVOT without an aggregate, or with one in another."""
    for item in pivot.expressions if not pivot.args.get("unpivot") else ():
        called = list(item.find_all(*AGGREGATES))
        if not called and item.find(exp.Anonymous, exp.AggFunc) is None:
            yield Misplaced(f"PIVOT takes aggregates, not {item.sql(SPARK)}", item, "e.g. sum(…)")
        if nested := next((inner for outer in called for inner in _below(outer)), None):
            yield Misplaced(f"an aggregate cannot be nested in another one: {item.sql(SPARK)}", nested)


def _below(outer: exp.Expr) -> Iterator[exp.Expr]:
    return (inner for part in outer.iter_expressions() for inner in part.find_all(*AGGREGATES))


def _values(values: exp.Values) -> Iterator[Misplaced]:
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in values.expressions]
    if len({len(row) for row in rows}) > 1:
        yield Misplaced("the rows of VALUES have different numbers of columns", values)
        return
    alias = values.args.get("alias")
    names = alias.columns if isinstance(alias, exp.TableAlias) else []
    if names and rows and len(names) != len(rows[0]):
        yield _wrong_alias_count("VALUES", len(rows[0]), names)
    for value in (value for row in rows for value in row):
        if odd := value.find(*_NOT_CONSTANT):
            hint = "select it from the rows: select … from values (…)"
            yield Misplaced(f"VALUES holds constants, not {odd.sql(SPARK)}", odd, hint)
    for column in zip(*rows, strict=True):
        kinds = {type(value) for value in column if isinstance(value, exp.Array | exp.Struct | exp.VarMap)}
        if len(kinds) > 1:
            yield Misplaced("a column of VALUES holds values of different kinds", column[1], "give them one type")


def _width(function: exp.Expr) -> int | None:
    """The number of columns of a function in FROM; None where it is not certain."""
    match function:
        case exp.Posexplode() if isinstance(function.this, exp.Array):
            return 2
        case exp.Explode() if isinstance(function.this, exp.Array):
            return 1
        case exp.Inline() if isinstance(function.this, exp.Array) and function.this.expressions:
            first = function.this.expressions[0]
            return len(first.expressions) if isinstance(first, exp.Struct) else None
        case exp.Stack() if isinstance(function.this, exp.Literal) and function.this.is_int and int(function.this.name):
            return -(-len(function.expressions) // int(function.this.name))
        case exp.Anonymous() if function.name.lower() == "json_tuple":
            return len(function.expressions) - 1
    return None
