"""A project on disk that suites run by the command line. Owns calls of `sml` and reading their artifacts."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.program import IMPORTABLE, python, run_program
from tests.services.cluster import MASTER_VARIABLE


@dataclass(frozen=True)
class NodeRun:
    """One model of a run as in `run_results.json`; `seconds` of wall time."""

    name: str
    status: str
    seconds: float
    response: Mapping[str, object]

    @property
    def facts(self) -> dict[str, object]:
        """The strategy and all numbers of `adapter_response`: rows, files and bytes written, work of Spark."""
        numbers = {key: value for key, value in self.response.items() if isinstance(value, int | float) and value}
        return {"strategy": self.response.get("strategy") or self.status, **numbers}


@dataclass(frozen=True)
class Call:
    """One call of `sml` or dbt: wall seconds and peak memory of the process, and its nodes."""

    seconds: float
    peak_bytes: int
    nodes: Mapping[str, NodeRun]

    @property
    def node_seconds(self) -> float:
        return sum(node.seconds for node in self.nodes.values())


@dataclass(frozen=True)
class Lake:
    """A project in `root`."""

    root: Path

    def sml(self, *arguments: str) -> Call:
        """Call `sml`. Raises RuntimeError with its output where it fails."""
        results = self.root / "target" / "run_results.json"
        results.unlink(missing_ok=True)
        done = run_program(python("sqlmesh_like", *arguments), self.root, IMPORTABLE)
        return Call(done.seconds, done.peak_bytes, node_runs(results))

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def write_yaml(self, path: str, data: object) -> None:
        self.write(path, yaml.safe_dump(data, sort_keys=False))

    def write_settings(self, name: str, memory: str, threads: int = 1) -> None:
        """Write the project file and the profile, for the cluster of `tests.services.cluster` if there is one.

        `SML_BENCH_OUTPUT`: more keys of the output, as YAML.
        """
        self.write("pyproject.toml", f'[tool.sqlmesh_like]\nname = "{name}"\nprofile = "lake"\n')
        output = {
            "type": "spark", "schema": "dws", "warehouse": "warehouse", "threads": threads,
            "spark": {"spark.driver.memory": memory},
        }  # fmt: skip
        if master := os.environ.get(MASTER_VARIABLE):
            output["master"] = master
        output |= yaml.safe_load(os.environ.get("SML_BENCH_OUTPUT", "{}"))
        self.write_yaml("profiles.yml", {"lake": {"target": "local", "outputs": {"local": output}}})


def dms_source(name: str, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, object]:
    """Return the YAML of a source that is ingested from AWS DMS files in `landing/`; `tables`: `ingest` settings."""
    stream = {"format": "dms", "files": {"path": "landing/*/*/*.parquet"}}
    declared = [
        {"name": table, "ingest": {"database": name, "table": table, **ingest}} for table, ingest in tables.items()
    ]
    source = {"name": name, "schema": "ods", "ingest": stream, "tables": declared}
    return {"version": 2, "sources": [source]}


def node_runs(results: Path) -> dict[str, NodeRun]:
    """Return the nodes of a `run_results.json`, ours or dbt's, by name; empty where there is no file."""
    if not results.is_file():
        return {}
    rows = json.loads(results.read_text(encoding="utf-8"))["results"]
    runs = [
        NodeRun(row["unique_id"].split(".")[-1], row["status"], row["execution_time"], row["adapter_response"])
        for row in rows
    ]
    return {run.name: run for run in runs}
