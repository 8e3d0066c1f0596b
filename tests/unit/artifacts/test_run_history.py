"""What calls leave for the site: problems that last until their node succeeds, and what runs read of a rebuild."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.app.operations.run_results import write_results
from sqlmesh_like.artifacts.run_history import HISTORY, MOST_CALLS, extend_history, target_history
from sqlmesh_like.cli.app import main
from sqlmesh_like.run.result import RunResult

History = dict[str, object]


def results(day: int, *rows: dict[str, object]) -> History:
    moment = f"2024-01-{day:02}T00:00:00Z"
    metadata = {"generated_at": moment, "invocation_id": f"call-{day}"}
    return {"metadata": metadata, "results": list(rows), "elapsed_time": 2.0, "args": {"which": "build"}}


def row(name: str, status: str, **response: object) -> dict[str, object]:
    return {"unique_id": name, "status": status, "message": f"{name} {status}", "adapter_response": response}


def read(name: str, strategy: str, delta: int, full: int) -> dict[str, object]:
    estimate = {
        "read_bytes": delta, "strategies": {"row_based": {"read_bytes": delta}}, "full_refresh": {"read_bytes": full},
    }  # fmt: skip
    return row(name, "success", strategy=strategy, estimate=estimate)


def history(*calls: History) -> History | None:
    made: History | None = None
    for call in calls:
        made = extend_history(made, "dev", call)
    return made


def test_a_problem_is_as_old_as_the_first_call_that_had_it() -> None:
    made = history(results(1, row("t", "pass")), results(2, row("t", "fail")), results(3, row("t", "error")))
    assert target_history(made, "dev", None).problems["t"] == {
        "status": "error", "message": "t error", "failures": None,
        "since": "2024-01-02T00:00:00Z", "at": "2024-01-03T00:00:00Z",
    }  # fmt: skip


def test_a_call_that_leaves_a_node_out_or_skips_it_says_nothing_of_it() -> None:
    made = history(results(1, row("t", "fail")), results(2, row("m", "success")), results(3, row("t", "skipped")))
    problem = target_history(made, "dev", None).problems["t"]
    assert isinstance(problem, dict) and problem["since"] == problem["at"] == "2024-01-01T00:00:00Z"


def test_a_success_ends_a_problem() -> None:
    for ending in ("success", "pass", "no-op"):
        made = history(results(1, row("m", "warn")), results(2, row("m", ending)))
        assert target_history(made, "dev", None).problems == {}


def test_a_warning_that_becomes_a_failure_is_a_new_problem() -> None:
    made = history(results(1, row("t", "warn")), results(2, row("t", "fail")))
    problem = target_history(made, "dev", None).problems["t"]
    assert isinstance(problem, dict) and problem["since"] == "2024-01-02T00:00:00Z"


def test_what_a_run_read_is_compared_with_what_rebuilding_reads() -> None:
    made = history(results(1, read("a", "row_based", 10, 1000), read("b", "row_based", 2, 200), row("v", "success")))
    call = target_history(made, "dev", None).calls[-1]
    assert (call["read_bytes"], call["rebuild_bytes"], call["measured"]) == (12, 1200, 2)


def test_a_model_that_was_rebuilt_after_all_has_read_everything() -> None:
    made = history(results(1, read("a", "full_refresh", 10, 1000)))
    call = target_history(made, "dev", None).calls[-1]
    assert (call["read_bytes"], call["rebuild_bytes"]) == (1000, 1000)


def test_a_model_in_which_nothing_changed_would_read_what_its_last_rebuild_had() -> None:
    made = history(results(1, read("a", "row_based", 10, 1000)), results(2, row("a", "no-op"), row("b", "no-op")))
    call = target_history(made, "dev", None).calls[-1]
    assert (call["read_bytes"], call["rebuild_bytes"], call["measured"]) == (0, 1000, 1)


def test_a_model_that_failed_has_read_nothing_that_counts() -> None:
    failed = {**read("a", "row_based", 10, 1000), "status": "error"}
    call = target_history(history(results(1, failed)), "dev", None).calls[-1]
    assert (call["rebuild_bytes"], call["measured"], call["statuses"]) == (0, 0, {"error": 1})


def test_the_oldest_calls_are_dropped() -> None:
    made: History | None = None
    for number in range(MOST_CALLS + 2):
        made = extend_history(made, "dev", {**results(1), "elapsed_time": number})
    calls = target_history(made, "dev", None).calls
    assert (len(calls), calls[0]["seconds"]) == (MOST_CALLS, 2)


def test_targets_know_nothing_of_each_other() -> None:
    made = extend_history(history(results(1, row("t", "fail"))), "prod", last := results(2, row("t", "pass")))
    dev, prod = target_history(made, "dev", last), target_history(made, "prod", last)
    assert "t" in dev.problems and dev.results is None
    assert not prod.problems and prod.results == last


def test_results_without_a_history_are_its_first_call() -> None:
    history = target_history(None, "dev", last := results(1, row("t", "fail")))
    assert history.results == last and list(history.problems) == ["t"] and len(history.calls) == 1


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    (tmp_path / "models/one.sql").write_text("select 1 as a")
    (tmp_path / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "shop"\n')
    (tmp_path / "profiles.yml").write_text("lake: {target: t, outputs: {t: {type: duckdb}}}\n")
    return tmp_path


def test_calls_that_end_at_once_are_all_in_the_file(project: Path) -> None:
    loaded = load(Invocation(project_dir=project))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: write_results(loaded, RunResult(), 1.0, {"which": "run"}), range(24)))
    [target] = json.loads((project / "target" / HISTORY).read_text())["targets"].values()
    assert len(target["calls"]) == 24


def test_each_call_adds_to_the_file_and_one_that_is_broken_begins_anew(project: Path) -> None:
    words = ["build", "-q", "--project-dir", str(project), "--profiles-dir", str(project)]
    assert main(words) == 0 and main(words) == 0
    file = project / "target" / HISTORY
    assert [len(each["calls"]) for each in json.loads(file.read_text())["targets"].values()] == [2]
    file.write_text("{")
    assert main(words) == 0
    assert [len(each["calls"]) for each in json.loads(file.read_text())["targets"].values()] == [1]


def test_runs_of_one_process_are_told_apart_by_their_time() -> None:
    first, second = results(1, row("t", "fail")), results(2, row("t", "pass"))
    second["metadata"] = {"generated_at": "2024-01-02T00:00:00Z", "invocation_id": "call-1"}
    extended = target_history(history(first), "dev", second)
    assert [call["at"] for call in extended.calls] == ["2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"]
    assert extended.problems == {}
