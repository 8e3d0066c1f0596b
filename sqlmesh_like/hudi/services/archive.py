"""Old instants of a table, moved to its history without a JVM. Owns the history's files.

The history is a log-structured merge tree: `<oldest>_<newest>_<level>.parquet` has instants with their metadata,
`manifest_<n>` names the files that count, and `_version_` the manifest that counts. Ten files of a level become one of
the next. Source: Hudi's technical specification, "LSM timeline", and its `TimelineArchiverV2`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ArrowInvalid

from sqlmesh_like.errors import UnreadableTableError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.commits import Instant
from sqlmesh_like.hudi.services.timeline_files import create_file, remove_files, write_file
from sqlmesh_like.hudi.stores.commit_guard import require_locks
from sqlmesh_like.hudi.timeline import ARCHIVED_FILE, TIMELINE, Timeline
from sqlmesh_like.hudi.writer.avro_records import STRING, nullable_field, record_type, required_field
from sqlmesh_like.plan.side_by_side import side_by_side

SLACK = 2
"""Commits that the timeline has beyond those that a clean keeps: Hudi requires one at least."""
_HISTORY = f"{TIMELINE}/history"
_MANIFEST = re.compile(r"manifest_(?P<number>\d+)")
_MERGED_AT = 10
"""Files of a level that become one of the next."""
_MANIFESTS_KEPT = 3
"""Former manifests, whose files a reader may be reading."""
_AVRO = record_type(
    "HoodieLSMTimelineInstant",
    *(nullable_field(name, STRING) for name in ("instantTime", "completionTime", "action")),
    *(nullable_field(name, "bytes") for name in ("metadata", "plan")),
    {**required_field("version", "int"), "default": 1},
)
_SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("instantTime", "completionTime", "action")),
        *(pa.field(name, pa.binary()) for name in ("metadata", "plan")),
        pa.field("version", pa.int32(), nullable=False),
    ],
    {"parquet.avro.schema": json.dumps(_AVRO), "writer.model.name": "avro"},
)


def archive(timeline: Timeline, retain: int, earliest: str) -> None:
    """Move the oldest instants to the history where the timeline has some more commits than `retain`.

    Only such as precede the commit `earliest`, which a clean has kept: what they replaced is gone. The caller holds the
    table's locks. Raises UnreadableTableError.
    """
    commits = timeline.commit_instants
    if len(commits) <= retain + 2 * SLACK:
        return
    old = [instant for instant in commits[: -(retain + SLACK)] if instant.requested < earliest]
    if not old:
        return
    # Services from between archived commits go with them: readers take the oldest instant for the timeline's begin.
    services = [each for each in timeline.completed if each.action in ("clean", "rollback") and each < old[-1]]
    archived = sorted([*old, *services])
    # On a store each of them is two requests.
    rows = side_by_side(partial(_row, timeline), archived)
    _add(timeline, pa.Table.from_pylist(rows, _SCHEMA))
    _remove(timeline, archived)


def is_archive_known(timeline: Timeline) -> bool:
    """Whether all commits that precede archived ones are in the history: an archiver was cut short, no more."""
    if not timeline.before_gap:
        return True
    names = _current(timeline)[1]
    until = max((match["newest"] for match in map(ARCHIVED_FILE.fullmatch, names) if match), default="")
    early = {instant.requested for instant in timeline.before_gap if instant.requested <= until}
    return early <= _archived_instants(timeline)


def _row(timeline: Timeline, instant: Instant) -> dict[str, object]:
    name = f"{instant.requested}_{instant.completed}.{instant.action}"
    # Hudi, too, takes what is in flight for the plan of a replacement.
    state = "inflight" if instant.action == "replacecommit" else "requested"
    plan = f"{instant.requested}.{instant.action}.{state}"
    return {
        "instantTime": instant.requested,
        "completionTime": instant.completed,
        "action": instant.action,
        "metadata": timeline.folder.read(f".hoodie/timeline/{name}"),
        "plan": (timeline.folder.read(f".hoodie/timeline/{plan}") or None) if plan in timeline.names else None,
        "version": 1,
    }


def remove_remains(timeline: Timeline) -> None:
    """Remove what an archiver left that was cut short: files that no manifest names, instants that are in the history.

    The caller holds the table's locks, and `is_archive_known`.
    """
    _remove_superseded(timeline)
    if any(instant.requested <= timeline.archived_until for instant in timeline.completed):
        known = _archived_instants(timeline)
        _remove(timeline, [instant for instant in timeline.completed if instant.requested in known])


def _remove(timeline: Timeline, instants: Collection[Instant]) -> None:
    """Remove instants from the timeline.

    Services go before commits and old commits before newer ones, so that whoever reads in between, or after a crash,
    takes the files of what is gone for archived ones.
    """
    requested = {instant.requested for instant in instants}
    pending = [f"{TIMELINE}/{name}" for name in sorted(timeline.names) if name.partition(".")[0] in requested]
    remove_files(timeline.folder, pending)
    fault_point("archive.pending_removed")
    for instant in sorted(instants, key=lambda each: (each.action in ("commit", "replacecommit"), each)):
        path = f"{TIMELINE}/{instant.requested}_{instant.completed}.{instant.action}"
        remove_files(timeline.folder, [path])
        fault_point("archive.removed")


def _archived_instants(timeline: Timeline) -> set[str]:
    """The requested times of all instants in the history."""
    tables = [_read_history_file(timeline, name, ["instantTime"]) for name in _current(timeline)[1]]
    return {str(instant) for table in tables for instant in table["instantTime"].to_pylist()}


def _add(timeline: Timeline, table: pa.Table) -> None:
    """Add instants (ascending) to the history. They count once the manifest that names their file does."""
    number, names = _current(timeline)
    names = [*names, _write(timeline, table, level=0)]
    fault_point("archive.written")
    level = 0
    while len(full := [name for name in names if _level(name) == level]) >= _MERGED_AT:
        merged = sorted(full)[:_MERGED_AT]
        whole = pa.concat_tables(_read_history_file(timeline, name) for name in merged).sort_by("instantTime")
        names = [*(name for name in names if name not in merged), _write(timeline, whole, level=level + 1)]
        level += 1
    sizes = timeline.folder.data_sizes([f"{_HISTORY}/{name}" for name in names])
    files = [{"fileName": name, "fileLen": size} for name, size in zip(names, sizes, strict=True)]
    latest = max([number, *_manifests(timeline)]) + 1
    require_locks(timeline.uri)
    create_file(timeline.folder, f"{_HISTORY}/manifest_{latest}", json.dumps({"files": files}).encode())
    fault_point("archive.manifest")
    write_file(timeline.folder, f"{_HISTORY}/_version_", str(latest).encode())
    fault_point("archive.version")
    _remove_superseded(Timeline(timeline.uri))


def _remove_superseded(timeline: Timeline) -> None:
    """Remove manifests that no reader has, and files that only these name."""
    numbers = sorted(_manifests(timeline))[-_MANIFESTS_KEPT:]
    named = {name for number in numbers for name in _manifest_files(timeline, number)}
    old = [
        name
        for name in timeline.history_names
        if (int(match["number"]) not in numbers if (match := _MANIFEST.fullmatch(name)) else name not in named)
        and (match or ARCHIVED_FILE.fullmatch(name))
    ]
    remove_files(timeline.folder, [f"{_HISTORY}/{name}" for name in old])


def _write(timeline: Timeline, table: pa.Table, level: int) -> str:
    """Write a file of the history. Returns its name."""
    instants = table["instantTime"].to_pylist()
    name, target = f"{min(instants)}_{max(instants)}_{level}.parquet", pa.BufferOutputStream()
    # Statistics of metadata would repeat it.
    pq.write_table(
        table.cast(_SCHEMA), target, compression="gzip", use_dictionary=False, write_statistics=["instantTime"]
    )
    write_file(timeline.folder, f"{_HISTORY}/{name}", target.getvalue().to_pybytes())
    return name


def _read_history_file(timeline: Timeline, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    try:
        with timeline.folder.data_file(f"{_HISTORY}/{name}") as file:
            return pq.read_table(file, columns=None if columns is None else [*columns])
    except (ArrowInvalid, OSError) as error:
        raise UnreadableTableError(f"{timeline.uri}/{_HISTORY}/{name} cannot be read: {error}") from error


def _level(name: str) -> int:
    match = ARCHIVED_FILE.fullmatch(name)
    return int(match["level"]) if match else -1


def _current(timeline: Timeline) -> tuple[int, list[str]]:
    """The number of the manifest that counts, and the files that it names; 0 and none where there is no history."""
    number = max(_manifests(timeline), default=0)
    if "_version_" in timeline.history_names:
        number = int(timeline.folder.read(f"{_HISTORY}/_version_") or b"0")
    return number, _manifest_files(timeline, number) if number else []


def _manifests(timeline: Timeline) -> list[int]:
    return [int(match["number"]) for match in map(_MANIFEST.fullmatch, timeline.history_names) if match]


def _manifest_files(timeline: Timeline, number: int) -> list[str]:
    """Names of the files of a manifest."""
    path = f"{_HISTORY}/manifest_{number}"
    try:
        return [str(entry["fileName"]) for entry in json.loads(timeline.folder.read(path))["files"]]
    except (ValueError, LookupError, TypeError, OSError) as error:
        raise UnreadableTableError(f"{timeline.uri}/{path} cannot be read: {error}") from error
