"""A small lake to ingest into: writes event files, runs the ingestion, reads the tables back."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import SparkSession

from sqlmesh_like.cdc.report import IngestReport, TableReport
from sqlmesh_like.cdc.stream.ingest_run import IngestRun, ingest_source, open_run
from sqlmesh_like.errors import Location
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import Column, TableName
from sqlmesh_like.project.nodes import (
    IngestSource,
    IngestTable,
    ParsedProject,
    PartitionBy,
    Source,
    SourceTable,
    Target,
)
from tests.levels import IS_DEEP, IS_RELEASE
from tests.spark.stored_rows import stored_rows

BY_MONTH = PartitionBy("create_time", "yyyyMM", "year_month")
SMALL_BATCHES = os.environ.get("SML_SMALL_BATCHES") == "1" or not (IS_RELEASE or IS_DEEP)
"""Whether a lake's few events are ingested without Spark where that is possible: in the suite, since that is a tenth of
the time; a release has both."""
_FIRST_FILE_TIME = 1_700_000_000


def event(
    op: str, after: object = None, before: object = None, table: str = "t", fields: Sequence[Mapping[str, object]] = ()
) -> str:
    """One Debezium message value; with `fields` inside an envelope that has a schema."""
    body = {"before": before, "after": after, "source": {"db": "db", "table": table}, "op": op, "ts_ms": 1}
    if not fields:
        return json.dumps(body, ensure_ascii=False)
    rows = [{"type": "struct", "fields": list(fields), "field": image} for image in ("before", "after")]
    return json.dumps({"schema": {"type": "struct", "fields": rows}, "payload": body}, ensure_ascii=False)


def base64_decimal(unscaled: int) -> str:
    size = unscaled.bit_length() // 8 + 1
    return base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()


def table(name: str = "t", *, columns: Mapping[str, str] | None = None, **ingest: Any) -> SourceTable:
    """A declared table `ods.<name>`, by default keyed `id`."""
    declared = IngestTable(**{"database": "db", "table": name, "primary_key": ("id",), **ingest})
    types = tuple(Column(column, kind) for column, kind in (columns or {}).items())
    location = Location("models/ods/sources.yml", 7, 5)
    return SourceTable(
        f"source.p.shop.{name}",
        "shop",
        name,
        TableName("ods", name),
        None,
        "hudi",
        declared,
        types,
        "",
        (),
        {},
        location,
    )


@dataclass
class Lake:
    """One project, warehouse and landing folder; every `ingest` lands one file (an hour after the one before).

    `reasons`: why Spark took batches that this process might have taken; `delta_engine`: that of its target.
    """

    spark: SparkSession
    root: Path
    tables: tuple[SourceTable, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    landed: int = 0
    reasons: list[str] = field(default_factory=list)
    delta_engine: Literal["auto", "spark"] = "auto"

    @property
    def landing(self) -> Path:
        return self.root / "landing"

    @property
    def warehouse(self) -> str:
        return str(self.root / "warehouse")

    def uri(self, name: str = "t") -> str:
        return f"{self.warehouse}/ods/{name}"

    def land(self, *lines: str) -> None:
        self.landing.mkdir(exist_ok=True)
        path = self.landing / f"{self.landed:04d}.jsonl"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        time = _FIRST_FILE_TIME + 3600 * self.landed
        os.utime(path, (time, time))
        self.landed += 1

    def run(self, start: str | None = None, again: Collection[str] = ()) -> IngestReport:
        project, target, source = self.declared()
        return ingest_source(
            *(lambda: self.spark, project, target, source, start),
            again=again,
            small_batches=SMALL_BATCHES,
            on_spark=self.reasons.append,
        )

    def open(self, on_batch: Any = None) -> IngestRun:
        """A run that has not begun."""
        project, target, source = self.declared()
        return open_run(lambda: self.spark, project, target, source, on_batch)

    def declared(self) -> tuple[ParsedProject, Target, Source]:
        """Project, target and source as they are declared now."""
        location = Location("models/ods/sources.yml", 3, 5)
        stream = replace(IngestSource("debezium", files="landing/*.jsonl"), **self.settings)
        source = Source("shop", "ods", stream, self.tables, "", location)
        project = ParsedProject("p", self.root, "", None, "target", (), {}, (), (), (source,), (), ())
        target = Target("p", "t", "spark", warehouse=self.warehouse, delta_engine=self.delta_engine)
        return project, target, source

    def ingest(self, *lines: str) -> IngestReport:
        self.land(*lines)
        return self.run()

    def rows(self, name: str = "t", *columns: str) -> list[tuple[Any, ...]]:
        """Rows of a table without hidden columns (or of these columns), in order of their texts."""
        return sorted(stored_rows(self.spark, self.uri(name), columns), key=str)

    def types(self, name: str = "t") -> dict[str, str]:
        fields = self.spark.read.format("hudi").load(self.uri(name)).dtypes
        return {column: kind for column, kind in fields if not column.startswith(("_hoodie", "_sml"))}

    def commits(self, name: str = "t") -> int:
        return len(Timeline(self.uri(name)).data_commits)

    def dead_letters(self) -> list[tuple[Any, ...]]:
        rows = self.rows("shop__dead_letters", "file", "position", "reason", "text")
        return [(Path(file).name, position, reason, text) for file, position, reason, text in rows]


def report_of(report: IngestReport, name: str = "t") -> TableReport:
    return next(each for each in report.tables if each.table.identifier == name)
