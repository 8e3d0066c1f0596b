"""The prices of work: what one call costs, and what each model, table, file and changed table adds to it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True)
class Price:
    """Of a call, or of each thing that it looks at.

    `core_seconds`: of the machine that measured. `megabytes`: of resident memory at the peak. Requests to a store, by
    what they are billed as: `reads` (GET, HEAD), `writes` (PUT, POST, and listings, which cost as much); `deletes` are
    free.
    """

    core_seconds: float = 0.0
    megabytes: float = 0.0
    reads: float = 0.0
    writes: float = 0.0
    deletes: float = 0.0

    def __add__(self, other: Price) -> Price:
        return Price(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Price)))

    def __sub__(self, other: Price) -> Price:
        return self + other * -1

    def __mul__(self, count: float) -> Price:
        return Price(*(getattr(self, field.name) * count for field in fields(Price)))

    @property
    def requests(self) -> float:
        return self.reads + self.writes + self.deletes


@dataclass(frozen=True)
class Slope:
    """A price that grows with a number: `fixed`, and `each` of them."""

    fixed: Price
    each: Price

    @classmethod
    def through(cls, few: tuple[int, Price], many: tuple[int, Price]) -> Self:
        """The line through two measurements; what noise made negative is zero.

        >>> Slope.through((10, Price(2.0)), (30, Price(4.0)))
        Slope(fixed=Price(core_seconds=1.0, megabytes=0.0, reads=0.0, writes=0.0, deletes=0.0), \
each=Price(core_seconds=0.1, megabytes=0.0, reads=0.0, writes=0.0, deletes=0.0))
        """
        each = _not_negative((many[1] - few[1]) * (1 / (many[0] - few[0])))
        return cls(_not_negative(few[1] - each * few[0]), each)

    def at(self, count: float) -> Price:
        return self.fixed + self.each * count


@dataclass(frozen=True)
class Prices:
    """All that the simulation knows of the program and the machine.

    `parse`: reading a project, by models. `no_op`: a run without changes on a store, by tables. `change`: what a model
    with changed inputs adds to it, by such models. `files`: a run that changes one row of a partitioned table and reads
    it by key, by the table's files. `commit_bytes`: of the metadata of a file in a commit. `rewrite`: core seconds of a
    megabyte of Parquet that a commit rewrites. `machine`: what measured it.
    """

    parse: Slope
    no_op: Slope
    change: Slope
    files: Slope
    commit_bytes: float
    rewrite: float
    machine: str

    @classmethod
    def read(cls, path: Path) -> Self:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        parse, no_op, change, files = (
            Slope(*(Price(**data[name][part]) for part in ("fixed", "each")))
            for name in ("parse", "no_op", "change", "files")
        )
        return cls(parse, no_op, change, files, data["commit_bytes"], data["rewrite"], data["machine"])

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1, default=float) + "\n", encoding="utf-8")


def _not_negative(price: Price) -> Price:
    return Price(*(max(0.0, getattr(price, field.name)) for field in fields(Price)))
