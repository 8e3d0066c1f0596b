"""What is not proven. Owns the error, and tests of a form that say why it is not."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlglot import exp


class Unproven(Exception):
    """A form, or its use with these types, that DuckDB is not known to compute as Spark does."""


def names_columns(source: exp.Expr) -> bool:
    alias = source.args.get("alias")
    return isinstance(alias, exp.TableAlias) and bool(alias.columns)


def require_only(node: exp.Expr, *known: str) -> None:
    for name, value in node.args.items():
        if name not in known and value:
            raise Unproven(f"{name.strip('_').upper()} of {node.key.upper()}")


def require_hashed(types: Iterable[str]) -> None:
    """Raise Unproven unless values of these types are equal in both engines alike, also as keys."""
    for result in types:
        if re.search(r"(^|[:<])float\b", result):
            raise Unproven(f"equality of {result}")


def require_ordered(types: Iterable[str]) -> None:
    """Raise Unproven for structs and arrays, in which the engines put NULL elsewhere."""
    for result in types:
        if "<" in result:
            raise Unproven(f"the order of {result}")


def is_struct(type_: str) -> bool:
    return type_.startswith("struct<")
