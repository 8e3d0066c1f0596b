"""Types in a query that is not in the algebra. Owns following a column to its table, or to the item of a query below.

Only types of tables are taken from sqlglot, which annotates expressions by rules that are not Spark's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from sqlmesh_like.analyze.expressions.expression_types import ExpressionTypes
from sqlmesh_like.analyze.functions.signatures import common_type
from sqlmesh_like.analyze.query_analysis import QueryFacts
from sqlmesh_like.analyze.spark_types.coercion import VOID
from sqlmesh_like.analyze.spark_types.refusal import Refusal
from sqlmesh_like.analyze.spark_types.type_names import normalize
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.names import Schema
from sqlmesh_like.plan.checks.lint import with_types
from sqlmesh_like.render.rendered import InputRef


class WrittenTypes:
    """The query with qualified names, and the types of its expressions."""

    def __init__(self, tree: exp.Expr) -> None:
        self.tree = tree
        self._scopes = {id(column): scope for scope in traverse_scope(tree) for column in scope.columns}
        self.types = ExpressionTypes(self._column)

    @classmethod
    def of(cls, facts: QueryFacts, schemas: Callable[[InputRef], Schema | None]) -> WrittenTypes | None:
        """Those of a query over columns of its inputs; None where these are not known."""
        typed = with_types(facts.tree, facts.model, {ref.unique_id: schemas(ref) for ref in facts.model.inputs})
        return None if typed is None else cls(typed)

    def outputs(self) -> list[tuple[str, str | None]] | None:
        """Names and types of the query's columns; None where they are not known.

        A star over USING or NATURAL has columns in another order than sqlglot gives them.
        """
        is_merged = any(join.args.get("using") or join.args.get("method") for join in self.tree.find_all(exp.Join))
        return None if is_merged else self._outputs(self.tree)

    def _outputs(self, query: exp.Expr) -> list[tuple[str, str | None]] | None:
        match query:
            case exp.Subquery():
                return self._outputs(query.this)
            case exp.SetOperation():
                left, right = self._outputs(query.this), self._outputs(query.expression)
                if left is None or right is None or len(left) != len(right):
                    return None
                both = zip(left, right, strict=True)
                return [(name, _type(common_type([first, second]))) for (name, first), (_, second) in both]
            case exp.Select() if not any(item.is_star for item in query.selects):
                return [(item.alias_or_name, _type(self.types.of(item.unalias()))) for item in query.selects]
        return None

    def incompatible_set_columns(self) -> Iterator[tuple[exp.Expr, Refusal]]:
        """Columns of UNION, INTERSECT and EXCEPT whose types have no common one, each with its second query."""
        for query in self.tree.find_all(exp.SetOperation):
            left, right = self._outputs(query.this), self._outputs(query.expression)
            for (name, first), (_, second) in zip(left or (), right or (), strict=False):
                common = common_type([first, second])
                if isinstance(common, Refusal):
                    yield query.expression, Refusal(f"the column {name!r} of {query.key.upper()}: {common.message}")

    def _column(self, column: exp.Column) -> str | None:
        scope = self._scopes.get(id(column))
        source = scope.sources.get(column.table) if scope is not None else None
        if isinstance(source, exp.Table):
            type_ = column.type
            return None if type_ is None or type_.is_type(exp.DataType.Type.UNKNOWN) else normalize(type_.sql(SPARK))
        below = source.expression if isinstance(source, Scope) else None
        if isinstance(below, exp.Values):
            return self._value(column, below)
        outputs = self._outputs(below) if below is not None else None
        matching = [type_ for name, type_ in outputs or () if name.lower() == column.name.lower()]
        return matching[0] if len(matching) == 1 else None

    def _value(self, column: exp.Column, values: exp.Values) -> str | None:
        """Type of a column of VALUES."""
        alias = values.args.get("alias")
        names = [name.name.lower() for name in alias.columns] if alias is not None else []
        if column.name.lower() not in names:
            return None
        position = names.index(column.name.lower())
        rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in values.expressions]
        types = [self.types.of(row[position]) if position < len(row) else None for row in rows]
        return _type(common_type(types))


def _type(outcome: object) -> str | None:
    """A type that a column may have. Names of fields have lost their case in a qualified query."""
    is_sure = isinstance(outcome, str) and VOID not in outcome and "struct<" not in outcome
    return outcome if isinstance(outcome, str) and is_sure else None
