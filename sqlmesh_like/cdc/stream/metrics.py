"""Metrics of ingestion for programs. Owns both forms: lines of JSON, and the text that Prometheus reads.

A file whose name ends in `.prom` is replaced after every batch (for node_exporter's textfile collector); to any other,
a line is appended for each table of each batch. Format: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from pathlib import Path

from sqlmesh_like.artifacts.files import write_text
from sqlmesh_like.cdc.report import IngestReport, TableReport, by_table
from sqlmesh_like.control_characters import escape_json, escape_lines
from sqlmesh_like.errors import MachineError
from sqlmesh_like.secrets import scrub_text

_COUNTERS = {
    "events": "Change events read for the table.",
    "upserts": "Rows written.",
    "deletes": "Rows deleted.",
    "late": "Events older than what the table has.",
    "failures": "Batches that could not be written.",
}
_GAUGES = {
    "lag_seconds": "From the log having the newest event to the table having it.",
    "events_per_second": "Events of the table in the last batch, by the duration of the batch.",
}


class Metrics:
    """The metrics of one process, written to any number of files. Counters start at 0 with the process."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        self.paths = tuple(Path(path) for path in paths)
        self.totals: dict[tuple[str, str], dict[str, float]] = {}
        self.dead_letters: dict[str, int] = {}

    def report(self, report: IngestReport) -> None:
        """Write the metrics of one batch to all files. Raises MachineError where a file cannot be written."""
        if not self.paths:
            return
        lines = [_metrics_record(report, table) for table in by_table(report.tables).values()]
        self.dead_letters[report.source] = self.dead_letters.get(report.source, 0) + report.dead_letters
        for line in lines:
            self._add(report.source, line)
        for path in self.paths:
            if path.suffix == ".prom":
                write_text(path, self.text())
            else:
                _append(path, lines)

    def _add(self, source: str, line: Mapping[str, object]) -> None:
        totals = self.totals.setdefault((source, str(line["table"])), {})
        for name in _COUNTERS:
            totals[name] = totals.get(name, 0) + float(str(line[name]))
        totals.update({name: float(str(line[name])) for name in _GAUGES if line[name] is not None})

    def text(self) -> str:
        """All metrics in Prometheus' text format."""
        entries: list[str] = []
        for name, help_ in {**_COUNTERS, **_GAUGES}.items():
            full = f"sml_ingest_{name}" + ("_total" if name in _COUNTERS else "")
            entries += [f"# HELP {full} {help_}", f"# TYPE {full} {'counter' if name in _COUNTERS else 'gauge'}"]
            entries += [
                f"{full}{{source={_label_value(source)},table={_label_value(table)}}} {totals[name]:.15g}"
                for (source, table), totals in self.totals.items()
                if name in totals
            ]
        full = "sml_ingest_dead_letters_total"
        entries += [f"# HELP {full} Events that could not be ingested.", f"# TYPE {full} counter"]
        entries += [f"{full}{{source={_label_value(source)}}} {count}" for source, count in self.dead_letters.items()]
        return "\n".join(entries) + "\n"


def _label_value(label: str) -> str:
    """
    >>> _label_value('a"b')
    '"a\\\\"b"'
    """
    text = escape_lines(label).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


def _metrics_record(report: IngestReport, table: TableReport) -> dict[str, object]:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {
        "time": now,
        "source": report.source,
        "table": str(table.table),
        "events": table.events,
        "upserts": table.upserts,
        "deletes": table.deletes,
        "late": table.late,
        "failures": int(table.error is not None),
        "events_per_second": round(table.events / report.seconds, 3) if report.seconds else None,
        "lag_seconds": None if table.lag is None else round(table.lag, 3),
        "error": table.error,
    }


def _append(path: Path, lines: list[dict[str, object]]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.writelines(escape_json(scrub_text(json.dumps(line, ensure_ascii=False))) + "\n" for line in lines)
    except OSError as error:
        raise MachineError(f"cannot write {path}: {error.strerror}", hint="choose another --metrics-file") from error
