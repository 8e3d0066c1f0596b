"""Many cycles of ingestion, run, maintenance and verification in one process: no wrong row, and nothing grows.

Every few cycles a run or an ingestion is killed in another process, and a table is replaced by an older copy of itself.
`make test-deep` runs 1,000 cycles; `SML_CYCLES` sets another number.
"""

from __future__ import annotations

import gc
import json
import os
import random
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from weakref import WeakSet

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.app.api import Project
from sqlmesh_like.cdc.stream.ingest_run import IngestRun
from sqlmesh_like.fault_points import COMMIT_POINTS, INGEST_POINTS
from sqlmesh_like.hudi.timeline import Timeline
from tests.faults.calls import finished, start
from tests.faults.shop import PROFILE
from tests.faults.tally import SEED
from tests.levels import IS_DEEP
from tests.spark.ingest_lake import event

CYCLES = int(os.environ.get("SML_CYCLES", "1000" if IS_DEEP else "6"))
KILLED_EVERY, RESTORED_EVERY = (20, 50) if CYCLES >= 100 else (4, 6)
RESTORED_AFTER = 3
"""Cycles between the copy of a table and its return."""
WARM_UP = min(100, CYCLES // 4)
"""Cycles after which classes are loaded, caches are full and history is being cleaned."""
MOST_GROWTH = 1.15
"""The largest value of the last half of the cycles, to that of the half before."""
MOST_LOGGED = 31 * 2**20
"""Bytes of Spark's log: three files of 10 MB."""
MOST_INGESTIONS = 3
"""In memory after they have ended."""
MOST_THREADS = 2
"""More than after the first cycle."""
KEYS = 60
OUT = Path(__file__).parents[2] / "target" / "soak.json"
ODS, DETAIL, TOTAL, DAYS = ("ods/orders", "dws/detail", "dws/total", "dws/days")
FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "soak"\nprofile = "lake"\n',
    "profiles.yml": PROFILE,
    "models/sources.yml": """
sources:
  - name: shop
    schema: ods
    ingest: {format: debezium, files: {path: landing/*.jsonl}}
    tables:
      - name: orders
        ingest: {database: db, primary_key: [id]}
        columns:
          - {name: id, data_type: int}
          - {name: region, data_type: string}
          - {name: amount, data_type: int}
""",
    "models/detail.sql": "select id, region, amount from {{ source('shop', 'orders') }} where amount > 10\n",
    "models/total.sql": "select region, count(*) as n, sum(amount) as total, max(amount) as top"
    " from {{ ref('detail') }} group by region\n",
    "models/days.sql": "select region, count(distinct amount) as amounts from {{ source('shop', 'orders') }}"
    " group by region\n",
}

Orders = dict[int, tuple[str, int]]


@dataclass
class Usage:
    """What one cycle left. Memory in MB: of this process, and of Java's heap after a collection.

    `artifact_bytes`: without `log_bytes`, which are of Spark's log: it only begins another file after 10 MB.
    `ingestions`: those of the soak that are in memory. They have all ended; Java frees the last ones later.
    `threads`: of Python; py4j has one for each thread of Java's that calls Python.
    """

    files: int
    instants: int
    artifact_bytes: int
    log_bytes: int
    python: float
    java: float
    ingestions: int
    threads: int


@dataclass
class Soak:
    """The project, the rows that its source has, and what was seen. `wrong`: rows, in words; there may be none.

    `earlier`: ingestions of tests before this one that Java has not freed yet.
    """

    root: Path
    project: Project
    spark: SparkSession
    dice: random.Random
    orders: Orders = field(default_factory=dict)
    landed: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    restored: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    usage: list[Usage] = field(default_factory=list)
    earlier: WeakSet[IngestRun] = field(default_factory=lambda: WeakSet(_ingestions()))

    def land(self) -> None:
        """A file with events of some orders."""
        lines = []
        for _ in range(8):
            key = self.dice.randrange(KEYS)
            before = self._image(key)
            if before is not None and self.dice.random() < 0.3:
                del self.orders[key]
                lines.append(event("d", None, before, table="orders"))
            else:
                self.orders[key] = (f"r{self.dice.randrange(5)}", self.dice.randrange(50))
                lines.append(event("c" if before is None else "u", self._image(key), before, table="orders"))
        path = self.root / "landing" / f"{self.landed:06d}.jsonl"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        os.utime(path, (1_700_000_000 + self.landed, 1_700_000_000 + self.landed))
        self.landed += 1

    def _image(self, key: int) -> dict[str, object] | None:
        return {"id": key, "region": self.orders[key][0], "amount": self.orders[key][1]} if key in self.orders else None

    def cycle(self) -> None:
        """Ingest, run, maintain and verify, all without an error."""
        assert all(not report.failed for report in self.project.ingest())
        result = self.project.run()
        assert result.ok, [each.message for each in result.results]
        assert all(each.error is None for each in self.project.maintain())
        self.wrong += [f"verify: {each}" for each in self.project.verify() if each.status != "pass"]

    def look(self, number: int) -> None:
        """Compare each table with what the source's rows give, and note what was used."""
        for table, expected in self._expected().items():
            stored = Counter(tuple(row.values()) for row in self.project.table(table).to_arrow().to_pylist())
            if stored != Counter(expected):
                self.wrong.append(f"cycle {number}: {table} has {stored}, not {expected}")
        self.usage.append(self._usage())

    def _expected(self) -> dict[str, list[tuple[object, ...]]]:
        rows = [(key, *order) for key, order in self.orders.items()]
        detail = [row for row in rows if row[2] > 10]
        by_region: dict[str, list[int]] = {}
        for _, region, amount in detail:
            by_region.setdefault(region, []).append(amount)
        amounts = Counter(region for region, _ in {(region, amount) for _, region, amount in rows})
        totals = [(region, len(each), sum(each), max(each)) for region, each in by_region.items()]
        return {"orders": list(rows), "detail": list(detail), "total": list(totals), "days": list(amounts.items())}

    def kill(self) -> None:
        """A run is killed at a step of a commit without Spark; every other time, in deep tests, an ingestion."""
        is_ingestion = IS_DEEP and sum(self.kills.values()) % 2 == 1
        if not is_ingestion:
            assert all(not report.failed for report in self.project.ingest())
        steps = INGEST_POINTS if is_ingestion else COMMIT_POINTS
        step = self.dice.choice([step for step in steps if step not in _RARE])
        code, output = finished(start(self.root, "ingest" if is_ingestion else "run", fault=step))
        assert code == -signal.SIGKILL, output
        self.kills[step] += 1

    def put_back(self, table: str) -> None:
        """Replace a table by the copy of it."""
        shutil.rmtree(self.root / "warehouse" / table)
        shutil.copytree(self.root / "backup", self.root / "warehouse" / table)
        self.restored[table] += 1

    def back_up(self, table: str) -> None:
        shutil.rmtree(self.root / "backup", ignore_errors=True)
        shutil.copytree(self.root / "warehouse" / table, self.root / "backup")

    def save(self) -> None:
        """Write what was seen so far: a soak takes hours."""
        OUT.parent.mkdir(exist_ok=True)
        counts = {"cycles": len(self.usage), "kills": self.kills, "restored": self.restored, "wrong": self.wrong}
        OUT.write_text(json.dumps(counts | {"usage": [asdict(each) for each in self.usage]}, indent=1))

    def _usage(self) -> Usage:
        made = [self.root / "warehouse", self.root / "target"]
        files = [path for folder in made for path in folder.rglob("*") if path.is_file()]
        instants = sum(len(Timeline(str(self.root / "warehouse" / each)).names) for each in (ODS, DETAIL, TOTAL, DAYS))
        artifacts = sum(path.stat().st_size for path in files if path.suffix in (".jsonl", ".json"))
        logged = sum(path.stat().st_size for path in files if path.name.startswith("spark.log"))
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        ingestions = sum(each not in self.earlier for each in _ingestions())
        python = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
        return Usage(
            len(files), instants, artifacts, logged, python, self._heap(), ingestions, threading.active_count()
        )

    def _heap(self) -> float:
        """The least that some collections leave: objects with finalizers are freed by the one after these have run."""
        jvm = self.spark._jvm
        assert jvm is not None
        runtime, left = jvm.java.lang.Runtime.getRuntime(), []
        for _ in range(3):
            jvm.java.lang.System.gc()
            jvm.java.lang.System.runFinalization()
            left.append((runtime.totalMemory() - runtime.freeMemory()) / 2**20)
        return min(left)


def _ingestions() -> Iterator[IngestRun]:
    return (each for each in gc.get_objects() if isinstance(each, IngestRun))


_RARE = ("hudi.commit.log", "hudi.commit.partition", "ingest.dead_letters", "ingest.truncates", "ingest.floors")
"""Steps that a cycle may not come to: no table is large enough for a change log, or partitioned."""


@pytest.fixture
def soak(spark: SparkSession, tmp_path: Path) -> Soak:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "landing").mkdir()
    return Soak(tmp_path, Project.load(tmp_path, spark=spark), spark, random.Random(SEED))


@pytest.mark.release
@pytest.mark.timeout(60 * 60 * 12 if IS_DEEP else 1800)
def test_rows_stay_right_and_nothing_grows(soak: Soak, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(soak.root)
    for number in range(1, CYCLES + 1):
        soak.land()
        if number > 1 and number % KILLED_EVERY == 0:
            soak.kill()
        if number > RESTORED_AFTER and number % RESTORED_EVERY == 0:
            soak.put_back(_restored_in(number))
        soak.cycle()
        soak.look(number)
        soak.save()
        if (number + RESTORED_AFTER) % RESTORED_EVERY == 0:
            soak.back_up(_restored_in(number + RESTORED_AFTER))
    assert not soak.wrong, "\n".join(soak.wrong)
    assert sum(soak.kills.values()) == CYCLES // KILLED_EVERY
    assert sum(soak.restored.values()) == CYCLES // RESTORED_EVERY
    assert max(each.log_bytes for each in soak.usage) <= MOST_LOGGED
    assert max(each.ingestions for each in soak.usage) <= MOST_INGESTIONS
    assert max(each.threads for each in soak.usage) - soak.usage[0].threads <= MOST_THREADS
    if CYCLES >= 200:  # the stream's checkpoint keeps a hundred batches
        assert not (grown := growing(soak.usage[WARM_UP:])), grown


def _restored_in(number: int) -> str:
    return (ODS, TOTAL)[number // RESTORED_EVERY % 2]


def growing(usage: Sequence[Usage]) -> dict[str, tuple[float, float]]:
    """What was larger in the last half than in the first by more than `MOST_GROWTH`: the largest value of each."""
    half = len(usage) // 2
    largest = {
        name: tuple(max(getattr(each, name) for each in part) for part in (usage[:half], usage[half:]))
        for name in ("files", "instants", "artifact_bytes", "python", "java")
    }
    return {name: (then, now) for name, (then, now) in largest.items() if now > then * MOST_GROWTH}


def test_only_what_grows_is_named() -> None:
    steady = [Usage(100 + each % 10, 40, 1000, 500, 200.0, 90.0 + each % 20, 1, 9) for each in range(60)]
    assert growing(steady) == {}
    leaking = [replace(each, python=200.0 + 2 * number) for number, each in enumerate(steady)]
    assert growing(leaking) == {"python": (258.0, 318.0)}
