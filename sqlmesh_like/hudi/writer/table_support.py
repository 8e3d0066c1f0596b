"""Whether a table can be written without Spark. Owns the reasons why not."""

from __future__ import annotations

from collections.abc import Mapping

from sqlmesh_like.hudi.file_sizing import BUCKETS, LARGEST_FILE
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.merge_mode import merges_as_declared
from sqlmesh_like.names import KEY

_KNOWN_OPTIONS = {BUCKETS, LARGEST_FILE}
"""Hudi options that this writer follows: in a new table, or because they do not concern commits to an existing one."""
_REQUIRED: dict[str, tuple[str, ...]] = {
    "hoodie.table.version": ("9",),
    "hoodie.timeline.layout.version": ("2",),
    "hoodie.timeline.path": ("timeline",),
    "hoodie.table.base.file.format": ("PARQUET",),
    "hoodie.table.recordkey.fields": (KEY,),
    "hoodie.table.keygenerator.type": ("SIMPLE", "NON_PARTITION"),
    "hoodie.datasource.write.hive_style_partitioning": ("true",),
    "hoodie.datasource.write.partitionpath.urlencode": ("", "false"),
    "hoodie.datasource.write.drop.partition.columns": ("", "false"),
    "hoodie.populate.meta.fields": ("", "true"),
    "hoodie.table.cdc.enabled": ("", "false"),
    "hoodie.table.multiple.base.file.formats.enable": ("", "false"),
    "hoodie.table.metadata.partitions": ("",),
    "hoodie.table.metadata.partitions.inflight": ("",),
    "hoodie.table.format": ("", "native"),
    "hoodie.table.timeline.timezone": ("UTC",),
}
"""Table properties and the values that this writer supports; '' is for a property that is not stated."""


def unsupported_option(options: Mapping[str, str]) -> str | None:
    """Why Spark must write a table with these Hudi options of the user; None where this writer follows them."""
    unknown = sorted(set(options) - _KNOWN_OPTIONS)
    return f"the option {unknown[0]}" if unknown else None


def unsupported_reason(
    timeline: Timeline, ordering: tuple[str, ...], partition_field: str | None, options: Mapping[str, str]
) -> str | None:
    """Why Spark must write this table; None where its next upsert can be written here."""
    if not timeline.folder.is_in_reach:
        return "its files are out of this process's reach"
    if not timeline.exists or timeline.frontier is None:
        return "it has no commit"
    if not timeline.is_cow:
        return "it is merge-on-read"
    if timeline.unfinished:
        return f"the action {timeline.unfinished[0]} has not completed"
    newest = next(timeline.newest_first())
    if not newest.is_data and not newest.is_rewrite:
        return f"its newest commit is {newest.operation}"
    if reason := unsupported_option(options):
        return reason
    for name, known in _REQUIRED.items():
        if (value := timeline.properties.get(name, "")) not in known:
            return f"its property {name} is {value or 'not stated'}"
    if timeline.partition_fields != ((partition_field,) if partition_field else ()):
        return f"it is partitioned by {', '.join(timeline.partition_fields) or 'nothing'}"
    if not merges_as_declared(timeline, ordering, options):
        return "it decides otherwise between two rows of a key"
    return None
