"""Tables that nobody declared: names that never change, keys as events tell them. No JVM."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sqlmesh_like.cdc.sources.discover import discover, with_discovered
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.project.nodes import Target
from tests.unit.cdc.test_ods_layout import source, table


def place_in(root: Path, *declared: str, discover: bool = True) -> SourcePaths:
    tables = (table(name) for name in declared)
    return SourcePaths(Target("p", "t", "spark", warehouse=str(root)), source(*tables, discover=discover))


def test_a_table_keeps_its_name_whatever_is_found_later(tmp_path: Path) -> None:
    first = discover(place_in(tmp_path, "t"), {("db", None, "orders"): ["id", "line no"]})
    assert [each.name for each in first.source.tables] == ["t", "orders"]
    newest = first.source.tables[-1]
    assert newest.ingest is not None
    assert (newest.ingest.primary_key, newest.ingest.database, str(newest.table)) == (
        ("id", "line_no"),
        "db",
        "ods.orders",
    )
    later = discover(first, {("db", None, "orders"): ["x"], ("other", None, "orders"): ["id"], ("x", "s", "t"): ["id"]})
    assert [each.name for each in later.source.tables] == ["t", "orders", "other_orders", "s_t"]
    again = with_discovered(place_in(tmp_path, "t"))
    assert again.source.tables == later.source.tables
    assert with_discovered(again).source.tables == again.source.tables
    assert with_discovered(place_in(tmp_path, "t", discover=False)).source.tables == (table("t"),)


def test_a_declaration_goes_first(tmp_path: Path) -> None:
    discover(place_in(tmp_path), {("db", None, "orders"): ["id"]})
    declared = place_in(tmp_path, "orders")
    assert with_discovered(declared).source.tables == declared.source.tables


def test_a_table_of_the_lake_is_nobodys_to_take(tmp_path: Path) -> None:
    properties = tmp_path / "ods" / "orders" / ".hoodie" / "hoodie.properties"
    properties.parent.mkdir(parents=True)
    properties.write_text("hoodie.table.type=COPY_ON_WRITE\n")
    discovered = discover(place_in(tmp_path), {("db", None, "orders"): ["id"]})
    assert [each.name for each in discovered.source.tables] == ["db_orders"]


def test_a_name_with_signs_is_matched_as_it_is(tmp_path: Path) -> None:
    discovered = discover(place_in(tmp_path), {("db", None, "a.b$"): ["id"]})
    assert [(each.name, each.ingest and each.ingest.table) for each in discovered.source.tables] == [("a_b_", "a.b$")]
    assert discover(discovered, {("db", None, "a.b$"): ["id"]}).source.tables == discovered.source.tables
    assert replace(discovered, source=discovered.source) == discovered
