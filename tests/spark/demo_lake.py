"""A demo lake in a folder of its own: its commands run as a user types them, on the suite's Spark session."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.app.lakes import lake as cli_lake
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.operations import ingestion
from sqlmesh_like.cli.app import main
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.spark.spark_engine import SparkEngine

REPOSITORY = Path(__file__).parents[2]
DEMO = REPOSITORY / "demo"
_SHOP = ("models", "macros", "seeds", "tests/data")


class Shared(SparkEngine):
    """The engine of one command; the session lives on for the next one."""

    def stop(self) -> None:
        self.release()


def share(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands run on this session."""

    def engine(loaded: Loaded, history: LakeHistory, _session: object = None) -> SparkEngine:
        return Shared(loaded.target, history, lambda: spark)

    monkeypatch.setattr(cli_lake, "spark_engine", engine)


@dataclass
class DemoLake:
    """One of the demo lakes, copied to `root`."""

    spark: SparkSession
    root: Path

    @classmethod
    def of(cls, name: str, spark: SparkSession, root: Path, monkeypatch: pytest.MonkeyPatch) -> DemoLake:
        """The lake of `demo/<name>`; the shop's project is the repository's root."""
        ignored = shutil.ignore_patterns("warehouse", "landing", "target", "__pycache__")
        if name == "shop":
            for folder in _SHOP:
                shutil.copytree(REPOSITORY / folder, root / folder)
            for file in ("pyproject.toml", "profiles.yml"):
                shutil.copy(REPOSITORY / file, root)
        else:
            shutil.copytree(DEMO / name, root, dirs_exist_ok=True, ignore=ignored)
        return cls.at(root, spark, monkeypatch)

    @classmethod
    def at(cls, root: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> DemoLake:
        """The lake of the project that is there."""

        @contextmanager
        def session(*_: object, **__: object) -> Iterator[Callable[[], SparkSession]]:
            yield lambda: spark

        share(spark, monkeypatch)
        monkeypatch.setattr(ingestion, "session_for", session)
        return cls(spark, root)

    def sml(self, *words: str) -> None:
        assert main([*words, "--project-dir", str(self.root)]) == 0, words

    def strategy(self, name: str) -> str | None:
        """How the newest commit of a model's table came to be."""
        state = LakeHistory().state(self.uri(name))
        return state.record.strategy if state.record else None

    def rows(self, name: str, schema: str = "dws") -> list[tuple[object, ...]]:
        """Rows of a table as any reader of Hudi sees them, in a stable order, bookkeeping left out."""
        frame = self.spark.read.format("hudi").load(self.uri(name, schema))
        shown = [column for column in frame.columns if not column.startswith(("_hoodie", "_sml"))]
        return sorted((tuple(row) for row in frame.select(*shown).collect()), key=repr)

    def json(self, *words: str) -> list[dict[str, object]]:
        """What a command prints with `--output json --limit -1`."""
        with redirect_stdout(StringIO()) as printed:
            self.sml(*words, "--output", "json", "--limit", "-1")
        document = json.loads(printed.getvalue())
        assert isinstance(document, list)
        return document

    def history(self, name: str) -> list[dict[str, object]]:
        """What `sml history` tells of a table's commits that change rows."""
        return [row for row in self.json("history", name) if row["kind"] in ("bulk_insert", "upsert")]

    def frontier(self, name: str, schema: str = "dws") -> str:
        newest = Timeline(self.uri(name, schema)).frontier
        assert newest is not None
        return newest

    def commits(self, name: str, schema: str = "dws") -> int:
        return len(Timeline(self.uri(name, schema)).data_commits)

    def uri(self, name: str, schema: str = "dws") -> str:
        return str(self.root / "warehouse" / schema / name)
