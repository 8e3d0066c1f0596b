"""What libraries read by themselves: nothing in a project's folder configures one, or is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.projects import enter_project

FILES = {
    "dbt_project.yml": "name: shop\nprofile: shop\n",
    "profiles.yml": "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
    "models/m.sql": "select 1 as a",
    "models/y.yml": "models: [{name: m, columns: [{name: a, data_tests: [not_null]}]}]\n",
    "seeds/s.csv": "a\n1\n",
    "packages.yml": "packages: [{local: ../kit}]\n",
    "../kit/dbt_project.yml": "name: kit\n",
}
CODE = "open('../ran', 'a').write(__name__)\n"
PLANTED = {
    "openlineage.yml": "transport: {type: file, log_file_path: ../ran}\n",
    "json.py": CODE, "yaml.py": CODE, "duckdb.py": CODE, "sitecustomize.py": CODE, "usercustomize.py": CODE,
    "openlineage/__init__.py": CODE, "pyspark/__init__.py": CODE, "conftest.py": CODE,
    ".netrc": "machine 127.0.0.1 login a password b\n", ".env": "DBT_TARGET=planted\n",
    ".duckdbrc": ".shell touch ../ran\n",
    ".gitconfig": "[core]\nfsmonitor = touch ../ran\n", "pip.conf": "[global]\nindex-url = http://127.0.0.1:9\n",
    "spark-defaults.conf": "spark.x y\n", "conf/spark-defaults.conf": "spark.x y\n", "hive-site.xml": "<x/>\n",
    "log4j2.properties": "x\n", "fsspec.json": "{}\n", "boto.cfg": "[x]\n", "click.cfg": "x\n", "setup.cfg": "[x]\n",
}  # fmt: skip
OBSERVED = """
import os, sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
from sqlmesh_like.cli.app import main
codes = [main(words) for words in (["deps", "-t", "t"], ["build"], ["docs", "generate"], ["show", "m"], ["lint"])]
print(codes, file=sys.stderr)
for path in opened:
    print(os.path.abspath(path))
"""


def test_nothing_that_is_planted_in_a_project_is_opened_or_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter_project(tmp_path / "shop", monkeypatch, {**FILES, **PLANTED})
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "false")
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin/observed.py"
    script.write_text(OBSERVED)
    called = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert called.stderr.splitlines()[-1] == "[0, 0, 0, 0, 0]", called.stderr
    opened = {Path(line) for line in called.stdout.splitlines() if line.startswith(str(tmp_path))}
    assert tmp_path / "shop/models/m.sql" in opened, "the observer sees what is read"
    assert opened.isdisjoint(tmp_path / "shop" / name for name in PLANTED)
    assert not (tmp_path / "ran").exists()
