"""Nothing is silent: from its first second on a call says what it does, on a terminal; and how long it took."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import time
from collections.abc import Callable

import pytest

from sqlmesh_like.cli.app import main
from sqlmesh_like.cli.commands import parse
from sqlmesh_like.cli.printing import activity as spinner
from sqlmesh_like.cli.printing.activity import activity, current, show_phase
from sqlmesh_like.cli.printing.output import Output
from sqlmesh_like.cli.printing.progress_bar import ProgressBar

Shown = pytest.CaptureFixture[str]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard output and error of a terminal; what is shown after a second is shown at once.

    No fixture: pytest puts streams of its own there when a test begins.
    """
    shown = Terminal()
    monkeypatch.setattr(sys, "stdout", shown)
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(spinner, "_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(spinner, "_PERIOD_SECONDS", 0.01)
    return shown


def wait_for(is_there: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not is_there():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_phase_is_named_and_gone_when_a_line_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    with activity(quiet=False, log_format="text"):
        show_phase("starting Spark")
        wait_for(lambda: re.search(r"starting Spark … \d+s", terminal.getvalue()) is not None)
        print("a row")
    text = terminal.getvalue()
    assert "\r\x1b[2Ka row\n" in text, "the line is emptied before"
    assert text.endswith("s\n") and re.search(r"Finished in \d+\.\ds$", text.splitlines()[-1])
    assert sys.stdout is terminal


def test_a_short_call_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    monkeypatch.setattr(spinner, "_AFTER_SECONDS", 60.0)
    with activity(quiet=False, log_format="text"):
        show_phase("starting Spark")
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("words", [{"quiet": True, "log_format": "text"}, {"quiet": True, "log_format": "json"}])
def test_quiet_is_quiet(monkeypatch: pytest.MonkeyPatch, words: dict[str, object]) -> None:
    terminal = a_terminal(monkeypatch)
    with activity(**words):  # type: ignore[arg-type]
        pass
    assert terminal.getvalue() == ""


def test_a_dumb_terminal_and_a_pipe_have_no_spinner(monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    terminal = a_terminal(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    with activity(quiet=False, log_format="text"):
        pass
    assert terminal.getvalue() == ""
    monkeypatch.undo()
    monkeypatch.setattr(spinner, "_AFTER_SECONDS", 0.0)
    with activity(quiet=False, log_format="text"):
        pass
    assert capsys.readouterr() == ("", "")


def test_json_logs_get_an_event_for_each_long_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    now, shown = [1000.0], io.StringIO()
    monkeypatch.setattr(spinner, "perf_counter", lambda: now[0])
    monkeypatch.setattr(spinner, "_PERIOD_SECONDS", 0.01)
    monkeypatch.setattr(sys, "stderr", shown)
    with activity(quiet=False, log_format="json"):
        show_phase("a moment")
        now[0] += 0.9
        show_phase("starting Spark")
        now[0] += 1.5
        wait_for(lambda: "starting Spark" in shown.getvalue())
    message = [json.loads(line)["info"]["msg"] for line in shown.getvalue().splitlines()]
    assert message == ["starting Spark", "Finished in 2.4s"], "the end is an event too"


def test_a_bar_says_that_spark_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    with activity(quiet=False, log_format="text"):
        bar = ProgressBar(sys.stdout, color=False)
        bar.start_node("dws.user_agg", 3)
        show_phase("starting Spark")
        wait_for(lambda: "dws.user_agg (starting Spark)" in terminal.getvalue())
        show_phase("running on Spark")
        bar.close()


def test_a_bar_has_the_terminal_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    looked: list[float] = []

    def look() -> float:
        looked.append(time.perf_counter())
        return looked[-1]

    monkeypatch.setattr(spinner, "perf_counter", look)
    with activity(quiet=False, log_format="text"):
        bar = ProgressBar(sys.stdout, color=False)
        show_phase("planning")
        before = len(looked)
        wait_for(lambda: len(looked) > before + 10)  # some rounds of the thread that draws
        assert "planning" not in terminal.getvalue()
        bar.close()
        wait_for(lambda: "planning" in terminal.getvalue())


def test_the_end_block_has_the_time_and_nothing_says_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    with activity(quiet=False, log_format="text"):
        call = current()
        assert call is not None
        Output(stream=sys.stdout, seconds=call.closing_seconds).end(["success"])
    assert terminal.getvalue().count("Finished in") == 1


def test_an_error_stands_in_a_line_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    terminal = a_terminal(monkeypatch)

    def slow(_flags: object) -> None:
        wait_for(lambda: "reading the project" in terminal.getvalue())
        raise RuntimeError("out of luck")

    monkeypatch.setattr(parse, "open_project", slow)
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["parse", "--no-color", "--project-dir", os.fspath(tmp_path_factory.mktemp("p"))]) == 1
    assert "\r\x1b[2KFinished in" in terminal.getvalue() and "\nerror: unexpected RuntimeError" in terminal.getvalue()
