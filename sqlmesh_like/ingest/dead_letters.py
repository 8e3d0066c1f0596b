"""Lines that cannot be taken in. Owns their table (key: file and line number) and the choice to stop instead."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame

from sqlmesh_like import names
from sqlmesh_like.engine.tables import HudiTable, write
from sqlmesh_like.errors import IngestError, Location
from sqlmesh_like.ingest.mark import KEY, Mark
from sqlmesh_like.ingest.place import Place

_COLUMNS = (
    f"sha2(concat_ws('/', file, line), 256) as {names.KEY}",
    *("file", "line as position", "reason", "value as text", "current_timestamp() as ingested_at"),
)


def letters(events: DataFrame) -> DataFrame:
    """The events that have a `reason` as rows of the table (grain: line)."""
    return events.where("reason is not null").selectExpr(*_COLUMNS)


def keep(place: Place, bad: list[DataFrame], mark: Mark) -> None:
    """Write all bad lines of a batch in one commit; once, however often the batch is replayed."""
    if mark.is_on(place.dead_letters_uri):
        return
    table = HudiTable(place.dead_letters_uri, place.dead_letters.identifier, (names.KEY,))
    write(reduce(DataFrame.unionByName, bad), table, "upsert", {KEY: mark.to_json()})


def refuse(bad: list[DataFrame], root: Path) -> IngestError:
    """The error that stops the batch at its first bad line."""
    first = reduce(DataFrame.unionByName, bad).orderBy("file", "position").first()
    assert first is not None
    path = Path(unquote(urlsplit(first["file"]).path))
    shown = str(path.relative_to(root)) if path.is_relative_to(root) else first["file"]
    hint = "repair the line, or set on_bad_record: dead_letter; nothing of this batch was written"
    return IngestError(str(first["reason"]), location=Location(shown, int(first["position"])), hint=hint)
