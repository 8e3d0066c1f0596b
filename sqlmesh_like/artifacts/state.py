"""The artifacts of an earlier call, ours or dbt's. Owns finding and reading them, and errors in them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlmesh_like.artifacts.compare import node_differences
from sqlmesh_like.artifacts.json_objects import Artifact, mapping_of
from sqlmesh_like.errors import UsageError
from sqlmesh_like.limits.record import note_file
from sqlmesh_like.plan.state_comparison import ComparisonState
from sqlmesh_like.regular_files import read_followed

_OF_NODES = (
    "nodes", "sources", "macros", "exposures", "metrics", "groups", "saved_queries", "semantic_models", "unit_tests",
    "functions",
)  # fmt: skip
"""Keys of a manifest whose values are objects by unique id."""
MANIFEST, RESULTS, SOURCES = "manifest.json", "run_results.json", "sources.json"


@dataclass(frozen=True)
class SavedState:
    """The manifest.json, run_results.json and sources.json of a folder; it has at least one of them."""

    folder: Path
    manifest: Artifact | None
    results: Artifact | None
    sources: Artifact | None = None

    def past(self, current: Artifact, sources: Artifact | None = None) -> ComparisonState:
        """Compare with the current project, given by its manifest, and with its current sources.json."""
        changes = None if self.manifest is None else node_differences(self.manifest, current)
        known = None if self.results is None else statuses(self.results)
        fresher: frozenset[str] | None = None
        if self.sources is not None and sources is not None:
            old, new = _newest(self.sources), _newest(sources)
            # As in dbt, none whose check failed now.
            fresher = frozenset(name for name, moment in new.items() if name not in old or moment > old[name])
        return ComparisonState(str(self.folder), changes, known, fresher)

    def locations(self, warehouse: str) -> dict[str, str]:
        """Return the location of each table of the state, by unique id; below `warehouse` if the manifest has none.

        dbt's manifests have none. Raises UsageError where there is no manifest.
        """
        if self.manifest is None:
            hint = "`sml compile` and `sml parse` write it"
            raise UsageError(f"--defer needs {MANIFEST}, which is not in {self.folder}", hint=hint)
        nodes = {**mapping_of(self.manifest.get("nodes")), **mapping_of(self.manifest.get("sources"))}
        places = {unique_id: _location(mapping_of(node), warehouse) for unique_id, node in nodes.items()}
        return {unique_id: uri for unique_id, uri in places.items() if uri is not None}


def read_state(folder: Path) -> SavedState:
    """Read the artifacts of a folder. Raises UsageError where it has none, or one that cannot be read."""
    manifest, results, sources = (read_artifact(folder / name) for name in (MANIFEST, RESULTS, SOURCES))
    if manifest is None and results is None and sources is None:
        hint = "give the target folder of an earlier call, or a copy of it"
        raise UsageError(f"--state {folder} holds neither {MANIFEST} nor {RESULTS}", hint=hint)
    return SavedState(folder, manifest, results, sources)


def read_artifact(path: Path) -> Artifact | None:
    """Return an artifact, None where there is no such file. Raises UsageError where it is not an artifact."""
    try:
        content = read_followed(path)
        note_file(str(path), len(content))
        data: object = json.loads(content.decode())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint="write it anew") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}", hint="write it anew") from error
    if not isinstance(data, dict) or not isinstance(data.get("metadata"), dict):
        raise UsageError(f"{path} is not an artifact of sml or dbt: it has no metadata", hint="write it anew")
    for section in _OF_NODES:
        entries = data.get(section) or {}
        wrong = (
            [key for key, entry in entries.items() if not isinstance(entry, dict)]
            if isinstance(entries, dict)
            else [""]
        )
        if wrong:
            raise UsageError(f"{path}: {section}.{wrong[0]} is not an object", hint="write it anew")
    return data


def statuses(results: Artifact) -> dict[str, str]:
    """Return the status of each node of a run_results.json, by unique id."""
    rows = results.get("results")
    entries = [mapping_of(row) for row in (rows if isinstance(rows, list) else [])]
    return {str(row.get("unique_id")): str(row.get("status")) for row in entries}


def _newest(sources: Artifact) -> dict[str, datetime.datetime]:
    """Return the time of each source's newest row, by unique id."""
    rows = sources.get("results")
    results = [mapping_of(row) for row in (rows if isinstance(rows, list) else [])]
    return {str(row.get("unique_id")): _moment(row["max_loaded_at"]) for row in results if row.get("max_loaded_at")}


def _moment(text: object) -> datetime.datetime:
    try:
        moment = datetime.datetime.fromisoformat(str(text))
    except ValueError as error:
        raise UsageError(f"{SOURCES} has no moment: {text!r}", hint="write it anew: sml freshness") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


def _location(node: Artifact, warehouse: str) -> str | None:
    meta = mapping_of(node.get("meta")).get("sml")
    if isinstance(meta, Mapping):
        return str(meta["location"]) if meta.get("location") else None
    is_table = mapping_of(node.get("config")).get("materialized") in ("table", "incremental", "seed")
    schema, name = node.get("schema"), node.get("alias") or node.get("identifier")
    if not warehouse or not schema or not name or not (is_table or node.get("resource_type") == "source"):
        return None
    return f"{warehouse.rstrip('/')}/{schema}/{name}"
