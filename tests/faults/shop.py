"""A lake whose rows a test knows from its own event log: two tables that change, four models over them, one published.

Changes are committed without Spark (`hudi.writer`), as small ingestions are, and kept here by the commit that has them:
what a model must show follows from the commits that its own record names.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from sqlmesh_like.hudi.history import record_of, table_state
from sqlmesh_like.hudi.table_reader import read_table_rows
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.arrow_schema import file_schema
from sqlmesh_like.hudi.writer.open_commit import remove_abandoned
from sqlmesh_like.hudi.writer.upsert import Upsert, upsert
from sqlmesh_like.names import HUDI_COLUMNS
from tests.faults.first_tables import make_inputs, make_tables

Row = tuple[Any, ...]
Rows = list[Row]
ORDERS, CUSTOMERS = "seed.shop.orders", "seed.shop.customers"
DETAIL, REGION, CUSTOMER, DAILY = (f"model.shop.{name}" for name in ("detail", "region", "customer", "daily"))
MODELS = (DETAIL, REGION, CUSTOMER, DAILY)
_BY_TEST = {"by": "test"}
PUBLISHED = ("bi", "files", "db")

PROFILE = """
lake:
  target: local
  outputs:
    local:
      type: spark
      master: local[2]
      warehouse: warehouse
      schema: dws
      spark: {spark.sql.shuffle.partitions: "1", spark.driver.extraJavaOptions: "-XX:TieredStopAtLevel=1"}
"""
"""Spark on this machine, which starts quickly."""

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\nprofile = "lake"\n',
    "profiles.yml": PROFILE
    + """
      publish:
        bi: {duckdb: serving/bi.duckdb}
        files: {parquet: serving/files}
        db: {url: "sqlite:///serving/db.sqlite"}
""",
    "seeds/orders.csv": "id,customer,amount,day\n0,0,0,2024-01-01\n",
    "seeds/customers.csv": "id,region\n0,none\n",
    "models/detail.sql": "select o.id, o.customer, o.amount, c.region"
    " from {{ ref('orders') }} o join {{ ref('customers') }} c on o.customer = c.id\n",
    "models/region.sql": "{{ config(publish={'to': ['bi', 'files', 'db']}) }}\n"
    "select region, count(*) as n, sum(amount) as total, max(amount) as top from {{ ref('detail') }} group by region\n",
    "models/customer.sql": "select customer, count(distinct day) as days from {{ ref('orders') }} group by customer\n",
    "models/daily.sql": "{{ config(partition_by='day') }}\n"
    "select day, id, amount from {{ ref('orders') }} where amount > 10\n",
}


@dataclass
class Shop:
    """The project below `root`, built once; `rows_at` has the rows of an input by the frontier that shows them.

    `buckets`: of the inputs, from their first rows on.
    """

    root: Path
    rows_at: dict[tuple[str, str], Rows] = field(default_factory=dict)
    changes: int = 0
    buckets: int = 1

    @staticmethod
    def made(root: Path, clock_ahead: timedelta = timedelta()) -> Shop:
        """The project and its tables, kept for `reset`."""
        shop = Shop(root)
        shop.write_files()
        make_tables(root, clock_ahead)
        return shop._kept()

    @staticmethod
    def changed(root: Path, dice: random.Random, changes: int) -> Shop:
        """The project, which publishes nothing, and its tables with so many changes that no model has read."""
        shop = Shop.made(root)
        (root / "models/region.sql").write_text(FILES["models/region.sql"].partition("}}\n")[2])
        for _ in range(changes):
            shop.change(dice)
        return shop

    @staticmethod
    def of_inputs(root: Path) -> Shop:
        """The tables that change alone, without a project."""
        make_inputs(root)
        return Shop(root)._kept()

    def write_files(self) -> None:
        """Give the project its files, also where a test has edited them."""
        for path, text in FILES.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)

    def _kept(self) -> Shop:
        shutil.copytree(self.root / "warehouse", self.root / "kept")
        self.reset()
        return self

    def reset(self) -> None:
        """The lake before its first event."""
        for name in ("warehouse", "serving"):
            shutil.rmtree(self.root / name, ignore_errors=True)
        shutil.copytree(self.root / "kept", self.root / "warehouse")
        self.rows_at.clear()
        for name in (ORDERS, CUSTOMERS):
            self.rows_at[name, self._frontier(name)] = []

    @property
    def most_commits(self) -> int:
        """Of the table that has most."""
        return max(len(self.timeline(name).commit_instants) for name in (ORDERS, CUSTOMERS, *MODELS))

    def timeline(self, unique_id: str) -> Timeline:
        return Timeline(str(self.root / "warehouse" / "dws" / unique_id.rpartition(".")[2]))

    def change(self, dice: random.Random) -> None:
        """One commit to each input, or to one: rows that come, change and go."""
        chosen = dice.choice(((ORDERS,), (CUSTOMERS,), (ORDERS, CUSTOMERS), (ORDERS, CUSTOMERS)))
        for name in chosen:
            self.changes += 1
            self.commit(name, dice)

    def commit(self, name: str, dice: random.Random, metadata: Mapping[str, str] = _BY_TEST) -> None:
        """One commit to an input."""
        rows = {row[0]: row for row in self.rows_at[name, self._frontier(name)]}
        changed: dict[int, Row] = {}
        for _ in range(6):
            key = dice.randint(1, 12 if name == ORDERS else 4)
            if dice.random() < 0.3 and key in rows:
                changed[key] = (*rows.pop(key), True)
            else:
                rows[key] = _order(key, dice) if name == ORDERS else (key, f"r{dice.randint(1, 3)}")
                changed[key] = (*rows[key], False)
        for key, row in list(changed.items()):
            if row[-1] and key in rows:  # gone and back again
                changed[key] = (*rows[key], False)
        self._write(name, list(changed.values()), sorted(rows.values()), metadata)

    def replace_all(self, name: str) -> None:
        """One commit to an input that writes all of its rows anew, as a rebuild does: its file groups end."""
        rows = self.rows_at[name, self._frontier(name)]
        self._write(name, [(*row, False) for row in rows], rows, _BY_TEST, overwrites=True)

    def _write(
        self, name: str, written: Rows, rows: Rows, metadata: Mapping[str, str], *, overwrites: bool = False
    ) -> None:
        """Commit some rows, after which the table has `rows`."""
        timeline, frontier = self.timeline(name), self._frontier(name)
        table = _arrow(timeline, frontier, written)
        result = upsert(Upsert(timeline, frontier, table, self.buckets, metadata, overwrites=overwrites))
        self.rows_at[name, result.frontier] = rows

    def write_unlocked(self, unique_id: str, row: Row) -> None:
        """One commit of a row to a table, by a writer that knows nothing of this project's records and lock."""
        table = self.root / "warehouse" / "dws" / unique_id.rpartition(".")[2]
        copy = self.root / "copy"
        shutil.copytree(table, copy)
        remove_abandoned(copy)
        timeline, before = Timeline(str(copy)), {path for path in copy.rglob("*") if path.is_file()}
        assert timeline.frontier is not None
        upsert(Upsert(timeline, timeline.frontier, _arrow(timeline, timeline.frontier, [row]), 1, {}))
        made = [path for path in copy.rglob("*") if path.is_file() and path not in before]
        for path in sorted(made, key=lambda path: path.suffix == ".commit"):
            shutil.copy(path, table / path.relative_to(copy))
        shutil.rmtree(copy)

    def _frontier(self, name: str) -> str:
        frontier = self.timeline(name).frontier
        assert frontier is not None, name
        return frontier

    def stored(self, unique_id: str) -> Rows:
        """The rows that readers see."""
        result = read_table_rows(table_state(self.timeline(unique_id)), -1)
        assert result is not None, unique_id
        return sorted(tuple(str(v) if isinstance(v, date) else v for v in row) for row in result.rows)

    def recorded(self, unique_id: str, frontier: str | None = None) -> Rows:
        """The rows that a table must have by what its commit says that it has read."""
        if unique_id in (ORDERS, CUSTOMERS):
            return self.rows_at[unique_id, frontier or self._frontier(unique_id)]
        timeline = self.timeline(unique_id)
        at = frontier or timeline.frontier
        commits = [commit for commit in timeline.commits if commit.instant.frontier == at]
        record = record_of(commits[0])
        assert record is not None
        read = {_input_id(name): frontier for name, frontier in record.frontier.items()}
        return recomputed(unique_id, {name: self.recorded(name, at) for name, at in read.items()})

    def expected(self, unique_id: str) -> Rows:
        """The rows that a table must have once everything has been run."""
        now = {name: self.rows_at[name, self._frontier(name)] for name in (ORDERS, CUSTOMERS)}
        now[DETAIL] = recomputed(DETAIL, now)
        return recomputed(unique_id, now)

    def published(self, place: str) -> tuple[str, Rows]:
        """The commit that a destination says it shows, and the rows that it does show."""
        file = {"files": "files/region.parquet", "bi": "bi.duckdb", "db": "db.sqlite"}[place]
        if not (self.root / "serving" / file).exists():
            return "", []
        match place:
            case "files":
                table = pq.read_table(self.root / "serving" / "files" / "region.parquet")
                frontier = str(table.schema.metadata[b"sml.published"]).partition('"frontier": "')[2].partition('"')[0]
                rows = table.select(["region", "n", "total", "top"]).to_pylist()
                return frontier, sorted(tuple(row.values()) for row in rows)
            case "bi":
                with duckdb.connect(str(self.root / "serving" / "bi.duckdb"), read_only=False) as db:
                    return _shown(lambda query: db.execute(query).fetchall(), "duckdb_tables()", "table_name")
            case _:
                with closing(sqlite3.connect(self.root / "serving" / "db.sqlite")) as db:
                    return _shown(lambda query: db.execute(query).fetchall(), "sqlite_master", "name")


def _shown(rows: Callable[[str], list[Row]], catalog: str, name: str) -> tuple[str, Rows]:
    """Commit and rows in a database; none before the first publication, whose record precedes its table."""
    known = {table for (table,) in rows(f"select {name} from {catalog}")}
    frontiers = rows("select frontier from _sml_published") if "_sml_published" in known else []
    frontier = str(frontiers[0][0] or "") if frontiers else ""
    if not frontier and "region" not in known:
        return "", []
    return frontier, sorted((str(a), *map(int, more)) for a, *more in rows("select region, n, total, top from region"))


def _input_id(unique_id: str) -> str:
    """The id by which an input is known here, also where it is the table of a source."""
    return f"seed.shop.{unique_id.rpartition('.')[2]}" if unique_id.startswith("source.") else unique_id


def _order(key: int, dice: random.Random) -> Row:
    return (key, dice.randint(0, 4), dice.randint(1, 50), f"2024-01-{dice.randint(1, 28):02d}")


def _arrow(timeline: Timeline, frontier: str, rows: Rows) -> pa.Table:
    avro = timeline.schema_json(frontier)
    assert avro is not None
    schema = pa.schema([column for column in file_schema(avro) if column.name not in HUDI_COLUMNS])
    names = [name for name in schema.names if not name.startswith("_")]
    named = [dict(zip([*names, "_hoodie_is_deleted"], row, strict=True)) for row in rows]
    for row in named:
        row["_sml_key"] = f"k{row['id']}"
        row["day"] = row.get("day")
    values = [[_value(row[column.name], column.type) for row in named] for column in schema]
    return pa.table([pa.array(each, column.type) for each, column in zip(values, schema, strict=True)], schema=schema)


def _value(value: object, type_: pa.DataType) -> object:
    return pa.scalar(value).cast(type_).as_py() if isinstance(value, str) and pa.types.is_date(type_) else value


def recomputed(unique_id: str, inputs: Mapping[str, Rows]) -> Rows:
    """What a model's query says of these rows of its inputs."""
    if unique_id == DETAIL:
        regions = dict(inputs[CUSTOMERS])
        return sorted((o[0], o[1], o[2], regions[o[1]]) for o in inputs[ORDERS] if o[1] in regions)
    if unique_id == REGION:
        groups: dict[str, list[int]] = {}
        for row in inputs[DETAIL]:
            groups.setdefault(row[3], []).append(row[2])
        return sorted((region, len(each), sum(each), max(each)) for region, each in groups.items())
    orders = inputs[ORDERS]
    if unique_id == CUSTOMER:
        days = {(customer, day) for _, customer, _, day in orders}
        return sorted(Counter(customer for customer, _ in days).items())
    return sorted((day, key, amount) for key, _, amount, day in orders if amount > 10)
