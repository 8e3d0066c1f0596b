"""Metrics of an ingestion: lines of JSON grow, the Prometheus file is always whole. No JVM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlmesh_like.cdc.report import IngestReport, TableReport
from sqlmesh_like.cdc.stream.metrics import Metrics
from sqlmesh_like.errors import MachineError
from sqlmesh_like.names import TableName

NAME = TableName("ods", "user")


def report(**changed: object) -> IngestReport:
    table = TableReport(NAME, 3, 1, 0, 0.5, events=5, lag=1.25)
    return IngestReport("shop", (table,), 1, 6, dead_letters=1, seconds=2.0)


def test_each_batch_is_a_line_and_counters_add_up(tmp_path: Path) -> None:
    lines, text = tmp_path / "m" / "ingest.jsonl", tmp_path / "m" / "ingest.prom"
    metrics = Metrics((str(lines), str(text)))
    metrics.report(report())
    metrics.report(report())
    entries = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [(line["table"], line["events"], line["events_per_second"]) for line in entries] == [
        ("ods.user", 5, 2.5)
    ] * 2
    assert (entries[0]["lag_seconds"], entries[0]["failures"], entries[0]["error"]) == (1.25, 0, None)
    shown = text.read_text()
    assert 'sml_ingest_events_total{source="shop",table="ods.user"} 10\n' in shown
    assert 'sml_ingest_lag_seconds{source="shop",table="ods.user"} 1.25\n' in shown
    assert 'sml_ingest_dead_letters_total{source="shop"} 2\n' in shown
    for name in {line.split("{")[0] for line in shown.splitlines() if not line.startswith("#")}:
        assert f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}" in shown


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(MachineError, match="cannot write"):
        Metrics((str(tmp_path / "taken" / "x.jsonl"),)).report(report())
