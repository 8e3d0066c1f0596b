"""Which kinds of nodes a query has. Owns collecting them in one walk: most checks need kinds that are rare."""

from __future__ import annotations

from sqlglot import exp

Forms = frozenset[type[exp.Expr]]


def forms_of(tree: exp.Expr) -> Forms:
    """The classes of the nodes of a tree.

    >>> import sqlglot
    >>> sorted(kind.__name__ for kind in forms_of(sqlglot.parse_one("a + 1")))
    ['Add', 'Column', 'Identifier', 'Literal']
    """
    return frozenset(map(type, tree.walk()))


def has_any(forms: Forms, kinds: tuple[type[exp.Expr], ...]) -> bool:
    """Whether a node among them is of one of these kinds."""
    return any(issubclass(form, kinds) for form in forms)
