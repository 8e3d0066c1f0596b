"""Snapshots taken in this process: their versions are those that the program gives by itself, and no JVM starts."""

from __future__ import annotations

import hashlib
import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sqlmesh_like import Project
from sqlmesh_like.errors import Location
from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.hudi.table_reader import read_table_rows
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import is_hidden
from sqlmesh_like.project.snapshots import snapshot_config
from tests.snapshot_table import Kept, day

SEED = """
seeds: [{name: items, config: {column_types: {id: int, v: string, ts: timestamp}}}]
"""
FILES = {
    "dbt_project.yml": "name: kept\nprofile: kept\n",
    "profiles.yml": "kept: {target: dev, outputs: {dev: {type: spark, warehouse: lake}}}\n",
    "seeds/seeds.yml": SEED,
    "models/versions.sql": "{{ config(materialized='incremental') }}"
    "select id, count(*) as n, count(dbt_valid_to) as ended from {{ ref('s') }} group by id\n",
}
KEY = "coalesce(v, '') || '!'"
IDS = 3
"""The place of `dbt_scd_id`, which holds the text of a moment: as Spark writes it, which plain DuckDB does not."""
Item = tuple[int, str | None, str | None]


class Lake:
    """A project with a seed, its snapshot, and a model that counts the versions of each row."""

    def __init__(self, root: Path, **config: object) -> None:
        self.root = root
        said = {"unique_key": "id", **config}
        arguments = ", ".join(f"{name}={value!r}" for name, value in said.items())
        query = (
            f"{{% snapshot s %}}{{{{ config({arguments}) }}}}select * from {{{{ ref('items') }}}}{{% endsnapshot %}}\n"
        )
        for path, text in {**FILES, "snapshots/s.sql": query}.items():
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_text(text)
        self.kept = Kept(snapshot_config(said, Location("snapshots/s.sql", 1, 1), "s"))

    def take(self, today: int, *items: Item) -> dict[str, str]:
        """Load these rows on a day and build all; returns the status of each node."""
        lines = (",".join("" if value is None else str(value) for value in item) for item in items)
        (self.root / "seeds/items.csv").write_text("\n".join(["id,v,ts", *lines]) + "\n")
        with Project.load(self.root) as project:
            return {each.node.name: each.status for each in project.build(now=at(today)).results}

    def commits(self) -> int:
        return len(self._timeline("s").commit_instants)

    def rows(self, name: str = "s") -> list[tuple[str, ...]]:
        shown = read_table_rows(table_state(self._timeline(name)), -1)
        assert shown is not None
        return sorted(tuple(str(value).removesuffix("+00:00") for value in row) for row in shown.rows)

    def expected(self) -> list[tuple[str, ...]]:
        result = self.kept.db.execute("select columns(*)::varchar from kept")
        shown = [place for place, (name, *_) in enumerate(result.description or ()) if not is_hidden(name)]
        return sorted(tuple(str(row[place]).removesuffix("+00") for place in shown) for row in result.fetchall())

    def _timeline(self, name: str) -> Timeline:
        return Timeline(str(next((self.root / "lake").rglob(name))))


def without_ids(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return sorted((*row[:IDS], *row[IDS + 1 :]) for row in rows)


pytestmark = pytest.mark.usefixtures("no_spark")


def at(number: int) -> datetime:
    return datetime(2024, 1, number, tzinfo=UTC)


@pytest.mark.parametrize(
    "config",
    [
        {"strategy": "check", "check_cols": "all", "hard_deletes": "new_record"},
        {"strategy": "timestamp", "updated_at": "ts", "hard_deletes": "invalidate", "unique_key": ["id", KEY]},
    ],
)
def test_versions_are_those_of_the_program_day_by_day(tmp_path: Path, config: dict[str, object]) -> None:
    lake, dice = Lake(tmp_path, **config), random.Random(20241101)
    for today in range(1, 6):
        present = [number for number in range(5) if dice.random() < 0.7]
        items = [(n, dice.choice(["a", "b|c", "ü", None]), day(dice.randint(1, today))) for n in present]
        statuses = lake.take(today, *items)
        assert set(statuses.values()) <= {"success", "no-op"}, statuses
        lake.kept.take(today, *items)
        assert without_ids(lake.rows()) == without_ids(lake.expected()), today
    for row in lake.rows():
        texts = [row[0], *([row[1].replace("None", "") + "!"] if len(lake.kept.how.unique_key) > 1 else []), row[5]]
        assert row[IDS] == hashlib.md5("|".join(texts).encode(), usedforsecurity=False).hexdigest()
    counts: dict[str, list[bool]] = {}
    for row in lake.rows():
        counts.setdefault(row[0], []).append(row[6] != "None")
    assert lake.rows("versions") == sorted((id_, str(len(e)), str(sum(e))) for id_, e in counts.items())
    before = lake.commits()
    assert lake.take(6, *items)["s"] in ("success", "no-op")
    assert lake.commits() == before


def test_a_key_that_is_missing_or_repeats_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    lake = Lake(tmp_path, strategy="check", check_cols=["v"])
    assert lake.take(1, (1, "a", None), (1, "b", None))["s"] == "error"
    lake.take(2, (1, "a", None))
    before = lake.rows()
    (tmp_path / "snapshots/s.sql").write_text(
        (tmp_path / "snapshots/s.sql").read_text().replace("select *", "select nullif(id, 2) as id, v, ts")
    )
    assert lake.take(3, (1, "c", None), (2, "b", None))["s"] == "error"
    assert lake.rows() == before
