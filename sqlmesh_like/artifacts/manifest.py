"""`manifest.json` in the shape of dbt's schema v12. Owns the shape. It contains no profile and no `ingest:` block."""

from __future__ import annotations

import datetime
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path, PurePosixPath

from sqlmesh_like import __version__
from sqlmesh_like.artifacts import dbt_keys
from sqlmesh_like.artifacts.exposures import exposure_entry, group_entry, group_map
from sqlmesh_like.artifacts.files import (
    compiled_model_path,
    compiled_test_path,
    json_text,
    timestamp,
    write_text,
)
from sqlmesh_like.artifacts.functions import called_functions, function_entry, with_functions
from sqlmesh_like.artifacts.semantic import semantic_entries
from sqlmesh_like.artifacts.sources import criteria
from sqlmesh_like.artifacts.unit_tests import unit_test
from sqlmesh_like.invocation_id import INVOCATION_ID
from sqlmesh_like.names import Column, NodeId, Schema
from sqlmesh_like.plan.graph import Graph
from sqlmesh_like.project.config import HOOKS
from sqlmesh_like.project.nodes import (
    ColumnDoc,
    DocBlock,
    MacroDoc,
    MacroFile,
    ParsedProject,
    Source,
    SourceTable,
)
from sqlmesh_like.project.paths import within_package
from sqlmesh_like.project.reading.files import read_bytes
from sqlmesh_like.project.snapshots import SnapshotConfig
from sqlmesh_like.render.rendered import InputRef, RefCall, RenderedModel, RenderedProject, RenderedSeed, RenderedTest

MANIFEST_SCHEMA = "https://schemas.getdbt.com/dbt/manifest/v12.json"


def write_manifest(path: Path, project: ParsedProject, content: str, now: datetime.datetime | None = None) -> None:
    """Write the content that `manifest` returned, given as JSON. Raises MachineError where that fails."""
    moment = now or datetime.datetime.now(datetime.UTC)
    metadata = {
        **dbt_keys.METADATA,
        "dbt_schema_version": MANIFEST_SCHEMA,
        "dbt_version": __version__,
        "generated_at": timestamp(moment),
        "invocation_id": INVOCATION_ID,
        "invocation_started_at": timestamp(moment),
        "run_started_at": timestamp(moment),
        "env": {},
        "project_name": project.name,
        "project_id": hashlib.md5(project.name.encode(), usedforsecurity=False).hexdigest(),
        "adapter_type": "spark",
    }
    write_text(path, f'{{"metadata": {json_text(metadata)}, {content[1:]}\n')


def manifest(
    project: ParsedProject,
    rendered: RenderedProject,
    graph: Graph,
    schema: str,
    locations: Mapping[str, str] | None = None,
) -> dict[str, object]:
    """Return the part of the manifest that depends only on the project and the target.

    `schema` is the target's, the default for exports of saved queries. `locations`, the folders of tables by unique
    id, are stored under `sml` in the tables' meta, where `--defer` reads them.
    """
    groups: Mapping[str | None, str | None] = {model.unique_id: model.config.group for model in rendered.models}
    spines = {file.unique_id: {"time_spine": file.time_spine} for file in project.models if file.time_spine}
    nodes = [
        *({**_model(model, project), **spines.get(model.unique_id, {})} for model in rendered.models),
        *(_seed(seed, project) for seed in rendered.seeds),
        *({**_test(test, project), "group": groups.get(test.attached_to)} for test in rendered.tests),
        *(_analysis(analysis, project) for analysis in rendered.analyses),
    ]
    read = {unique_id: list(graph.parents(unique_id)) for unique_id in sorted(graph.nodes)}
    parents, children = with_functions(read, rendered)
    sources = (_source(source, table) for source in project.sources for table in source.tables)
    return {
        "nodes": _by_id(_add_location(node, locations) for node in nodes),
        "sources": _by_id(_add_location(source, locations) for source in sources),
        "macros": _by_id(_macros(project, rendered)),
        "exposures": _by_id(exposure_entry(e, _refs(e.inputs)) for e in rendered.exposures),
        **semantic_entries(rendered.semantic, {one.unique_id: _refs(one.inputs) for one in rendered.semantic}, schema),
        "functions": _by_id(function_entry(function, schema) for function in rendered.functions),
        "groups": _by_id(group_entry(group) for group in project.groups),
        "group_map": group_map(project.groups, rendered),
        "docs": _by_id(_doc(block) for block in project.docs),
        "selectors": {},
        "disabled": {},
        "parent_map": parents,
        "child_map": children,
        "unit_tests": _by_id(unit_test(test, project) for test in rendered.unit_tests),
    }


def _add_location(node: dict[str, object], locations: Mapping[str, str] | None) -> dict[str, object]:
    location = (locations or {}).get(str(node["unique_id"]))
    meta = node.get("meta")
    return (
        node
        if location is None
        else {**node, "meta": {**(meta if isinstance(meta, dict) else {}), "sml": {"location": location}}}
    )


def _by_id(nodes: Iterable[dict[str, object]]) -> dict[str, dict[str, object]]:
    return {str(node["unique_id"]): node for node in sorted(nodes, key=lambda node: str(node["unique_id"]))}


def _checksum(text: str) -> dict[str, str]:
    return {"name": "sha256", "checksum": hashlib.sha256(text.encode()).hexdigest()}


def _columns(columns: Schema, docs: Mapping[str, ColumnDoc]) -> dict[str, object]:
    return {column.name: _column(column, docs.get(column.name, ColumnDoc())) for column in columns}


def _column(column: Column, doc: ColumnDoc) -> dict[str, object]:
    meta, tags = dict(doc.meta), list(doc.tags)
    return {
        **dbt_keys.COLUMN,
        "name": column.name,
        "description": doc.description,
        "data_type": column.type,
        "granularity": doc.granularity,
        "config": {"meta": meta, "tags": tags},
        "meta": meta,
        "tags": tags,
        "constraints": [{**dbt_keys.COLUMN_CONSTRAINT, **constraint} for constraint in doc.constraints],
        "quote": doc.quote,
    }


def _doc(block: DocBlock) -> dict[str, object]:
    return {
        "unique_id": block.unique_id,
        "name": block.name,
        "resource_type": "doc",
        "package_name": block.unique_id.package,
        "path": PurePosixPath(*PurePosixPath(block.declared_at.path).parts[1:]).as_posix(),
        "original_file_path": block.declared_at.path,
        "block_contents": block.text,
    }


def _depends_on(node: RenderedModel | RenderedTest) -> dict[str, object]:
    inputs = [ref.unique_id for ref in node.inputs]
    depends_on = {"macros": list(node.macros), "nodes": [*inputs, *node.functions]}
    return {"depends_on": depends_on, **(called_functions(node.functions) if node.functions else {})}


def _refs(inputs: tuple[InputRef, ...]) -> dict[str, object]:
    calls = [ref.asked or RefCall(ref.unique_id.name) for ref in inputs if ref.kind != "source"]
    sources = [ref for ref in inputs if ref.kind == "source"]
    return {
        "refs": [{"name": one.name, "package": one.package, "version": _version(one.version)} for one in calls],
        "sources": [list(ref.unique_id.parts[:2]) for ref in sources],
    }


def _version(version: object) -> object:
    """Return a version as a number where it is one, as YAML would read it."""
    return int(version) if isinstance(version, str) and version.isdigit() else version


def _patch_path(path: str | None, unique_id: NodeId) -> str | None:
    """Return where a node is described, as dbt writes it: the package and the path within it."""
    return None if path is None else f"{unique_id.package}://{within_package(path, unique_id.package)}"


def _common(unique_id: NodeId, name: str, kind: str, path: str) -> dict[str, object]:
    path = within_package(path, unique_id.package)
    return {
        "unique_id": unique_id,
        "name": name,
        "resource_type": kind,
        "package_name": unique_id.package,
        "path": path.partition("/")[2] or ".",
        "original_file_path": path,
        "database": None,
    }


def _model(model: RenderedModel, project: ParsedProject) -> dict[str, object]:
    version, is_enforced = model.version, bool(model.config.contract.get("enforced", False))
    contract = {"enforced": is_enforced, "alias_types": bool(model.config.contract.get("alias_types", True))}
    docs = {"show": True, "node_color": None, **model.config.docs}
    text = model.raw_sql.strip()
    return {
        **(dbt_keys.MODEL if _kind(model) == "model" else dbt_keys.ANALYSIS),
        **_common(model.unique_id, version.of if version else model.name, _kind(model), model.path),
        "patch_path": _patch_path(model.described_in, model.unique_id),
        **({"version": _version(version.v), "latest_version": _version(version.latest)} if version else {}),
        "schema": model.table.schema,
        "fqn": list(model.fqn),
        "alias": model.table.identifier,
        "checksum": _checksum(text),
        "config": {**_asked_settings(model), **_config(model), "contract": contract, "docs": docs},
        "contract": {**contract, "checksum": None},
        "tags": list(model.config.tags),
        "description": model.description,
        "columns": _columns(model.declared, model.column_docs),
        "meta": dict(model.config.meta),
        "group": model.config.group,
        **({"access": model.config.access} if _kind(model) == "model" else {}),
        **({"path": f"{PurePosixPath(model.path).name}/{model.name}.sql"} if _is_yaml_snapshot(model) else {}),
        "docs": docs,
        "relation_name": model.table.sql(),
        "raw_code": text,
        "unrendered_config": dict(model.templates),
        "language": model.language,
        **_refs(model.inputs),
        **_depends_on(model),
        "compiled_path": f"{project.target_path}/compiled/{project.name}/"
        f"{compiled_model_path(model.path, model.name, model.unique_id)}",
        "compiled": True,
        "compiled_code": model.sql,
    }


def _is_yaml_snapshot(model: RenderedModel) -> bool:
    return _kind(model) == "snapshot" and model.path.endswith((".yml", ".yaml"))


def _asked_settings(model: RenderedModel) -> dict[str, object]:
    """Return settings that a Python model reads, and their keys as in dbt; without those of `meta`."""
    if model.python is None:
        return {}
    settings = {key: value for key, value in model.python.settings.items() if not key.startswith("meta.")}
    return {**settings, "config_keys_used": sorted(settings)}


def _config(model: RenderedModel) -> dict[str, object]:
    """Return a model's config as `asdict` would, without copying values, with custom settings as they are."""
    config, others = model.config, {key: value for key, value in model.settings.items() if key not in HOOKS}
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    ours = {
        key: asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
        for key, value in values.items()
    }
    key = config.unique_key
    hooks = {f"{key}-hook": model.settings.get(f"{key}_hook", ours.pop(f"{key}_hook")) for key in ("pre", "post")}
    if (begin := others.get("begin")) is not None:
        others["begin"] = _moment(begin)
    return {
        **dbt_keys.MODEL_CONFIG,
        **others,
        **ours,
        **(_snapshot_config(config.snapshot) if config.snapshot else {}),
        "unique_key": None if not key else key[0] if len(key) == 1 else list(key),
        **{name: _hooks(texts) for name, texts in hooks.items()},
    }


def _moment(value: object) -> object:
    """Return a time as dbt writes it; a value that is not a time is returned as it is."""
    try:
        return datetime.datetime.fromisoformat(str(value)).isoformat()
    except ValueError:
        return value


def _snapshot_config(config: SnapshotConfig) -> dict[str, object]:
    names = {name: None if spelt == name else spelt for name, spelt in config.names.items()}
    return {
        "strategy": config.strategy,
        "updated_at": config.updated_at,
        "check_cols": (list(config.check) if config.check else "all") if config.strategy == "check" else None,
        "hard_deletes": config.hard_deletes,
        "dbt_valid_to_current": config.current,
        "snapshot_meta_column_names": names,
        "target_schema": None,
        "target_database": None,
    }


def _hooks(texts: object) -> list[dict[str, object]]:
    listed = texts if isinstance(texts, list | tuple) else [texts] if texts else []
    return [{"sql": text, "transaction": True, "index": None} for text in listed]


def _analysis(analysis: RenderedModel, project: ParsedProject) -> dict[str, object]:
    node = _model(analysis, project)
    return {
        **{key: value for key, value in node.items() if key not in _OF_MODELS},
        "resource_type": "analysis",
        "path": f"analysis/{node['path']}",
        "relation_name": None,
        "config": {**dbt_keys.ANALYSIS_CONFIG, "tags": node["tags"], "meta": node["meta"]},
    }


_OF_MODELS = dbt_keys.MODEL.keys() - dbt_keys.ANALYSIS.keys() | {"access"}


def _kind(model: RenderedModel) -> str:
    return "snapshot" if model.unique_id.kind == "snapshot" else "model"


def _seed(seed: RenderedSeed, project: ParsedProject) -> dict[str, object]:
    # Hashed as in dbt, without surrounding blanks, so that each can compare with the other's manifest.
    content = read_bytes(project.root / seed.path, project.root).decode(errors="replace").strip()
    given, meta = seed.config.get("docs"), seed.config.get("meta")
    docs = {"show": True, "node_color": None, **(given if isinstance(given, Mapping) else {})}
    return {
        **dbt_keys.SEED,
        **_common(seed.unique_id, seed.name, "seed", seed.path),
        "patch_path": _patch_path(seed.described_in, seed.unique_id),
        "schema": seed.table.schema,
        "fqn": list(seed.fqn),
        "alias": seed.table.identifier,
        "checksum": _checksum(content),
        "config": {
            **dbt_keys.SEED_CONFIG,
            **_seed_config(seed),
            "docs": docs,
            "materialized": "seed",
            "tags": list(seed.tags),
        },
        "tags": list(seed.tags),
        "description": seed.description,
        "columns": _columns(
            tuple(Column(name, seed.declared_types.get(name)) for name in seed.column_docs), seed.column_docs
        ),
        "docs": docs,
        "meta": dict(meta) if isinstance(meta, Mapping) else {},
        "relation_name": seed.table.sql(),
        "raw_code": "",
        "depends_on": {"macros": []},
    }


def _seed_config(seed: RenderedSeed) -> dict[str, object]:
    given = dict(seed.config)
    hooks = {key: _hooks(given.pop(key.replace("-", "_"), ())) for key in ("pre-hook", "post-hook")}
    return {**given, **hooks}


def _test(test: RenderedTest, project: ParsedProject) -> dict[str, object]:
    short_name = test.short_name or test.name
    alias = str(test.config.get("alias") or short_name)
    is_generic, tested = test.test_type == "generic", test.attached_to
    kind = {
        "test_metadata": test.metadata and vars(test.metadata),
        "column_name": test.column_name,
        "attached_node": None if tested and tested.kind == "source" else tested,
        # The YAML entry that declares a generic test, such as `models.orders` or `sources.shop`.
        "file_key_name": None if tested is None else f"{tested.kind}s.{tested.parts[0]}",
    }
    compiled = f"{project.target_path}/compiled/{project.name}/{compiled_test_path(test.path, short_name)}"
    common = _common(test.unique_id, test.name, "test", test.path)
    settings = {**dbt_keys.TEST_CONFIG, **test.config}
    if settings["store_failures_as"] is None and settings["store_failures"] is not None:
        settings["store_failures_as"] = "table" if settings["store_failures"] else "ephemeral"
    return {
        **dbt_keys.TEST,
        **common,
        "patch_path": _patch_path(test.described_in, test.unique_id),
        "path": f"{short_name}.sql" if is_generic else common["path"],
        "schema": test.schema,
        "fqn": list(test.fqn),
        "description": test.description,
        "alias": alias,
        "checksum": {"name": "none", "checksum": ""} if is_generic else _checksum(test.raw_sql.strip()),
        "config": {
            **settings,
            "alias": alias if alias != test.name else None,
            "enabled": True,
            "tags": list(test.tags),
            "materialized": "test",
        },
        "tags": sorted(test.tags),
        "raw_code": _generic_call(test, short_name) if is_generic else test.raw_sql.strip(),
        "language": "sql",
        **_refs(test.inputs),
        **_depends_on(test),
        "compiled_path": compiled,
        "compiled": True,
        "compiled_code": test.sql,
        **(kind if is_generic else {}),
    }


def _generic_call(test: RenderedTest, short_name: str) -> str:
    """Return a generic test's text as in dbt: its arguments are in `test_metadata`, its settings in `config()`."""
    assert test.metadata is not None
    namespace = f"{test.metadata.namespace}." if test.metadata.namespace else ""
    settings = {key: test.entry[key] for key in (*_SETTINGS_OF_TESTS, *test.entry) if test.entry.get(key) is not None}
    if short_name != test.name:
        settings.setdefault("alias", short_name)
    settings = {key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()}
    spelt = (
        f'{key}="{value.replace(chr(34), chr(92) + chr(34))}"' if isinstance(value, str) else f"{key}={value}"
        for key, value in settings.items()
    )
    config = ",".join(spelt)
    call = f"{{{{ {namespace}test_{test.metadata.name}(**_dbt_generic_test_kwargs) }}}}"
    return f"{call}{{{{ config({config}) }}}}" if config else call


_SETTINGS_OF_TESTS = ("severity", "tags", "enabled", "where", "limit", "warn_if", "error_if", "fail_calc",
                      "store_failures", "store_failures_as", "meta", "database", "schema", "alias")  # fmt: skip
"""The settings of tests in the order in which dbt writes them."""


def _source(source: Source, table: SourceTable) -> dict[str, object]:
    freshness: dict[str, object] = {"freshness": criteria(table.freshness)} if table.freshness.is_asked else {}
    if table.freshness.is_off:
        freshness = {"freshness": None}
    meta, tags, loaded_at = dict(table.meta), list(table.tags), {"loaded_at_field": table.freshness.loaded_at}
    return {
        **dbt_keys.SOURCE,
        **_common(table.unique_id, table.name, "source", table.declared_at.path),
        "path": within_package(table.declared_at.path, table.unique_id.package),
        "schema": table.table.schema,
        "fqn": list(table.fqn),
        "source_name": source.name,
        "source_description": source.description,
        "loader": table.loader or ("sml ingest" if table.ingest else ""),
        "identifier": table.table.identifier,
        "description": table.description,
        "columns": _columns(table.columns, table.column_docs),
        "meta": meta,
        "tags": tags,
        "config": {
            **dbt_keys.SOURCE_CONFIG,
            **freshness,
            **loaded_at,
            "event_time": table.event_time,
            "meta": meta,
            "tags": tags,
        },
        "relation_name": table.table.sql(),
        **freshness,
        **loaded_at,
    }


def _macros(project: ParsedProject, rendered: RenderedProject) -> list[dict[str, object]]:
    texts, docs = {file.path: file for file in project.macros}, project.macro_docs
    declared = ((unique_id, texts.get(place.path)) for unique_id, place in rendered.macros)
    return [_macro(i, file, docs.get(i, MacroDoc(""))) for i, file in declared if file is not None]


def _macro(unique_id: NodeId, file: MacroFile, doc: MacroDoc) -> dict[str, object]:
    package, name = unique_id.package, unique_id.name
    path = within_package(file.path, package)
    # Of one macro, as in dbt, so that changes of others in its file do not count; of the whole file where the macro
    # cannot be found in it.
    test = rf"|(?:data_)?test\s+{re.escape(name.removeprefix('test_'))}" if name.startswith("test_") else ""
    start = rf"\{{%[-+]?\s*(?:macro\s+{re.escape(name)}{test})\b"
    match = re.search(rf"{start}.*?\{{%[-+]?\s*end(?:macro|test|data_test)\s*[-+]?%\}}", file.raw, re.DOTALL)
    text = match[0] if match else file.raw
    return {
        **dbt_keys.MACRO,
        "unique_id": unique_id,
        "name": name,
        "resource_type": "macro",
        "package_name": package,
        "path": path,
        "original_file_path": path,
        "patch_path": _patch_path(doc.described_in, unique_id),
        "macro_sql": text,
        "depends_on": {"macros": []},
        "description": doc.description,
        "arguments": [{"name": of, "type": kind or None, "description": words} for of, kind, words in doc.arguments],
    }
