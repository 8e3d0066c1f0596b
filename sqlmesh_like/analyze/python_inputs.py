"""A Python model represented by a query. Owns its form: inputs in FROM, so that views are inlined as usual.

The query is never run as a whole. Its one column is a digest of the text and of the settings that the text uses:
whatever changes the model changes the query. Its FROM holds the inputs in the model's order; `input_query` extracts
one of them, with its views inlined.
"""

from __future__ import annotations

import hashlib
import json

from sqlglot import exp

from sqlmesh_like.render.rendered import PythonCode, RenderedModel


def python_query(model: RenderedModel, python: PythonCode) -> exp.Select:
    """The query that represents a Python model."""
    settings = json.dumps(python.settings, sort_keys=True, default=str)
    digest = hashlib.sha256(f"{model.sql.strip()}\n{settings}".encode()).hexdigest()
    query = exp.select(exp.alias_(exp.Literal.string(digest), "python"))
    for number, ref in enumerate(model.inputs):
        name = exp.table_(ref.table.identifier, db=ref.table.schema, quoted=True, alias=f"input_{number}")
        query = query.join(name, join_type="cross") if number else query.from_(name)
    return query


def input_query(tree: exp.Expr, number: int) -> exp.Select:
    """The query for all rows of the input at position `number`; `tree` is the query that represents the model."""
    assert isinstance(tree, exp.Select)
    items = [tree.args["from_"].this, *(join.this for join in tree.args.get("joins") or ())]
    return exp.select("*").from_(items[number].copy())
