"""The content of the site, as one JSON value. Owns collecting it from manifest, plans, lake and the last call.

The browser builds the pages (`assets/`): only rendered descriptions are HTML here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict

from sqlmesh_like import __version__
from sqlmesh_like.artifacts.files import timestamp
from sqlmesh_like.artifacts.json_objects import mapping_of
from sqlmesh_like.classify.rules import RULES
from sqlmesh_like.docs.health import find_problems
from sqlmesh_like.docs.markdown import Markdown
from sqlmesh_like.docs.selection_facts import selection_facts
from sqlmesh_like.docs.site_data import Json, SiteData, artifact_rows
from sqlmesh_like.plan.table_facts import TableFacts

_SHOWN = ("model", "seed", "source", "test", "unit_test", "exposure", "analysis", "snapshot")
_SETTINGS = ("materialized", "refresh", "unique_key", "partition_by", "table_type", "severity", "group", "access")
_USUAL: tuple[object, ...] = (None, "", [], (), "protected")
_COLOUR = re.compile(r"[a-zA-Z]+|#[0-9a-fA-F]{3,8}")
OVERVIEW = "__overview__"
"""Name of the doc block that is shown on the first page, as in dbt."""


def content(findings: SiteData) -> dict[str, object]:
    """Return the value that the page shows."""
    markdown = Markdown()
    nodes = _nodes(findings, markdown)
    ids = {unique_id: number for number, unique_id in enumerate(nodes)}
    blocks = [mapping_of(block) for block in mapping_of(findings.manifest.get("docs")).values()]
    overview = next((str(block["block_contents"]) for block in blocks if block.get("name") == OVERVIEW), "")
    return {
        "project": findings.project,
        "target": findings.target,
        "version": __version__,
        "generated_at": timestamp(findings.now),
        "overview": markdown.as_html(overview),
        "nodes": list(nodes.values()),
        "edges": [
            [ids[source], column, ids[reader], name, how]
            for source, column, reader, name, how in findings.edges
            if source in ids and reader in ids
        ],
        "rules": [asdict(rule) for rule in RULES.values()],
        "groups": [
            _group(mapping_of(group), markdown) for group in mapping_of(findings.manifest.get("groups")).values()
        ],
        "last_call": _last_call(findings.results),
        "calls": findings.calls,
        "problems": [asdict(problem) for problem in find_problems(findings) if problem.unique_id in nodes],
    }


def _nodes(findings: SiteData, markdown: Markdown) -> dict[str, dict[str, object]]:
    manifest = findings.manifest
    entries = {
        unique_id: mapping_of(node)
        for kind in ("sources", "nodes", "unit_tests", "exposures")
        for unique_id, node in mapping_of(manifest.get(kind)).items()
    }
    shown = {i: node for i, node in entries.items() if node.get("resource_type") in _SHOWN and not _is_hidden(node)}
    results = {str(row.get("unique_id")): row for row in artifact_rows(findings.results)}
    freshness = {str(row.get("unique_id")): row for row in artifact_rows(findings.freshness)}
    parents = mapping_of(manifest.get("parent_map"))
    made: dict[str, dict[str, object]] = {}
    for unique_id, node in shown.items():
        above = parents.get(unique_id)
        row = freshness.get(unique_id)
        keys = ("status", "max_loaded_at", "snapshotted_at", "max_loaded_at_time_ago_in_s", "criteria")
        made[unique_id] = {
            **_node(unique_id, node, findings, markdown),
            "parents": [parent for parent in (above if isinstance(above, list) else []) if parent in shown],
            "result": _result(results.get(unique_id)),
            "freshness": None if row is None else {key: row.get(key) for key in keys},
        }
    return made | {str(macro["id"]): macro for macro in _macros(manifest, findings.project, markdown)}


def _is_hidden(node: Json) -> bool:
    """Whether a node has `docs: {show: false}`, as in dbt."""
    return mapping_of(mapping_of(node.get("config")).get("docs")).get("show") is False


def _node(unique_id: str, node: Json, findings: SiteData, markdown: Markdown) -> dict[str, object]:
    model = findings.models.get(unique_id)
    config = mapping_of(node.get("config"))
    identifier = node.get("alias") or node.get("identifier")
    kind = node.get("resource_type")
    has_table = kind in ("model", "seed", "source", "snapshot")
    return {
        "id": unique_id,
        "type": kind,
        "name": f"{node['source_name']}.{node['name']}" if kind == "source" else node.get("name"),
        "table": f"{node.get('schema')}.{identifier}" if has_table else None,
        "path": node.get("original_file_path"),
        "folders": _folders(node, findings.project),
        "tags": node.get("tags") or [],
        "description": markdown.as_html(str(node.get("description") or "")),
        "meta": {key: value for key, value in mapping_of(node.get("meta")).items() if key != "sml"},
        "color": _color(node),
        "settings": {key: config[key] for key in _SETTINGS if config.get(key) not in _USUAL},
        "columns": _columns(unique_id, node, findings, markdown) if has_table else [],
        # The text of a generic test is a call that dbt writes into each of them: it says nothing.
        "raw": None if node.get("test_metadata") else node.get("raw_code") or None,
        "compiled": node.get("compiled_code"),
        "incremental": model.compiled.model.incremental_sql if model else None,
        "program": model.program if model else None,
        "plan": model.plan() if model and model.is_table else None,
        "location": mapping_of(mapping_of(node.get("meta")).get("sml")).get("location"),
        "lake": _table(findings.tables.get(unique_id)),
        "selection": selection_facts(findings.graph.nodes[unique_id]),
        **_of_kind(node, markdown),
    }


def _of_kind(node: Json, markdown: Markdown) -> dict[str, object]:
    match node.get("resource_type"):
        case "source":
            return {"source_description": markdown.as_html(str(node.get("source_description") or ""))}
        case "test":
            return {"attached": node.get("attached_node"), "column": node.get("column_name")}
        case "unit_test":
            above = mapping_of(node.get("depends_on")).get("nodes")
            return {"attached": above[0] if isinstance(above, list) and above else None}
        case "exposure":
            keys = ("label", "type", "url", "maturity", "owner")
            return {f"exposure_{key}": node.get(key) for key in keys if node.get(key)}
        case _:
            return {}


def _color(node: Json) -> str | None:
    """Return `docs: {node_color: …}`, as in dbt: a name or hexadecimal number; other text could inject CSS."""
    color = str(mapping_of(mapping_of(node.get("config")).get("docs")).get("node_color") or "")
    return color if _COLOUR.fullmatch(color) else None


def _folders(node: Json, project: str) -> list[str]:
    """Return the node's path in the tree: its source, or its file's folders; below its package if that is another."""
    fqn = node.get("fqn")
    folders = [str(part) for part in fqn[1:-1]] if isinstance(fqn, list) else []
    if node.get("resource_type") == "source":
        folders = [str(node.get("source_name"))]
    return folders if node.get("package_name") == project else [str(node.get("package_name")), *folders]


def _columns(unique_id: str, node: Json, findings: SiteData, markdown: Markdown) -> list[dict[str, object]]:
    """Return columns as the compiler derives them, else as the lake has them, else as they are declared.

    Types are those of the lake, else derived, else declared. What the compiler could not prove says where it is from:
    the rules beside it say "type not proven".
    """
    declared = {str(name): mapping_of(column) for name, column in mapping_of(node.get("columns")).items()}
    facts = findings.tables.get(unique_id)
    derived = findings.columns.get(unique_id) or ()
    types = {name.lower(): column.get("data_type") for name, column in declared.items()}
    types |= {column.name.lower(): column.type for column in derived if column.type}
    types |= {column.name.lower(): column.type for column in (facts.columns if facts else ()) if column.type}
    proven = {column.name.lower() for column in derived if column.type}
    stored = {column.name.lower() for column in (facts.columns if facts else ()) if column.type}
    is_model = node.get("resource_type") in ("model", "snapshot")
    names = [column.name for column in derived or (facts.columns if facts else ())] or list(declared)
    described = {name.lower(): column for name, column in declared.items()}
    return [
        {
            "name": name,
            "type": types.get(name.lower()),
            "origin": None
            if not is_model or name.lower() in proven or not types.get(name.lower())
            else ("stored" if name.lower() in stored else "declared"),
            "description": markdown.as_html(str(described.get(name.lower(), {}).get("description") or "")),
            "tags": described.get(name.lower(), {}).get("tags") or [],
        }
        for name in names
    ]


def _table(facts: TableFacts | None) -> dict[str, object] | None:
    if facts is None:
        return None
    if not facts.state.exists:
        return {"exists": False, "problem": facts.problem}
    return {
        "exists": True,
        "kind": facts.state.kind,
        "frontier": facts.state.frontier,
        "partitions": list(facts.partition_columns),
        **({"volume": asdict(facts.volume)} if facts.state.kind != "files" else {}),
        "commits": [asdict(commit) for commit in facts.commits],
    }


def _result(row: Json | None) -> dict[str, object] | None:
    if row is None:
        return None
    answer = mapping_of(row.get("adapter_response"))
    return {
        "status": row.get("status"),
        "message": row.get("message"),
        "seconds": row.get("execution_time"),
        "failures": row.get("failures"),
        "strategy": answer.get("strategy"),
        "rows": answer.get("rows_affected"),
        "failing_rows": answer.get("failing_rows"),
    }


def _last_call(results: Json | None) -> dict[str, object] | None:
    if results is None:
        return None
    return {
        "at": mapping_of(results.get("metadata")).get("generated_at"),
        "seconds": results.get("elapsed_time"),
        "which": mapping_of(results.get("args")).get("which"),
    }


def _group(group: Json, markdown: Markdown) -> dict[str, object]:
    description = markdown.as_html(str(group.get("description") or ""))
    return {"name": group.get("name"), "owner": group.get("owner"), "description": description}


def _macros(manifest: Json, project: str, markdown: Markdown) -> Iterable[dict[str, object]]:
    for unique_id, macro in mapping_of(manifest.get("macros")).items():
        entry = mapping_of(macro)
        arguments = [mapping_of(one) for one in artifact_rows({"results": entry.get("arguments")})]
        yield {
            "id": unique_id,
            "type": "macro",
            "name": entry.get("name"),
            "path": entry.get("original_file_path"),
            "description": markdown.as_html(str(entry.get("description") or "")),
            "raw": entry.get("macro_sql"),
            "arguments": [
                {**one, "description": markdown.as_html(str(one.get("description") or ""))} for one in arguments
            ],
            "folders": _folders(entry, project), "tags": [], "columns": [], "parents": [], "settings": {}, "meta": {},
        }  # fmt: skip
