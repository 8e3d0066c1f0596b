"""Comparison of two manifests, the older one ours or dbt's. Owns when a node counts as modified, and how.

As in dbt, changes of text, settings, relation, called macros, contract, folder, and descriptions that `persist_docs`
stores count; tags, other descriptions, meta and the target's location of tables do not. A setting that is a template
is compared as it is written. Settings that only one of the manifests has belong to another version and are ignored.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping

from sqlmesh_like.artifacts.json_objects import Artifact, mapping_of
from sqlmesh_like.plan.state_comparison import StateDifference
from sqlmesh_like.project.config import canonical, check_setting, is_config_key
from sqlmesh_like.project.keys.config_values import ConfigFault, UnusedSetting
from sqlmesh_like.project.reading.values import has_jinja

_NOT_SETTINGS = frozenset({"alias", "schema", "database", "tags", "meta", "group", "docs", "contract", "access"})
_OF_EXPOSURE = ("type", "owner", "description", "label", "maturity", "url")
_PLACE_OF_SOURCE = ("source_name", "schema", "identifier")
_OF_SOURCE = ("freshness", "loaded_at_field", "external")
_OF_METRIC = ("type", "description", "label")
_OF_SEMANTIC_MODEL = (
    "model",
    "description",
    "defaults",
    "entities",
    "dimensions",
    "measures",
    "primary_entity",
    "group",
)
_OF_SAVED_QUERY = ("description", "label", "group", "tags")
_OF_UNIT_TEST = ("model", "given", "expect", "overrides")
_KINDS = (
    *("model", "seed", "test", "source", "analysis", "exposure", "snapshot", "unit_test"),
    *("semantic_model", "metric", "saved_query"),
)
_SECTIONS = ("nodes", "sources", "exposures", "unit_tests", "semantic_models", "metrics", "saved_queries")
_DBT_CALL = "_dbt_generic_test_kwargs"


def node_differences(old: Artifact, new: Artifact) -> dict[str, frozenset[StateDifference]]:
    """Return how each node that is in both manifests differs, by unique id; an empty set where it does not."""
    before, after = nodes_of(old, _KINDS), nodes_of(new, _KINDS)
    macros = _changed_macros(old, new)
    return {
        unique_id: _differences(before[unique_id], node, macros)
        for unique_id, node in after.items()
        if unique_id in before
    }


def nodes_of(manifest: Artifact, kinds: tuple[str, ...]) -> dict[str, Artifact]:
    """Return nodes of these types by unique id, as plain JSON values."""
    nodes = {key: node for kind in _SECTIONS for key, node in mapping_of(manifest.get(kind)).items()}
    plain: dict[str, Artifact] = json.loads(json.dumps(nodes, default=str))
    return {unique_id: node for unique_id, node in plain.items() if node.get("resource_type") in kinds}


def _changed_macros(old: Artifact, new: Artifact) -> frozenset[str]:
    """Return unique ids of macros and functions that are new or whose text or declaration changed."""
    before = {unique_id: _text(node, "macro_sql") for unique_id, node in mapping_of(old.get("macros")).items()}
    after = {unique_id: _text(node, "macro_sql") for unique_id, node in mapping_of(new.get("macros")).items()}
    functions = mapping_of(old.get("functions"))
    changed = {
        unique_id
        for unique_id, node in mapping_of(new.get("functions")).items()
        if unique_id not in functions or _is_other_function(mapping_of(functions[unique_id]), mapping_of(node))
    }
    return frozenset({*changed, *(unique_id for unique_id, text in after.items() if before.get(unique_id) != text)})


def _is_other_function(old: Artifact, new: Artifact) -> bool:
    """Return whether a function's text, types or defaults differ, or those of functions that it calls.

    The latter are in its compiled text, which dbt's manifest does not have.
    """

    def definition(node: Artifact) -> str:
        listed = node.get("arguments")
        arguments = [mapping_of(argument) for argument in listed] if isinstance(listed, list) else []
        types = [[argument.get(key) for key in ("name", "data_type", "default_value")] for argument in arguments]
        return json.dumps([node.get("raw_code"), types, mapping_of(node.get("returns")).get("data_type")], default=str)

    compiled = [node.get("compiled_code") for node in (old, new)]
    return definition(old) != definition(new) or (all(compiled) and compiled[0] != compiled[1])


def _differences(old: Artifact, new: Artifact, macros: frozenset[str]) -> frozenset[StateDifference]:
    checks = _CHECKS.get(str(new["resource_type"]), _OF_QUERIES)
    depends_on = mapping_of(new.get("depends_on"))
    differences = {kind for kind, differs in checks.items() if differs(old, new)}
    for listed in (depends_on.get("macros"), depends_on.get("nodes")):
        if isinstance(listed, list) and any(name in macros for name in listed if isinstance(name, str)):
            differences.add("macros")
    return frozenset(differences)


def _inputs(node: Artifact) -> list[str]:
    unique_ids = mapping_of(node.get("depends_on")).get("nodes")
    return sorted(map(str, unique_ids)) if isinstance(unique_ids, list) else []


def _has_other(*keys: str) -> Callable[[Artifact, Artifact], bool]:
    """Return a check whether one of these keys has another value; empty values equal missing ones."""
    return lambda old, new: any((old.get(key) or None) != (new.get(key) or None) for key in keys)


def _semantic_config(old: Artifact, new: Artifact) -> bool:
    """As in dbt, the group of a metric is not one of its settings."""
    left_out = {"group"} if new["resource_type"] == "metric" else set[str]()
    before, after = mapping_of(old.get("config")), mapping_of(new.get("config"))
    return any(before.get(key) != after.get(key) for key in (before.keys() | after.keys()) - left_out)


def _saved_query(old: Artifact, new: Artifact) -> bool:
    """As in dbt, changes of `order_by`, `limit` and the target's location of exports do not count."""
    before, after = mapping_of(old.get("query_params")), mapping_of(new.get("query_params"))
    is_asked_otherwise = _has_other("metrics", "group_by", "where")(before, after)
    return _has_other(*_OF_SAVED_QUERY)(old, new) or is_asked_otherwise or _exports(old) != _exports(new)


def _exports(node: Artifact) -> list[tuple[object, ...]]:
    given = node.get("exports")
    exports = [mapping_of(export) for export in given] if isinstance(given, list) else []
    said = [(export.get("name"), mapping_of(export.get("unrendered_config"))) for export in exports]
    return [(name, *(config.get(key) for key in ("export_as", "schema", "alias"))) for name, config in said]


def _source(old: Artifact, new: Artifact) -> bool:
    return any((old.get(key) or None) != (new.get(key) or None) for key in _OF_SOURCE if key in old)


def _rows(value: object) -> object:
    """Normalize inputs and rows: dbt stores the rows of a CSV as mappings, and `ref` with either quote."""
    match value:
        case dict() if value.get("format") == "csv" and isinstance(value.get("rows"), str):
            table = list(csv.DictReader(io.StringIO(str(value["rows"]).strip()), skipinitialspace=True))
            return _rows({**value, "rows": table})
        case dict():
            return {key: _rows(part) for key, part in value.items() if part not in (None, {}, [])} or None
        case list():
            return [_rows(part) for part in value] or None
        case str():
            return value.replace('"', "'").strip()
        case _:
            return value


def _definition(old: Artifact, new: Artifact) -> bool:
    """Whether something else that readers of a model rely on changed, or the arguments of a named data test."""
    if new["resource_type"] == "test":
        before, after = mapping_of(old.get("test_metadata")), mapping_of(new.get("test_metadata"))
        return bool(before) and before.get("kwargs") != after.get("kwargs")
    return any(old[key] != new[key] for key in ("access", "latest_version") if key in old and key in new)


def _persisted_descriptions(old: Artifact, new: Artifact) -> bool:
    persisted = mapping_of(mapping_of(new.get("config")).get("persist_docs"))
    is_other = bool(persisted.get("relation")) and (old.get("description") or "") != (new.get("description") or "")
    return is_other or (bool(persisted.get("columns")) and _column_texts(old) != _column_texts(new))


def _column_texts(node: Artifact) -> dict[str, object]:
    return {name: mapping_of(column).get("description") for name, column in mapping_of(node.get("columns")).items()}


def _body(old: Artifact, new: Artifact) -> bool:
    if new["resource_type"] == "seed":
        before, after = mapping_of(old.get("checksum")), mapping_of(new.get("checksum"))
        # For a seed above 1 MB dbt stores only the path.
        return before.get("name") != "path" and before.get("checksum") != after.get("checksum")
    if _DBT_CALL in _text(new, "raw_code") and _DBT_CALL not in _text(old, "raw_code"):
        return False  # earlier versions wrote a generic test's arguments, which are in its id
    return _text(old, "raw_code") != _text(new, "raw_code")


def _configs(old: Artifact, new: Artifact) -> bool:
    before, after = _settings(old), _settings(new)
    written = mapping_of(old.get("unrendered_config")), mapping_of(new.get("unrendered_config"))
    return any(before[key] != after[key] and not _is_same_text(key, *written) for key in before.keys() & after.keys())


def _is_same_text(key: str, old: Mapping[str, object], new: Mapping[str, object]) -> bool:
    """Whether a setting is the same template in both: its value depends on the target and the environment."""
    return has_jinja(new.get(key)) and new.get(key) == old.get(key)


def _settings(node: Artifact) -> dict[str, object]:
    config = mapping_of(node.get("config"))
    settings = {canonical(key): value for key, value in config.items()}
    return {key: _normal(key, value) for key, value in settings.items() if key not in _NOT_SETTINGS}


def _normal(key: str, value: object) -> object:
    """Normalize spellings of a setting: dbt writes hooks as mappings, a severity in capitals, no keys as null."""
    if isinstance(value, str) and key == "severity":
        return value.lower()
    try:
        # A setting of a test or seed, or one that sml refuses, is compared as it is written.
        checked = check_setting(key, value) if is_config_key(key) else value
    except UnusedSetting:
        checked = None
    except ConfigFault:
        checked = value
    return None if checked in ((), [], {}) else json.loads(json.dumps(checked, default=str))


def _relation(old: Artifact, new: Artifact) -> bool:
    """Compare the settings: the target's location of tables is not a change of the project."""
    before, after = mapping_of(old.get("config")), mapping_of(new.get("config"))
    written = mapping_of(old.get("unrendered_config")), mapping_of(new.get("unrendered_config"))
    keys = (key for key in ("schema", "alias") if key in before and key in after)
    return any(before[key] != after[key] and not _is_same_text(key, *written) for key in keys)


def _promise(node: Artifact) -> object:
    """Return the enforced contract: kind of table and columns with types, in any order; None where none is enforced."""
    config = mapping_of(node.get("config"))
    if not mapping_of(config.get("contract")).get("enforced"):
        return None
    stored = config.get("materialized") if config.get("materialized") in ("table", "incremental") else None
    columns = [mapping_of(column) for column in mapping_of(node.get("columns")).values()]
    return stored, sorted((str(column.get("name")), str(column.get("data_type")).lower()) for column in columns)


def _fqn(old: Artifact, new: Artifact) -> bool:
    return "fqn" in old and old["fqn"] != new.get("fqn")


_OF_QUERIES: Mapping[StateDifference, Callable[[Artifact, Artifact], bool]] = {
    "body": _body,
    "configs": _configs,
    "relation": _relation,
    "contract": lambda old, new: _promise(old) != _promise(new),
    "persisted_descriptions": _persisted_descriptions,
    "fqn": _fqn,
    "definition": _definition,
}
_CHECKS: Mapping[str, Mapping[StateDifference, Callable[[Artifact, Artifact], bool]]] = {
    "source": {
        "relation": lambda old, new: any(old.get(key) != new.get(key) for key in _PLACE_OF_SOURCE),
        "fqn": _fqn,
        "definition": _source,
    },
    "exposure": {
        "fqn": _fqn,
        "definition": lambda old, new: _has_other(*_OF_EXPOSURE)(old, new) or _inputs(old) != _inputs(new),
    },
    "unit_test": {
        "definition": lambda old, new: any(_rows(old.get(key)) != _rows(new.get(key)) for key in _OF_UNIT_TEST)
    },
    "semantic_model": {"configs": _semantic_config, "definition": _has_other(*_OF_SEMANTIC_MODEL)},
    "metric": {"configs": _semantic_config, "definition": _has_other(*_OF_METRIC)},
    "saved_query": {"configs": _semantic_config, "definition": _saved_query},
}
"""The checks by type of node; the other types use `_OF_QUERIES`."""


def _text(node: object, key: str) -> str:
    """Return a text without surrounding blanks and with Unix line ends: dbt keeps those of Windows."""
    return str(mapping_of(node).get(key) or "").strip().replace("\r\n", "\n")
