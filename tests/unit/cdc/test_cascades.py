"""Which events make foreign keys act, and which rows these may have changed: without a database."""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest

from sqlmesh_like.cdc.sources.database.cascades import affected_rows as rules
from sqlmesh_like.cdc.sources.database.cascades.affected_rows import AffectedRows, affected_rows
from sqlmesh_like.cdc.sources.database.cascades.firing import Fired, RawValues, fired_keys
from sqlmesh_like.cdc.sources.database.cascades.foreign_keys import ForeignKey, key_from, unread_parents
from sqlmesh_like.cdc.sources.database.cascades.row_images import RowImage, RowImages, Texts
from sqlmesh_like.cdc.sources.database.comparison.columns import ComparedColumns
from sqlmesh_like.cdc.sources.database.comparison.compared_part import ComparedPart
from sqlmesh_like.cdc.sources.database.comparison.dialects import CanonicalColumn
from sqlmesh_like.cdc.sources.database.comparison.lake_rows import LakeRows
from sqlmesh_like.cdc.sources.database.comparison.side import Side
from sqlmesh_like.cdc.sources.database.comparison.value_kinds import Kind
from sqlmesh_like.cdc.sources.database.server import Table
from sqlmesh_like.cdc.sources.database.spool import Spool
from sqlmesh_like.plan.history import TableState


def foreign_key(child: str, columns: str, parent: str, referenced: str = "id", rule: str = "CASCADE") -> ForeignKey:
    own, others = tuple(columns.split()), tuple(referenced.split())
    return ForeignKey(child, f"{child}_{columns}", own, "shop", parent, others, rule, "RESTRICT", (None,) * len(own))


ITEM, PART, NODE = (
    foreign_key("item", "grp", "grp"),
    foreign_key("part", "item", "item"),
    foreign_key("node", "up", "node"),
)


def segment(folder: Path, number: int, *events: tuple[str, str, object, object, int]) -> Path:
    """Events: operation, table, row before and after, position in the log (0: not of the log)."""
    (folder / "log").mkdir(exist_ok=True)
    path = folder / "log" / f"{number:012d}.gz"
    lines = (
        json.dumps(
            {"payload": {"op": op, "before": before, "after": after,
                         "source": {"schema": None, "table": name, "file": "b", "pos": pos, "row": 0,
                                    **({"connector": "mariadb"} if pos else {})}}},
            separators=(",", ":"),
        )
        for op, name, before, after, pos in events
    )  # fmt: skip
    path.write_bytes(gzip.compress("".join(f"{line}\t{{}}\n" for line in lines).encode()))
    return path


def test_deletes_and_changes_of_referenced_values_make_keys_act(tmp_path: Path) -> None:
    code = replace(foreign_key("item", "code", "grp", "code"), on_update="CASCADE")
    path = segment(
        tmp_path, 1,
        ("c", "grp", None, {"id": 1, "code": "a"}, 1),
        ("r", "grp", None, {"id": 2, "code": "b"}, 2),
        ("u", "grp", {"id": 1, "code": "a"}, {"id": 1, "code": "c"}, 3),
        ("u", "item", {"id": 9, "code": "a"}, {"id": 8, "code": "c"}, 4),
        ("d", "GRP", {"ID": 5, "code": "e"}, None, 5),
    )  # fmt: skip
    fired, last = fired_keys([path], [ITEM, code])
    assert fired == {ITEM: Fired({(5,)}), code: Fired({("a",), ("e",)}, has_updates=True)}
    assert last == "GRP:b:5:0"
    assert fired_keys([path], [foreign_key("x", "y", "item", "other")])[0] == {}


def test_a_delete_with_an_insert_at_its_position_is_an_update_also_across_segments(tmp_path: Path) -> None:
    delete, insert = ("d", "grp", {"id": 1}, None, 7), ("c", "grp", None, {"id": 2}, 7)
    fired, _ = fired_keys([segment(tmp_path, 1, delete, insert)], [ITEM])
    assert fired[ITEM] == Fired({(1,)}, has_updates=True)
    fired, last = fired_keys([segment(tmp_path, 1, delete)], [ITEM])
    assert fired[ITEM] == Fired({(1,)})
    fired, _ = fired_keys([segment(tmp_path, 2, insert)], [ITEM], last)
    assert fired[ITEM] == Fired(set(), has_updates=True)
    later = ("c", "grp", None, {"id": 2}, 8)  # as REPLACE has it
    assert not fired_keys([segment(tmp_path, 1, delete, later)], [ITEM])[0][ITEM].has_updates


@dataclass(frozen=True)
class Rows:
    """Rows of a table, by hand."""

    rows: tuple[dict[str, str | None], ...]
    key_names: tuple[str, ...] = ("id",)

    def texts_of(self, key: ForeignKey, values: RawValues) -> Texts | None:
        return None if None in values else tuple(map(str, values))

    def having(self, key: ForeignKey, wanted: Collection[Texts]) -> Iterable[RowImage]:
        for row in self.rows:
            image = RowImage(tuple(row[name] for name in self.key_names), tuple(row.items()))
            if image.texts(key.columns) in wanted:
                yield image


def rows_of(*rows: str, key: str = "id") -> Rows:
    """Rows as `id=1 up=2`."""
    parsed = (dict(pair.split("=") for pair in row.split()) for row in rows)
    return Rows(tuple({name: text or None for name, text in row.items()} for row in parsed), tuple(key.split()))


def affected(tables: dict[str, Rows], keys: list[ForeignKey], **fired: Fired) -> AffectedRows:
    by_child = {key.child: key for key in keys}
    return affected_rows({by_child[name]: what for name, what in fired.items()}, keys, tables)


def test_rows_are_followed_through_levels_and_trees() -> None:
    tables = {
        "item": rows_of("id=1 grp=1", "id=2 grp=1", "id=3 grp=2", "id=4 grp="),
        "part": rows_of("id=10 item=1", "id=11 item=3"),
        "node": rows_of("id=1 up=", "id=2 up=1", "id=3 up=2", "id=4 up=3", "id=5 up="),
    }
    result = affected(tables, [ITEM, PART, NODE], item=Fired({(1,), (None,)}), node=Fired({(2,)}))
    assert result.keys == {"item": {("1",), ("2",)}, "part": {("10",)}, "node": {("3",), ("4",)}}
    assert result.whole == {}


def test_a_value_that_was_set_to_null_is_followed_no_further_unless_it_is_referenced() -> None:
    tables = {"item": rows_of("id=1 grp=1"), "part": rows_of("id=10 item=1 grp=1")}
    null = foreign_key("item", "grp", "grp", rule="SET NULL")
    assert affected(tables, [null, PART], item=Fired({(1,)})).keys == {"item": {("1",)}}
    by_group = foreign_key("part", "grp", "item", "grp")
    assert affected(tables, [null, by_group], item=Fired({(1,)})).keys == {"item": {("1",)}, "part": {("10",)}}


def test_what_known_values_do_not_tell_is_a_whole_table_with_all_that_follow_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Both keys follow an update: what refers to the changed column cannot be found by the values before.
    chain = [replace(each, on_update="CASCADE") for each in (ITEM, foreign_key("part", "item grp", "item", "id grp"))]
    tables = {
        "item": rows_of("id=1 grp=1"), "part": rows_of("id=7 item=1 grp=1"), "label": rows_of("id=1 part=7"),
    }  # fmt: skip
    label = foreign_key("label", "part", "part")
    result = affected(tables, [*chain, label], item=Fired({(1,)}, has_updates=True))
    assert result.keys == {"item": {("1",)}} and result.whole.keys() == {"part", "label"}
    assert affected(tables, [*chain, label], item=Fired({(1,)})).whole == {}
    # A primary key that a foreign key changes is another one afterwards.
    own = {"item": rows_of("id=1 grp=1", key="grp id")}
    assert "changes its primary key" in affected(own, chain[:1], item=Fired({(1,)}, has_updates=True)).whole["item"]
    assert affected(own, chain[:1], item=Fired({(1,)})).keys == {"item": {("1", "1")}}
    monkeypatch.setattr(rules, "MOST_KEYS", 0)
    assert "more than 0" in affected(tables, [ITEM], item=Fired({(1,)})).whole["item"]


def test_rows_are_found_in_events_that_the_lake_has_not_read_or_read_too_early(tmp_path: Path) -> None:
    segment(tmp_path, 1, ("c", "item", None, {"id": 1, "grp": "AQ==", "code": "x"}, 1))
    segment(tmp_path, 2, ("u", "item", {"id": 2, "grp": "AQ==", "code": "É"}, {"id": 2, "grp": None, "code": "b"}, 2))
    segment(tmp_path, 4, ("d", "item", {"id": 4}, None, 0))  # as a look-up adds it
    segment(tmp_path, 3, ("d", "item", {"id": 3, "grp": "Ag==", "code": "Ab "}, None, 3))
    columns = (
        CanonicalColumn("id", Kind.WHOLE, "int", "int(11)"),
        CanonicalColumn("grp", Kind.WHOLE, "decimal(20,0)", "bigint(20) unsigned"),
        CanonicalColumn("code", Kind.TEXT, "string", "varchar(9)"),
    )
    lake = LakeRows(cast("object", None), TableState("uri", "missing"))  # type: ignore[arg-type]

    def having(key: ForeignKey, value: object, read: set[int], window: set[int]) -> set[str | None]:
        part = ComparedPart(
            Table(None, "item", ("id",)), lake, ComparedColumns(columns, columns, (0,), ()), cast(Side, None),
            frozenset(read),
        )  # fmt: skip
        images = RowImages(Spool(tmp_path), part, ("id", "grp", "code"), frozenset(window))
        texts = images.texts_of(key, (value,))
        assert texts is not None
        return {image.key[0] for image in images.having(key, {texts})}

    assert having(ITEM, "AQ==", set(), {3}) == {"1", "2"}
    assert having(ITEM, "AQ==", {1}, {3}) == {"2"}
    assert having(ITEM, "AQ==", {1, 2, 3}, {3}) == {"3"}  # whatever it had before: the lake no longer shows that
    blind = replace(foreign_key("item", "code", "grp", "code"), collations=("utf8mb4_general_ci",))
    assert having(blind, "aB", set(), {3}) == {"2", "3"}  # É may be the same as any
    exact = replace(blind, collations=("utf8mb4_bin",))
    assert having(exact, "Ab", set(), {3}) == {"3"}
    for odd in ("utf8mb4_lithuanian_ci", "utf8mb4_da_0900_ai_ci", "utf8mb4_uca1400_swedish_ai_ci"):
        with pytest.raises(rules.NotByKeyError, match="has the collation"):
            having(replace(blind, collations=(odd,)), "aB", set(), {3})
    with pytest.raises(rules.NotByKeyError, match="other signs"):
        having(blind, "é", set(), {3})


def test_a_parent_that_is_not_read_is_named() -> None:
    elsewhere = replace(NODE, database="other")
    assert unread_parents([ITEM, PART, elsewhere], "shop", ["item", "part", "node"]) == (ITEM, elsewhere)
    assert key_from(json.loads(json.dumps(ITEM.to_json()))) == ITEM
