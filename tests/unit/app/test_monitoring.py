"""What a watch tells of itself: health and metrics over HTTP, and alerts that are not repeated."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import requests

from sqlmesh_like.app.monitoring.alerts import Alert, Alerts, check_hooks
from sqlmesh_like.app.monitoring.status_server import parse_address, serve_status
from sqlmesh_like.app.monitoring.watch_alerts import WatchAlerts
from sqlmesh_like.app.monitoring.watch_status import STALE_AFTER, WatchStatus
from sqlmesh_like.cdc.report import IngestReport, TableReport
from sqlmesh_like.cdc.sources.database.comparison.record import ComparisonRecord, Finding
from sqlmesh_like.classify.rules import Reason, reason
from sqlmesh_like.classify.strategy import Strategy
from sqlmesh_like.cli.app import main
from sqlmesh_like.errors import MachineError, UsageError
from sqlmesh_like.names import TableName
from sqlmesh_like.render.rendered import RenderedModel
from sqlmesh_like.run.result import ModelResult, NodeStatus, RunResult
from sqlmesh_like.stop_signals import Interrupted

ORDERS = TableName("ods", "orders")
PROJECT = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\nprofile = "lake"\n',
    "profiles.yml": "lake:\n  target: local\n  outputs:\n    local: {type: spark, warehouse: warehouse, schema: dws}\n",
}


def batch(error: str | None = None, lag: float = 1.5, dead_letters: int = 0) -> IngestReport:
    table = TableReport(ORDERS, upserts=3, deletes=1, error=error, lag=lag)
    return IngestReport("shop", (table,), batches=1, events=4, dead_letters=dead_letters)


def round_of(status: NodeStatus, strategy: Strategy | None = "row_based", *reasons: Reason) -> RunResult:
    model = cast(RenderedModel, SimpleNamespace(unique_id="model.shop.agg"))  # of a model only its id is told
    message = "it broke" if status == "error" else ""
    return RunResult((ModelResult(model, status, message, datetime.now(UTC), 0.1, strategy, reasons=reasons),))


@pytest.fixture
def address() -> Iterator[tuple[WatchStatus, str]]:
    status = WatchStatus()
    with serve_status(status, ("127.0.0.1", 0)) as port:
        yield status, f"http://127.0.0.1:{port}"


def test_health_says_what_is_wrong_until_it_is_right_again(address: tuple[WatchStatus, str]) -> None:
    status, url = address
    assert requests.get(f"{url}/health", timeout=120).json()["status"] == "ok"
    status.note_batch(batch("disk full"))
    status.note_round(round_of("error"))
    failing = requests.get(f"{url}/health", timeout=120)
    assert failing.status_code == 503
    assert failing.json()["problems"] == {"ods.orders": "disk full", "model.shop.agg": "it broke"}
    status.note_batch(batch())
    status.note_round(round_of("success"))
    assert requests.get(f"{url}/health", timeout=120).status_code == 200


def test_a_table_that_differs_is_unhealthy_until_a_sample_is_right(address: tuple[WatchStatus, str]) -> None:
    status, url = address
    status.note_verification("model.shop.agg", "fail", "2 rows differ")
    status.note_round(round_of("no-op"))  # says nothing about the rows
    status.note_verification("model.shop.agg", "error", None)
    failing = requests.get(f"{url}/health", timeout=120)
    assert failing.status_code == 503
    assert failing.json()["problems"] == {"rows of model.shop.agg": "2 rows differ"}
    status.note_verification("model.shop.agg", "pass", None)
    assert requests.get(f"{url}/health", timeout=120).status_code == 200
    lines = requests.get(f"{url}/metrics", timeout=120).text.splitlines()
    for result in ("fail", "error", "pass"):
        assert f'sml_verifications_total{{model="model.shop.agg",result="{result}"}} 1.0' in lines


def test_a_table_that_differs_from_its_database_is_shown_in_health_and_metrics(
    address: tuple[WatchStatus, str],
) -> None:
    status, url = address
    now = status.started + 1
    differs = ComparisonRecord(Finding(now, "fail", 1000, 2, 3, 0.01, 7))
    status.note_comparison("ods.orders", differs, "2 rows differ from the database")
    away = replace(differs, failed_at=now, error="the database is away")
    status.note_comparison("ods.orders", away, "2 rows differ from the database")
    failing = requests.get(f"{url}/health", timeout=120)
    assert failing.status_code == 503
    assert failing.json()["problems"] == {"rows of ods.orders": "2 rows differ from the database"}
    assert failing.json()["comparisons"]["ods.orders"] == {
        "finding": {
            "at": now, "status": "fail", "rows": 1000, "different": 2, "undecided": 3, "share": 0.01, "seed": 7,
        },
        "failed_at": now, "error": "the database is away",
    }  # fmt: skip
    lines = requests.get(f"{url}/metrics", timeout=120).text.splitlines()
    for line in (
        'sml_source_different_rows{table="ods.orders"} 2.0',
        'sml_source_compared_rows{table="ods.orders"} 1000.0',
        'sml_source_undecided_rows{table="ods.orders"} 3.0',
        'sml_source_comparisons_total{result="fail",table="ods.orders"} 1.0',
        'sml_source_comparisons_total{result="error",table="ods.orders"} 1.0',
    ):
        assert line in lines
    status.note_comparison("ods.orders", ComparisonRecord(Finding(now, "pass", 1000, 0, 0, 0.01, 7)), None)
    assert requests.get(f"{url}/health", timeout=120).status_code == 200


def test_metrics_are_those_that_prometheus_reads(address: tuple[WatchStatus, str]) -> None:
    status, url = address
    status.note_batch(batch(dead_letters=2))
    status.note_batch(batch("x"))
    status.note_round(round_of("success", "aggregate_merge"))
    answer = requests.get(f"{url}/metrics", timeout=120)
    assert answer.headers["Content-Type"].startswith("text/plain")
    lines = answer.text.splitlines()
    for line in (
        'sml_ingest_rows_total{change="upsert",table="ods.orders"} 6.0',
        'sml_ingest_events_total{source="shop"} 8.0',
        'sml_dead_letters_total{source="shop"} 2.0',
        'sml_failures_total{subject="ods.orders"} 1.0',
        'sml_model_updates_total{model="model.shop.agg",strategy="aggregate_merge"} 1.0',
        'sml_ingest_lag_seconds{table="ods.orders"} 1.5',
        "sml_healthy 0.0",
    ):
        assert line in lines
    assert requests.get(f"{url}/else", timeout=120).status_code == 404


def test_a_loop_without_a_sign_of_life_is_not_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    status, now = WatchStatus(), [1000.0]
    monkeypatch.setattr("sqlmesh_like.app.monitoring.watch_status.time", lambda: now[0])
    with status.building():
        now[0] += 10 * STALE_AFTER
        assert status.health().is_healthy, "a model may take hours"
    assert status.health().is_healthy
    now[0] += STALE_AFTER + 1
    assert "no sign of life" in status.health().problems["watch"]


@pytest.mark.parametrize("text", ["", "x", "host:", "1:2:x", "70000"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not \[HOST:\]PORT"):
        parse_address(text)


def test_a_port_that_is_taken_is_said(address: tuple[WatchStatus, str]) -> None:
    port = int(address[1].rpartition(":")[2])
    with pytest.raises(MachineError, match="cannot listen"), serve_status(WatchStatus(), ("127.0.0.1", port)):
        pass


def test_a_command_gets_each_alert_once_within_the_time(tmp_path: Path) -> None:
    now, sent_file, warnings = [0.0], tmp_path / "sent", list[str]()
    alerts = Alerts(
        [f'read -r alert; echo "$alert" >> {sent_file}'],
        lambda text, _="": warnings.append(text),
        again_after=60,
        clock=lambda: now[0],
    )
    for _ in range(3):
        alerts.send(Alert("failure", "ods.orders", "disk full"))
    alerts.send(Alert("lag", "ods.orders", "late"))
    now[0] = 61
    alerts.send(Alert("failure", "ods.orders", "disk full"))
    alerts.close()
    assert warnings == []
    sent = [json.loads(line) for line in sent_file.read_text().splitlines()]
    assert [(each["kind"], each["text"]) for each in sent] == [
        ("failure", "disk full"), ("lag", "late"), ("failure", "disk full"),
    ]  # fmt: skip


def test_a_webhook_is_posted_to_and_one_that_fails_is_a_warning_without_its_address() -> None:
    got: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(500 if self.path == "/broken" else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url, warnings = f"http://127.0.0.1:{server.server_address[1]}", list[str]()
    alerts = Alerts([f"{url}/broken", f"{url}/good", "exit 3"], lambda text, _level="info": warnings.append(text))
    alerts.send(Alert("failure", "ods.orders", "disk full"))
    alerts.close()
    server.shutdown()
    server.server_close()
    assert [each["subject"] for each in got] == ["ods.orders"] * 2
    assert warnings == [
        "warning: alert hook 1 failed: it answered with 500",
        "warning: alert hook 3 failed: it ended with exit code 3",
    ]


def test_what_is_worth_an_alert() -> None:
    sent: list[Alert] = []
    recorder = cast(Alerts, SimpleNamespace(send=sent.append))
    watched = WatchAlerts(recorder, most_lag=10)
    watched.note_batch(batch())
    watched.note_round(round_of("success", "full_refresh", reason("HIS001", "first build")))
    watched.note_round(round_of("success", "full_refresh", reason("CFG001", "configured")))
    watched.note_difference("model.shop.agg", None)
    watched.note_failed_comparison("ods.orders", None)
    assert sent == []
    watched.note_batch(batch("disk full", lag=11, dead_letters=2))
    watched.note_round(round_of("error"))
    watched.note_round(round_of("success", "full_refresh", reason("HIS003", "cleaned")))
    watched.note_difference("model.shop.agg", "2 rows differ")
    watched.note_failed_comparison("ods.orders", "the database is away")
    assert [(each.kind, each.subject) for each in sent] == [
        ("dead letters", "shop"), ("failure", "ods.orders"), ("lag", "ods.orders"),
        ("failure", "model.shop.agg"), ("full refresh", "model.shop.agg"), ("difference", "model.shop.agg"),
        ("failure", "comparison of ods.orders"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "alerts"),
    [
        (MachineError("no JDK"), ["it has ended: no JDK"]),
        (RuntimeError("disk full\nat …"), ["it has ended: RuntimeError: disk full"]),
        (KeyboardInterrupt(), []),
        (Interrupted(), []),
    ],
)
def test_any_error_that_ends_the_watch_is_an_alert(error: BaseException, alerts: list[str]) -> None:
    sent: list[Alert] = []
    recorder = cast(Alerts, SimpleNamespace(send=sent.append))
    with pytest.raises(type(error)), WatchAlerts(recorder).noting_failure():
        raise error
    assert [(each.kind, each.subject, each.text) for each in sent] == [("failure", "watch", text) for text in alerts]


def test_an_empty_hook_is_refused() -> None:
    with pytest.raises(UsageError, match="--alert is empty"):
        check_hooks([" "])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--listen", "nowhere"], "--listen 'nowhere' is not [HOST:]PORT"),
        (["--alert", " "], "--alert is empty"),
        (["--alert-again", "-1"], "-1.0 is not in the range"),
        (["--alert-lag", "-1"], "-1.0 is not in the range"),
    ],
)
def test_bad_options_are_refused_before_anything_starts(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, text in PROJECT.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert main(["watch", "--project-dir", str(tmp_path), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "warehouse").exists()
