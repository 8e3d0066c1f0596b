"""Lines of a log as change events: what each is and whose. Owns an event's columns; formats say how to read one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sqlmesh_like.ingest.formats import FORMATS
from sqlmesh_like.ingest.images import UNAVAILABLE
from sqlmesh_like.ingest.message import CHANGES
from sqlmesh_like.ingest.place import Place
from sqlmesh_like.ingest.route import route
from sqlmesh_like.ingest.types import literal
from sqlmesh_like.project.spec import CdcFormat, SourceTable

_SOURCE = ("database", "source_schema", "source_table")
EVENT_COLUMNS = (
    *("value", "file", "line", "position", "kind", "op", "reason"),
    *(*_SOURCE, "message", "schema_id", "schema_text"),
)
# Spark replaces invalid bytes without a word wherever it reads text.
_IS_UTF8 = "encode(decode(cast(value as binary), 'UTF-8'), 'UTF-8') = cast(value as binary)"

SourceName = tuple[str | None, str | None, str]
"""Database, schema and name of a table at its source."""


@dataclass(frozen=True, order=True)
class Variant:
    """Events of a table that share one layout of messages and one stated schema ('': they have none).

    `has_unavailable`: some may hold a mark in place of a value that was not logged.
    """

    message: str
    schema_id: str
    schema_text: str
    has_unavailable: bool = False

    @property
    def condition(self) -> str:
        """Spark SQL that is true for its events."""
        return f"message = '{self.message}' and coalesce(schema_id, '') = '{self.schema_id}'"


@dataclass
class Share:
    """What a batch holds for one declared table: from which tables of the source, in which variants."""

    table: SourceTable
    sources: set[SourceName] = field(default_factory=set)
    variants: set[Variant] = field(default_factory=set)
    has_truncates: bool = False

    def add(self, variant: Variant) -> None:
        """One variant more; of two that differ only in `has_unavailable` one stays."""
        other = replace(variant, has_unavailable=not variant.has_unavailable)
        if other in self.variants:
            self.variants.discard(other)
            variant = replace(variant, has_unavailable=True)
        self.variants.add(variant)


@dataclass(frozen=True)
class Routed:
    """Where the lines of a batch go. `skipped` counts those that go nowhere, by reason."""

    shares: Mapping[str, Share]
    skipped: Mapping[str, int]
    lines: int
    bad: int


def events_of(lines: DataFrame, form: CdcFormat) -> DataFrame:
    """Lines with what their envelope says (`EVENT_COLUMNS`; grain: line)."""
    frames = []
    for condition, dialect in FORMATS[form]:
        frame = lines.where(condition)
        for name, sql in dialect.envelope("value").items():
            frame = frame.withColumn(name, F.expr(sql))
        frame = frame.withColumn("schema_id", F.expr("sha2(schema_text, 256)"))
        frame = frame.withColumn("is_text", F.expr(f"value is null or {_IS_UTF8}"))
        frame = frame.withColumn("kind", F.expr("if(is_text, kind, 'bad')"))
        frame = frame.withColumn("reason", F.expr("if(is_text, reason, 'invalid UTF-8')"))
        frames.append(frame.select(*EVENT_COLUMNS))
    return reduce(DataFrame.unionByName, frames)


def routed(place: Place, events: DataFrame) -> Routed:
    """Which table takes which events. Raises ProjectError where two declarations claim the same."""
    by = ("kind", *_SOURCE, "message", "schema_id")
    marked = " or ".join(f"contains(value, {literal(mark)})" for mark in UNAVAILABLE[:2])
    columns = {"schema_text": "first(schema_text)", "lines": "count(*)", "marked": f"max({marked})"}
    groups = events.groupBy(*by).agg(*(F.expr(sql).alias(name) for name, sql in columns.items())).collect()
    shares: dict[str, Share] = {}
    skipped: Counter[str] = Counter()
    for row in groups:
        kind, source = row["kind"], (row["database"], row["source_schema"], row["source_table"])
        if kind not in (*CHANGES, "truncate"):
            skipped[kind] += row["lines"]
            continue
        table = route(place.source, *source)
        if table is None:
            skipped["undeclared " + ".".join(filter(None, source))] += row["lines"]
            continue
        share = shares.setdefault(table.name, Share(table))
        share.sources.add(source)
        if kind == "truncate":
            share.has_truncates = True
        else:
            share.add(Variant(row["message"], row["schema_id"] or "", row["schema_text"] or "", row["marked"]))
    bad = skipped.pop("bad", 0)
    return Routed(shares, dict(skipped), sum(row["lines"] for row in groups), bad)


def events_for(events: DataFrame, share: Share) -> DataFrame:
    """The events of one declared table, truncates included, with their `origin` (`database.table`)."""
    own = F.lit(False)
    for source in sorted(share.sources, key=repr):
        same = F.lit(True)
        for name, value in zip(_SOURCE, source, strict=True):
            same = same & F.col(name).eqNullSafe(F.lit(value))
        own = own | same
    found = events.where(own & F.col("kind").isin(*CHANGES, "truncate"))
    return found.withColumn("origin", F.expr("concat_ws('.', database, source_schema, source_table)"))
