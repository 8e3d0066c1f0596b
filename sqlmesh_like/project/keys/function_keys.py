"""Keys of `functions:` in properties YAML, as dbt 1.11 has them.

Source: https://docs.getdbt.com/reference/function-properties.
"""

from __future__ import annotations

from sqlmesh_like.project.keys.shape import Key, Shape
from sqlmesh_like.project.keys.value_types import (
    choice,
    data_type,
    each,
    entry,
    expression,
    flag,
    plain_mapping,
    text,
    texts,
    unchecked_value,
    without_effect,
)

_INLINED = "the expression is written into each query that calls the function"
_DESCRIPTION = Key(text, help="What it is, in Markdown; `{{ doc('name') }}` quotes a doc block.", example="An amount.")
FUNCTION_ARGUMENT = Shape("an argument of a function", {
    "name": Key(text, is_required=True, help="Its name in the function's expression.", example="amount"),
    "data_type": Key(data_type, is_required=True, help="Its type; values are cast to it.", example="decimal(12,2)"),
    "description": _DESCRIPTION,
    "default_value": Key(expression, help="What a call that leaves it out gives, as SQL without names.", example=100),
})  # fmt: skip
RETURNS = Shape("what a function returns", {
    "data_type": Key(data_type, is_required=True, help="The type; the result is cast to it.", example="bigint"),
    "description": _DESCRIPTION,
})  # fmt: skip
FUNCTION_CONFIG = Shape("the config of a function", {
    "type": Key(choice("scalar", "aggregate"), "scalar", help="`scalar`; a query cannot call another kind.",
                example="scalar"),
    "volatility": Key(choice("deterministic", "stable", "non-deterministic"),
                      help="`deterministic`: its arguments decide the result; `stable`: the run's clock too. "
                      "A query cannot call another one. Default: what its expression is.", example="deterministic"),
    "enabled": Key(flag, True, help="Whether it is part of the project.", example=False),
    "runtime_version": Key(text, help="Of a function in Python: the version that Spark's Python must have.",
                           example="3.11"),
    "entry_point": Key(text, help="Of a function in Python: the function in its file that is called for each row.",
                       example="main"),
    "tags": Key(texts, help="Tags; in the manifest only.", example=["money"]),
    "meta": Key(plain_mapping, help="Any values of the project's own.", example={"owner": "sales"}),
    "database": without_effect("text", "main", _INLINED),
    "schema": without_effect("text", "udf", _INLINED),
    "alias": without_effect("text", "cents", _INLINED),
    "docs": Key(unchecked_value("mapping", {"show": False}), help="Settings of dbt's site; not read here."),
}, others="warn")  # fmt: skip
FUNCTION = Shape("a function", {
    "name": Key(text, is_required=True, help="Its file, without suffix; queries call it by this name.",
                example="cents"),
    "description": _DESCRIPTION,
    "arguments": Key(each(FUNCTION_ARGUMENT), help="Its arguments, in order.",
                     example=[{"name": "amount", "data_type": "decimal(12,2)"}]),
    "returns": Key(entry(RETURNS), is_required=True, help="What it returns.", example={"data_type": "bigint"}),
    "config": Key(entry(FUNCTION_CONFIG), help="Settings.", example={"volatility": "deterministic"}),
    "meta": FUNCTION_CONFIG.keys["meta"],
    "docs": FUNCTION_CONFIG.keys["docs"],
}, others="warn")  # fmt: skip
