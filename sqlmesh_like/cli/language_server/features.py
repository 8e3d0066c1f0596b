"""Completions, hovers and definitions at a position of a file. Owns them as plain values; `server` sends them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlmesh_like.cli.language_server.project_index import Declaration, ProjectIndex
from sqlmesh_like.cli.language_server.template_position import call_target, completion_context, is_below_config
from sqlmesh_like.project.keys.config_keys import CONFIG


@dataclass(frozen=True)
class Offer:
    """A word that can be completed; `kind`: model, macro …, empty for a column or key."""

    word: str
    detail: str
    description: str = ""
    kind: str = ""


def offers(index: ProjectIndex, path: str, text: str, row: int, column: int) -> list[Offer]:
    """Return the words that fit at a position in a file; rows and columns count from 0."""
    lines = text.split("\n")
    if path.endswith((".yml", ".yaml")):
        return _config_keys() if is_below_config(lines, row) else []
    before = "\n".join((*lines[:row], lines[row][:column] if row < len(lines) else ""))
    context = completion_context(before)
    match context.offered:
        case "refs":
            return [_offer(one) for one in index.nodes.values()]
        case "sources":
            return [Offer(name, "source") for name in dict.fromkeys(source for source, _ in index.sources)]
        case "tables":
            tables = ((table, one) for (source, table), one in index.sources.items() if source == context.source)
            return [Offer(table, one.kind, one.description) for table, one in tables]
        case "config_keys":
            return _config_keys()
        case "macros":
            return [*(_offer(one) for one in index.macros.values()), *_FUNCTIONS]
        case "columns":
            return list(_columns(index.inputs.get(path, ())))


def declaration_at(index: ProjectIndex, text: str, row: int, column: int) -> Declaration | None:
    """Return what the call at a position names; None where there is no call, or the name is unknown."""
    lines = text.split("\n")
    target = call_target(lines[row], column) if row < len(lines) else None
    if target is None:
        return None
    match target.kind:
        case "node":
            return index.nodes.get(target.name)
        case "source":
            return index.sources.get((target.source, target.name))
        case "macro":
            return index.macros.get(target.name)


def hover_text(one: Declaration) -> str:
    """Return Markdown: kind, strategy, description and columns."""
    head = f"**{one.name}** ({one.kind})" + (f", strategy `{one.strategy}`" if one.strategy else "")
    columns = [f"| `{column.name}` | {column.type or ''} |" for column in one.columns]
    table = "\n".join(("| column | type |", "|---|---|", *columns)) if columns else ""
    return "\n\n".join(part for part in (head, one.description, table) if part)


_FUNCTIONS = tuple(
    Offer(word, "function", kind="function")
    for word in ("ref", "source", "config", "var", "env_var", "this", "is_incremental")
)


def _config_keys() -> list[Offer]:
    return [Offer(name, key.form.words, key.help) for name, key in CONFIG.keys.items()]


def _columns(inputs: Iterable[Declaration]) -> Iterable[Offer]:
    seen: set[str] = set()
    for one in inputs:
        for column in one.columns:
            if column.name not in seen:
                seen.add(column.name)
                yield Offer(column.name, column.type or "column", f"of {one.name}")


def _offer(one: Declaration) -> Offer:
    detail = f"{one.kind}, {one.strategy}" if one.strategy else one.kind
    return Offer(one.name, detail, one.description, one.kind)
