"""Names of a query's columns, and whether a table can have them. Owns this for queries with and without an algebra."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from sqlmesh_like.analyze.binding.scope import offset_of
from sqlmesh_like.analyze.query_analysis import QueryFacts, locate
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import Location, SqlError
from sqlmesh_like.names import LONGEST_COLUMN, Schema, is_hidden
from sqlmesh_like.render.rendered import RenderedModel

_NAMED = (
    exp.Column, exp.Star, exp.Dot, exp.Bracket, exp.Aliases, exp.Anonymous,
    exp.UDTF, exp.Explode, exp.ExplodeOuter, exp.Posexplode, exp.PosexplodeOuter, exp.Inline,
)  # fmt: skip
"""What Spark names in a SELECT list, and functions of which that is not known."""
_KINDS = ("model", "snapshot")
_TABLES = ("incremental", "table", "snapshot")


def refuse_unnamed(model: RenderedModel, tree: exp.Expr) -> None:
    """Raise SqlError for a column of a table without a name, as the binder does for queries that it reads.

    Spark names generators, and by the column a cast of one, or one in parentheses. In a view any column has a name.
    """
    is_table = model.config.materialized in _TABLES and model.unique_id.kind in _KINDS
    for item in tree.selects if isinstance(tree, exp.Query) and is_table else ():
        value = item.this if isinstance(item, exp.Cast) else item.unnest()
        if not value.alias and not isinstance(value, _NAMED):
            message = f"the column {item.sql(SPARK, comments=False)!r} has no name"
            raise SqlError(message, location=locate(model, offset_of(item)), hint="add an alias: … AS name")


def refuse_unstorable(facts: QueryFacts, schema: Schema | None) -> None:
    """Raise SqlError for columns that no table can have: two of one name, and names with spaces or signs.

    The writer is stricter: it refuses what the format cannot have. A view may have such columns.
    """
    model, seen = facts.model, set[str]()
    if model.config.materialized not in _TABLES or model.unique_id.kind not in _KINDS:
        return
    places = column_places(facts)
    for column in schema or ():
        name, place = column.name.lower(), places.get(column.name.lower(), Location(model.path, 1, 1))
        if name in seen:
            hint = "give one of them another alias"
            raise SqlError(f"two columns are named {column.name!r}", location=place, hint=hint)
        if not re.fullmatch(r"\w+", name) or (is_hidden(name) and name in places):
            hint = "give it an alias of letters, digits and underscores"
            raise SqlError(f"a table cannot have a column named {column.name!r}", location=place, hint=hint)
        if len(name) > LONGEST_COLUMN:
            message = f"a table cannot have a column with a name of {len(name)} characters: {name[:20]}…"
            raise SqlError(message, location=place, hint=f"give it an alias of up to {LONGEST_COLUMN}")
        seen.add(name)


def column_places(facts: QueryFacts) -> Mapping[str, Location]:
    """Where the outermost SELECT has each of its columns, by lower-case name; none of those that come by `*`."""
    select = facts.tree.unnest() if isinstance(facts.tree, exp.Query) else facts.tree
    items = [item for item in getattr(select, "selects", []) if not item.is_star]
    return {item.alias_or_name.lower(): locate(facts.model, offset_of(item)) for item in items}
