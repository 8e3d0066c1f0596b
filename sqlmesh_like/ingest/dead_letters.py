"""Lines that cannot be taken in. Owns their table and the choice to stop instead.

Its key is the place in the log: file and line number, or topic/partition and offset.
"""

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

_TEXT = "decode(cast(value as binary), 'UTF-8')"
_COLUMNS = (
    # A message of many rows can have many bad ones.
    f"sha2(concat_ws('/', file, line, nullif(item, 0)), 256) as {names.KEY}",
    *("file", "line as position", "reason", f"{_TEXT} as text", "current_timestamp() as ingested_at"),
    f"if(encode({_TEXT}, 'UTF-8') = cast(value as binary), null, cast(value as binary)) as raw",
)


def letters(events: DataFrame) -> DataFrame:
    """The events that have a `reason` as rows of the table (grain: line × row of a message of many rows).

    `raw` holds the bytes of a line that is no UTF-8; `text` shows such bytes as �.
    """
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
