"""The columns of a change from which a step takes keys. Owns tracing names through the steps of a program.

Models that follow the same change take keys from it by filters of their own: all of its keys are more than each needs,
and what all of them need together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from sqlmesh_like.delta.program import split_relation


def key_origins(
    step: str, names: Sequence[str], queries: Mapping[str, exp.Query]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The inputs whose change has these columns of a step, and what they are named there; none for other values.

    `queries`: of the steps so far, by name.

    >>> import sqlglot
    >>> texts = {"delta": "select id, sum(w) from changes.orders group by id", "keys": "select id as k from delta"}
    >>> list(key_origins("keys", ["k"], {name: sqlglot.parse_one(text) for name, text in texts.items()}))
    [('orders', ('id',))]
    """
    for select in _branches(queries[step]) if step in queries else ():
        source = _only_source(select)
        items = {item.alias_or_name.lower(): item.unalias() for item in select.selects}
        values = [items.get(name.lower()) for name in names]
        below = tuple(value.name for value in values if isinstance(value, exp.Column))
        if source is None or len(below) < len(names):
            continue
        outside = split_relation(source)
        if outside is None:
            yield from key_origins(source.name, below, queries)
        elif outside[0] == "changes":
            yield outside[1], below


def _branches(query: exp.Expr) -> Iterator[exp.Select]:
    if isinstance(query, exp.Union):
        yield from _branches(query.this)
        yield from _branches(query.expression)
    elif isinstance(query, exp.Select):
        yield query


def _only_source(select: exp.Select) -> exp.Table | None:
    """The table that a SELECT reads; None if there are several, or another query."""
    start = select.args.get("from_")
    source = start.this if start is not None and not select.args.get("joins") else None
    return source if isinstance(source, exp.Table) else None
