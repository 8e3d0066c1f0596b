"""A project on disk that the benchmarks drive by the command line. Owns calls of `sml` and what their artifacts say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter


@dataclass(frozen=True)
class NodeRun:
    """One model of a run as `run_results.json` tells it; `seconds` of wall time."""

    name: str
    status: str
    seconds: float
    response: Mapping[str, object]

    @property
    def strategy(self) -> str:
        return str(self.response.get("strategy") or self.status)


@dataclass(frozen=True)
class Call:
    """One call of `sml`: wall seconds of the process, and of each node."""

    seconds: float
    nodes: Mapping[str, NodeRun]
    output: str

    @property
    def node_seconds(self) -> float:
        return sum(node.seconds for node in self.nodes.values())


@dataclass(frozen=True)
class Lake:
    """A project in `root`."""

    root: Path

    def sml(self, *arguments: str, timeout: float = 7200) -> Call:
        """Call `sml`; raises RuntimeError with its output where it fails."""
        started = perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "sqlmesh_like", "--no-color", *arguments] if False else
            [sys.executable, "-m", "sqlmesh_like", *arguments],
            cwd=self.root, capture_output=True, text=True, timeout=timeout,
            env={**os.environ, "PYTHONPATH": os.getcwd()},
        )  # fmt: skip
        seconds = perf_counter() - started
        if done.returncode:
            raise RuntimeError(f"sml {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        return Call(seconds, self._nodes(), done.stdout)

    def _nodes(self) -> dict[str, NodeRun]:
        path = self.root / "target" / "run_results.json"
        if not path.is_file():
            return {}
        results = json.loads(path.read_text())["results"]
        found = [
            NodeRun(r["unique_id"].split(".")[-1], r["status"], r["execution_time"], r["adapter_response"])
            for r in results
        ]
        return {node.name: node for node in found}

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def bytes_of(self, folders: Sequence[str] = ("warehouse",)) -> int:
        return sum(f.stat().st_size for name in folders for f in (self.root / name).rglob("*") if f.is_file())
