"""GET_JSON_OBJECT: the member at a path of names, as Spark's parser (Jackson) reads it.

DuckDB fails for a text that is not JSON, of which Spark may read a part. Beside JSON it takes NaN, infinities and
commas before a closing bracket, which Spark does not; Spark goes on to the next member of one name where the first is
NULL, and refuses what is nested too deeply or too long. Such a text is left to Spark, and so is a member that is an
object, an array, or a number that Java would not write as DuckDB does. Source: `GetJsonObject` of Spark 3.5, and
`StreamReadConstraints` of Jackson 2.15.
"""

from __future__ import annotations

import re

from sqlglot import exp

from sqlmesh_like.analyze.spark_types.java_numbers import PLAIN_TEXT
from sqlmesh_like.dialects import duck_template
from sqlmesh_like.duckdb.exact.form import Form
from sqlmesh_like.duckdb.exact.unproven import Unproven, require_only
from sqlmesh_like.duckdb.exact.values import Types, cast_of, only_where

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OTHER_JSON = r",[ \t\r\n]*[}\]]|[,:\[][ \t\r\n]*[-+]?(?i:nan|inf)|[0-9]{500}|\\u0000"
"""Patterns (RE2) of what only one of the engines takes: also found within texts, where it means nothing."""
_PLAIN_NUMBER = rf"-?(0|[1-9][0-9]*|0\.0|{PLAIN_TEXT})"
"""Numbers with the text that Java gives them; DuckDB's text is the shortest, and Java's is where it has no exponent."""
_MOST_BYTES, _DEEPEST = 10_000_000, 900
_IS_JSON = (
    f"strlen(x) < {_MOST_BYTES} AND strlen(x) - strlen(replace(replace(x, '[', ''), '{{', '')) < {_DEEPEST}"
    f" AND NOT regexp_matches(x, '{_OTHER_JSON}')"
)
_IS_ONCE = (
    "CASE WHEN strlen(x) - strlen(replace(x, '\"{name}\"', '')) <= {size} AND NOT contains(x, '\\u') THEN true"
    " ELSE coalesce(len(list_filter(json_keys(x, '{above}'), LAMBDA _sml_n : _sml_n = '{name}')), 0) <= 1 END"
)
"""Most texts have a name but once, wherever it stands; with letters as `\\u0061` it is found among the members."""
_IS_PLAIN = (
    "CASE WHEN coalesce(json_type(x, '{path}'), 'NULL') IN ('VARCHAR', 'BOOLEAN', 'NULL') THEN true"
    " ELSE regexp_full_match(json_extract(x, '{path}')::VARCHAR, '{number}') END"
)


def _member(node: exp.JSONExtractScalar, types: Types) -> str:
    require_only(node, "this", "expression", "only_json_types", "scalar_only")
    if types.of(node.this) != "string":
        raise Unproven("GET_JSON_OBJECT of other than a text")
    path, conditions = "$", [_IS_JSON]
    for name in _names(node.expression):
        conditions.append(_IS_ONCE.format(above=path, name=name, size=len(name) + 2))
        path += f".{name}"
    conditions.append(_IS_PLAIN.format(path=path, number=_PLAIN_NUMBER))
    text = cast_of(node.this.copy(), "string")
    condition = "CASE WHEN " + " AND ".join(f"({each})" for each in conditions) + " THEN true END"
    is_proven = duck_template(condition, x=text)
    member = duck_template(f"(json_extract_string(x, '{path}'))", x=text)
    node.replace(exp.Paren(this=only_where(is_proven, text, member, "string")))
    return "string"


def _names(path: exp.Expr) -> list[str]:
    """The names of a path such as `$.a.b`."""
    steps = path.expressions if isinstance(path, exp.JSONPath) else []
    names = [step.this for step in steps[1:] if isinstance(step, exp.JSONPathKey)]
    is_plain = all(isinstance(name, str) and _NAME.fullmatch(name) for name in names)
    if not names or len(names) < len(steps) - 1 or not is_plain:
        raise Unproven("GET_JSON_OBJECT of a path that is not one of names as written")
    return names


FORMS: dict[type[exp.Expr], Form] = {
    exp.JSONExtractScalar: Form(_member, is_listed=False, why="it is proven of texts, which only types tell"),
}
