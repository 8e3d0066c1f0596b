"""`sml ls --orphans` and `sml clean --orphans` over tables written without a JVM."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.cli.app import main
from sqlmesh_like.cli.commands import clean
from sqlmesh_like.fault_points import FAULT_VARIABLE
from sqlmesh_like.plan.history import TableRecord
from tests.local_lake import make_table
from tests.unit.hudi.test_timeline import Lake, at

ROWS = pa.table({"id": [1, 2]})


def write(path: Path, node: str | None) -> None:
    """A table of one commit, which says that this node wrote it; None: a commit of another writer."""
    record = TableRecord(node, "print", {}, "2024-01-01T00:00:00+00:00", "full_refresh").to_json() if node else None
    make_table(path, ROWS, record)


def write_profile(root: Path, output: str) -> None:
    (root / "profiles.yml").write_text(f"lake: {{target: a, outputs: {{a: {output}}}}}\n")


def listed(capsys: pytest.CaptureFixture[str], *flags: str) -> dict[str, dict[str, object]]:
    capsys.readouterr()
    assert main(["ls", "--orphans", "--output", "json", *flags]) == 0
    records = map(json.loads, capsys.readouterr().out.splitlines())
    return {f"{record['schema']}.{record['name']}": record for record in records}


def snapshot_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "models").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "shop"\n')
    write_profile(tmp_path, "{type: spark, schema: dws, warehouse: w}")
    (tmp_path / "models/m.sql").write_text("select 1 as id")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)
    write(tmp_path / "w/dws/m", "model.shop.m")
    write(tmp_path / "w/dws/gone", "model.shop.gone")
    return tmp_path / "w"


def test_the_table_of_a_model_that_is_gone_is_listed_with_what_it_holds(
    warehouse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = snapshot_of(warehouse)
    (record,) = listed(capsys).values()
    assert (record["unique_id"], record["status"], record["last_commit"]) == ("model.shop.gone", "removed", at(1))
    assert Path(str(record["path"])).resolve() == warehouse / "dws/gone"
    assert record["rows"] == 2
    sizes = [path.stat().st_size for path in (warehouse / "dws/gone").rglob("*") if path.is_file()]
    assert record["bytes"] == sum(sizes)
    assert main(["ls", "--orphans"]) == 0
    text = capsys.readouterr().out
    assert "dws.gone" in text and "model.shop.gone" in text and at(1) in text and "dws.m " not in text
    assert main(["ls", "--orphans", "--output", "name"]) == 0
    assert capsys.readouterr().out == "dws.gone\n"
    assert snapshot_of(warehouse) == before, "nothing is changed"


@pytest.mark.parametrize("kind", ["seed", "snapshot", "test"])
def test_other_nodes_leave_orphans_too(kind: str, warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(warehouse / "dws/other", f"{kind}.shop.other")
    assert listed(capsys)["dws.other"]["resource_type"] == kind
    assert set(listed(capsys, "--resource-type", kind)) == {"dws.other"}


@pytest.mark.parametrize("node", ["model.other.x", "model", "source.shop.s.x", None])
def test_a_table_of_another_project_or_writer_is_never_an_orphan(
    node: str | None, warehouse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(warehouse / "dws/x", node)
    assert set(listed(capsys)) == {"dws.gone"}
    assert main(["clean", "--orphans", "--yes"]) == 0
    assert (warehouse / "dws/x/.hoodie").is_dir()


def test_a_table_that_another_writer_wrote_to_since_is_kept(
    warehouse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = Lake.__new__(Lake)
    lake.root, lake.folder = warehouse / "dws/gone", warehouse / "dws/gone/.hoodie/timeline"
    lake.commit(3, ["b"])
    assert listed(capsys) == {}


def test_a_model_that_is_disabled_is_said_to_be(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (warehouse.parent / "models/gone.sql").write_text("{{ config(enabled=false) }} select 1 as id")
    assert listed(capsys)["dws.gone"]["status"] == "disabled"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("heir.sql", "{{ config(alias='gone') }} select 1 as id"),
        ("s.yml", "sources: [{name: s, schema: dws, tables: [{name: gone, columns: [{name: id, data_type: int}]}]}]"),
        ("s.yml", "sources: [{name: s, tables: [{name: t, location: link/gone}]}]"),
        ("s.yml", "sources: [{name: s, tables: [{name: t, location: w/dws/gone/inner}]}]"),
    ],
)
def test_a_table_that_a_node_has_is_no_orphan_whoever_wrote_it(
    path: str, text: str, warehouse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (warehouse.parent / "link").symlink_to(warehouse / "dws")
    (warehouse.parent / "models" / path).write_text(text)
    assert listed(capsys) == {}


def test_what_a_swap_left_beside_a_table_belongs_to_it(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(warehouse / "dws/m__sml_old", "model.shop.before")
    write(warehouse / "dws/gone__sml_old", "model.shop.gone")
    assert set(listed(capsys)) == {"dws.gone", "dws.gone__sml_old"}


def test_a_table_with_a_savepoint_is_left_alone(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (warehouse / f"dws/gone/.hoodie/timeline/{at(1)}_{at(9)}.savepoint").touch()
    assert listed(capsys) == {}
    assert main(["clean", "--orphans", "--yes"]) == 0
    printed = capsys.readouterr()
    assert f"dws.gone of model.shop.gone: it has the savepoint {at(1)}" in printed.out + printed.err
    assert (warehouse / "dws/gone/.hoodie").is_dir()


def test_schemas_of_other_targets_and_folders_with_other_tables_are_left_alone(
    warehouse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(warehouse / "alice/gone", "model.shop.gone")
    write(warehouse / "dws/outer", "model.shop.outer")
    write(warehouse / "dws/outer/inner", None)
    (warehouse / "dws/linked").symlink_to(warehouse / "dws/gone")
    assert main(["clean", "--orphans", "--yes"]) == 0
    shown = capsys.readouterr()
    assert "alice.gone of model.shop.gone: no node of target 'a' is in its schema" in shown.err
    assert "dws.outer of model.shop.outer: another table is inside its folder, inner" in shown.err
    assert (warehouse / "alice/gone/.hoodie").is_dir() and (warehouse / "dws/outer/inner/.hoodie").is_dir()
    assert not (warehouse / "dws/gone").exists()


def test_a_table_that_cannot_be_read_is_left_alone(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (commit,) = (warehouse / "dws/gone/.hoodie/timeline").glob("*.commit")
    commit.write_bytes(b"")
    assert main(["ls", "--orphans", "--output", "name"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "" and "left alone: dws.gone cannot be read" in shown.err


def test_without_a_terminal_nothing_is_dropped_unless_the_call_says_yes(
    warehouse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = snapshot_of(warehouse)
    assert main(["clean", "--orphans"]) == 2
    shown = capsys.readouterr()
    assert "dws.gone" in shown.out and "--yes" in shown.err
    assert snapshot_of(warehouse) == before
    assert main(["clean", "--orphans", "--yes"]) == 0
    assert "Dropped dws.gone" in capsys.readouterr().out
    assert not (warehouse / "dws/gone").exists() and (warehouse / "dws/m/.hoodie").is_dir()
    assert list((warehouse / "_sml/dropped").iterdir()) == []
    assert main(["clean", "--orphans"]) == 0, "there is nothing to ask"


@pytest.mark.parametrize("answer", [True, False])
def test_on_a_terminal_the_answer_decides(answer: bool, warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(warehouse / "dws/versions", "snapshot.shop.versions")
    asked: list[str] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr(clean.click, "confirm", lambda text, **given: bool(asked.append(text)) or answer)
    assert main(["clean", "--orphans"]) == 0
    assert asked == ["Old versions of rows in 1 snapshot are stored nowhere else. Drop 2 tables?"]
    assert (warehouse / "dws/gone").exists() is not answer


def test_a_table_that_changed_after_the_question_is_kept(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def confirm(text: str, **given: object) -> bool:
        (warehouse / "dws/gone/more.parquet").write_bytes(b"x")
        return True

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr(clean.click, "confirm", confirm)
    assert main(["clean", "--orphans"]) == 0
    assert "dws.gone has changed since it was listed: it is kept" in capsys.readouterr().out
    assert (warehouse / "dws/gone").exists()


def test_a_writer_is_not_disturbed(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with lake_lock(load(Invocation()), "run", {"dws.gone": "read"}):
        assert main(["clean", "--orphans", "--yes"]) == 1
    assert "another `sml run` is reading dws.gone of" in capsys.readouterr().err
    assert (warehouse / "dws/gone/.hoodie").is_dir()


def test_a_project_that_cannot_be_read_has_no_orphans(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (warehouse.parent / "models/gone.sql").write_text("select {{ nothing( }} as id")
    for call in (["ls", "--orphans"], ["clean", "--orphans", "--yes"]):
        assert main(call) == 2
        assert "models/gone.sql" in capsys.readouterr().err
    assert (warehouse / "dws/gone/.hoodie").is_dir()


def test_stored_failures_of_a_test_are_its_own_whether_or_not_this_call_stores_them(
    warehouse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (warehouse.parent / "tests").mkdir()
    (warehouse.parent / "tests/no_zero.sql").write_text("select * from {{ ref('m') }} where id = 0")
    write(warehouse / "dws/failures", "test.shop.no_zero")
    assert set(listed(capsys)) == {"dws.gone"}
    write(warehouse / "dws_dbt_test__audit/older", "test.shop.older")
    assert set(listed(capsys)) == {"dws.gone", "dws_dbt_test__audit.older"}
    (warehouse.parent / "tests/no_zero.sql").unlink()
    assert set(listed(capsys)) == {"dws.failures", "dws.gone"}


def test_lines_of_json_stay_json(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(warehouse / "alice/gone", "model.shop.gone")
    assert main(["clean", "--orphans", "--yes", "--log-format", "json"]) == 0
    shown = capsys.readouterr()
    texts = [json.dumps(json.loads(line)) for line in (shown.out + shown.err).splitlines()]
    assert any("dws.gone of model.shop.gone, removed" in text for text in texts)
    assert any("left alone: alice.gone" in text for text in texts)


def test_a_removal_that_is_killed_leaves_no_half_table_and_the_next_one_ends_it(
    warehouse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = {**os.environ, FAULT_VARIABLE: "drop.moved:1", "PYTHONPATH": str(Path(clean.__file__).parents[3])}
    call = [sys.executable, "-m", "sqlmesh_like", "clean", "--orphans", "--yes"]
    assert subprocess.run(call, env=environment, capture_output=True, check=False).returncode == -signal.SIGKILL
    assert not (warehouse / "dws/gone").exists()
    (left,) = (warehouse / "_sml/dropped").iterdir()
    assert (left / ".hoodie/hoodie.properties").is_file(), "it was moved whole"
    assert listed(capsys) == {}
    assert main(["clean", "--orphans", "--yes"]) == 0
    assert list((warehouse / "_sml/dropped").iterdir()) == []


def test_the_entry_in_a_catalog_is_named(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_profile(warehouse.parent, "{type: spark, schema: dws, warehouse: w, catalog: {hive: {}}}")
    assert main(["clean", "--orphans", "--yes"]) == 0
    assert "its entry in the hive catalog stays: run DROP TABLE `dws`.`gone` there" in capsys.readouterr().out


def test_a_remote_warehouse_is_listed_but_not_dropped(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_profile(warehouse.parent, "{type: spark, schema: dws, warehouse: 'memory://w'}")
    store = fsspec.filesystem("memory")
    store.put(str(warehouse), "/w", recursive=True)
    try:
        assert {name: record["path"] for name, record in listed(capsys).items()} == {"dws.gone": "memory://w/dws/gone"}
        assert main(["clean", "--orphans", "--yes"]) == 1
        assert "memory://w is neither on this machine nor on S3" in capsys.readouterr().err
        assert store.exists("/w/dws/gone/.hoodie/hoodie.properties")
    finally:
        store.rm("/w", recursive=True)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (["clean", "--yes"], "--yes answers the question of --orphans"),
        (["clean", "--orphans", "-s", "m"], "--orphans takes no selection"),
        (["ls", "--orphans", "--exclude", "m"], "--orphans takes no selection"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(
    call: list[str], says: str, warehouse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(call) == 2
    assert says in capsys.readouterr().err
    assert (warehouse / "dws/gone").exists()


def test_a_target_without_a_lake_is_refused(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_profile(warehouse.parent, "{type: duckdb, schema: dws}")
    assert main(["ls", "--orphans"]) == 2
    assert "has no lake" in capsys.readouterr().err
