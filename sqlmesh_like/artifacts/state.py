"""The artifacts of an earlier call, ours or dbt's, read back. Owns finding them and what is wrong with them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlmesh_like.artifacts.compare import compared
from sqlmesh_like.artifacts.json_objects import Artifact, mapping_of
from sqlmesh_like.errors import UsageError
from sqlmesh_like.plan.state_comparison import ComparisonState

MANIFEST, RESULTS, SOURCES = "manifest.json", "run_results.json", "sources.json"


@dataclass(frozen=True)
class SavedState:
    """What a folder holds of manifest.json, run_results.json and sources.json; at least one of them."""

    folder: Path
    manifest: Artifact | None
    results: Artifact | None
    sources: Artifact | None = None

    def past(self, current: Artifact, sources: Artifact | None = None) -> ComparisonState:
        """Compared with the project as it is, given by its manifest, and with the newest word on its sources."""
        changes = None if self.manifest is None else compared(self.manifest, current)
        known = None if self.results is None else statuses(self.results)
        fresher = None if self.sources is None or sources is None else _fresher(self.sources, sources)
        return ComparisonState(str(self.folder), changes, known, fresher)

    def locations(self, warehouse: str) -> dict[str, str]:
        """Where each table of the state lies, by unique id. A manifest that does not say (dbt's) means `warehouse`.

        Raises UsageError where there is no manifest.
        """
        if self.manifest is None:
            hint = "`sml compile` and `sml parse` write it"
            raise UsageError(f"--defer needs {MANIFEST}, which is not in {self.folder}", hint=hint)
        nodes = {**mapping_of(self.manifest.get("nodes")), **mapping_of(self.manifest.get("sources"))}
        places = {unique_id: _location(mapping_of(node), warehouse) for unique_id, node in nodes.items()}
        return {unique_id: uri for unique_id, uri in places.items() if uri is not None}


def read_state(folder: Path) -> SavedState:
    """Raises UsageError where the folder holds neither artifact, or one that cannot be read."""
    manifest, results, sources = (read_artifact(folder / name) for name in (MANIFEST, RESULTS, SOURCES))
    if manifest is None and results is None and sources is None:
        hint = "give the target folder of an earlier call, or a copy of it"
        raise UsageError(f"--state {folder} holds neither {MANIFEST} nor {RESULTS}", hint=hint)
    return SavedState(folder, manifest, results, sources)


def read_artifact(path: Path) -> Artifact | None:
    """None where there is no such file. Raises UsageError where it is not JSON object."""
    try:
        data: object = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}", hint="write it anew") from error
    if not isinstance(data, dict) or not isinstance(data.get("metadata"), dict):
        raise UsageError(f"{path} is not an artifact of sml or dbt: it has no metadata", hint="write it anew")
    return data


def statuses(results: Artifact) -> dict[str, str]:
    """The status of each node of a run_results.json."""
    rows = results.get("results")
    entries = [mapping_of(row) for row in (rows if isinstance(rows, list) else [])]
    return {str(row.get("unique_id")): str(row.get("status")) for row in entries}


def _fresher(before: Artifact, now: Artifact) -> frozenset[str]:
    """Sources whose newest row is newer, or was not known. Those that could not be asked are none, as in dbt."""
    old, new = _newest(before), _newest(now)
    return frozenset(unique_id for unique_id, moment in new.items() if unique_id not in old or moment > old[unique_id])


def _newest(sources: Artifact) -> dict[str, datetime.datetime]:
    """Of each source when its newest row came."""
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
