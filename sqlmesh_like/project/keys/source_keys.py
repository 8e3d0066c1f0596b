"""The keys of `sources:`, their tables, `ingest:` blocks and `freshness:`."""

from __future__ import annotations

from typing import get_args

from sqlmesh_like.project.keys.column_keys import COLUMN_KEYS, data_tests
from sqlmesh_like.project.keys.database_keys import DATABASE
from sqlmesh_like.project.keys.freshness_keys import FRESHNESS
from sqlmesh_like.project.keys.registry_keys import REGISTRY
from sqlmesh_like.project.keys.shape import Form, Key, Shape
from sqlmesh_like.project.keys.time_zones import time_zone
from sqlmesh_like.project.keys.value_types import (
    NO_EFFECT_ON_QUOTES,
    choice,
    count,
    custom,
    duration,
    each,
    entry,
    flag,
    plain_mapping,
    settings,
    text,
    texts,
    unchecked_value,
    without_effect,
)
from sqlmesh_like.project.nodes import CdcFormat, TableType, TimeUnit
from sqlmesh_like.project.reading.yaml_node import YamlNode

_NAME = Key(text, is_required=True, help="Its name.", example="shop")
_DESCRIPTION = Key(text, help="What it is, in Markdown; `{{ doc('name') }}` quotes a doc block.", example="Orders.")
_META = Key(plain_mapping, help="Any values of the project's own.", example={"owner": "sales"})
_TAGS = Key(texts, help="Tags to select by.", example=["nightly"])
_NO_QUERY = Key(
    unchecked_value("SQL", "select max(sold_at) from sales"), help="dbt's; not supported: use loaded_at_field."
)
_NO_SOURCE_TESTS = without_effect("list", ["unique"], "a source has no data tests; its tables have")
_TESTS = Key(data_tests, help="Data tests, as for models.", example=["unique"])


def _offsets(node: YamlNode, key: str) -> object:
    return node.value if isinstance(node.value, dict) else node.choice(key, ("earliest", "latest"))


_FRESHNESS = Key(entry(FRESHNESS), help="When it is stale; null: not checked.",
                 example={"warn_after": {"count": 12, "period": "hour"}})  # fmt: skip
_LOADED_AT = Key(
    text,
    help="SQL for the time when a row was loaded. Default: the time of the table's last commit.",
    example="loaded_at",
)
_UNITS: dict[str, TimeUnit] = {
    "days": "days",
    "seconds": "seconds",
    "millis": "millis",
    "micros": "micros",
    "nanos": "nanos",
    "milliseconds": "millis",
    "microseconds": "micros",
    "nanoseconds": "nanos",
}


def time_unit(node: YamlNode, key: str) -> TimeUnit:
    """A unit of time, also by its long name."""
    return _UNITS[node.choice(key, tuple(_UNITS))]


_UNIT = Form(
    time_unit, " | ".join(f"`{unit}`" for unit in get_args(TimeUnit)), {"enum": list(_UNITS)}, example="millis"
)
TIME_ZONE = Form(time_zone, "name of a time zone", {"type": "string"}, example="Europe/Berlin")
SOURCE_CONFIG = Shape("the config of a source", {
    "enabled": Key(flag, True, help="Whether it is part of the project.", example=False),
    "tags": _TAGS, "meta": _META,
    "event_time": Key(text, help="The column to which `begin` of a microbatch model applies.", example="created_at"),
    "freshness": _FRESHNESS, "loaded_at_field": _LOADED_AT,
}, others="take")  # fmt: skip
_CONFIG = Key(entry(SOURCE_CONFIG), help="Settings.", example={"enabled": False})
_ZERO_DATES = Form(
    lambda node, key: node.choice(key, ("dead_letter", "null")),
    "`dead_letter` | `null`",
    {"enum": ["dead_letter", "null", None]},
    example="null",
)
ENCODINGS = (
    *("utf-8", "iso-8859-1", "iso-8859-2", "iso-8859-15", "windows-1250", "windows-1251", "windows-1252"),
    *("gb18030", "big5", "shift_jis", "euc-jp", "euc-kr"),
)
"""Names that Java and Python have for an encoding in which no other character has the byte of a line feed."""
CSV = Shape("csv", {
    "header": Key(flag, False, help="Whether the first record names the columns (DMS: AddColumnName). "
                  "Otherwise they are those under `columns:`.", example=True),
    "null_value": Key(text, "NULL", help="What stands for NULL (DMS: CsvNullValue).", example=""),
    "delimiter": Key(text, ",", help="The sign between values (DMS: CsvDelimiter).", example=";"),
    "encoding": Key(choice(*ENCODINGS), "utf-8", help="How the files spell characters as bytes.",
                    example="windows-1252"),
})  # fmt: skip
FILES = Shape("files", {
    "csv": Key(entry(CSV), help="How CSV files (`format: dms` or `rows`) are written.", example={"header": True}),
    "path": Key(text, is_required=True, help="A glob relative to the project, an absolute glob or a URI.",
                example="landing/shop/*.jsonl"),
    "max_files_per_batch": Key(count(), help="Largest number of files in a batch. Default: all pending files.",
                               example=100),
})  # fmt: skip
KAFKA = Shape("kafka", {
    "bootstrap_servers": Key(text, is_required=True, help="The brokers.", example="localhost:9092"),
    "topics": Key(texts, help="The topics.", example=["cdc_all"]),
    "topic_pattern": Key(text, help="A regular expression for topics, instead of `topics`.", example=r"shop\..*"),
    "starting_offsets": Key(
        Form(_offsets, "`earliest` | `latest` | offsets", {"anyOf": [{"enum": ["earliest", "latest"]},
                                                                     {"type": "object"}]}),
        help="Where the first run begins; offsets are given by topic and partition.", example="earliest"),
    "options": Key(plain_mapping, help="Options of the Kafka client, or of Spark's Kafka source.",
                   example={"security.protocol": "SSL"}),
})  # fmt: skip
STREAM = Shape("ingest", {
    "format": Key(choice(*get_args(CdcFormat)), help="What writes the events; not needed for `database`.",
                  example="debezium"),
    "files": Key(entry(FILES), help="Events in files; alternative to `kafka`.", example={"path": "landing/*.jsonl"}),
    "kafka": Key(entry(KAFKA), help="Events in topics; alternative to `files`.",
                 example={"bootstrap_servers": "localhost:9092", "topics": ["cdc_all"]}),
    "database": Key(entry(DATABASE), help="A database whose tables and log are read; alternative to `kafka`.",
                    example={"url": "mysql://sml@localhost:3306/shop"}),
    "registry": Key(entry(REGISTRY), help="For events in Avro or Protobuf: the schema registry of the topics.",
                    example={"url": "http://localhost:8081"}),
    "trigger": Key(duration, "60 seconds",
                   help="Time between batches of --continuous.", example="5 minutes"),
    "max_events_per_batch": Key(count(), help="For Kafka and databases: most events in a batch.", example=100000),
    "concurrency": Key(count(), 4, help="Number of tables written in parallel.", example=8),
    "on_schema_change": Key(choice("evolve", "lenient", "ignore", "fail"), "evolve",
                            help="What happens to columns that are new or have another type.", example="fail"),
    "on_bad_record": Key(choice("dead_letter", "fail"), "dead_letter",
                         help="What happens to an event that cannot be decoded.", example="fail"),
    "unavailable_value_placeholder": Key(
        text, "__debezium_unavailable_value", example="__unchanged__",
        help="For Debezium: the connector's `unavailable.value.placeholder`, if it is set."),
    "zero_dates": Key(_ZERO_DATES, "dead_letter", help="What a date `0000-00-00` of MySQL becomes.", example="null"),
    "time_zone": Key(TIME_ZONE, help="The zone of its local times (types without a zone), which are stored in UTC. "
                     "Default: UTC.", example="Europe/Berlin"),
    "discover": Key(flag, False, help="Whether tables that are not declared are ingested too.", example=True),
})  # fmt: skip
PARTITION_BY = Shape("partition_by", {
    "column": Key(text, is_required=True, help="The column that it is derived from.", example="create_time"),
    "format": Key(text, help="A date pattern. Default: the value itself.", example="yyyyMM"),
    "as": Key(text, help="Name of the partition column; required with a format.", example="year_month"),
})  # fmt: skip
INGEST_TABLE = Shape("the ingest of a table", {
    "database": Key(text, help="Database of the source, or a regular expression for several. Default: any.",
                    example="shop_db"),
    "table": Key(text, help="Table of the source, or a regular expression for several. Default: the name.",
                 example=r"user_\d+"),
    "primary_key": Key(texts, is_required=True, help="Columns that identify a row; `[]` if there are none.",
                       example=["id"]),
    "order_by": Key(texts, help="Columns that decide which version of a row is newer. Default: the order of the log.",
                    example=["modify_time"]),
    "partition_by": Key(custom("column or mapping", {"type": "string"}, PARTITION_BY),
                        help="Partitioning of the table.",
                        example={"column": "create_time", "format": "yyyyMM", "as": "year_month"}),
    "table_type": Key(choice(*get_args(TableType)), "cow", help="Hudi's table type.", example="mor"),
    "deletes": Key(choice("hard", "soft", "retention"), "hard",
                   help="Whether a delete removes the row, sets `_sml_deleted`, or leaves the row as it is.",
                   example="soft"),
    "updates": Key(choice("full", "partial"), "full",
                   help="partial: columns that an update does not contain have not changed.", example="partial"),
    "zero_dates": Key(_ZERO_DATES, help="The same for one table. Default: as its source.", example="null"),
    "time_zone": Key(TIME_ZONE, help="The same for one table. Default: as its source.", example="Asia/Shanghai"),
    "origin": Key(text, help="A column for the name of the source table a row came from.", example="shard"),
    "unit": Key(_UNIT, example="millis",
                help="What a number in a timestamp column counts since 1970, where neither its event nor the `unit` of"
                     " the column says it."),
    "hudi": Key(settings, help="Options of Hudi's writer.", example={"hoodie.parquet.compression.codec": "zstd"}),
})  # fmt: skip
SOURCE_COLUMN = Shape("a column", {
    **COLUMN_KEYS,
    "renamed_from": Key(text, help="Its former name in the source.", example="mail"),
    "unit": Key(_UNIT, example="micros",
                help="What a number counts, where its event does not say it: since 1970 in a date or timestamp column,"
                     " since midnight (and not `days`) in a string column."),
    "time_zone": Key(TIME_ZONE, example="UTC",
                     help="The zone of its values, where they have none. Default: as its table."),
}, others="warn")  # fmt: skip
TABLE = Shape("a source table", {
    "name": Key(text, is_required=True, help="Its name in source().", example="orders"),
    "identifier": Key(text, help="Name of the table, if it differs.", example="orders_v2"),
    "location": Key(text, help="Path or URI of a table that this project does not write.", example="s3://lake/orders"),
    "format": Key(choice("hudi", "parquet", "csv", "json", "delta"), "hudi", help="Format of `location`.",
                  example="parquet"),
    "ingest": Key(entry(INGEST_TABLE), help="How its events are written to a table.", example={"primary_key": ["id"]}),
    "columns": Key(each(SOURCE_COLUMN), help="Its columns; types only if events carry none or others are wanted.",
                   example=[{"name": "created_at", "data_type": "timestamp"}]),
    "description": _DESCRIPTION, "meta": _META, "tags": _TAGS, "config": _CONFIG, "freshness": _FRESHNESS,
    "loaded_at_field": _LOADED_AT, "loaded_at_query": _NO_QUERY,
    "loader": Key(text, help="The tool that loads its rows.", example="airbyte"),
    "tests": _TESTS, "data_tests": _TESTS, "quoting": NO_EFFECT_ON_QUOTES,
    "external": without_effect("mapping", {"location": "s3://lake/orders"}, "give the table's `location` and `format`"),
}, others="warn")  # fmt: skip
SOURCE = Shape("a source", {
    "name": _NAME,
    "schema": Key(text, help="Schema of its tables. Default: the name.", example="ods"),
    "ingest": Key(entry(STREAM), help="Where its events come from.",
                  example={"format": "debezium", "files": {"path": "landing/*.jsonl"}}),
    "tables": Key(each(TABLE), help="Its tables.", example=[{"name": "orders"}]),
    "description": _DESCRIPTION, "meta": _META, "tags": _TAGS, "config": _CONFIG, "freshness": _FRESHNESS,
    "loaded_at_field": _LOADED_AT, "loaded_at_query": _NO_QUERY,
    "loader": Key(text, help="The tool that loads its rows.", example="airbyte"),
    "database": without_effect("text", "raw", "a target has one catalog; see `schema` and `location`"),
    "quoting": NO_EFFECT_ON_QUOTES,
    "overrides": without_effect("text", "shop_package", "the package's source of that name stays as it is"),
    "tests": _NO_SOURCE_TESTS, "data_tests": _NO_SOURCE_TESTS,
}, others="warn")  # fmt: skip
