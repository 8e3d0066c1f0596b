"""The next file of a file group: which rows it has, what is counted, and what is refused."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.writer import file_merge
from sqlmesh_like.hudi.writer.arrow_schema import UnsupportedRowsError
from sqlmesh_like.hudi.writer.bucket_hash import bucket_of
from sqlmesh_like.hudi.writer.file_merge import GroupMerge, merge_file
from sqlmesh_like.names import HUDI_COLUMNS, IS_DELETED

SCHEMA = pa.schema(
    [*((name, pa.string()) for name in HUDI_COLUMNS), pa.field("k", pa.string(), nullable=False), ("v", pa.int64()),
     ("o", pa.string()), pa.field(IS_DELETED, pa.bool_(), nullable=False)]
)  # fmt: skip
OWN = [name for name in SCHEMA.names if name not in HUDI_COLUMNS]
Action = tuple[str, int | None, str | None, bool]


def actions(*rows: Action) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [[], [], [], []]
    wanted = pa.schema([SCHEMA.field(name) for name in OWN])
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, wanted, strict=True)], wanted)


def merged(
    root: Path, instant: str, *rows: Action, before: str | None = None, ordering: tuple[str, ...] = ()
) -> file_merge.MergedFile | None:
    path = f"f_0-0-0_{before}.parquet" if before else None
    merge = GroupMerge(folder(str(root)), "", "f", instant, 0, actions(*rows), "k", ordering, before, path)
    return merge_file(merge, SCHEMA, {"parquet.avro.schema": "{}"})


def shown(root: Path, instant: str) -> list[tuple[str, int | None, str]]:
    rows = pq.read_table(root / f"f_0-0-0_{instant}.parquet").to_pylist()
    assert {row["_hoodie_file_name"] for row in rows} <= {f"f_0-0-0_{instant}.parquet"}
    assert all(row["_hoodie_record_key"] == row["k"] for row in rows)
    return sorted((row["k"], row["v"], row["_hoodie_commit_time"]) for row in rows)


@pytest.mark.parametrize("ordering", [(), ("o",), ("o", "v")])
def test_rows_follow_the_actions_whatever_the_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ordering: tuple[str, ...]
) -> None:
    dice = random.Random(len(ordering))
    monkeypatch.setattr(file_merge, "_PIECE", 3)
    monkeypatch.setattr(file_merge, "_ROW_GROUP", 4)
    known: dict[str, tuple[int, str, str]] = {}
    before = None
    for number in range(40):
        instant = f"{number:017}"
        keys = dice.sample("abcdefghijklmnop", dice.randrange(1, 9))
        rows = [(key, dice.randrange(4), dice.choice("xyz"), dice.random() < 0.4) for key in keys]
        result = merged(tmp_path, instant, *rows, before=before, ordering=ordering)
        inserts = updates = deletes = 0
        left, entered = [], []
        for key, value, order, is_gone in rows:
            old = known.get(key)
            ranks = {"o": (order, old[1] if old else None), "v": (value, old[0] if old else None)}
            if old and [ranks[name][0] for name in ordering] < [ranks[name][1] for name in ordering]:
                continue
            inserts, updates = inserts + (not old and not is_gone), updates + (old is not None and not is_gone)
            deletes += old is not None and is_gone
            left += [key] if old else []
            if is_gone:
                known.pop(key, None)
            else:
                known[key] = (value, order, instant)
                entered.append(key)
        if result is None:
            assert not left and not entered
            continue
        assert (result.inserts, result.updates, result.deletes, result.rows) == (inserts, updates, deletes, len(known))
        assert sorted(result.left.column("k").to_pylist()) == sorted(left)
        assert sorted(result.entered.column("k").to_pylist()) == sorted(entered)
        before = instant
        assert shown(tmp_path, before) == sorted((key, value, at) for key, (value, _, at) in known.items())
    assert before is not None and int(before) > 20


def test_a_new_file_of_deletes_alone_is_not_made(tmp_path: Path) -> None:
    assert merged(tmp_path, "1", ("a", 1, "x", True)) is None
    assert not list(tmp_path.iterdir())


def test_the_last_row_may_go(tmp_path: Path) -> None:
    merged(tmp_path, "1", ("a", 1, "x", False))
    result = merged(tmp_path, "2", ("a", None, None, True), before="1")
    assert result is not None and (result.rows, result.deletes) == (0, 1)
    footer = pq.read_metadata(tmp_path / result.path).metadata
    assert footer[b"parquet.avro.schema"] == b"{}" and b"hoodie_min_record_key" not in footer


def test_an_older_file_gets_new_columns_as_null_and_wider_numbers(tmp_path: Path) -> None:
    merged(tmp_path, "1", ("a", 1, "x", False), ("b", 2, "x", False))
    old = pq.read_table(tmp_path / "f_0-0-0_1.parquet")
    narrow = old.drop_columns(["o"]).set_column(6, "v", old.column("v").cast(pa.int32()))
    pq.write_table(narrow, tmp_path / "f_0-0-0_1.parquet")
    assert merged(tmp_path, "2", ("a", 5, "x", False), before="1") is not None
    rows = pq.read_table(tmp_path / "f_0-0-0_2.parquet")
    assert sorted(zip(rows["k"].to_pylist(), rows["v"].to_pylist(), rows["o"].to_pylist(), strict=True)) == [
        ("a", 5, "x"),
        ("b", 2, None),
    ]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.append_column("more", pa.array([1])), "the column more"),
        (lambda t: t.set_column(6, "v", t.column("v").cast(pa.string())), "v as string"),
        (lambda t: t.drop_columns(["k"]), "without k"),
        (lambda t: pa.concat_tables([t, t]), "two rows of a key"),
    ],
)
def test_files_that_are_not_as_expected_are_refused(tmp_path: Path, change: object, says: str) -> None:
    merged(tmp_path, "1", ("a", 1, "x", False))
    pq.write_table(change(pq.read_table(tmp_path / "f_0-0-0_1.parquet")), tmp_path / "f_0-0-0_1.parquet")  # type: ignore[operator]
    with pytest.raises(UnsupportedRowsError, match=says):
        merged(tmp_path, "2", ("a", 5, "x", False), before="1")


@pytest.mark.parametrize("orders", [(None, "x"), ("x", None), ("😀", "x"), ("\ue000", "😀")])
def test_orders_that_java_may_see_otherwise_are_refused(tmp_path: Path, orders: tuple[str | None, str | None]) -> None:
    merged(tmp_path, "1", ("a", 1, orders[0], False))
    with pytest.raises(UnsupportedRowsError, match="Java"):
        merged(tmp_path, "2", ("a", 5, orders[1], False), before="1", ordering=("o",))


def test_a_bucket_is_that_of_javas_hash() -> None:
    # 31 + String.hashCode(), which goes by units of UTF-16: of "😀" 31 * 0xd83d + 0xde00
    assert [bucket_of(key, 1_000_000) for key in ("", "a", "ü", "😀")] == [31, 128, 283, 772_930]
