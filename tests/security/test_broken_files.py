"""Files that are not what they should be: an error that says so, never an unexpected one."""

from __future__ import annotations

import copy
import http.client
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlmesh_like.app.loading import own_calls
from sqlmesh_like.app.monitoring.status_server import serve_status
from sqlmesh_like.app.monitoring.watch_status import WatchStatus
from sqlmesh_like.cli.app import main
from tests.levels import count
from tests.projects import enter_project

FILES = {
    "dbt_project.yml": "name: shop\nprofile: shop\n",
    "profiles.yml": "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}, other: {type: duckdb, schema: x}}}\n"
    "else: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
    "models/m.sql": "select 1 as a",
    "models/n.sql": "select a from {{ ref('m') }}",
    "tests/fails.sql": "select 1 as a",
    "models/y.yml": "models: [{name: m, columns: [{name: a, data_tests: [not_null]}]}]\n",
    "seeds/s.csv": "a\n1\n",
    "macros/x.sql": "{% macro x() %}1{% endmacro %}",
}
Shown = pytest.CaptureFixture[str]
VALUES = (
    "190:20:30", "1:2:3.5", "0b_", "0x_", "._", "1_:20", "1e999", "2020-13-45", "!!int x", "!!float x", "!!timestamp x",
    "!!bool x", "!!null x", "!!merge x", "!!binary x", "!!python/object:os.system x", "!!set {a}", "1" + ":1" * 3000,
    "1" + ":1" * 3000 + ".0", "0x" + "f" * 6000, "9" * 5000, "{[1]: 2}", "{1.5: 2, null: 1}",
)  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value[:20])
@pytest.mark.parametrize("path", ["dbt_project.yml", "models/y.yml"])
def test_a_value_of_yaml_is_read_or_refused_with_its_line(
    path: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    texts = {
        "dbt_project.yml": f"{FILES['dbt_project.yml']}vars:\n  x: {value}\n",
        "models/y.yml": f"models:\n- name: m\n  meta: {{x: {value}}}\n",
    }
    enter_project(
        tmp_path, monkeypatch, {**FILES, path: texts[path], "models/n.sql": "select '{{ var('x', 1) }}' as a"}
    )
    code = main(["parse"])
    shown = "".join(capsys.readouterr())
    assert "unexpected" not in shown and (code == 0 or (code == 2 and f"{path}:" in shown)), shown


def broken(manifest: dict[str, object], chance: random.Random) -> dict[str, object]:
    """The manifest with one value, at any depth, replaced by one of another type."""
    result = copy.deepcopy(manifest)
    place: object = result
    while isinstance(place, dict | list) and place:
        key = chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
        value = place[key]
        if not isinstance(value, dict | list) or not value or chance.random() < 0.3:
            place[key] = chance.choice([None, 1, "x", [], [1], [[1]], {}, {"a": [1]}, True])
            break
        place = value
    return result


def test_an_artifact_of_another_shape_is_compared_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    enter_project(tmp_path, monkeypatch, FILES)
    assert main(["parse"]) == 0
    manifest = json.loads((tmp_path / "target/manifest.json").read_text())
    nodes = {name: manifest[name] for name in ("metadata", "nodes", "sources", "unit_tests", "exposures")}
    small = {**nodes, "macros": {"macro.shop.x": manifest["macros"]["macro.shop.x"]}}
    chance = random.Random(7)
    (tmp_path / "state").mkdir()
    for _ in range(count(30, 120, 1_000)):
        text = json.dumps(broken(small, chance))
        (tmp_path / "state/manifest.json").write_text(text)
        code = main(["ls", "-s", "state:modified+", "state:new", "--state", "state"])
        shown = "".join(capsys.readouterr())
        assert code in (0, 2) and "unexpected" not in shown, f"{shown}\n{text}"


@pytest.mark.parametrize("where", ["package-lock.yml", "target/.run_history.json.lock", "target/run_results.json"])
def test_a_folder_in_the_place_of_a_file_is_said_to_be_one(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    kit = {"packages.yml": "packages: [{local: ../kit}]\n", "../kit/dbt_project.yml": "name: kit\n"}
    enter_project(tmp_path / "shop", monkeypatch, {**FILES, **kit, f"{where}/x": ""})
    for words in (["deps", "-t", "t"], ["seed"], ["retry"]):
        assert main(words) in (0, 1, 2)
        shown = "".join(capsys.readouterr())
        assert "unexpected" not in shown, shown


def test_the_history_is_not_locked_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    enter_project(tmp_path / "shop", monkeypatch, {**FILES, "../precious": "precious", "target/x": ""})
    (tmp_path / "shop/target/.run_history.json.lock").symlink_to("../../precious")
    assert main(["seed"]) == 2 and "is a link" in capsys.readouterr().err
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_file_beside_the_locks_that_is_none_of_theirs_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    spark = "shop: {target: t, outputs: {t: {type: spark, schema: dws, warehouse: lake}}}\n"
    enter_project(tmp_path, monkeypatch, {**FILES, "profiles.yml": spark, "lake/_sml/locks/1x.lock": ""})
    assert main(["maintain"]) == 0
    assert "unexpected" not in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("args", "flag"),
    [({"target": "other"}, "--target"), ({"profile": "else"}, "--profile"), ({"profiles_dir": "/"}, "--profiles-dir"),
     ({"project_dir": ".."}, "--project-dir"), ({"target_path": "x"}, "--target-path"), ({"state": ".."}, "--state")],
)  # fmt: skip
def test_retry_follows_no_results_of_a_project_to_another_place(
    args: dict[str, str], flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    enter_project(tmp_path, monkeypatch, FILES)
    assert main(["build"]) == 1
    path = tmp_path / "target/run_results.json"
    results = json.loads(path.read_text())
    path.write_text(json.dumps({**results, "args": {**results["args"], **args}}))
    capsys.readouterr()
    assert main(["retry"]) == 2
    assert f"give {flag} again" in capsys.readouterr().err


def test_retry_repeats_an_own_call_with_its_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter_project(tmp_path, monkeypatch, FILES)
    assert main(["build", "-t", "other"]) == 1
    assert main(["retry"]) == 1
    assert json.loads((tmp_path / "target/run_results.json").read_text())["args"]["target"] == "other"
    monkeypatch.setattr(own_calls, "read_own", lambda _: None)
    assert main(["retry"]) == 2 and main(["retry", "-t", "other"]) == 1


@pytest.fixture
def port() -> Iterator[int]:
    with serve_status(WatchStatus(), ("127.0.0.1", 0)) as number:
        assert number is not None
        yield number


@pytest.mark.parametrize(("host", "status"), [("evil.example", 421), ("evil.example:9100", 421), ("localhost", 200),
    ("127.0.0.1:9100", 200), ("watch:9100", 200), ("watch.shop.svc.cluster.local", 200)])  # fmt: skip
def test_the_status_of_a_watch_is_told_to_its_own_network(host: str, status: int, port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", "/health", headers={"Host": host})
    assert connection.getresponse().status == status
