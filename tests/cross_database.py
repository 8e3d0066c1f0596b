"""dbt's cross-database macros over a table of inputs: what dbt-spark's and dbt-duckdb's own give, and what ours do.

`data/cross_database_macros.json` was written by rendering the macros of dbt-spark 1.11.0 and dbt-duckdb with dbt-core
1.11.16 and running them on Spark 3.5 and DuckDB. `values` are those that ours give: dbt-spark's, where `dbt_spark` does
not say otherwise; each of these is one that docs/dbt.md names.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import duckdb

from sqlmesh_like.duckdb.duck_types import duck_type

_FILE = Path(__file__).parent / "data" / "cross_database_macros.json"


@dataclass(frozen=True)
class MacroTable:
    """Inputs: their DDL in Spark's words, and the rows."""

    columns: str
    rows: list[list[object]]

    def typed_rows(self) -> list[tuple[object, ...]]:
        """Rows in Python's types, as `createDataFrame` wants them."""
        types = [part.split(" ", 1)[1] for part in self.columns.replace("9,2", "9.2").split(", ")]
        return [tuple(map(_typed, row, types)) for row in self.rows]


@dataclass(frozen=True)
class MacroCase:
    """A call, the table whose rows it is over (none: it is a query itself), and what comes out in the order of rows."""

    call: str
    type: str
    values: list[object]
    over: str | None = None
    grouped: bool = False
    dbt_spark: object = None
    dbt_spark_type: str | None = None
    dbt_duckdb: object = None
    not_on_duckdb: str | None = None

    @property
    def template(self) -> str:
        """A query with a template: the value of each row, or group, as `y`."""
        if self.over is None:
            return "{{ " + self.call + " }}"
        key = "h" if self.grouped else "n"
        group = f" group by {key}" if self.grouped else ""
        return f"select {key}, {{{{ {self.call} }}}} as y from {self.over}{group} order by {key}"

    def of_dbt_duckdb(self) -> list[object] | None:
        """What dbt-duckdb's own macro gives; None: DuckDB refuses it."""
        if isinstance(self.dbt_duckdb, dict):
            return [self.dbt_duckdb.get(str(place), value) for place, value in enumerate(self.values)]
        return (
            self.values if self.dbt_duckdb is None else self.dbt_duckdb if isinstance(self.dbt_duckdb, list) else None
        )

    def outcome(self, rows: Sequence[Sequence[object]]) -> list[object]:
        """The values among rows that an engine gave, as the table spells them."""
        values = [_plain(row[-1]) for row in rows]
        return values if self.over else sorted(values, key=repr)


def macro_tables() -> dict[str, MacroTable]:
    return {
        name: MacroTable(**table) for name, table in json.loads(_FILE.read_text(encoding="utf-8"))["tables"].items()
    }


@contextmanager
def macro_tables_on_duckdb() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection of DuckDB that has the tables of inputs."""
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'; SET ieee_floating_point_ops = false")
        for name, table in macro_tables().items():
            rows = table.typed_rows()
            columns = [part.split(" ", 1) for part in table.columns.split(", ")]
            db.execute(f"CREATE TABLE {name} ({', '.join(f'{column} {duck_type(t)}' for column, t in columns)})")
            db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        yield db


def macro_cases() -> list[MacroCase]:
    return [MacroCase(**case) for case in json.loads(_FILE.read_text(encoding="utf-8"))["cases"]]


def _typed(value: object, type_: str) -> object:
    if type_ == "timestamp" and value is not None:
        return datetime.datetime.fromisoformat(str(value))
    if type_ == "date" and value is not None:
        return datetime.date.fromisoformat(str(value))
    return Decimal(str(value)) if type_.startswith("decimal") and value is not None else value


def _plain(value: object) -> object:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, datetime.date | Decimal) else value
