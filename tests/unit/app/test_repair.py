"""A source's table that is broken goes back to its last whole commit, so that its source reads the rest again."""

from __future__ import annotations

import json
import random
from contextlib import nullcontext
from pathlib import Path

import pytest

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.loading.loaded import Loaded, load
from sqlmesh_like.app.operations import ingestion
from sqlmesh_like.app.operations.recovery.repair import find_damage, restore_ingested_table
from sqlmesh_like.app.operations.recovery.rollback import plan_rollback
from sqlmesh_like.cdc.report import IngestReport
from sqlmesh_like.cdc.sources.discover import discover
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.cdc.tables.last_commits import note_last_commits, tables_that_went_back
from sqlmesh_like.cli.app import main
from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.recovery.table_removal import set_aside
from sqlmesh_like.project.nodes import Source
from tests.faults.shop import ORDERS, Shop
from tests.unit.cdc.test_missing_batches import entry, query

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\nprofile = "lake"\n',
    "profiles.yml": "lake:\n  target: local\n  outputs:\n    local: {type: spark, warehouse: warehouse, schema: dws}\n",
    "models/sources.yml": """
sources:
  - name: till
    schema: dws
    ingest: {format: debezium, files: {path: landing/*}}
    tables:
      - {name: orders, ingest: {database: db, primary_key: [id]}}
""",
}


class Till(Shop):
    """The orders as a source fills them: three batches of a file each."""

    def loaded(self) -> Loaded:
        return load(Invocation(project_dir=self.root))

    @property
    def place(self) -> SourcePaths:
        loaded = self.loaded()
        return SourcePaths(loaded.target, loaded.project.sources[0])

    def file_of(self, frontier: str) -> Path:
        timeline = self.timeline(ORDERS)
        [path] = [path for path in timeline.data_files if frontier.split("_")[0] in path]
        return Path(timeline.uri) / path

    @property
    def frontiers(self) -> list[str]:
        return [commit.frontier for commit in self.timeline(ORDERS).commit_instants]


@pytest.fixture
def till(tmp_path: Path) -> Till:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    Shop.of_inputs(tmp_path)
    made, dice = Till(tmp_path), random.Random(7)
    made.reset()
    landing = tmp_path / "landing"
    entries = [entry(landing, f"f{n}", n) for n in range(3)]
    place = made.place
    query(
        Path(place.checkpoint),
        {n: {"logOffset": n} for n in range(3)},
        {str(n): entries[n : n + 1] for n in range(3)},
        2,
    )
    for n in range(3):
        last = (landing / f"f{n}").as_uri()
        marker = json.dumps({"query": "q", "batch": n, "offsets": {"digest": "d", "last": last}})
        made.commit(ORDERS, dice, {"ingest": marker})
        note_last_commits(place, [place.source.tables[0].table])
    return made


def test_it_goes_back_and_the_ingestion_sees_what_it_lacks(till: Till) -> None:
    known, message = till.frontiers, list[str]()
    till.file_of(known[3]).unlink()
    damage = find_damage(till.loaded(), "till.orders")
    assert damage.source == "till" and damage.health.good == known[2] and "is gone" in (damage.health.problem or "")
    restore_ingested_table(till.loaded(), damage, message.append)
    assert till.frontiers == known[:3] and till.stored(ORDERS) == till.rows_at[ORDERS, known[2]]
    assert message == [f"dws.orders went back to {known[2]}: taken off are {known[3].split('_')[0]}"]
    [lost] = tables_that_went_back(till.place)
    assert lost.is_whole and known[3] in lost.problem


def test_a_reader_names_the_file_that_is_missing(till: Till, capsys: pytest.CaptureFixture[str]) -> None:
    path = till.file_of(till.frontiers[3])
    path.unlink()
    assert main(["show", "till.orders", "--project-dir", str(till.root)]) == 1
    said = capsys.readouterr().err
    assert path.name in said and "sml repair" in said and "unexpected" not in said


def test_without_a_whole_commit_it_is_set_aside_and_nothing_is_removed(till: Till) -> None:
    known, message = till.frontiers, list[str]()
    timeline = Path(till.timeline(ORDERS).uri)
    for frontier in known:
        (timeline / ".hoodie" / "timeline" / f"{frontier}.commit").write_bytes(b"")
    damage = find_damage(till.loaded(), "till.orders")
    assert damage.health.good is None
    restore_ingested_table(till.loaded(), damage, message.append)
    assert not timeline.exists() and "its folder is now" in message[0]
    [aside] = timeline.parent.glob("orders__sml_broken_*")
    assert len(list(aside.glob("*.parquet"))) == 3


def test_a_table_that_is_set_aside_twice_within_a_second_is_not_moved_into_the_first(tmp_path: Path) -> None:
    table = tmp_path / "orders"
    for number in range(5):
        table.mkdir()
        (table / f"{number}.parquet").touch()
        set_aside(str(table))
    asides = sorted(tmp_path.glob("orders__sml_broken_*"))
    assert [[file.name for file in aside.iterdir()] for aside in asides] == [[f"{n}.parquet"] for n in range(5)]


def test_where_the_source_lost_its_file_nothing_is_touched(till: Till) -> None:
    known = till.frontiers
    till.file_of(known[3]).write_bytes(b"PAR1")
    (till.root / "landing" / "f2").unlink()
    with pytest.raises(NodeError, match="of which 1 are gone"):
        restore_ingested_table(till.loaded(), find_damage(till.loaded(), "till.orders"), lambda _: None)
    assert till.frontiers == known


def test_a_rollback_says_what_the_source_reads_again(till: Till) -> None:
    known = till.frontiers
    assert plan_rollback(till.loaded(), "till.orders", known[1]).replayed == 2
    (till.root / "landing" / "f1").unlink()
    assert plan_rollback(till.loaded(), "till.orders", known[2]).replayed == 1
    with pytest.raises(NodeError, match="could not be ingested again"):
        plan_rollback(till.loaded(), "till.orders", known[1])


@pytest.fixture
def ingested(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the sources that are ingested, which these tests do without Spark."""
    names: list[str] = []

    def ingest_pending(_spark: object, _loaded: Loaded, sources: list[Source], *_: object) -> list[IngestReport]:
        names.extend(source.name for source in sources)
        return []

    monkeypatch.setattr(ingestion, "session_for", lambda *_, **__: nullcontext())
    monkeypatch.setattr(ingestion, "_ingest_pending", ingest_pending)
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)
    return names


def test_a_broken_model_does_not_stop_the_ingestion_after_the_repair(till: Till, ingested: list[str]) -> None:
    known = till.frontiers
    till.file_of(known[3]).unlink()
    (till.root / "models/broken.sql").write_text("select {{ nothing.at.all }} as a")
    assert main(["repair", "till.orders", "--project-dir", str(till.root)]) == 0
    assert till.frontiers == known[:3] and ingested == ["till"]


def test_a_source_without_declared_tables_is_ingested_after_the_repair(till: Till, ingested: list[str]) -> None:
    known = till.frontiers
    till.file_of(known[3]).unlink()
    sources = till.root / "models/sources.yml"
    sources.write_text(sources.read_text().partition("    tables:")[0].replace("{format", "{discover: true, format"))
    table = Path(till.timeline(ORDERS).uri)
    aside = table.rename(table.with_name("aside"))
    discover(till.place, {("db", None, "orders"): ["id"]})  # a table is named before it is there
    aside.rename(table)
    assert main(["repair", "till.orders", "--project-dir", str(till.root)]) == 0
    assert till.frontiers == known[:3] and ingested == ["till"]
