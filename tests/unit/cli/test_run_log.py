"""The texts of a run's failed nodes: the line of an error is that of its place, whatever its message says."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from sqlmesh_like.cli.run_log import problems
from sqlmesh_like.errors import Location
from sqlmesh_like.names import NodeId, TableName
from sqlmesh_like.render.rendered import RenderedSeed
from sqlmesh_like.run.result import RunResult, SeedResult

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def _shown(root: Path, message: str, location: Location | None) -> str:
    seed = RenderedSeed(NodeId("seed", "p", "s"), "s", "seeds/s.csv", TableName("dws", "s"), {}, {})
    result = SeedResult(seed, "error", message, NOW, 0.0, location=location)
    (text,) = problems(RunResult((result,)), root)
    return text


def test_the_line_is_that_of_the_place_and_not_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "my seeds").mkdir()
    (tmp_path / "my seeds/s.csv").write_text("a,b\n1,x\n")
    place = Location("my seeds/s.csv", 2, 3)
    assert _shown(tmp_path, f"{place}: no int", place) == (
        "s: my seeds/s.csv:2:3: no int\n  2 | 1,x\n    |   ^"  # a place with a space, in no text recognisable
    )
    (tmp_path / "s.csv").write_text("a,b\n")
    assert _shown(tmp_path, "s.csv:1:1: said by a database", None) == "s: s.csv:1:1: said by a database"
    assert _shown(tmp_path, "gone.csv:1:1: no", Location("gone.csv", 1, 1)) == "s: gone.csv:1:1: no"
