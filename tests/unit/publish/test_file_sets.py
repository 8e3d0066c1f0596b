"""Files of a Parquet folder are shown together, by one pointer, on this machine and on a store."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.project.publishing import Destination
from sqlmesh_like.publish.freed_space import drop_freed_space
from sqlmesh_like.publish.parquet_file import ParquetStore
from tests.published import Killed, Table

Shown = dict[str, list[int]]
PLAIN = pa.schema([("id", pa.int32())])


class Shop:
    """Two tables `a` and `b` on their way to one folder; after each commit both have one row more."""

    def __init__(self, place: str) -> None:
        self.to = Destination("files", "parquet", place)
        self.tables = {name: Table(PLAIN) for name in "ab"}
        self.place = folder(place).fs, folder(place).path

    def commit(self) -> list[int]:
        """The rows of each table now."""
        for table in self.tables.values():
            table.commit({str(len(table.rows)): (len(table.rows),)})
        return sorted(number for (number,) in table.rows.values())

    def send(self, name: str, store: ParquetStore) -> None:
        table, old = self.tables[name], store.read_published(name)
        follows = old is not None and old.frontier is not None
        export = table.since(int(old.frontier)) if old and old.frontier and follows else table.whole()
        store.write(name, export, old, table.shown)

    def release(self, *names: str) -> None:
        store = ParquetStore(self.to)
        with store.together():
            for name in names or "ab":
                self.send(name, store)

    def read(self, path: str) -> list[int]:
        fs, root = self.place
        with fs.open(f"{root}/{path}", "rb") as file:
            return sorted(parquet.read_table(file).column("id").to_pylist())

    def plain(self) -> Shown:
        """By the names that files have always had."""
        return {name: self.read(f"{name}.parquet") for name in "ab"}

    def pointed(self) -> Shown:
        """By the pointer."""
        fs, root = self.place
        if fs.exists(f"{root}/current.json"):
            tables = json.loads(fs.cat_file(f"{root}/current.json"))["tables"]
            return {name: self.read(path) for name, path in tables.items()}
        return {name: self.read(f"current/{name}.parquet") for name in "ab"}

    def files(self) -> list[str]:
        fs, root = self.place
        return [path for path in fs.find(root) if path.endswith(".parquet") and "/_sml_sets/" in path]


@pytest.fixture(params=["disk", "store"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    return Shop(str(tmp_path / "out") if request.param == "disk" else f"memory://{uuid.uuid4()}")


def test_tables_change_together_and_not_at_all_where_one_fails(shop: Shop) -> None:
    require_whole_releases(shop)


def require_whole_releases(shop: Shop) -> None:
    """Publish releases, some of which fail: both ways of reading show one of them."""
    one = shop.commit()
    shop.release()
    assert shop.pointed() == shop.plain() == {"a": one, "b": one}
    two, store = shop.commit(), ParquetStore(shop.to)

    def fail() -> None:
        with store.together():
            shop.send("a", store)
            assert store.read_published("a") == shop.tables["a"].shown, "within it, what was written is seen"
            assert shop.pointed() == shop.plain() == {"a": one, "b": one}
            raise Killed

    with pytest.raises(Killed):
        fail()
    assert shop.pointed() == shop.plain() == {"a": one, "b": one}
    shop.release()
    assert shop.pointed() == shop.plain() == {"a": two, "b": two}
    shop.commit()
    shop.release("a")  # the other one stays what it is
    assert shop.pointed() == shop.plain() == {"a": [*two, 2], "b": two}
    for _ in range(3):
        shop.commit()
        shop.release()
    assert len(shop.files()) == 4, "the current files, and those before"


def test_a_folder_of_single_files_gets_the_pointer_and_keeps_it(shop: Shop) -> None:
    one, store = shop.commit(), ParquetStore(shop.to)
    for name in "ab":
        shop.send(name, store)
    assert not shop.files() and shop.plain() == {"a": one, "b": one}
    shop.commit()
    shop.release("a")
    assert shop.pointed() == shop.plain() == {"a": [0, 1], "b": one}
    shop.send("b", ParquetStore(shop.to))  # alone, as where releases were turned off
    assert shop.pointed() == shop.plain() == {"a": [0, 1], "b": [0, 1]}


def test_a_file_of_somebody_else_is_left_alone(shop: Shop) -> None:
    fs, root = shop.place
    shop.commit()
    shop.release("a")
    fs.makedirs(root, exist_ok=True)
    with fs.open(f"{root}/b.parquet", "wb") as file:
        parquet.write_table(pa.table({"id": [7]}), file)
    shop.commit()
    with pytest.raises(NodeError, match=r"b\.parquet that no publication made"):
        shop.release("a", "b")
    assert shop.read("b.parquet") == [7] and shop.read("a.parquet") == [0]
    shop.release("a")
    assert shop.read("b.parquet") == [7] and shop.read("a.parquet") == [0, 1]


def test_a_pointer_that_does_not_name_files_is_refused() -> None:
    shop = Shop(f"memory://{uuid.uuid4()}")
    shop.commit()
    shop.release()
    fs, root = shop.place
    for content in (b"{", b"[]", b'{"version": 9, "tables": {}}'):
        with fs.open(f"{root}/current.json", "wb") as file:
            file.write(content)
        with pytest.raises(NodeError, match=r"current\.json of the folder does not name its files"):
            ParquetStore(shop.to).read_published("a")


def test_rows_that_were_erased_are_in_no_file_of_the_folder(tmp_path: Path) -> None:
    shop = Shop(str(tmp_path))
    for _ in range(2):
        shop.commit()
        shop.release()
    assert len(shop.files()) == 4
    drop_freed_space(shop.to)
    assert len(shop.files()) == 2 and shop.pointed() == shop.plain() == {"a": [0, 1], "b": [0, 1]}
