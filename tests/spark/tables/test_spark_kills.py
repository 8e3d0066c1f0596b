"""Calls that need Spark are killed at each named step and at random moments.

Seeds, builds, full refreshes, swaps, snapshots, compaction.

`make test-deep` only: each kill starts two JVMs.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sqlmesh_like.app.api import Project
from sqlmesh_like.fault_points import SPARK_POINTS, SWAP_POINTS
from tests.faults.calls import files_below, finished, kill_group, start, wait_for_files
from tests.faults.shop import PROFILE, Row, Rows
from tests.faults.tally import SEED, Tally, tallied

RANDOM_KILLS = int(os.environ.get("SML_SPARK_KILLS", "10"))
"""Of each kind of call."""
FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "towns"\nprofile = "lake"\n',
    "profiles.yml": PROFILE + "      delta_engine: spark\n",
    "models/plain.sql": "select id, town from {{ ref('towns') }}\n",
    "models/logged.sql": "{{ config(table_type='mor') }}\nselect id, town from {{ ref('towns') }}\n",
    "snapshots/versions.yml": """
snapshots:
  - name: versions
    relation: ref('towns')
    config: {schema: dws, unique_key: id, strategy: check, check_cols: all, hard_deletes: invalidate}
""",
}


@dataclass
class Towns:
    """The project below `root`. `rows`: those of the seed's file; `is_text`: whether ids are texts in `typed`."""

    root: Path
    dice: random.Random
    rows: dict[int, str] = field(default_factory=dict)
    is_text: bool = False

    def change(self) -> None:
        """Rows that come, change and go."""
        for _ in range(5):
            key = self.dice.randrange(12)
            if self.rows.pop(key, None) is None or self.dice.random() < 0.7:
                self.rows[key] = f"t{self.dice.randrange(1000)}"
        lines = [f"{key},{town}" for key, town in sorted(self.rows.items())]
        (self.root / "seeds" / "towns.csv").write_text("\n".join(["id,town", *lines, ""]))

    def turn_type(self) -> None:
        """The model `typed` gets a type that needs a new table."""
        self.is_text = not self.is_text
        column = "cast(id as string) as id" if self.is_text else "id"
        (self.root / "models" / "typed.sql").write_text(f"select {column}, town from {{{{ ref('towns') }}}}\n")

    def call(self, *words: str, fault: str | None = None) -> tuple[int | None, str]:
        return finished(start(self.root, *words, fault=fault))

    def stored(self, name: str, *columns: str) -> Rows:
        table = Project.load(self.root).table(name).to_arrow()
        return [tuple(row.values()) for row in table.select(list(columns)).to_pylist()]

    def look(self, tally: Tally) -> None:
        """Each table has the seed's rows; a snapshot has them as open versions."""
        rows: list[Row] = sorted(self.rows.items())
        for name in ("towns", "plain", "logged"):
            tally.compare(self.stored(name, "id", "town"), rows, name)
        typed = [(str(key), town) for key, town in rows] if self.is_text else rows
        tally.compare(self.stored("typed", "id", "town"), sorted(typed), "typed")
        versions = self.stored("versions", "id", "town", "dbt_valid_to")
        tally.compare([(key, town) for key, town, end in versions if end is None], rows, "versions")


@dataclass(frozen=True)
class Kill:
    """Calls of a kind. `before`: what is changed first; `words`: the call that is killed, and made again."""

    what: str
    steps: Sequence[str]
    words: Sequence[str]
    before: Callable[[Towns], None] = Towns.change


def _seeded(towns: Towns) -> None:
    towns.change()
    assert towns.call("seed")[0] == 0


def _unbuilt(towns: Towns) -> None:
    _seeded(towns)
    for name in ("plain", "logged", "typed"):
        shutil.rmtree(towns.root / "warehouse" / "dws" / name, ignore_errors=True)


def _retyped(towns: Towns) -> None:
    _seeded(towns)
    towns.turn_type()


def _logged(towns: Towns) -> None:
    """Log files, which compaction merges."""
    for _ in range(2):
        towns.change()
        assert towns.call("build")[0] == 0


KILLS = (
    Kill("first build", SPARK_POINTS, ("run",), _unbuilt),
    Kill("seed", ("seed.begin", *SPARK_POINTS, "seed.end"), ("seed",)),
    Kill("snapshot", ("snapshot.begin", "snapshot.end"), ("snapshot",), _seeded),
    Kill("full refresh", SPARK_POINTS, ("run", "--full-refresh"), _seeded),
    Kill("swap of a table", SWAP_POINTS, ("run", "-s", "typed"), _retyped),
    Kill("compaction", ("maintain.compacted",), ("maintain", "-s", "logged"), _logged),
)


@pytest.mark.deep
@pytest.mark.timeout(3600 * 4)
def test_killed_anywhere_on_spark_the_next_call_is_right(tmp_path: Path) -> None:
    towns = Towns(tmp_path, random.Random(SEED))
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "seeds").mkdir()
    towns.turn_type()
    _seeded(towns)
    for kill in KILLS:
        with tallied(kill.what) as tally:
            for step in kill.steps:
                _kill_at(towns, tally, step, kill)
            most = _files_of(towns, kill)
            while tally.kills["at random"] < RANDOM_KILLS:
                _kill_at_random(towns, tally, most, kill)


def _kill_at(towns: Towns, tally: Tally, step: str, kill: Kill) -> None:
    """Kill a call at a step."""
    kill.before(towns)
    code, output = towns.call(*kill.words, fault=step)
    assert code == -signal.SIGKILL, output
    tally.killed(step)
    _build(towns, tally)


def _files_of(towns: Towns, kill: Kill) -> int:
    """How many files the call leaves when it is not killed."""
    kill.before(towns)
    before = files_below(towns.root)
    code, output = towns.call(*kill.words)
    assert code == 0, output
    return len(files_below(towns.root) - before)


def _kill_at_random(towns: Towns, tally: Tally, most: int, kill: Kill) -> None:
    """Kill a call after some of its files. One that ends before does not count."""
    kill.before(towns)
    before = files_below(towns.root)
    call = start(towns.root, *kill.words)
    wait_for_files(towns.root, before, towns.dice.randint(1, most), call.ended)
    kill_group(call)
    code, output = finished(call)
    if code == -signal.SIGKILL:
        tally.killed("at random")
        _build(towns, tally)
    else:
        assert code == 0, output


def _build(towns: Towns, tally: Tally) -> None:
    """Build all, which includes what the killed call would have done."""
    code, output = towns.call("build")
    if code != 0:
        tally.add("stuck", f"exit code {code}: {output[-1500:]}")
    else:
        towns.look(tally)
