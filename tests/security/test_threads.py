"""Threads that must live: no text ends one, and the end of one is reported. What cannot be sent is sent as a text."""

from __future__ import annotations

import http.client
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from sqlmesh_like.app.monitoring import alerts
from sqlmesh_like.app.monitoring.alerts import Alert, Alerts
from sqlmesh_like.app.monitoring.status_server import serve_status
from sqlmesh_like.app.monitoring.watch_status import WatchStatus
from sqlmesh_like.cdc.report import IngestReport, TableReport
from sqlmesh_like.cdc.stream.metrics import Metrics
from sqlmesh_like.cli.app import main
from sqlmesh_like.names import TableName
from tests.projects import enter_project

HOSTILE = ("a\0b", "\ud800", "\udfff\ud800", "a\x1b[2J", "\ufffe", "\uffff", "two\nlines", "\u202e", 'quo"te\\', "")


def test_every_alert_arrives_whatever_its_text(tmp_path: Path) -> None:
    said: list[str] = []
    got = tmp_path / "got"
    hook = f'IFS= read -r line; printf "%s\\n" "$line" >> {got}; printf "%s\\n" "$SML_ALERT_SUBJECT" >> {got}.subjects'
    sent = Alerts([hook], lambda text, level="info": said.append(text))
    for text in HOSTILE:
        sent.send(Alert("failure", f"t{text}", text))
    sent.close()
    records = [json.loads(line) for line in got.read_text().splitlines()]
    assert said == [] and len(records) == len(HOSTILE)
    assert records[0]["text"] == "a\\x00b" and records[1]["text"] == "\\ud800"
    assert got.with_name("got.subjects").read_text().startswith("ta\\x00b\n")


def test_a_webhook_gets_every_alert() -> None:
    got: list[bytes] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    said: list[str] = []
    sent = Alerts([f"http://127.0.0.1:{server.server_address[1]}/"], lambda text, level="info": said.append(text))
    for text in HOSTILE:
        sent.send(Alert("failure", f"t{text}", text))
    sent.close()
    server.shutdown()
    thread.join()
    server.server_close()
    assert said == [] and len([json.loads(each) for each in got]) == len(HOSTILE)


def test_alerts_outlive_a_hook_that_fails_in_any_way_and_a_terminal_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called: list[str] = []

    def fail(hook: str, alert: Alert) -> None:
        called.append(alert.subject)
        raise ValueError("embedded null byte")

    def gone(text: str, level: str = "info") -> None:
        raise BrokenPipeError

    monkeypatch.setattr(alerts, "_call", fail)
    sent = Alerts(["x"], gone)
    for subject in "abc":
        sent.send(Alert("failure", subject, ""))
    sent.close()
    assert called == ["a", "b", "c"]


def test_a_thread_that_has_ended_is_a_problem_of_health() -> None:
    status = WatchStatus()
    sent = Alerts(["true"], lambda text, level="info": None)
    status.watch_thread("alerts", lambda: sent.is_alive)
    assert status.health().is_healthy
    sent.close()
    assert status.health().problems == {"alerts": "its thread has ended"}


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_metrics_and_health_are_told_whatever_a_table_is_called(text: str, tmp_path: Path) -> None:
    status = WatchStatus()
    report = IngestReport(
        f"s{text}", (TableReport(TableName("raw", f"t{text}"), upserts=1, lag=1.0, error=f"e{text}"),), events=1
    )
    status.note_batch(report)
    with serve_status(status, ("127.0.0.1", 0)) as port:
        for path, code in (("/health", 503), ("/metrics", 200)):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            connection.request("GET", path, headers={"Host": "localhost"})
            answer = connection.getresponse()
            assert answer.status == code and b"raw" in answer.read()
    metrics = Metrics((str(tmp_path / "m.jsonl"), str(tmp_path / "m.prom")))
    metrics.report(report)
    assert json.loads((tmp_path / "m.jsonl").read_text().splitlines()[0])["upserts"] == 1
    assert "sml_ingest_upserts" in (tmp_path / "m.prom").read_text()


def test_a_report_is_drawn_of_a_row_with_a_character_that_xml_does_not_allow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    charts = "charts:\n" + "".join(
        f"- {{title: t{kind}, table: m, kind: {kind}, x: a, y: [n]}}\n" for kind in ("bar", "line")
    )
    enter_project(tmp_path, monkeypatch, {
        "dbt_project.yml": "name: shop\nprofile: shop\n",
        "profiles.yml": "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
        "models/m.sql": "select 'a\ufffe\uffff' as a, 1 as n union all select 'b', 2",
        "report.yml": charts + "- {title: rows, table: m, kind: table}\n",
    })  # fmt: skip
    assert main(["report"]) == 0, capsys.readouterr()
    assert "\\ufffe" in (tmp_path / "target/report.html").read_text()
