"""Settings of Spark that change values, in a project of the command line: each call has a session of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

PROFILE = "lake:\n  outputs:\n    local: {{type: spark, master: 'local[1]', warehouse: w, schema: dws, spark: {}}}\n"
NAN = '{spark.sql.legacy.statisticalAggregate: "true"}'


def sml(root: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """What a call prints: its rows or log, then its warnings."""
    call = (sys.executable, "-m", "sqlmesh_like", *arguments)
    done = subprocess.run(
        call, cwd=root, env={**os.environ, "NO_COLOR": "1", **(environment or {})}, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.release
def test_a_setting_that_changes_values_is_sparks_and_its_change_rebuilds(tmp_path: Path) -> None:
    root = tmp_path
    (root / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "s"\nprofile = "lake"\n')
    (root / "profiles.yml").write_text(PROFILE.format("{}"))
    for folder in ("models", "seeds", "conf"):
        (root / folder).mkdir()
    (root / "seeds/t.csv").write_text("id,g,v\n1,a,5\n2,b,6\n3,b,9\n")
    (root / "models/m.sql").write_text("select g, stddev(v) as s from {{ ref('t') }} group by g")
    own = ("legacy.sizeOfNull true", "legacy.statisticalAggregate true", "shuffle.partitions 3")
    (root / "conf/spark-defaults.conf").write_text("".join(f"spark.sql.{setting}\n" for setting in own))
    (root / "conf/hudi-defaults.conf").write_text("hoodie.record.merge.mode EVENT_TIME_ORDERING\n")
    assert "Started Spark" not in sml(root, "build")
    read = ("sql", "select s from dws.m where g = 'a'", "--output", "csv", "-q")
    assert sml(root, *read).split() == ["s", '""'], "of one row"
    shown = sml(root, "verify", environment=dict.fromkeys(("SPARK_CONF_DIR", "HUDI_CONF_DIR"), str(root / "conf")))
    assert "Spark's own configuration sets spark.sql.legacy.sizeOfNull" in shown
    assert "shuffle.partitions" not in shown
    assert "PASS=1" in shown, "Spark computes the same values as without it"
    assert "Hudi's own configuration sets hoodie.record.merge.mode" in shown

    java = "-Duser.language=tr -Duser.country=TR -Duser.timezone=Asia/Tokyo"
    machine = {"TZ": "America/New_York", "_JAVA_OPTIONS": java}
    asked = "select ascii(upper('iü')) as u, map('k', timestamp '2024-01-01 00:00:00') as m from dws.m limit 1"
    shown = sml(root, "sql", asked, "--output", "json", environment=machine)
    assert "Started Spark" in shown
    assert '"u": 73, "m": {"k": "2024-01-01T00:00:00Z"}' in " ".join(shown.split()), "neither İ nor the day before"

    (root / "profiles.yml").write_text(PROFILE.format(NAN))
    assert "HIS002 changed since the last run: spark.sql.legacy.statisticalAggregate" in sml(root, "run")
    assert sml(root, *read).split()[:2] == ["s", "nan"], "what Spark's SELECT gives under this setting"
    assert "PASS=1" in sml(root, "verify")
    assert "CFG007" in sml(root, "explain", "m")
