"""Two writers of one lake: the second is refused before it does anything, and may try again."""

from __future__ import annotations

from pathlib import Path

import pytest
from filelock import FileLock

from sqlmesh_like.cli.app import main


@pytest.mark.checklist(47)
@pytest.mark.parametrize("command", ["run", "ingest"])
def test_a_second_writer_is_refused(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "p"\nprofile = "lake"\n')
    warehouse = tmp_path / "w"
    profile = f"lake: {{target: t, outputs: {{t: {{type: spark, schema: dws, warehouse: '{warehouse}'}}}}}}\n"
    (tmp_path / "profiles.yml").write_text(profile)
    (tmp_path / "models").mkdir()
    (tmp_path / "in").mkdir()
    (tmp_path / "models" / "m.sql").write_text("select 1 as id")
    (tmp_path / "models" / "s.yml").write_text(
        "sources: [{name: s, ingest: {format: debezium, files: {path: in/*.jsonl}}, "
        "tables: [{name: t, ingest: {primary_key: [id]}}]}]\n"
    )
    (warehouse / "_sml").mkdir(parents=True)
    with FileLock(str(warehouse / "_sml" / f"{command}.lock")):
        assert main([command, "--project-dir", str(tmp_path)]) == 1
    told = capsys.readouterr()
    assert f"another `sml {command}` is writing to {warehouse}" in told.out + told.err
    assert sorted(path.name for path in warehouse.iterdir()) == ["_sml"], "nothing was written"
