"""Which rows get the default of an added column: no JVM."""

from __future__ import annotations

from sqlmesh_like.cdc.formats.debezium import DEBEZIUM_MESSAGES, PLAIN
from sqlmesh_like.cdc.formats.row_images import EventShape
from sqlmesh_like.cdc.formats.source_types import SourceField
from sqlmesh_like.cdc.merge.defaults import _is_before, defaults_of_new_columns
from sqlmesh_like.cdc.schema.schema_evolution import evolve_schema
from sqlmesh_like.errors import Location
from sqlmesh_like.names import Column, TableName
from sqlmesh_like.project.nodes import IngestTable, SourceTable

INGEST = IngestTable(database="db", table="t", primary_key=("id",))
TABLE = SourceTable(
    "source.p.s.t", "s", "t", TableName("ods", "t"), None, "hudi", INGEST, (), "", (), {}, Location("x.yml", 1, 1)
)  # fmt: skip
STORED = (Column("_sml_key", "string"), Column("id", "int"), Column("n", "int"))


def defaults_of(policy: str, *fields: SourceField) -> dict[str, str]:
    shape = EventShape(DEBEZIUM_MESSAGES[PLAIN], (SourceField("id", "int"), *fields))
    settled = evolve_schema(TABLE, INGEST, STORED, [shape], policy)  # type: ignore[arg-type]
    return defaults_of_new_columns(settled.layout, STORED, settled.shapes)


def test_only_a_new_column_brings_its_default() -> None:
    defaults = defaults_of(
        "evolve", SourceField("n", "int", default="1"), SourceField("age", "int", default="18"), SourceField("x", "int")
    )
    assert defaults == {"age": "cast(try_cast('18' as int) as int)"}


def test_a_column_of_another_type_is_no_new_one() -> None:
    changed = SourceField("n", "boolean", default="true")
    assert defaults_of("lenient", changed) == {}
    assert defaults_of("ignore", SourceField("age", "int", default="18")) == {}


def test_events_before_the_first_with_the_column_are_told_by_their_part_of_the_log() -> None:
    sql = _is_before({"t|000001": "t|000001|5", "t|000002": "t|000002|7"})
    assert sql == (
        "case when startswith(position, 't|000001') then position < 't|000001|5'"
        " when startswith(position, 't|000002') then position < 't|000002|7' else true end"
    )
    assert _is_before({"": "5"}) == "case when true then position < '5' else true end"
