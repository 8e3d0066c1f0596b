"""What sqlglot notes of a node beside its arguments: where it stood, how it was written. Owns that copying is cheap.

Most of the time that sqlglot takes to copy a tree goes into its nodes' notes (`Expr.meta`), key by key: a tree whose
notes are flat is copied in a third of it. A compiler copies trees all the time.
"""

from __future__ import annotations

from typing import Any, Self

from sqlglot import exp


class FlatNotes(dict[str, Any]):
    """Notes whose values are numbers, texts and truth values, so that a copy of the mapping is a copy of all."""

    def __deepcopy__(self, memo: object) -> Self:
        return type(self)(self)


def copy_notes(made: exp.Expr, of: exp.Expr) -> None:
    """Add the notes of a node to those of the one that takes its place."""
    if of._meta:
        made._meta = FlatNotes({**(made._meta or {}), **of._meta})


def with_flat_notes(tree: exp.Expr) -> exp.Expr:
    """The tree, changed in place.

    >>> import copy, sqlglot
    >>> tree = with_flat_notes(sqlglot.parse_one("select a from t", dialect="spark"))
    >>> column = copy.deepcopy(tree).find(exp.Identifier)
    >>> column.meta["start"], type(column.meta).__name__
    (7, 'FlatNotes')
    """
    for node in tree.walk():
        if node._meta is not None and type(node._meta) is dict:
            node._meta = FlatNotes(node._meta)
    return tree
