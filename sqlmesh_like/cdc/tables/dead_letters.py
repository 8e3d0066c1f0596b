"""Lines that cannot be ingested. Owns their table and the choice to stop instead.

Its key is the location in the log: file and line number, or topic/partition and offset. It keeps all that is needed to
ingest a line again (`replay`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from sqlmesh_like.cdc.formats.source_types import sql_literal
from sqlmesh_like.cdc.frames import Frame, union_frames
from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.schema.ods_layout import OdsLayout
from sqlmesh_like.cdc.sources.batch_marker import MARKER_KEY, BatchMarker
from sqlmesh_like.cdc.sources.event_log import LINE_COLUMNS
from sqlmesh_like.cdc.sources.row_files import LOG_COLUMNS
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.cdc.tables.letters_of_keys import OPEN
from sqlmesh_like.errors import IngestError, Location
from sqlmesh_like.hudi.commits import STATE_PREFIX
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import IS_DELETED, KEY, Column
from sqlmesh_like.spark.tables.hudi_table import HudiTable, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TEXT = "decode(cast(value as binary), 'UTF-8')"
_COLUMNS = (
    # A message of many rows can have many bad ones.
    f"sha2(concat_ws('/', file, line, nullif(item, 0)), 256) as {KEY}",
    *("file", "line as position", "reason", f"{_TEXT} as text", "current_timestamp() as ingested_at"),
    f"if(encode({_TEXT}, 'UTF-8') = cast(value as binary), null, cast(value as binary)) as raw",
    *("table_name", "row_key", "position as place", *LOG_COLUMNS, f"false as {IS_DELETED}"),
)
_NAMES = (
    *("file", "position", "reason", "text", "ingested_at", "raw", "table_name", "row_key", "place"),
    *LOG_COLUMNS,
    IS_DELETED,
)
_TYPES = {"position": "bigint", "ingested_at": "timestamp", "raw": "binary"}
_STORED = tuple(Column(name, _TYPES.get(name, "string")) for name in (KEY, *_NAMES) if name != IS_DELETED)
# Bytes that are not UTF-8 are restored as they were.
_LINE = {
    "value": "coalesce(cast(raw as string), text)", "line": "position", "position": "place",
    "logged_at": "cast(null as bigint)",
}  # fmt: skip


def dead_letter_rows(events: Frame, layout: OdsLayout | None = None) -> Frame:
    """Events that have a `reason`, as rows of the dead letter table (grain: line × row of a message of many rows).

    `raw` holds the bytes of a line that is not UTF-8; `text` shows such bytes as �. `layout`: of the table the events
    are for; it gives them a `table_name` and, where they have a key, a `row_key`.
    """
    known = {"table_name": "cast(null as string)", "row_key": "cast(null as string)"}
    if layout is not None:
        known["table_name"] = sql_literal(layout.table.name)
        if layout.has_key:
            known["row_key"] = f"if({layout.missing_key('row')} is null, {layout.record_key('row')}, null)"
    item = () if "item" in events.columns else ("0 as item",)
    named = (f"{sql} as {name}" for name, sql in known.items())
    return events.where("reason is not null").selectExpr("*", *item, *named).selectExpr(*_COLUMNS)


def write_dead_letters(place: SourcePaths, bad: Sequence[Frame], mark: BatchMarker) -> None:
    """Write all malformed events of a batch in one commit, and only once if the batch is replayed."""
    if not mark.is_on(place.dead_letters_uri):
        _write(place, union_frames(bad), {MARKER_KEY: mark.to_json(), OPEN: "true"})


def _write(place: SourcePaths, rows: Frame, metadata: Mapping[str, str]) -> None:
    table = HudiTable(place.dead_letters_uri, place.dead_letters.identifier, (KEY,))
    if isinstance(rows, RowFrame):
        from sqlmesh_like.cdc.in_process.commits import commit_frame  # imports pyarrow, which few commands need

        commit_frame(rows, table, metadata, _STORED)
        return
    write(rows, table, "upsert", metadata)


def are_open(place: SourcePaths) -> bool:
    """Whether a source has dead letters that may be ingested again. Needs no JVM."""
    return Timeline(place.dead_letters_uri).extra(STATE_PREFIX + OPEN) == "true"


def stored_dead_letters(spark: SparkSession, place: SourcePaths) -> DataFrame | None:
    """The stored dead letters (grain: `KEY`); None where there are none."""
    if not are_open(place):
        return None
    return spark.read.format("hudi").load(place.dead_letters_uri).select(*_NAMES, KEY)


def dead_letters_here(place: SourcePaths) -> RowFrame | None:
    """The same without Spark. Raises NotProvenError where there are many."""
    if not are_open(place):
        return None
    from sqlmesh_like.cdc.in_process.commits import stored_rows

    return stored_rows(Timeline(place.dead_letters_uri)).select(*_NAMES, KEY)


def read_after(position: str) -> str:
    """Spark SQL: whether a stored letter is of a row that the source has read after a position of its log."""
    op = "coalesce(get_json_object(text, '$.payload.op'), get_json_object(text, '$.op'))"
    return f"place > {sql_literal(position)} and {op} <=> 'r'"


def lines_of(letter_rows: DataFrame) -> DataFrame:
    """The lines of stored letters as they were in their log (`LINE_COLUMNS`; grain: line)."""
    columns = [f"{_LINE.get(name, name)} as {name}" for name in LINE_COLUMNS]
    return letter_rows.dropDuplicates(["file", "position"]).selectExpr(*columns)


def resolve_dead_letters(place: SourcePaths, before: DataFrame, bad: DataFrame, stay: DataFrame) -> int:
    """Update the table in one commit after the letters `before` were ingested. Returns how many letters are left.

    Letters that are `bad` again or `stay` (both are rows of letters) are kept; the others are deleted.
    """
    first = before.groupBy("file", "position").agg({"ingested_at": "min"}).toDF("file", "position", "came")
    from pyspark.sql import functions as F

    again = bad.join(first, ["file", "position"]).withColumn("ingested_at", F.col("came")).drop("came")
    again = again.select(*before.columns)
    left = stay.unionByName(again).select(KEY).distinct()
    gone = before.join(left, KEY, "left_anti").withColumn(IS_DELETED, F.lit(True))
    count = left.count()
    known = Timeline(place.dead_letters_uri).extra(STATE_PREFIX + MARKER_KEY)
    metadata = {OPEN: str(count > 0).lower(), **({MARKER_KEY: known} if known else {})}
    _write(place, again.unionByName(gone.select(*before.columns)), metadata)
    return count


def first_reason(bad: Sequence[Frame], root: Path) -> tuple[str, Location]:
    """Reason and location of the first malformed event of a batch."""
    first = union_frames(bad).orderBy("file", "position").first()
    assert first is not None
    path = Path(unquote(urlsplit(first["file"]).path))
    shown = str(path.relative_to(root)) if path.is_relative_to(root) else first["file"]
    return str(first["reason"]), Location(shown, int(first["position"]))


def refuse(bad: Sequence[Frame], root: Path) -> IngestError:
    """The error that stops the batch at its first malformed event."""
    reason, place = first_reason(bad, root)
    hint = "repair the line, or set on_bad_record: dead_letter; nothing of this batch was written"
    return IngestError(reason, location=place, hint=hint)
