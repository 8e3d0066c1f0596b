"""Lines while running."""

from __future__ import annotations

import datetime
import io
import json

from sqlmesh_like.cli.printing.output import LogStep, Output, summary_line
from sqlmesh_like.invocation_id import INVOCATION_ID

NOON = datetime.datetime(2024, 5, 1, 12, 0, 0, tzinfo=datetime.UTC)
MODEL = LogStep(1, 4, "sql incremental model", "dws.user_agg")


def printer(quiet: bool = False, color: bool = False, log_format: str = "text") -> tuple[Output, io.StringIO]:
    stream = io.StringIO()
    return Output(quiet, color, log_format, stream, lambda: NOON), stream


def test_a_model_starts_and_ends_in_dbts_format() -> None:
    output, stream = printer()
    output.start(MODEL)
    output.success(MODEL, "aggregate_merge 12 rows", 0.614)
    first, second = stream.getvalue().splitlines()
    assert first.startswith("12:00:00  1 of 4 START sql incremental model dws.user_agg ....")
    assert first.endswith(".. [RUN]")
    assert second.startswith("12:00:00  1 of 4 OK created sql incremental model dws.user_agg ..")
    assert second.endswith(".. [aggregate_merge 12 rows in 0.61s]")
    assert first.index("[") == second.index("[") == 81


def test_every_outcome_has_its_line() -> None:
    output, stream = printer()
    output.error(MODEL, 1)
    output.skip(MODEL)
    output.no_op(MODEL, 0)
    output.success(LogStep(2, 4, "seed file", "dws.rates"), "INSERT 3", 0.1)
    output.test_result(LogStep(3, 4, "test", "unique_a"), "fail", 2, 0.5)
    output.test_result(LogStep(3, 4, "test", "unique_a"), "pass", 0, 0.5)
    lines = stream.getvalue()
    assert "1 of 4 ERROR creating sql incremental model dws.user_agg" in lines
    assert "[ERROR in 1.00s]" in lines
    assert "1 of 4 SKIP sql incremental model dws.user_agg" in lines
    assert "[SKIP]" in lines
    assert "[NO-OP in 0.00s]" in lines
    assert "2 of 4 OK loaded seed file dws.rates" in lines
    assert "3 of 4 FAIL 2 unique_a" in lines
    assert "[FAIL 2 in 0.50s]" in lines
    assert "3 of 4 PASS unique_a" in lines


def test_the_end_block_repeats_problems_and_counts() -> None:
    output, stream = printer()
    output.end(["success", "error", "skipped", "pass"], ["dws.m: it broke\nhere"])
    lines = stream.getvalue().splitlines()
    assert "12:00:00  Completed with errors:" in lines
    assert "12:00:00    dws.m: it broke" in lines
    assert lines[-1] == "12:00:00  Done. PASS=2 WARN=0 ERROR=1 SKIP=1 NO-OP=0 TOTAL=4"


def test_a_run_of_nothing_is_counted_too() -> None:
    assert summary_line([]) == "Done. PASS=0 WARN=0 ERROR=0 SKIP=0 NO-OP=0 TOTAL=0"


def test_colours_are_there_only_where_asked_for() -> None:
    plain, without = printer()
    coloured, with_colour = printer(color=True)
    plain.error(MODEL, 1)
    coloured.error(MODEL, 1)
    assert "\x1b[" not in without.getvalue()
    assert "\x1b[31m" in with_colour.getvalue()


def test_quiet_leaves_errors_only() -> None:
    output, stream = printer(quiet=True)
    output.start(MODEL)
    output.error(MODEL, 1)
    output.end(["error"], ["it broke"])
    assert [line[10:] for line in stream.getvalue().splitlines() if "START" in line or "Done" in line] == []
    assert "it broke" in stream.getvalue()


def test_json_lines_carry_time_level_and_message() -> None:
    output, stream = printer(color=True, log_format="json")
    output.error(MODEL, 1)
    line = json.loads(stream.getvalue())
    info = line["info"]
    assert (info["ts"], info["level"]) == ("2024-05-01T12:00:00Z", "error")
    assert info["invocation_id"] == INVOCATION_ID
    assert "\x1b[" not in info["msg"]
    assert line["data"] == {}  # there in every line, as in dbt


def test_json_lines_have_the_names_of_dbts_events() -> None:
    output, stream = printer(log_format="json")
    step = LogStep(1, 1, "seed file", "dws.rates", result_event="LogSeedResult")
    output.start(step)
    output.success(step, "INSERT 3", 0.1)
    output.skip(step)
    output.end(["success", "no-op"], ["it broke"])
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["info"]["name"] for line in lines] == [
        *("LogStartLine", "LogSeedResult", "SkippingDetails"),
        *(["Note"] * 5),
        "StatsLine",
    ]
    assert lines[-1]["data"]["stats"] == {"pass": 1, "warn": 0, "error": 0, "skip": 0, "noop": 1, "total": 2}


def test_a_test_that_warns_is_a_warning() -> None:
    output, stream = printer(log_format="json")
    output.test_result(LogStep(3, 4, "test", "unique_a"), "warn", 2, 0.5)
    assert json.loads(stream.getvalue())["info"]["level"] == "warn"
