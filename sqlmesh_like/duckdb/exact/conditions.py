"""Comparisons, conditions and choices: what is proven of each, and how DuckDB is given it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqlmesh_like.analyze.binding.subqueries.in_values import is_shown_alone
from sqlmesh_like.duckdb.exact.form import SYNTAX, Form
from sqlmesh_like.duckdb.exact.lambdas import any_element
from sqlmesh_like.duckdb.exact.unproven import Unproven, require_hashed, require_only, require_ordered
from sqlmesh_like.duckdb.exact.values import (
    DATE,
    MOMENT,
    NULL,
    Types,
    cast_of,
    is_exact_double,
    require_known,
    wider_type,
)


def _column(node: exp.Column, types: Types) -> str:
    return require_known(types.of_column(node))


def _paren(node: exp.Paren, types: Types) -> str:
    return types.of(node.this)


def _logical(node: exp.Expr, types: Types) -> str:
    for part in (node.this, node.args.get("expression")):
        if part is not None:
            types.require_condition(part)
    return "boolean"


def _is(node: exp.Is, types: Types) -> str:
    types.of(node.this)
    if not isinstance(node.expression, exp.Null):
        raise Unproven("IS of other than NULL")
    return "boolean"


def _equal(node: exp.Binary, types: Types) -> str:
    return _comparison(node, types, hashed=True)


def _ordering(node: exp.Binary, types: Types) -> str:
    return _comparison(node, types, hashed=False)


def _comparison(node: exp.Binary, types: Types, *, hashed: bool) -> str:
    left, right = types.of(node.this), types.of(node.expression)
    _compare(node.this, left, node.expression, right)
    if hashed:
        require_hashed((left, right))
    return "boolean"


def _compare(one: exp.Expr, left: str, other: exp.Expr, right: str) -> None:
    """Raise Unproven unless both engines compare these types alike. A text compared with a date is cast to one."""
    require_ordered((left, right))
    if left == "string" and right in ("date", "timestamp"):
        return _text_as(one, right)
    if right == "string" and left in ("date", "timestamp"):
        return _text_as(other, left)
    if left == right or NULL in (left, right):
        return None
    if {left, right} == {"date", "timestamp"}:  # its midnight, in UTC
        date = one if left == "date" else other
        date.replace(cast_of(date.copy(), "timestamp"))
        return None
    if "double" in (left, right) and is_exact_double(left) and is_exact_double(right):
        return None
    wider_type(left, right)
    return None


def _between(node: exp.Between, types: Types) -> str:
    require_only(node, "this", "low", "high")
    own = types.of(node.this)
    for part in (node.args["low"], node.args["high"]):
        _compare(node.this, own, part, types.of(part))
    return "boolean"


def _in(node: exp.In, types: Types) -> str:
    require_only(node, "this", "expressions", "query")
    own = types.of(node.this)
    query = node.args.get("query")
    if query is not None:
        if not is_condition(node) and not is_shown_alone(node):
            raise Unproven(AS_VALUE)
        columns = types.of_query(query)
        members = [columns[0][1]] if len(columns) == 1 else []
        if members != [own]:
            raise Unproven("IN of other types")
    else:
        members = []
        for item in list(node.expressions):
            members.append(types.of(item))
            _compare(node.this, own, item, members[-1])
    require_ordered((own, *members))
    require_hashed((own, *members))
    return "boolean"


AS_VALUE = "IN of a query as a value"
"""Where SQL, and DuckDB, have NULL, Spark has false; which of the two NOT makes true depends on the query around it."""


def is_condition(node: exp.Expr) -> bool:
    """Whether a predicate only decides whether a row stays, so that NULL and false are the same.

    >>> import sqlglot
    >>> def holds(sql): return is_condition(sqlglot.parse_one(sql, dialect="spark").find(exp.In))
    >>> holds("select 1 from t where (a not in (select b from u) or c)"), holds("select a in (select b from u) from t")
    (True, False)
    """
    around = node.parent.parent if isinstance(node.parent, exp.Not) else node.parent
    while isinstance(around, exp.And | exp.Or | exp.Paren):
        around = around.parent
    return isinstance(around, exp.Where | exp.Having)


def _exists(node: exp.Exists, types: Types) -> str:
    if isinstance(node.expression, exp.Lambda):
        return any_element(node, types)
    types.of_query(node.this)
    return "boolean"


OF_AGGREGATE = "EXISTS or IN of an aggregate of rows that are chosen by the row around it"
"""Where DuckDB has a row, as SQL has, and Spark may have none."""


def require_as_in_spark(column: exp.Column, select: exp.Select) -> None:
    """Raise Unproven unless a SELECT that reads a column of a query around it has the same rows in Spark.

    Spark makes joins of such queries. To its EXISTS and IN, an aggregate without GROUP BY has no row where no row is
    chosen, though it always has one; of scalar subqueries, it looks for these at the top alone. Source:
    `PullupCorrelatedPredicates` and `RewriteCorrelatedScalarSubquery` of Spark 3.5.
    """
    clause = column.find_ancestor(exp.Select, exp.Where)
    if clause is None or clause.parent is not select:
        raise Unproven("a query that reads the row around it elsewhere than in its WHERE")
    if _always_has_a_row(select) and (_is_asked(select) or select.args.get("having")):
        message = "an aggregate with HAVING of rows chosen by the row around it"
        raise Unproven(OF_AGGREGATE if _is_asked(select) else message)
    if not _is_asked(select) and not _always_has_a_row(select) and not select.args.get("group"):
        raise Unproven("a value of rows chosen by the row around it that is not an aggregate")  # Spark refuses it


def _always_has_a_row(select: exp.Select) -> bool:
    """Whether it is an aggregate without GROUP BY."""
    calls = (call for item in select.expressions for call in item.find_all(exp.AggFunc))
    is_aggregate = any(call.find_ancestor(exp.Select, exp.Window) is select for call in calls)
    return not select.args.get("group") and (is_aggregate or bool(select.args.get("having")))


def asks_an_aggregate(predicate: exp.Exists | exp.In) -> bool:
    """Whether EXISTS or IN may be of an aggregate of rows that the row around it chooses, as far as the text says it.

    EXISTS of an aggregate would be always true otherwise. IN names a table around it: whose other names are is unknown.

    >>> import sqlglot
    >>> query = sqlglot.parse_one("select 1 from t where exists (select max(a) from u where u.b = t.b)")
    >>> asks_an_aggregate(query.find(exp.Exists))
    True
    """
    query = predicate.this if isinstance(predicate, exp.Exists) else predicate.args.get("query")
    selects = query.find_all(exp.Select) if isinstance(query, exp.Query) else ()
    aggregates = [each for each in selects if _is_asked(each) and _always_has_a_row(each)]
    is_exists = isinstance(predicate, exp.Exists) and query in aggregates
    return is_exists or any(_names_table_around(each) for each in aggregates)


def _names_table_around(select: exp.Select) -> bool:
    own = {item.alias_or_name.lower() for item in select.find_all(exp.Table, exp.Subquery)}
    return any(column.table.lower() in _names_around(select) - own for column in select.find_all(exp.Column))


def _names_around(select: exp.Select) -> set[str]:
    """Names of the items of FROM of all queries around it."""
    outer = select.find_ancestor(exp.Select)
    if outer is None:
        return set()
    start = outer.args.get("from_")
    items = [*([start.this] if start else []), *(join.this for join in outer.args.get("joins") or ())]
    return {item.alias_or_name.lower() for item in items} | _names_around(outer)


def _is_asked(select: exp.Select) -> bool:
    """Whether EXISTS, IN or a query in FROM reads it, and not an expression its value."""
    around = select.parent
    while isinstance(around, exp.Subquery):
        around = around.parent
    return isinstance(around, exp.Exists | exp.In | exp.From | exp.Join | exp.SetOperation | exp.CTE)


def _subquery(node: exp.Subquery, types: Types) -> str:
    columns = types.of_query(node)
    if len(columns) != 1:
        raise Unproven("a subquery of several columns")
    return columns[0][1]


def _like(node: exp.Like, types: Types) -> str:
    pattern = node.expression
    if not isinstance(pattern, exp.Literal) or "\\" in pattern.name or types.of(node.this) != "string":
        raise Unproven("LIKE with a pattern that is computed or has a backslash")
    return "boolean"


def _case(node: exp.Case, types: Types) -> str:
    branches, value = node.args["ifs"], node.this
    if value is not None:  # each branch compares it
        node.set("this", None)
        for branch in branches:
            branch.set("this", exp.EQ(this=exp.Paren(this=value.copy()), expression=exp.Paren(this=branch.this)))
    for branch in branches:
        types.require_condition(branch.this)
    values = [branch.args["true"] for branch in branches]
    return _common_type([*values, *([node.args["default"]] if node.args.get("default") is not None else [])], types)


def _if(node: exp.If, types: Types) -> str:
    types.require_condition(node.this)
    otherwise = node.args.get("false")
    return _common_type([node.args["true"], *([] if otherwise is None else [otherwise])], types)


def _coalesce(node: exp.Coalesce, types: Types) -> str:
    return _common_type([node.this, *node.expressions], types)


def _extreme(node: exp.Greatest | exp.Least, types: Types) -> str:
    known = {types.of(part) for part in (node.this, *node.expressions)}
    require_ordered(known)
    if len(known) != 1 or known & {"float", NULL}:
        raise Unproven("GREATEST or LEAST of other types")
    return known.pop()


def _nullif(node: exp.Nullif, types: Types) -> str:
    left, right = types.of(node.this), types.of(node.expression)
    if left != right:
        raise Unproven("NULLIF of other types")
    require_ordered((left,))
    require_hashed((left,))
    return left


def _common_type(values: Sequence[exp.Expr], types: Types) -> str:
    result = NULL
    for value in values:
        result = wider_type(result, types.of(value))
    return result


def _text_as(node: exp.Expr, type_: str) -> None:
    """Cast a text literal to the date or timestamp with which it is compared, as Spark does. Raises Unproven."""
    if not (isinstance(node, exp.Literal) and (DATE if type_ == "date" else MOMENT).fullmatch(node.name)):
        raise Unproven(f"a text beside a {type_}")
    node.replace(cast_of(node.copy(), type_))


FORMS: dict[type[exp.Expr], Form] = {
    exp.Column: Form(_column, is_listed=False, why=SYNTAX),
    exp.Paren: Form(_paren, is_listed=False, why=SYNTAX),
    exp.Subquery: Form(_subquery, is_listed=False, why=SYNTAX),
    exp.NullSafeNEQ: Form(_equal, is_listed=False, why="no fixture compares it over values of unknown types"),
    **dict.fromkeys((exp.And, exp.Or, exp.Not), Form(_logical)),
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.NullSafeEQ), Form(_equal)),
    **dict.fromkeys((exp.GT, exp.GTE, exp.LT, exp.LTE), Form(_ordering)),
    **dict.fromkeys((exp.Greatest, exp.Least), Form(_extreme)),
    exp.Is: Form(_is), exp.Between: Form(_between), exp.In: Form(_in), exp.Exists: Form(_exists),
    exp.Like: Form(_like), exp.Case: Form(_case), exp.If: Form(_if), exp.Coalesce: Form(_coalesce),
    exp.Nullif: Form(_nullif),
}  # fmt: skip
