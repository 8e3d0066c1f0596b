"""Arrays: which are proven, and how DuckDB builds them, reads their elements and maps them as Spark does.

Both engines count NULLs as elements, and take NULL elements as equal where they group by an array. They order arrays
differently, and collect values in the order in which rows happen to come: what is collected must be sorted.
"""

from __future__ import annotations

import re

from sqlglot import exp

from sqlmesh_like.analyze.spark_types.nested_types import element_of
from sqlmesh_like.dialects import SPARK, duck_template
from sqlmesh_like.duckdb.exact.form import Form
from sqlmesh_like.duckdb.exact.sequences import sequence_elements
from sqlmesh_like.duckdb.exact.structs import field_type, struct_field
from sqlmesh_like.duckdb.exact.unproven import Unproven, require_only, require_ordered
from sqlmesh_like.duckdb.exact.values import (
    ARRAY_OF_NULL,
    FLOATS,
    INTEGERS,
    NULL,
    Types,
    cast_of,
    replace_by_cast,
)
from sqlmesh_like.names import KEY

_CONTAINS = (
    "CASE WHEN x IS NULL OR y IS NULL THEN NULL WHEN list_contains(x, y) THEN true"
    " WHEN len(list_filter(x, LAMBDA _sml_e : _sml_e IS NULL)) > 0 THEN NULL ELSE false END"
)
_OVERLAPS = (
    "CASE WHEN x IS NULL OR y IS NULL THEN NULL WHEN list_has_any(x, y) THEN true"
    " WHEN len(x) > 0 AND len(y) > 0 AND (len(list_filter(x, LAMBDA _sml_e : _sml_e IS NULL)) > 0"
    " OR len(list_filter(y, LAMBDA _sml_e : _sml_e IS NULL)) > 0) THEN NULL ELSE false END"
)
_PLAIN_TEXT = re.compile(r"[^\\.\[\]{}()*+?^$|]+|\\[.\[\]{}()*+?^$|\\]|\[[.*+?$|(){}]\]")
"""Regular expressions that stand for a text as it is written, but for a backslash or brackets around a single sign."""


def element_of_array(array: exp.Expr, types: Types) -> str:
    type_ = types.of(array)
    if (element := element_of(type_)) in (None, NULL):
        raise Unproven(f"{type_}, which is no array of a type")
    assert element is not None
    return element


def _replace(node: exp.Expr, template: str, x: exp.Expr, y: exp.Expr | None = None) -> None:
    """Replace a node by DuckDB's text, with arguments for `x` and `y`."""
    values = {"x": x} if y is None else {"x": x, "y": y}
    node.replace(exp.Paren(this=duck_template(template, **values)))


def _array(node: exp.Array, types: Types) -> str:
    """ARRAY of values of one type, or NULL; of NULLs alone it has the type of an array beside it."""
    require_only(node, "expressions")
    known = {types.of(element) for element in list(node.expressions)}
    if known == {NULL}:
        return ARRAY_OF_NULL
    if len(known - {NULL}) != 1:
        raise Unproven("an array of no type, or of several")
    return replace_by_cast(node, f"array<{(known - {NULL}).pop()}>")


def _sequence(node: exp.GenerateSeries, types: Types) -> str:
    return f"array<{sequence_elements(node, types)}>"


def _split(node: exp.RegexpSplit, types: Types) -> str:
    """SPLIT at a text. A limit, and other patterns, are left to Spark."""
    require_only(node, "this", "expression")
    at = node.expression
    if not isinstance(at, exp.Literal) or not at.is_string or not _PLAIN_TEXT.fullmatch(at.name):
        raise Unproven("SPLIT at other than a written text")
    if types.of(node.this) != "string":
        raise Unproven("SPLIT of other than a text")
    text = at.name[1] if at.name[0] in "\\[" else at.name
    node.replace(exp.Anonymous(this="string_split", expressions=[node.this.copy(), exp.Literal.string(text)]))
    return "array<string>"


def _collected(node: exp.ArrayAgg | exp.ArrayUniqueAgg, types: Types) -> str:
    """The values of a group that are not NULL, of which nothing but their number, or their sorted list, is asked for.

    Spark's set tells the zeros apart, and nested values by their parts: of such types it is not proven.
    """
    require_only(node, "this", "nulls_excluded")
    if not isinstance(node.parent, exp.ArraySort | exp.ArraySize):
        raise Unproven(f"{node.sql_name()} that is not sorted")
    if isinstance(node.this, exp.Distinct | exp.Order | exp.Limit):
        raise Unproven(f"{node.sql_name()} with DISTINCT, ORDER or LIMIT")
    element = types.of(node.this)
    if element == NULL or (isinstance(node, exp.ArrayUniqueAgg) and (element in FLOATS or "<" in element)):
        raise Unproven(f"{node.sql_name()} of {element}")
    made = f"array<{element}>"
    if isinstance(node, exp.ArrayAgg):
        node.set("nulls_excluded", True)
    node.replace(exp.Coalesce(this=cast_of(node.copy(), made), expressions=[cast_of(exp.Array(), made)]))
    return made


def _sorted(node: exp.ArraySort, types: Types) -> str:
    """SORT_ARRAY, whose NULLs are first, or last if it is descending, and ARRAY_SORT, whose NULLs are last.

    Structs are not ordered alike; but pairs of the row key and a value are, by the key, which is another in each row.
    """
    require_only(node, "this", "asc", "nulls_first")
    collected, asc = node.this, node.args.get("asc")
    is_by_key = isinstance(collected, exp.ArrayAgg) and _begins_with_row_key(collected.this)
    element = element_of_array(collected, types)
    if not is_by_key:
        require_ordered((element,))
    if element == "float" or not isinstance(asc, exp.Boolean | None):
        raise Unproven(f"the order of {element} in an array")
    is_descending = asc is not None and not asc.this
    nulls = "FIRST" if _has_nulls_first(node) and not is_descending else "LAST"
    _replace(node, f"list_sort(x, '{'DESC' if is_descending else 'ASC'}', 'NULLS {nulls}')", node.this)
    return f"array<{element}>"


def _has_nulls_first(node: exp.ArraySort) -> bool:
    """Whether it is SORT_ARRAY, as sqlglot's generator tells the two apart."""
    return node.sql(SPARK).upper().startswith("SORT_ARRAY")


def _begins_with_row_key(value: exp.Expr) -> bool:
    if isinstance(value, exp.Case) and len(value.args["ifs"]) == 1 and not (value.this or value.args.get("default")):
        value = value.args["ifs"][0].args["true"]
    first = value.expressions[0].expression if isinstance(value, exp.Struct) and value.expressions else None
    return isinstance(first, exp.Column) and first.name == KEY


def _part(node: exp.Dot, types: Types) -> str:
    """A field of an element."""
    if not isinstance(node.expression, exp.Identifier):
        raise Unproven("a part of other than a struct")
    name, holder = node.expression.name, node.this
    if (type_ := field_type(types.of(holder), name)) is None:
        raise Unproven(f"the field {name} of other than a struct")
    node.replace(exp.Anonymous(this="struct_extract", expressions=[node.this.copy(), exp.Literal.string(name)]))
    return type_


def _looked_up(node: exp.Bracket, written: exp.VarMap, types: Types) -> str:
    """The value of a key in a map that is written out, of different texts: NULL where there is none."""
    keys, values = written.args["keys"].expressions, written.args["values"].expressions
    names = [key.name for key in keys if isinstance(key, exp.Literal) and key.is_string]
    asked = node.expressions[0] if len(node.expressions) == 1 else exp.null()
    if not names or len(set(names)) < len(keys) or types.of(asked) != "string":
        raise Unproven("a map of other keys than different texts as written")
    known = {types.of(value) for value in list(values)}
    if len(known) != 1 or NULL in known:
        raise Unproven("a map of values of several types")
    asked, values = node.expressions[0], written.args["values"].expressions
    found = exp.Case()
    for key, value in zip(keys, values, strict=True):
        found = found.when(exp.EQ(this=exp.Paren(this=asked.copy()), expression=key.copy()), value.copy())
    return replace_by_cast(node, known.pop(), exp.Paren(this=found))


def _item(node: exp.Bracket, types: Types) -> str:
    """A field of a struct, or an element of an array by a written number: NULL where there is none."""
    if isinstance(node.this, exp.VarMap):
        return _looked_up(node, node.this, types)
    type_ = types.of(node.this)
    if (element := element_of(type_)) is None:
        return struct_field(node, type_)
    require_only(node, "this", "expressions", "offset", "safe")
    index = node.expressions[0] if len(node.expressions) == 1 else exp.null()
    number = index.this if isinstance(index, exp.Neg) else index
    if not isinstance(number, exp.Literal) or not number.is_int:
        raise Unproven("an element by other than a written number")
    at, first = int(number.name), node.args.get("offset") or 0
    at = -at if number is not index else at
    if (first and not at) or (not first and at < 0):
        raise Unproven("an element before the first one")
    extracted = [node.this.copy(), exp.Literal.number(at if first else at + 1)]
    node.replace(exp.Anonymous(this="list_extract", expressions=extracted))
    return element


def _size(node: exp.ArraySize, types: Types) -> str:
    """Of NULL Spark's is -1."""
    require_only(node, "this")
    element_of_array(node.this, types)
    _replace(node, "CAST(coalesce(len(x), -1) AS INT)", node.this)
    return "int"


def _contains(node: exp.ArrayContains, types: Types) -> str:
    element, wanted = element_of_array(node.this, types), types.of(node.expression)
    if wanted != element and not (element in INTEGERS and wanted in INTEGERS):
        raise Unproven(f"ARRAY_CONTAINS of {wanted} among {element}")
    _require_comparable(element)
    _replace(node, _CONTAINS, node.this, node.expression)
    return "boolean"


def overlaps(node: exp.Anonymous, types: Types) -> str:
    """ARRAYS_OVERLAP."""
    if len(node.expressions) != 2:
        raise Unproven("ARRAYS_OVERLAP of other than two arrays")
    one, other = node.expressions
    elements = element_of_array(one, types), element_of_array(other, types)
    if elements[0] != elements[1]:
        raise Unproven("ARRAYS_OVERLAP of other types")
    _require_comparable(elements[0])
    _replace(node, _OVERLAPS, *node.expressions)
    return "boolean"


def _require_comparable(element: str) -> None:
    if element in FLOATS or "<" in element:
        raise Unproven(f"equality of {element} in an array")


def _joined(node: exp.ArrayToString, types: Types) -> str:
    """ARRAY_JOIN of texts, which passes over NULL."""
    require_only(node, "this", "expression")
    if element_of_array(node.this, types) != "string" or types.of(node.expression) != "string":
        raise Unproven("ARRAY_JOIN of other than texts")
    known = "list_filter(x, LAMBDA _sml_e : NOT _sml_e IS NULL)"
    _replace(node, f"array_to_string({known}, y)", node.this, node.expression)
    return "string"


def _joined_all(node: exp.ConcatWs, types: Types) -> str:
    """CONCAT_WS of one array, which is not NULL if the array is."""
    delimiter, *values = node.expressions
    if len(values) != 1 or not isinstance(delimiter, exp.Literal):
        raise Unproven("CONCAT_WS of other than one array")
    if element_of_array(values[0], types) != "string":
        raise Unproven("CONCAT_WS of other than texts")
    known = "list_filter(x, LAMBDA _sml_e : NOT _sml_e IS NULL)"
    _replace(node, f"coalesce(array_to_string({known}, y), '')", *reversed(node.expressions))
    return "string"


_OF_TYPES = "of other types it is another value, which only types tell"

FORMS: dict[type[exp.Expr], Form] = {
    exp.Array: Form(_array), exp.GenerateSeries: Form(_sequence), exp.ArraySort: Form(_sorted),
    exp.ArrayAgg: Form(_collected), exp.ArrayUniqueAgg: Form(_collected),
    exp.ArrayToString: Form(_joined), exp.Dot: Form(_part),
    exp.Bracket: Form(_item, is_listed=False, why=_OF_TYPES),
    **{
        kind: Form(proof, is_listed=False, why=_OF_TYPES)
        for kind, proof in (
            (exp.RegexpSplit, _split), (exp.ArraySize, _size),
            (exp.ArrayContains, _contains), (exp.ConcatWs, _joined_all),
        )
    },
}  # fmt: skip
