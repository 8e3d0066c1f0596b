"""Structs: how DuckDB builds one as Spark does, and reads its fields.

Both engines tell a NULL struct from one of NULLs, also where they group by it or compare it null-safe, and find a field
whatever the case of its name. They order NULLs within structs differently: comparisons of structs are not proven.
"""

from __future__ import annotations

import re

from sqlglot import exp

from sqlmesh_like.analyze.spark_types.nested_types import fields_of
from sqlmesh_like.duckdb.exact.form import Form
from sqlmesh_like.duckdb.exact.unproven import Unproven, require_only
from sqlmesh_like.duckdb.exact.values import NULL, Types, replace_by_cast, require_known

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""Names that Avro has, of which a table's schema is made."""


def _struct(node: exp.Struct, types: Types) -> str:
    """STRUCT or NAMED_STRUCT, whose fields get exactly Spark's types."""
    require_only(node, "expressions")
    fields = []
    for field in list(node.expressions):
        if not isinstance(field, exp.PropertyEQ) or not isinstance(field.this, exp.Identifier):
            raise Unproven("a struct with a field that has no name")
        name, type_ = field.this.name, types.of(field.expression)
        if not _NAME.fullmatch(name) or type_ == NULL:
            raise Unproven(f"a struct with the field {name!r} of type {type_}")
        fields.append((name, type_))
    if len({name.lower() for name, _ in fields}) < len(node.expressions):
        raise Unproven("a struct with two fields of one name")
    return replace_by_cast(node, f"struct<{','.join(f'{name}:{type_}' for name, type_ in fields)}>")


def struct_field(node: exp.Bracket, holder: str) -> str:
    """The type of a field, as the binder writes it: `s['name']`."""
    require_only(node, "this", "expressions")
    name = node.expressions[0] if len(node.expressions) == 1 else None
    type_ = field_type(holder, name.name) if isinstance(name, exp.Literal) and name.is_string else None
    if type_ is None:
        raise Unproven("an item of other than a struct")
    return type_


def field_type(holder: str, name: str) -> str | None:
    """The type of a struct's field, in whatever case its name is."""
    return {own.lower(): type_ for own, type_ in fields_of(require_known(holder)).items()}.get(name.lower())


FORMS: dict[type[exp.Expr], Form] = {exp.Struct: Form(_struct)}
