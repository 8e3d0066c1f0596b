"""The developer's log as Debezium reads it from SQL Server. Owns messages, the hand-written rows, a log of any size.

Decimals are encoded as strings (`decimal.handling.mode=string`), DATETIME as milliseconds since 1970, without a zone.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

Row = dict[str, object]

EVENTS = Path(__file__).parent / "events"
_TIME = {"type": "int64", "optional": True, "name": "io.debezium.time.Timestamp", "version": 1}
_NUMBER, _TEXT = {"type": "int32", "optional": True}, {"type": "string", "optional": True}
_TYPES: Mapping[str, Mapping[str, object]] = {
    "SaleId": _NUMBER, "AgentId": _NUMBER, "AgentName": _TEXT, "UnitId": _NUMBER, "UnitName": _TEXT,
    "BuildingId": _NUMBER, "BuildingName": _TEXT, "ProjectId": _NUMBER, "ProjectName": _TEXT, "StatusId": _NUMBER,
    "StatusName": _TEXT, "ContractSubtotal": _TEXT, "ContractSigningDate": _TIME, "CustomerId": _NUMBER,
    "EventAt": _TIME, "RecordedAt": _TIME,
}  # fmt: skip
_STATUSES = ("visit", "offer", "signed", "started", "completed")
SIGNED = 3


def documented(part: str) -> list[Row]:
    """Return the hand-written rows of `part1` or `part2`."""
    with (EVENTS / f"{part}.csv").open(encoding="utf-8", newline="") as file:
        return [{name: _value(name, text) for name, text in row.items()} for row in csv.DictReader(file)]


def _value(name: str, text: str) -> object:
    if not text:
        return None
    if _TYPES[name] is _TIME:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    return int(text) if _TYPES[name] is _NUMBER else text


def write(root: Path, rows: Iterable[Row], name: str) -> Path:
    """Write a file of events below a project, one record per line, and return its path."""
    path = root / "landing" / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    unfinished = path.with_name(f"_{path.name}")  # a file must be complete when it appears
    unfinished.write_text("".join(f"{message(row)}\n" for row in rows), encoding="utf-8")
    return unfinished.rename(path)


def message(row: Row) -> str:
    """Return a record of the log as a Debezium message with schema and payload."""
    fields = [{"field": name, **kind} for name, kind in _TYPES.items()]
    images = [{"type": "struct", "optional": True, "field": image, "fields": fields} for image in ("before", "after")]
    after = {name: _sent(value) for name, value in row.items()}
    source = {"connector": "sqlserver", "db": "MYCOMPANY", "schema": "dbo", "table": "SALES"}
    payload = {"before": None, "after": after, "source": source, "op": "c", "ts_ms": after["RecordedAt"]}
    return json.dumps({"schema": {"type": "struct", "fields": images}, "payload": payload})


def _sent(value: object) -> object:
    if isinstance(value, datetime):
        return int(value.timestamp() * 1000)
    return str(value) if isinstance(value, Decimal) else value


@dataclass
class Developer:
    """A developer's log, deterministic for a seed. `sales`: the last record of each sale, by `SaleId`."""

    seed: int
    now: datetime = datetime(2024, 5, 1, tzinfo=UTC)
    sales: dict[int, Row] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def records(self, count: int, days: float) -> list[Row]:
        """Return `count` records of the next `days`: mostly new interactions, some corrections of earlier ones."""
        rows = []
        for _ in range(count):
            self.now += timedelta(days=days / count)
            rows.append(self._correction() if self.sales and self._random.random() < 0.2 else self._interaction())
        return rows

    def _interaction(self) -> Row:
        return self._record(len(self.sales) + 1, self.now)

    def _correction(self) -> Row:
        number = self._random.choice(list(self.sales))
        happened = self.sales[number]["EventAt"]
        assert isinstance(happened, datetime)
        return self._record(number, happened)

    def _record(self, number: int, happened: datetime) -> Row:
        agent, unit, status = self._random.randint(1, 5), self._random.randint(1, 12), self._random.randint(1, 5)
        building = (unit - 1) // 4 + 1
        signed = status >= SIGNED
        self.sales[number] = {
            "SaleId": number, "AgentId": agent, "AgentName": f"agent {agent}.{self._random.randint(1, 2)}",
            "UnitId": unit, "UnitName": f"unit {unit}", "BuildingId": building, "BuildingName": f"building {building}",
            "ProjectId": 1, "ProjectName": "Lakeside", "StatusId": status, "StatusName": _STATUSES[status - 1],
            "ContractSubtotal": Decimal(self._random.randrange(10**9)) / 10_000 if signed else None,
            "ContractSigningDate": happened.replace(hour=0, minute=0, second=0, microsecond=0) if signed else None,
            "CustomerId": self._random.randint(100, 130), "EventAt": happened, "RecordedAt": self.now,
        }  # fmt: skip
        return self.sales[number]
