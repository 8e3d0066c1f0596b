"""`sml freshness`: ages of the newest rows against dbt's thresholds, with no JVM."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqlmesh_like.cli.app import main
from tests.unit.hudi.test_timeline import Lake, at

PROFILES = "lake: {target: a, outputs: {a: {type: spark, schema: dws, warehouse: w}}}"
HOURS = "{warn_after: {count: 1, period: hour}, error_after: {count: 1, period: day}}"
SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "came", "type": [{"type": "long", "logicalType": "timestamp-micros"}, "null"]},
    ],
}


def write_project(root: Path, tables: str, source: str = "") -> None:
    (root / "models").mkdir()
    (root / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "shop"\n')
    (root / "profiles.yml").write_text(PROFILES)
    text = f"version: 2\nsources:\n  - name: shop\n    schema: ods\n{source}    tables:\n{tables}"
    (root / "models" / "sources.yml").write_text(text)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)
    return tmp_path


def results(root: Path) -> dict[str, Any]:
    document = json.loads((root / "target" / "sources.json").read_text())
    assert document["metadata"]["dbt_schema_version"] == "https://schemas.getdbt.com/dbt/sources/v3.json"
    return {row["unique_id"].rpartition(".")[2]: row for row in document["results"]}


def lake_with(root: Path, name: str, *ages: datetime.timedelta) -> None:
    """A table of one commit long ago, whose rows came so long ago."""
    lake = Lake(root / "w" / "ods" / name)
    lake.commit(1, ["a"], extra={"schema": json.dumps(SCHEMA)})
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    came = pa.array([now - age for age in ages], pa.timestamp("us"))
    data = pa.table({"id": pa.array(range(len(ages)), pa.int32()), "came": came})
    pq.write_table(data, lake.root / "p=1" / f"a_0-1-2_{at(1)}.parquet")


def test_a_stale_source_fails_and_sources_json_says_how_old_it_is(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = "".join(f"      - {{name: {name}}}\n" for name in ("fresh", "late", "stale", "empty", "gone"))
    tables += "      - {name: silent, freshness: null}\n"
    tables += "      - {name: committed, loaded_at_field: null, freshness: {error_after: {count: 1, period: minute}}}\n"
    source = f"    loaded_at_field: came\n    freshness: {HOURS}\n"
    write_project(root, tables.replace("loaded_at_field: null, ", ""), source)
    hour = datetime.timedelta(hours=1)
    lake_with(root, "fresh", hour * 50, hour / 2)
    lake_with(root, "late", hour * 2)
    lake_with(root, "stale", hour * 30)
    lake_with(root, "empty")
    lake_with(root, "committed", hour * 0)
    assert main(["freshness"]) == 1
    by_source = results(root)
    assert {name: row["status"] for name, row in by_source.items()} == {
        "fresh": "pass",
        "late": "warn",
        "stale": "error",
        "empty": "error",
        "gone": "runtime error",
        "committed": "pass",
    }
    assert 7200 <= by_source["late"]["max_loaded_at_time_ago_in_s"] < 7300
    assert by_source["late"]["criteria"]["warn_after"] == {"count": 1, "period": "hour"}
    assert by_source["committed"]["criteria"]["error_after"] == {"count": 1, "period": "minute"}
    assert "the table ods.gone does not exist yet" in by_source["gone"]["error"]
    shown = capsys.readouterr().out
    assert "ERROR STALE freshness of shop.stale" in shown
    assert "Done. PASS=2 WARN=1 ERROR=3" in shown
    assert main(["freshness", "-s", "source:shop.late"]) == 0
    assert set(results(root)) == {"late"}


def test_without_a_field_the_last_commit_tells(root: Path) -> None:
    write_project(root, f"      - {{name: t, config: {{freshness: {HOURS}}}}}\n")
    Lake(root / "w" / "ods" / "t").commit(1, ["a"])
    assert main(["freshness", "-o", "elsewhere.json"]) == 1
    (row,) = json.loads((root / "elsewhere.json").read_text())["results"]
    assert (row["status"], row["max_loaded_at"]) == ("error", "2024-01-01T00:00:02.000000Z")


def test_what_is_asked_wrongly_is_said_with_its_place(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_project(root, "      - {name: t, freshness: {warn_after: {count: 1, period: week}}}\n")
    assert main(["freshness"]) == 2
    assert "models/sources.yml:6:" in (shown := capsys.readouterr().err)
    assert "period is 'week'" in shown


def test_dbts_spelling_does_the_same_and_later_calls_choose_what_is_fresher(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_project(root, f"      - {{name: user, loaded_at_field: came, freshness: {HOURS}}}\n")
    lake_with(root, "user", datetime.timedelta(minutes=5))
    assert main(["source", "freshness"]) == 0
    target, before = root / "target", root / "before"
    message = json.loads((target / "sources.json").read_text())
    newest = [row["unique_id"] for row in message["results"] if row.get("max_loaded_at")]
    assert newest
    before.mkdir()
    (before / "sources.json").write_text(json.dumps(message))
    capsys.readouterr()
    words = ["ls", "-s", "source_status:fresher", "--state", "before", "--output", "name"]
    assert main(words) == 0
    assert capsys.readouterr().out == ""
    for row in message["results"]:
        row.pop("max_loaded_at", None)
    (before / "sources.json").write_text(json.dumps(message))
    assert main(words) == 0
    assert sorted(capsys.readouterr().out.split()) == sorted(name.rpartition(".")[2] for name in newest)
    (target / "sources.json").unlink()
    assert main(words) == 2
    assert "needs sources.json" in capsys.readouterr().err


def test_where_nobody_asks_there_is_nothing_to_do(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_project(root, "      - {name: t}\n")
    assert main(["freshness"]) == 0
    assert "Nothing to do" in capsys.readouterr().out
