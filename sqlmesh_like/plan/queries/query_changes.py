"""What changed in a model since its table was written, for users. Owns the parts that are compared and their names.

The fingerprint decides whether anything changed: a part is only a short digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from sqlglot import exp

from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.dialects import FINGERPRINT
from sqlmesh_like.names import Schema
from sqlmesh_like.plan.history import TableRecord, TableState

_CLAUSES = {
    "expressions": "an expression of SELECT", "distinct": "DISTINCT", "from_": "FROM", "joins": "a join",
    "laterals": "LATERAL VIEW", "where": "the filter", "group": "GROUP BY", "having": "HAVING",
    "qualify": "QUALIFY", "order": "ORDER BY", "limit": "LIMIT",
}  # fmt: skip


def query_parts(compiled: CompiledModel) -> Mapping[str, str]:
    """A digest of each clause, CTE and setting that stored rows depend on, by its name in messages."""
    model, tree = compiled.model, compiled.facts.tree
    session = {name: _text_digest(value) for name, value in sorted(model.session.items())}
    if model.python is not None:
        parts = (
            ("the Python text or a setting that it asks for", tree.expressions),
            ("its inputs", tree.args.get("from_")),
        )
        return {words: _digest(part) for words, part in parts if part} | session
    if not isinstance(tree, exp.Select):
        return {"the query": _digest(tree)} | session
    clauses = {words: _digest(tree.args[name]) for name, words in _CLAUSES.items() if tree.args.get(name)}
    ctes = {f"the CTE {cte.alias}": _digest(cte.this) for cte in tree.ctes}
    settings = {"unique_key": ",".join(model.config.unique_key), "table_type": model.config.table_type}
    return {**clauses, **ctes, **{name: value for name, value in settings.items() if value}, **session}


def change_of_query(compiled: CompiledModel, record: TableRecord, target: TableState) -> str:
    """What changed since the commit that wrote `record`; an older record has no parts, so only columns are compared."""
    changes = [*_columns(target.schema, compiled.facts.schema)]
    if record.parts:
        now = query_parts(compiled)
        changes += [name for name in dict.fromkeys((*record.parts, *now)) if record.parts.get(name) != now.get(name)]
    if record.partition_by != compiled.model.config.partition_by:
        changes.append("partition_by")
    return "; ".join(changes) or "the query, the types that it reads or its settings"


def _columns(before: Schema | None, now: Schema | None) -> Iterator[str]:
    if before is None or now is None:
        return
    old, new = ({column.name.lower(): column for column in schema} for schema in (before, now))
    gone, added = (
        [old[name].name for name in old if name not in new],
        [new[name].name for name in new if name not in old],
    )
    if gone or added:
        yield f"columns {' '.join([*(f'−{name}' for name in gone), *(f'+{name}' for name in added)])}"
    for name in (name for name in new if name in old):
        first, second = old[name].type, new[name].type
        if first and second and first != second:
            yield f"type of {new[name].name} ({first} → {second})"


def _digest(part: exp.Expr | list[exp.Expr]) -> str:
    parts = part if isinstance(part, list) else [part]
    return _text_digest("\n".join(one.sql(FINGERPRINT, comments=False, normalize=True) for one in parts))


def _text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
