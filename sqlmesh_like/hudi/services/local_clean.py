"""Cleaning of copy-on-write tables without a JVM. Owns the steps of a clean, which survive a crash.

As Hudi does: `<instant>.clean.requested` has the plan, an empty `.clean.inflight` follows, then the files are removed,
and `<instant>_<completed>.clean` says which. A clean that was cut short is completed by its plan, by whoever cleans
next, this process or Hudi. Source: Hudi's technical specification, "Timeline", and the Avro schemas of its cleaner.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic

from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.commits import mapping_member, read_metadata
from sqlmesh_like.hudi.services.archive import archive, is_archive_known, remove_remains
from sqlmesh_like.hudi.services.clean_plan import CleanPlan, plan_clean
from sqlmesh_like.hudi.services.timeline_files import remove_files, write_file
from sqlmesh_like.hudi.stores.commit_guard import require_locks
from sqlmesh_like.hudi.timeline import TIMELINE, Timeline
from sqlmesh_like.hudi.writer.avro_records import (
    STRING,
    encode_record,
    list_of,
    map_of,
    nullable_field,
    record_schema,
    record_type,
    required_field,
)
from sqlmesh_like.hudi.writer.instant import next_instant
from sqlmesh_like.hudi.writer.open_commit import settled_timeline

_LOG = logging.getLogger(__name__)
_POLICY = "KEEP_LATEST_COMMITS"
_VERSION = 2
"""Of Hudi's records of cleans: paths of planned files are whole, those of removed ones are names."""
_PLAN = record_schema(
    "HoodieCleanerPlan",
    nullable_field(
        "earliestInstantToRetain",
        record_type(
            "HoodieActionInstant", *(required_field(name, STRING) for name in ("timestamp", "action", "state"))
        ),
    ),
    {**required_field("lastCompletedCommitTimestamp", STRING), "default": ""},
    required_field("policy", STRING),
    nullable_field("filesToBeDeletedPerPartition", map_of(list_of(STRING))),
    nullable_field("version", "int", 1),
    nullable_field(
        "filePathsToBeDeletedPerPartition",
        map_of(
            list_of(
                record_type(
                    "HoodieCleanFileInfo",
                    nullable_field("filePath", STRING),
                    nullable_field("isBootstrapBaseFile", "boolean"),
                )
            )
        ),
    ),
    nullable_field("partitionsToBeDeleted", list_of(STRING)),
    nullable_field("extraMetadata", map_of(STRING)),
)
_PARTITION = record_type(
    "HoodieCleanPartitionMetadata",
    required_field("partitionPath", STRING),
    required_field("policy", STRING),
    *(
        required_field(name, list_of(STRING))
        for name in ("deletePathPatterns", "successDeleteFiles", "failedDeleteFiles")
    ),
    nullable_field("isPartitionDeleted", "boolean"),
)
_DONE = record_schema(
    "HoodieCleanMetadata",
    required_field("startCleanTime", STRING),
    required_field("timeTakenInMillis", "long"),
    required_field("totalFilesDeleted", "int"),
    required_field("earliestCommitToRetain", STRING),
    {**required_field("lastCompletedCommitTimestamp", STRING), "default": ""},
    required_field("partitionMetadata", map_of(_PARTITION)),
    nullable_field("version", "int", 1),
    nullable_field("bootstrapPartitionMetadata", map_of("org.apache.hudi.avro.model.HoodieCleanPartitionMetadata")),
    nullable_field("extraMetadata", map_of(STRING)),
)
_REQUEST = re.compile(r"(?P<requested>\d{17})\.clean\.requested")
_SUPPORTED: Mapping[str, tuple[str, ...]] = {
    "hoodie.table.version": ("9",),
    "hoodie.timeline.layout.version": ("2",),
    "hoodie.timeline.path": ("timeline",),
    "hoodie.timeline.history.path": ("", "history"),
    "hoodie.table.base.file.format": ("PARQUET",),
    "hoodie.table.metadata.partitions": ("",),
    "hoodie.table.metadata.partitions.inflight": ("",),
    "hoodie.table.format": ("", "native"),
}
"""Table properties and the values of tables that are cleaned here; '' is for a property that is not stated."""
_ACTIONS = {"commit", "replacecommit", "clean", "rollback"}


@dataclass(frozen=True)
class _RequestedClean:
    """A clean whose plan is on the timeline. `files`: names of files to remove, by partition."""

    requested: str
    earliest: str
    newest: str
    files: Mapping[str, tuple[str, ...]]


def clean_here(uri: str, retain: int) -> bool:
    """Keep the newest `retain` data commits of a table readable, drop what only older ones need, archive these.

    False, before any change, where Hudi has to do it. The caller holds the table's locks. Raises UnreadableTableError.
    """
    timeline = settled_timeline(uri)
    unfinished = [_requested_clean(timeline, name) for name in _requests(timeline)]
    if reason := _unsupported_reason(timeline, unfinished):
        _LOG.debug("%s is cleaned by Hudi: %s", uri, reason)
        return False
    for clean in filter(None, unfinished):
        _complete(timeline, clean)
    remove_remains(timeline)
    timeline = Timeline(uri)
    plan = plan_clean(timeline, retain)
    if plan is None:
        return True
    if plan.files:
        _complete(timeline, _request(timeline, plan))
    archive(Timeline(uri), retain, plan.earliest.requested)
    return True


def _unsupported_reason(timeline: Timeline, unfinished: Sequence[_RequestedClean | None]) -> str | None:
    """Why Hudi must clean this table; None where it can be cleaned here."""
    if not timeline.folder.is_in_reach:
        return "its files are out of this process's reach"
    if timeline.frontier is None or not timeline.is_cow:
        return "it has no commit" if timeline.is_cow else "it is merge-on-read"
    for name, known in _SUPPORTED.items():
        if (value := timeline.properties.get(name, "")) not in known:
            return f"its property {name} is {value or 'not stated'}"
    if unknown := {instant.action for instant in timeline.completed} - _ACTIONS:
        return f"its timeline has a {min(unknown)}"
    if None in unfinished:
        return "a clean of another kind has not completed"
    if others := {*timeline.unfinished} - {clean.requested for clean in unfinished if clean}:
        return f"the action {min(others)} has not completed"
    return None if is_archive_known(timeline) else "commits were archived that follow others on its timeline"


def _requests(timeline: Timeline) -> list[str]:
    """Names of the plans of cleans that were cut short, ascending."""
    matches = filter(None, map(_REQUEST.fullmatch, timeline.names))
    return sorted(match[0] for match in matches if match["requested"] in timeline.unfinished)


def _requested_clean(timeline: Timeline, name: str) -> _RequestedClean | None:
    """A plan on the timeline; None where it removes more than files of partitions."""
    path = f".hoodie/timeline/{name}"
    convert = partial(_to_requested_clean, name.partition(".")[0])
    return read_metadata(timeline.folder.read(path), f"{timeline.uri}/{path}", convert)


def _to_requested_clean(requested: str, record: object) -> _RequestedClean | None:
    plan = mapping_member(record)
    files = {
        partition: tuple(str(entry["filePath"]).rpartition("/")[2] for entry in entries)
        for partition, entries in mapping_member(plan.get("filePathsToBeDeletedPerPartition")).items()
    }
    is_known = plan.get("version") == _VERSION and plan.get("policy") == _POLICY
    is_within = not any(".." in Path(partition).parts or Path(partition).is_absolute() for partition in files)
    earliest = str(mapping_member(plan.get("earliestInstantToRetain")).get("timestamp") or "")
    if not (is_known and is_within and earliest) or plan.get("partitionsToBeDeleted"):
        return None
    return _RequestedClean(requested, earliest, str(plan.get("lastCompletedCommitTimestamp") or ""), files)


def _request(timeline: Timeline, plan: CleanPlan) -> _RequestedClean:
    """Put a plan on the timeline."""
    instant, place = next_instant(timeline.names), timeline.folder
    root = f"file:{place.path}" if place.is_local else place.uri
    record = {
        "earliestInstantToRetain": {
            "timestamp": plan.earliest.requested,
            "action": plan.earliest.action,
            "state": "COMPLETED",
        },
        "lastCompletedCommitTimestamp": plan.newest.requested,
        "policy": _POLICY,
        "filesToBeDeletedPerPartition": {},
        "version": _VERSION,
        "filePathsToBeDeletedPerPartition": {
            partition: [{"filePath": f"{root}/{path}", "isBootstrapBaseFile": False} for path in paths]
            for partition, paths in plan.files.items()
        },
        "partitionsToBeDeleted": [],
        "extraMetadata": {},
    }
    require_locks(timeline.uri)
    write_file(place, f"{TIMELINE}/{instant}.clean.requested", encode_record(_PLAN, record))
    fault_point("clean.requested")
    names = {partition: tuple(path.rpartition("/")[2] for path in paths) for partition, paths in plan.files.items()}
    return _RequestedClean(instant, plan.earliest.requested, plan.newest.requested, names)


def _complete(timeline: Timeline, clean: _RequestedClean) -> None:
    """Remove the files of a plan that is on the timeline, and say so. Files that are gone already count as removed."""
    began, place = monotonic(), timeline.folder
    require_locks(timeline.uri)
    write_file(place, f"{TIMELINE}/{clean.requested}.clean.inflight", b"")
    fault_point("clean.inflight")
    paths = [f"{partition}/{name}" if partition else name for partition, names in clean.files.items() for name in names]
    for request in [[path] for path in paths] if place.is_local else [paths]:
        remove_files(place, request)
        fault_point("clean.file")
    record = {
        "startCleanTime": clean.requested,
        "timeTakenInMillis": int((monotonic() - began) * 1000),
        "totalFilesDeleted": sum(map(len, clean.files.values())),
        "earliestCommitToRetain": clean.earliest,
        "lastCompletedCommitTimestamp": clean.newest,
        "partitionMetadata": {
            partition: {
                "partitionPath": partition,
                "policy": _POLICY,
                "deletePathPatterns": names,
                "successDeleteFiles": names,
                "failedDeleteFiles": [],
                "isPartitionDeleted": False,
            }
            for partition, names in clean.files.items()
        },
        "version": _VERSION,
        "bootstrapPartitionMetadata": {},
        "extraMetadata": {},
    }
    completed = next_instant(timeline.folder_names())
    write_file(place, f"{TIMELINE}/{clean.requested}_{completed}.clean", encode_record(_DONE, record))
    fault_point("clean.complete")
