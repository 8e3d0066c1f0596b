"""Two manifests, the older one ours or dbt's. Owns when a node counts as modified, and how.

As in dbt: text, settings, place, called macros, promised columns and folder count; tags, descriptions and meta do not,
nor where a target puts tables. Settings that only one of the manifests has are another version's matter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from sqlmesh_like.artifacts.json_objects import Artifact, mapping_of
from sqlmesh_like.plan.state_comparison import StateDifference
from sqlmesh_like.project.config import ConfigFault, canonical, check_setting

_NOT_SETTINGS = frozenset({"alias", "schema", "database", "tags", "meta", "group", "docs", "contract", "access"})
_OF_EXPOSURE = ("type", "owner", "description", "label", "maturity", "url")
_DBT_CALL = "_dbt_generic_test_kwargs"


def compared(old: Artifact, new: Artifact) -> dict[str, frozenset[StateDifference]]:
    """How each node that is in both differs, by unique id; an empty set where it does not."""
    before, after = nodes_of(old), nodes_of(new)
    macros = _changed_macros(old, new)
    return {
        unique_id: _differences(before[unique_id], node, macros)
        for unique_id, node in after.items()
        if unique_id in before
    }


def nodes_of(manifest: Artifact) -> dict[str, Artifact]:
    """Models, seeds, tests, sources, analyses and exposures by unique id, as plain JSON values."""
    nodes = {
        key: node for kind in ("nodes", "sources", "exposures") for key, node in mapping_of(manifest.get(kind)).items()
    }
    plain: dict[str, Artifact] = json.loads(json.dumps(nodes, default=str))
    kinds = ("model", "seed", "test", "source", "analysis", "exposure")
    return {unique_id: node for unique_id, node in plain.items() if node.get("resource_type") in kinds}


def _changed_macros(old: Artifact, new: Artifact) -> frozenset[str]:
    """Macros of the project whose text is another one, or new."""
    before = {unique_id: _text(node, "macro_sql") for unique_id, node in mapping_of(old.get("macros")).items()}
    after = {unique_id: _text(node, "macro_sql") for unique_id, node in mapping_of(new.get("macros")).items()}
    return frozenset(unique_id for unique_id, text in after.items() if before.get(unique_id) != text)


def _differences(old: Artifact, new: Artifact, macros: frozenset[str]) -> frozenset[StateDifference]:
    if new["resource_type"] == "source":
        return frozenset() if _place_of_source(old) == _place_of_source(new) else frozenset({"relation"})
    if new["resource_type"] == "exposure":
        is_same = all((old.get(key) or None) == (new.get(key) or None) for key in _OF_EXPOSURE)
        return frozenset() if is_same and _inputs(old) == _inputs(new) else frozenset({"body"})
    called = mapping_of(new.get("depends_on")).get("macros")
    differences = {kind for kind, differs in _CHECKS.items() if differs(old, new)}
    if isinstance(called, list) and macros.intersection(called):
        differences.add("macros")
    return frozenset(differences)


def _inputs(node: Artifact) -> list[str]:
    unique_ids = mapping_of(node.get("depends_on")).get("nodes")
    return sorted(map(str, unique_ids)) if isinstance(unique_ids, list) else []


def _place_of_source(node: Artifact) -> tuple[object, object, object]:
    return node.get("source_name"), node.get("schema"), node.get("identifier")


def _body(old: Artifact, new: Artifact) -> bool:
    if new["resource_type"] == "seed":
        before, after = mapping_of(old.get("checksum")), mapping_of(new.get("checksum"))
        # Of a seed above 1 MB dbt keeps the path alone.
        return before.get("name") != "path" and before.get("checksum") != after.get("checksum")
    if _DBT_CALL in _text(old, "raw_code"):
        return False  # dbt spells the call of a generic test otherwise; its arguments are in its id
    return _text(old, "raw_code") != _text(new, "raw_code")


def _configs(old: Artifact, new: Artifact) -> bool:
    before, after = _settings(old), _settings(new)
    return any(before[key] != after[key] for key in before.keys() & after.keys())


def _settings(node: Artifact) -> dict[str, object]:
    config = mapping_of(node.get("config"))
    settings = {canonical(key): value for key, value in config.items()}
    return {key: _normal(key, value) for key, value in settings.items() if key not in _NOT_SETTINGS}


def _normal(key: str, value: object) -> object:
    """One spelling for what means the same: dbt writes hooks as mappings, a severity in capitals, no keys as null."""
    if isinstance(value, str) and key == "severity":
        return value.lower()
    try:
        checked = check_setting(key, value)
    except ConfigFault:  # a setting of a test or seed, or one that sml refuses: compared as it stands
        checked = value
    return None if checked in ((), [], {}) else json.loads(json.dumps(checked, default=str))


def _relation(old: Artifact, new: Artifact) -> bool:
    """By the settings: where a target puts its tables is not a change of the project."""
    before, after = mapping_of(old.get("config")), mapping_of(new.get("config"))
    return any(before.get(key) != after.get(key) for key in ("schema", "alias") if key in before and key in after)


def _contract(old: Artifact, new: Artifact) -> bool:
    return _promise(old) != _promise(new)


def _promise(node: Artifact) -> object:
    """Columns with types, where the contract is enforced; their order is not part of it."""
    if not mapping_of(mapping_of(node.get("config")).get("contract")).get("enforced"):
        return None
    columns = [mapping_of(column) for column in mapping_of(node.get("columns")).values()]
    return sorted((str(column.get("name")), str(column.get("data_type")).lower()) for column in columns)


def _fqn(old: Artifact, new: Artifact) -> bool:
    """A test's folder is its declaration's in dbt, and none with us."""
    return new["resource_type"] != "test" and "fqn" in old and old["fqn"] != new.get("fqn")


_CHECKS: Mapping[StateDifference, Callable[[Artifact, Artifact], bool]] = {
    "body": _body,
    "configs": _configs,
    "relation": _relation,
    "contract": _contract,
    "fqn": _fqn,
}


def _text(node: object, key: str) -> str:
    return str(mapping_of(node).get(key) or "").strip()
