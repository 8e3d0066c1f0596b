"""1,000 models read by `sml` and by dbt-core on this machine in one run: times of a core, and how many times as fast.

Each model has a config, one to three refs and 20 columns; half the columns of all are described, each model has two
data tests. Prints a table; judges nothing.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.dbt_core.program import QUIET, python_of_dbt

MODELS = 1_000
COLUMNS = 18


def main(arguments: Sequence[str] = ()) -> None:
    count = int(arguments[0]) if arguments else MODELS
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        make_project(project, count)
        environment = {**os.environ, **QUIET, "SML_CACHE_DIR": str(Path(folder) / "cache"), "DBT_PARTIAL_PARSE": "true"}
        dbt = [str(python_of_dbt()), "-c", "from dbt.cli.main import cli; cli()"]
        sml = [sys.executable, "-m", "sqlmesh_like"]
        print(f"{count} models; seconds of a core\n{'':10}{'dbt':>8}{'sml':>8}{'times':>8}{'again':>8}{'times':>8}")
        for command in ("parse", "compile"):
            _clear(project, Path(folder) / "cache")
            theirs = seconds([*dbt, command, "--profiles-dir", "."], project, environment)
            _clear(project, Path(folder) / "cache")
            cold, warm = (seconds([*sml, command], project, environment) for _ in range(2))
            print(f"{command:10}{theirs:8.2f}{cold:8.2f}{theirs / cold:8.1f}{warm:8.2f}{theirs / warm:8.1f}")
        print(f"{'ls':10}{'':24}{seconds([*sml, 'ls'], project, environment):8.2f}")


def seconds(words: Sequence[str], project: Path, environment: dict[str, str]) -> float:
    """Time of a core that a program takes, its children included: what else the machine does counts little."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, cwd=project, env=environment, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def make_project(root: Path, count: int) -> None:
    (root / "models").mkdir(parents=True)
    (root / "dbt_project.yml").write_text("name: big\nversion: '1.0'\nprofile: lake\n")
    (root / "profiles.yml").write_text("lake: {target: d, outputs: {d: {type: duckdb, path: big.duckdb}}}\n")
    columns = "".join(f"          - {{name: {name}, data_type: int}}\n" for name in ("id", "k", *_names()))
    entries = "".join(_entry(number) for number in range(count))
    (root / "models" / "all.yml").write_text(
        "version: 2\nsources:\n  - name: raw\n    schema: main\n    tables:\n      - name: t\n        columns:\n"
        f"{columns}models:\n{entries}"
    )
    chance = Random(7)
    for number in range(count):
        (root / "models" / f"m{number:04}.sql").write_text(_model(number, chance))


def _names() -> list[str]:
    return [f"c{number}" for number in range(COLUMNS)]


def _entry(number: int) -> str:
    head = f"  - name: m{number:04}\n    description: a model\n    columns:\n"
    return f"{head}      - {{name: id, data_tests: [unique, not_null]}}\n      - {{name: k, description: key}}\n"


def _model(number: int, chance: Random) -> str:
    config = f"{{{{ config(materialized='{chance.choice(['table', 'view'])}', tags=['t{number % 7}']) }}}}\n"
    items = [
        f"a.{name} + {number} as {name}" if n % 3 == 0 else f"a.{name} as {name}" for n, name in enumerate(_names())
    ]
    above = f"m{chance.randrange(max(0, number - 20), number):04}" if number else ""
    source = f"{{{{ ref('{above}') }}}}" if above else "{{ source('raw', 't') }}"
    joins = ""
    for other in range(chance.randrange(0, 3) if number > 20 else 0):
        beside = chance.randrange(number - 20, number)
        joins += f" left join {{{{ ref('m{beside:04}') }}}} as b{other} on a.id = b{other}.id"
    return f"{config}select\n  a.id,\n  a.k,\n  " + ",\n  ".join(items) + f"\nfrom {source} as a{joins}\n"


def _clear(project: Path, cache: Path) -> None:
    """As in a fresh checkout. Moved away, not deleted: for minutes ext4 passes over each file number that has become
    free, at a millisecond for each new file, and whoever runs next would pay for what the one before has written."""
    aside = Path(tempfile.mkdtemp(dir=project.parent))
    for folder in (project / "target", project / "logs", cache):
        if folder.exists():
            folder.rename(aside / folder.name)


if __name__ == "__main__":
    main(sys.argv[1:])
