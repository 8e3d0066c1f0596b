"""Ctrl-C and SIGTERM, at any moment of any command: no traceback, exit code 130 or 143, nothing half-done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

import sqlmesh_like
from sqlmesh_like import stop_signals
from sqlmesh_like.cli import run_service
from sqlmesh_like.cli.app import main
from sqlmesh_like.run import executor
from sqlmesh_like.run.executor import Executor
from sqlmesh_like.run.result import NodeResult, RenderedNode
from tests.levels import parametrize
from tests.projects import enter_project

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {target: t, outputs: {t: {type: duckdb, schema: dws, threads: 1}}}\n",
    "models/a.sql": "select 1 as id",
    "models/b.sql": "select id from {{ ref('a') }}",
    "models/c.sql": "select id from {{ ref('b') }}",
}
Shown = pytest.CaptureFixture[str]
SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter_project(tmp_path, monkeypatch, FILES)
    return tmp_path


@pytest.fixture(autouse=True)
def takes_signals() -> Iterator[None]:
    """Also where the tests run in the background, whose processes ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


CALL = """
import os, signal, sys
number, left = int(sys.argv.pop(1)), int(sys.argv.pop(1))
def count(event, _):
    global left
    left -= event in ("import", "open", "os.listdir", "os.rename")
    if left == 0:
        left = -1
        os.kill(os.getpid(), number)
signal.signal(signal.SIGINT, signal.default_int_handler)
from sqlmesh_like import __main__
print("up", flush=True)
sys.addaudithook(count)
sys.exit(__main__.main())
"""
"""Sends itself a signal when it has imported or opened so many files: the same moment however fast the machine is."""
MOMENTS = (1, 100, 300, 500, 700, 900, 1200, 1600)


def start(code: str, *words: str) -> subprocess.Popen[str]:
    """A process of its own, which takes signals however the tests were started, when Python itself is up."""
    root = str(Path(sqlmesh_like.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": root},
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "up\n"
    return process


def shell_code(code: int) -> int:
    """What a shell shows: a process that a signal ended has a negative one here."""
    return 128 - code if code < 0 else code


CALLS = ("build", "compile", "docs generate", "init new")
FEW = [
    *(("build", moment, SIGNALS[turn % 2]) for turn, moment in enumerate(MOMENTS)),
    *((words, 500, signal.SIGTERM) for words in CALLS[1:]),
]


@parametrize(
    ("words", "moment", "number"),
    suite=FEW,
    release=[each for each in product(CALLS, MOMENTS, SIGNALS) if each not in FEW],
)
def test_a_call_ends_without_a_word_of_python(project: Path, words: str, moment: int, number: int) -> None:
    with start(CALL, str(int(number)), str(moment), *words.split()) as call:
        out, err = call.communicate(timeout=300)
    assert "Traceback" not in out + err and "Exception" not in out + err
    assert shell_code(call.returncode) in (0, 128 + number), err
    assert not [path for path in project.rglob(".*") if path.name.startswith((".sml-init", ".manifest", ".index"))]
    assert not (project / "new").exists() or (project / "new/models/dws/product_sales.yml").is_file()
    for path in (project / "target").rglob("*.json"):
        json.loads(path.read_text())
    assert main(["compile", "-q"]) == 0


def stop_at(monkeypatch: pytest.MonkeyPatch, name: str, number: int) -> list[str]:
    """A signal comes while this node is built; the nodes that were begun."""
    begun: list[str] = []
    execute = Executor.execute

    def interrupted(self: Executor, node: RenderedNode) -> NodeResult:
        begun.append(node.name)
        if node.name == name:
            os.kill(os.getpid(), number)
        return execute(self, node)

    monkeypatch.setattr(executor.Executor, "execute", interrupted)
    return begun


@pytest.mark.parametrize("number", SIGNALS)
def test_a_run_finishes_what_it_writes_and_can_be_retried(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], number: int
) -> None:
    begun = stop_at(monkeypatch, "b", number)
    assert main(["run"]) == 128 + number
    shown = capfd.readouterr()
    assert begun == ["a", "b"]
    assert "stopping after this commit … (again: at once)" in shown.err
    assert "OK created sql incremental model dws.b" in shown.out and "SKIP sql incremental model dws.c" in shown.out
    assert "Stopped; `sml retry` goes on" in shown.out and "PASS=2 WARN=0 ERROR=0 SKIP=1" in shown.out
    results = json.loads((project / "target/run_results.json").read_text())["results"]
    assert [entry["status"] for entry in results] == ["success", "success", "skipped"]
    monkeypatch.undo()
    monkeypatch.chdir(project)
    assert main(["retry"]) == 0
    assert "1 of 1 OK created sql incremental model dws.c" in capfd.readouterr().out


def test_json_logs_have_the_wish_as_an_event(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stop_at(monkeypatch, "a", signal.SIGTERM)
    assert main(["run", "--log-format", "json"]) == 143
    events = [json.loads(line)["info"] for line in capfd.readouterr().err.splitlines()]
    assert [event["msg"] for event in events if event["level"] == "warn"] == [
        "stopping after this commit … (again: at once)"
    ]


def test_before_anything_is_written_a_call_is_interrupted(monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    monkeypatch.setattr(run_service, "open_project", lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM))
    assert main(["run"]) == 143
    assert capsys.readouterr().err.strip() == "error: interrupted"


def test_a_second_signal_ends_the_process_at_once(project: Path) -> None:
    code = (
        "import sys, time; from sqlmesh_like import stop_signals\n"
        "with stop_signals.handle_signals('wish\\n'), stop_signals.defer_signals():\n"
        "    print('up', flush=True); time.sleep(600)"
    )
    with start(code) as process:
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None and process.stderr.readline() == "wish\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 143


def test_what_was_there_before_handles_signals_after_a_call() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with stop_signals.handle_signals():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_library_call_changes_no_handler() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stop_signals.defer_signals():
        assert signal.getsignal(signal.SIGTERM) is before and not stop_signals.is_wished()


SERVE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from sqlmesh_like.cli.app import main
code = main(["docs", "generate", "-q"])
assert code == 0, code
print("up", flush=True)
sys.exit(main(["docs", "serve", "--port", "0", "--no-browser"]))
"""


@pytest.mark.parametrize("number", SIGNALS)
def test_a_served_site_is_stopped(number: int) -> None:
    with start(SERVE) as call:
        assert call.stdout is not None and "Serving the site at" in call.stdout.readline()
        call.send_signal(number)
        out, err = call.communicate(timeout=300)
    assert (call.returncode, err) == (128 + number, "")
    assert out.endswith("Stopped\n")


def test_a_signal_in_a_finalizer_is_not_lost() -> None:
    """Python prints and forgets what a finalizer raises."""

    class Finalized:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0)

    def finalize() -> None:
        Finalized()
        time.sleep(300)

    with pytest.raises(stop_signals.Interrupted), stop_signals.handle_signals():
        finalize()


@pytest.mark.parametrize("sessions", [1, 2])
def test_a_library_that_takes_ctrl_c_interrupts_nothing_that_must_be_completed(sessions: int) -> None:
    """Each session of PySpark that is started does."""

    def cancel_all_jobs(*_: object) -> None:
        raise KeyboardInterrupt

    with stop_signals.handle_signals():
        for _ in range(sessions):
            with stop_signals.keep_deferring():
                signal.signal(signal.SIGINT, cancel_all_jobs)
        with stop_signals.defer_signals():
            os.kill(os.getpid(), signal.SIGINT)
            assert stop_signals.is_wished()
    with stop_signals.handle_signals(), stop_signals.keep_deferring():
        signal.signal(signal.SIGINT, cancel_all_jobs)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
