"""Sales as AWS DMS writes them into files. Owns the layout, the documents' rows, and a chain of shops of any size.

A full load is `LOAD00000001.parquet` with every row and no `Op`; later files are named by their time and have `Op` I, U
or D. `dms_received_ts` is the column that DMS adds if `timestampColumnName` is set to it.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

Row = dict[str, object]

EVENTS = Path(__file__).parent / "events"
FOLDER = "landing/dev/retail_transactions"
LOADED = datetime(2019, 3, 19, tzinfo=UTC)
_STORES = {1: ("CHICAGO", "IL"), 2: ("NEW YORK", "NY"), 3: ("SPRINGFIELD", "IL"), 4: ("SAN FRANCISCO", "CA"),
           5: ("CHICAGO", "IL"), 6: ("CHICAGO", "IL"), 7: ("CHICAGO", "IL")}  # fmt: skip
_COLUMNS = [
    ("tran_id", pa.int32()),
    ("tran_date", pa.date32()),
    ("store_id", pa.int32()),
    ("store_city", pa.string()),
    ("store_state", pa.string()),
    ("item_code", pa.string()),
    ("quantity", pa.int32()),
    ("total", pa.float32()),
    ("dms_received_ts", pa.timestamp("ms")),
]


def documented(part: str) -> list[Row]:
    """Return the documents' rows of `full` or `changes` (these with `Op`)."""
    with (EVENTS / f"{part}.csv").open(encoding="utf-8", newline="") as file:
        return [_typed(row) for row in csv.DictReader(file)]


def _typed(row: Mapping[str, str]) -> Row:
    numbers = {name: int(row[name]) for name in ("tran_id", "store_id", "quantity")}
    return {**row, **numbers, "tran_date": date.fromisoformat(row["tran_date"]), "total": float(row["total"])}


def write(root: Path, rows: Iterable[Row], received: datetime) -> Path:
    """Write a DMS file below a project and return its path: the full load if rows have no `Op`."""
    records = [{"dms_received_ts": received.replace(tzinfo=None), **row} for row in rows]
    has_op = any("Op" in row for row in records)
    schema = pa.schema([("Op", pa.string()), *_COLUMNS] if has_op else _COLUMNS)
    name = f"{received:%Y%m%d-%H%M%S}000.parquet" if has_op else "LOAD00000001.parquet"
    path = root / FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    # A file must be complete when it appears; names that start with `_` are ignored.
    unfinished = path.with_name(f"_{name}")
    pq.write_table(pa.Table.from_pylist(records, schema), unfinished)
    return unfinished.rename(path)


@dataclass
class Chain:
    """A chain's sales, deterministic for a seed; `sales`: current rows of its database, by `tran_id`."""

    seed: int
    sales: dict[int, Row] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._last = 0

    def load(self, count: int) -> list[Row]:
        """Return `count` new sales, for a full load."""
        return [self._sell() for _ in range(count)]

    def change(self, count: int) -> list[Row]:
        """Return `count` new sales, corrections (another store, day or quantity) and deletions, in order, with `Op`."""
        return [self._changed() for _ in range(count)]

    def _changed(self) -> Row:
        match self._random.choice("IUUD" if self.sales else "I"):
            case "I":
                return {"Op": "I", **self._sell()}
            case "D":
                return {"Op": "D", **self.sales.pop(self._random.choice(list(self.sales)))}
        number = self._random.choice(list(self.sales))
        self.sales[number] = {**self._sale(), "tran_id": number}
        return {"Op": "U", **self.sales[number]}

    def _sell(self) -> Row:
        self._last += 1
        self.sales[self._last] = {**self._sale(), "tran_id": self._last}
        return self.sales[self._last]

    def _sale(self) -> Row:
        store = self._random.choice(list(_STORES))
        city, state = _STORES[store]
        return {
            "tran_date": date(2019, 3, 10) + timedelta(self._random.randrange(9)),
            "store_id": store,
            "store_city": city,
            "store_state": state,
            "item_code": "XXXXXX",
            "quantity": self._random.randint(1, 20),
            "total": self._random.randint(1, 1000) / 4,  # a FLOAT holds quarters exactly
        }
