"""A lake that lives: random changes, ingestions, runs, edits, kills, rollbacks and environments, in any order.

Owns the source database, whose rows the lake must have in the end, and the calls. What a model must have is computed by
DuckDB from the database's rows and the model's text, whatever has happened to its table.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
from sqlglot import exp

from sqlmesh_like.duckdb.local_query import local_rows
from sqlmesh_like.fault_points import (
    CLEAN_POINTS,
    COMMIT_POINTS,
    CREATE_POINTS,
    DROP_POINTS,
    INGEST_POINTS,
    MAINTAIN_POINTS,
    PROMOTION_POINTS,
    REMOVAL_POINTS,
    ROLLBACK_POINTS,
    SAVEPOINT_POINTS,
    SMALL_BATCH_POINTS,
    SWAP_POINTS,
)
from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import TableName
from tests.faults.calls import KILLED, finished, start

Row = dict[str, object]
SOURCES = """
sources:
  - name: shop
    schema: ods
    ingest: {format: debezium, files: {path: landing/*}}
    tables:
      - name: orders
        ingest: {database: db, primary_key: [id], partition_by: {column: day, format: yyyyMM, as: month}}
        columns:
          - {name: id, data_type: bigint}
          - {name: customer, data_type: bigint}
          - {name: amount, data_type: "decimal(10,2)"}
          - {name: day, data_type: date}
          - {name: status, data_type: string}
      - name: customers
        ingest: {database: db, primary_key: [id]}
      - name: items
        ingest: {database: db, primary_key: [order_id, line]}
"""
PROFILE = """
lake:
  target: local
  outputs:
    local:
      {type: spark, warehouse: warehouse, schema: dws, threads: THREADS, publish: {bi: {duckdb: serving/bi.duckdb}}}
"""
MODELS: Mapping[str, Sequence[str]] = {
    "open_orders": (
        "select id, customer, amount, day from ods.orders where status <> 'done'",
        "select id, customer, amount * 2 as amount, day from ods.orders where status = 'new' or amount > 50",
    ),
    "detail": tuple(
        "select o.id, o.customer, o.amount, o.day, c.region"
        f" from ods.orders o {how} ods.customers c on o.customer = c.id"
        for how in ("join", "left join")
    ),
    "by_region": (
        "select region, count(*) as n, sum(amount) as total, min(day) as first_day from dws.detail group by region",
        "select region, avg(amount) as mean, max(amount) as top from dws.detail group by region having count(*) > 1",
    ),
    "per_customer": (
        "select c.id, c.name, count(o.id) as n, coalesce(sum(o.amount), 0) as spent"
        " from ods.customers c left join ods.orders o on o.customer = c.id group by c.id, c.name",
    ),
    "by_day": (
        "{{ config(partition_by='day') }} select day, id, amount from ods.orders where amount > 10",
        "{{ config(partition_by='day') }} select day, count(*) as n, sum(amount) as s from ods.orders group by day",
        "select day, id, amount from ods.orders where amount > 10",
    ),
    "monthly": (
        "{{ config(partition_by='m') }} select date_trunc('month', day) as m, region,"
        " count(distinct customer) as customers, sum(amount) as total from dws.detail group by 1, 2",
    ),
    "last_order": (
        "select customer, id, amount from (select *, row_number() over (partition by customer order by day desc,"
        " id desc) as rn from ods.orders) where rn = 1",
    ),
    "top": tuple(f"select id, amount from ods.orders order by amount desc, id limit {k}" for k in (5, 3)),
    "running": (
        "select id, sum(amount) over (partition by customer order by day, id) as running,"
        " lag(amount) over (partition by customer order by day, id) as former from ods.orders",
    ),
    "no_orders": (
        "select id from ods.customers c where not exists (select 1 from ods.orders o where o.customer = c.id)",
    ),
    "words": (
        "select region as word from ods.customers union select status from ods.orders",
        "select region as word, count(*) as n from ods.customers group by region"
        " union all select status, count(*) from ods.orders group by status",
    ),
    "totals": ("select count(*) as n, sum(amount) as total, count(distinct customer) as customers from ods.orders",),
    "above": ("select id, amount from ods.orders where amount > (select avg(amount) from ods.orders)",),
    "lines": (
        "select o.day, i.sku, sum(i.qty) as qty from ods.items i join ods.orders o on i.order_id = o.id"
        " group by o.day, i.sku",
    ),
    "both_sides": (
        "select coalesce(a.k, b.k) as k, a.n as orders, b.n as items"
        " from (select id as k, count(*) as n from ods.orders group by id) a"
        " full join (select order_id as k, sum(qty) as n from ods.items group by order_id) b on a.k = b.k",
    ),
    "islands": (
        "select customer, min(day) as since, max(day) as until, count(*) as n from (select customer, day, status,"
        " row_number() over (partition by customer order by day, id) - row_number() over (partition by customer, status"
        " order by day, id) as g from ods.orders) group by customer, status, g",
    ),
    "columns": ("select * from ods.customers",),
    "weighted": (
        "select o.id, o.amount * r.weight as amount from ods.orders o join dws.rates r on o.status = r.status",
    ),
    "kind": (
        "{{ config(materialized='view') }} select id, region from ods.customers where region is not null",
        "select id, region from ods.customers where region is not null",
    ),
    "on_kind": ("select region, count(*) as n from dws.kind group by region",),
    "shown": (
        "{{ config(publish={'to': ['bi']}) }} select status, count(*) as n from ods.orders group by status",
        "{{ config(publish={'to': ['bi']}) }} select status, sum(amount) as s from ods.orders group by status",
    ),
}
"""The texts of each model, one of which it has. Tables are named as in the lake, not by ref() and source()."""
KEPT = ("detail", "kind")
"""Models that others read."""
_COMMIT = (*COMMIT_POINTS, *REMOVAL_POINTS, *CREATE_POINTS, *SWAP_POINTS)
_EPOCH = date(1970, 1, 1)


def _template(text: str) -> str:
    text = re.sub(r"\bods\.(\w+)", r"{{ source('shop', '\1') }}", text)
    return re.sub(r"\bdws\.(\w+)", r"{{ ref('\1') }}", text)


def _query(text: str) -> str:
    return text.rpartition("}}")[2]


def _same(rows: Iterable[Iterable[object]]) -> list[str]:
    """Rows in an order of their own, values of equal meaning spelt alike."""
    return sorted(str([_plain(value) for value in row]) for row in rows)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        value = value.date()
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return round(float(value), 6)
    return str(value) if isinstance(value, date) else value


class Shop:
    """The source database. Each change returns its events; `tables` (grain: row, by primary key) has the rows since."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.tables: dict[str, dict[tuple[object, ...], Row]] = {"orders": {}, "customers": {}, "items": {}}
        self.has_tier = False

    def put(self, table: str, row: Row) -> str:
        key = self._key(table, row)
        event = self._event("u" if key in self.tables[table] else "c", table, row, self.tables[table].get(key))
        self.tables[table][key] = row
        return event

    def change(self) -> str:
        table = self.dice.choice(["orders"] * 4 + ["items"] * 3 + ["customers"] * 2)
        rows = self.tables[table]
        if self.dice.random() < 0.5 or not rows:
            return self.put(table, self._row(table))
        key = self.dice.choice(sorted(rows, key=str))
        if self.dice.random() < 0.5:
            return self._event("d", table, None, rows.pop(key))
        fresh = self._row(table)
        new = self._key(table, fresh)
        if self.dice.random() < 0.3 and new not in rows:  # its key changes
            names = ("order_id", "line") if table == "items" else ("id",)
            row = rows[key] | {name: fresh[name] for name in names}
            rows[new] = row
            return self._event("u", table, row, rows.pop(key))
        column = self.dice.choice([name for name in rows[key] if name not in ("id", "order_id", "line")])
        return self.put(table, rows[key] | {column: fresh[column]})

    def _key(self, table: str, row: Row) -> tuple[object, ...]:
        return (row["order_id"], row["line"]) if table == "items" else (row["id"],)

    def _row(self, table: str) -> Row:
        dice = self.dice
        if table == "orders":
            amount = f"{dice.randint(0, 99)}.{dice.randint(0, 99):02}"
            customer, status = dice.choice([None, *range(1, 8)]), dice.choice(["new", "paid", "done", None])
            day = dice.randint(19700, 19790)
            return {"id": dice.randint(1, 40), "customer": customer, "amount": amount, "day": day, "status": status}
        if table == "items":
            order, line = dice.randint(1, 40), dice.randint(1, 3)
            return {"order_id": order, "line": line, "sku": dice.choice("abc"), "qty": dice.choice([None, 1, 2, 3])}
        row: Row = {"id": dice.randint(1, 8), "region": dice.choice(["eu", "us", None]), "name": dice.choice("anü")}
        return row | ({"tier": dice.choice([None, 1, 2])} if self.has_tier else {})

    def _event(self, op: str, table: str, after: Row | None, before: Row | None) -> str:
        types = dict.fromkeys(("sku", "region", "name", "status", "amount"), "string")
        types |= dict.fromkeys(("day", "line", "tier"), "int32")
        names = list((after or before or {}) | ({"tier": None} if table == "customers" and self.has_tier else {}))
        kinds = [
            {"field": name, "type": types.get(name, "int64"), "optional": True}
            | ({"name": "io.debezium.time.Date"} if name == "day" else {})
            for name in names
        ]
        schema = {"fields": [{"type": "struct", "fields": kinds, "field": image} for image in ("before", "after")]}
        payload = {"op": op, "before": before, "after": after, "source": {"db": "db", "table": table}, "ts_ms": 1}
        return json.dumps({"schema": {"type": "struct", **schema}, "payload": payload})


@dataclass
class Life:
    """A lake below `root`, and its shop. `log`: the calls so far, each with the step at which it was to die."""

    root: Path
    dice: random.Random
    log: list[str] = field(default_factory=list)
    variants: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MODELS, 0))
    removed: set[str] = field(default_factory=set)
    rates: Row = field(default_factory=lambda: {"new": 1, "done": 2})
    has_environment: bool = False
    files: int = 0

    def __post_init__(self) -> None:
        self.shop = Shop(self.dice)
        for path, text in {
            "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\nprofile = "lake"\n',
            "profiles.yml": PROFILE.replace("THREADS", self.dice.choice("13")),
            "models/sources.yml": SOURCES,
        }.items():
            self._write(path, text)
        self._write_models()
        self._write_rates()
        first: Mapping[str, Row] = {
            "customers": {"id": 1, "region": "eu", "name": "a"},
            "orders": {"id": 1, "customer": 1, "amount": "5.00", "day": 19750, "status": "new"},
            "items": {"order_id": 1, "line": 1, "sku": "a", "qty": 1},
        }
        self._land([self.shop.put(table, row) for table, row in first.items()])
        self.catch_up()

    # What may happen, and how often.
    def step(self) -> None:
        actions: Mapping[Callable[[], object], int] = {
            self.land: 22, self.ingest: 10, self.run_some: 12, self.catch_up: 16, self.edit: 8, self.roll_back: 8,
            self.environment: 8, self.side_by_side: 5, self.remove_or_return: 4, self.save: 4, self.rebuild: 4,
            self.change_rates: 3, self.add_column: 2, self.lose_table: 2, self.repair: 2, self.maintain: 4,
        }  # fmt: skip
        (action,) = self.dice.choices([*actions], weights=[*actions.values()])
        action()

    def land(self) -> None:
        self._land([self.shop.change() for _ in range(self.dice.randint(1, 12))])

    def ingest(self) -> None:
        self._call("ingest", steps=(*INGEST_POINTS, *SMALL_BATCH_POINTS, *_COMMIT))

    def run_some(self) -> None:
        self._call("run", "-s", *self.dice.sample(self._tables(), self.dice.randint(1, 3)), steps=_COMMIT)

    def rebuild(self) -> None:
        self._call("run", "--full-refresh", "-s", self.dice.choice(self._tables()), steps=_COMMIT)

    def edit(self) -> None:
        name = self.dice.choice([name for name, texts in MODELS.items() if len(texts) > 1])
        self.variants[name] = self.dice.randrange(len(MODELS[name]))
        self._write_models()

    def remove_or_return(self) -> None:
        name = self.dice.choice([name for name in MODELS if name not in KEPT])
        self.removed ^= {name}
        self._write_models()
        if self.dice.random() < 0.6:
            self._call("clean", "--orphans", "--yes", steps=DROP_POINTS)

    def roll_back(self) -> None:
        name = self.dice.choice(self._tables())
        commits = [instant.requested for instant in self._timeline("dws", name).commit_instants]
        if commits:
            self._call("rollback", name, "--to", self.dice.choice(commits[-5:]), "--yes", steps=ROLLBACK_POINTS)

    def environment(self) -> None:
        if not self.has_environment:
            self.edit()
            self.has_environment = True
        elif self.dice.random() < 0.3:
            self._call("env", "drop", "dev")
            self.has_environment = False
            return
        self._call("run", "-e", "dev", steps=_COMMIT)
        if self.dice.random() < 0.5:
            code = self._call("promote", "dev", steps=PROMOTION_POINTS)
            code = self._call("promote", "dev") if code == KILLED else code
            self.has_environment = code != 0

    def side_by_side(self) -> None:
        other = self.dice.choice((("ingest",), ("run", "-s", self.dice.choice(self._tables())), ("maintain",)))
        calls = {words: start(self.root, *words) for words in (("run",), other)}
        for words, call in calls.items():
            self._ended(words, None, *finished(call))

    def save(self) -> None:
        self._call("savepoint", "create", self.dice.choice(self._tables()), steps=SAVEPOINT_POINTS)

    def change_rates(self) -> None:
        self.rates = {name: self.dice.randint(1, 3) for name in self.dice.sample(["new", "done", "paid"], 2)}
        self._write_rates()

    def add_column(self) -> None:
        self.shop.has_tier = True

    def lose_table(self) -> None:
        shutil.rmtree(self.root / "warehouse/dws" / self.dice.choice(self._tables()), ignore_errors=True)

    def repair(self) -> None:
        self._call("repair", self.dice.choice(self._tables()), steps=_COMMIT)

    def maintain(self) -> None:
        self._call("maintain", steps=(*MAINTAIN_POINTS, *CLEAN_POINTS))

    # What must be so.
    def catch_up(self) -> None:
        """Ingest, load and run everything, killed or not; then all tables have what they must."""
        for words, steps in (
            (("ingest",), (*INGEST_POINTS, *SMALL_BATCH_POINTS, *_COMMIT)), (("seed",), _COMMIT), (("run",), _COMMIT),
        ):  # fmt: skip
            while (code := self._call(*words, steps=steps)) == KILLED:
                pass
            assert code == 0, self.log[-1]
        self._check()

    def _check(self) -> None:
        with duckdb.connect() as db:
            db.execute("create schema ods; create schema dws; create table dws.rates(status text, weight int)")
            db.executemany("insert into dws.rates values (?, ?)", [list(rate) for rate in self.rates.items()])
            for name, rows in self.shop.tables.items():
                self._create(db, name, list(rows.values()))
            for name, texts in sorted(MODELS.items(), key=lambda item: item[0] not in KEPT):
                if name not in self.removed:
                    db.execute(f"create table dws.{name} as {_query(texts[self.variants[name]])}")
                    expected = db.execute(f"from dws.{name}").fetchall()
                    if name in self._tables():
                        assert self._stored("dws", name) == _same(expected), (name, *self.log[-9:])
                    if name == "shown":
                        assert self._published() == _same(expected), (name, *self.log[-9:])

    def _create(self, db: duckdb.DuckDBPyConnection, name: str, rows: Sequence[Row]) -> None:
        """Create an input, which must be in the lake as it is in the shop."""
        types = {
            "orders": "id bigint, customer bigint, amount decimal(10,2), day date, status text",
            "customers": "id bigint, region text, name text",
            "items": "order_id bigint, line int, sku text, qty bigint",
        }[name]
        state = table_state(self._timeline("ods", name))
        has_tier = any(column.name == "tier" for column in state.schema or ())
        db.execute(f"create table ods.{name} ({types}{', tier int' if has_tier else ''})")
        for row in rows:
            row = row if "day" not in row else row | {"day": _EPOCH + timedelta(int(str(row["day"])))}
            assert has_tier or "tier" not in row, (name, *self.log[-9:])
            db.execute(
                f"insert into ods.{name} by name select {', '.join(f'? as {column}' for column in row)}",
                [*row.values()],
            )
        expected = db.execute(f"from ods.{name}").fetchall()
        stored = self._stored("ods", name, [each[0] for each in db.execute(f"describe ods.{name}").fetchall()])
        assert stored == _same(expected), (name, *self.log[-9:])

    def _stored(self, schema: str, name: str, columns: Sequence[str] = ("*",)) -> list[str]:
        state = table_state(self._timeline(schema, name))
        table = TableName(schema, name)
        query = exp.select(*columns).from_(exp.table_(name, db=schema))
        rows = local_rows(query, {table: state}, None, -1, datetime.now(UTC))
        assert rows is not None, (name, *self.log[-9:])
        return _same(rows.rows)

    def _published(self) -> list[str]:
        with duckdb.connect(str(self.root / "serving/bi.duckdb"), read_only=True) as db:
            return _same(db.execute("select * exclude _sml_key from shown").fetchall())

    # Calls and files.
    def _call(self, *words: str, steps: Sequence[str] = ()) -> int | None:
        fault = None
        if steps and self.dice.random() < 0.4:
            fault = f"{self.dice.choice(steps)}:{self.dice.choice([1, 1, 1, 2, 3, 5])}"
        return self._ended(words, fault, *finished(start(self.root, *words, fault=fault)))

    def _ended(self, words: Sequence[str], fault: str | None, code: int | None, output: str) -> int | None:
        self.log.append(f"{' '.join(words)} [{fault}] {code}\n{output}")
        assert code is not None and "unexpected" not in output and "Traceback" not in output, self.log[-1]
        return code

    def _tables(self) -> list[str]:
        """The models that have tables."""
        texts = {name: MODELS[name][variant] for name, variant in self.variants.items() if name not in self.removed}
        return [name for name, text in texts.items() if "'view'" not in text]

    def _timeline(self, schema: str, name: str) -> Timeline:
        return Timeline(str(self.root / "warehouse" / schema / name))

    def _land(self, events: Iterable[str]) -> None:
        self._write(f"landing/{self.files:05}.jsonl", "".join(f"{event}\n" for event in events))
        self.files += 1

    def _write_models(self) -> None:
        for name, texts in MODELS.items():
            if name in self.removed:
                with suppress(FileNotFoundError):
                    (self.root / f"models/{name}.sql").unlink()
            else:
                self._write(f"models/{name}.sql", _template(texts[self.variants[name]]) + "\n")

    def _write_rates(self) -> None:
        self._write("seeds/rates.csv", "status,weight\n" + "".join(f"{a},{b}\n" for a, b in self.rates.items()))

    def _write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")
