"""1,000 models read by `sml` and by dbt-core: CPU times, first with nothing cached, then again.

Each model has a config, one to three refs and 20 columns, of which two are declared, and two data tests. The profile is
one of DuckDB: neither program starts an engine.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

from bench.environment import python_of
from bench.program import IMPORTABLE, REPOSITORY, python, run_program
from bench.result import Options, SuiteResult, Timings

COLUMNS = 18
QUIET = {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DO_NOT_TRACK": "1", "DBT_USE_COLORS": "false"}


def run(options: Options) -> SuiteResult:
    count = 100 if options.is_quick else 1_000
    project, cache = options.folder / "project", options.folder / "cache"
    make_project(project, count)
    environment = {**IMPORTABLE, **QUIET, "SML_CACHE_DIR": str(cache), "DBT_PARTIAL_PARSE": "true"}
    dbt = [
        str(python_of("dbt-core-1.11.16", REPOSITORY / "tests" / "dbt_core")),
        "-c",
        "from dbt.cli.main import cli; cli()",
    ]
    timings = Timings()
    for _ in range(options.repeat):
        for command in ("parse", "compile"):
            theirs, ours = [*dbt, command, "--profiles-dir", "."], python("sqlmesh_like", command)
            _clear(project, cache)
            their_first, their_second = (run_program(theirs, project, environment) for _ in range(2))
            _clear(project, cache)
            our_first, our_second = (run_program(ours, project, environment) for _ in range(2))
            timings.add(command, "nothing cached", other=their_first.core_seconds, ours=our_first.core_seconds)
            timings.add(command, "again", other=their_second.core_seconds, ours=our_second.core_seconds)
    return SuiteResult(
        "many_models",
        f"{count:,} models read",
        "dbt-core 1.11.16 ÷ sml, seconds of a core",
        timings.figures(),
    )


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
    """Restore the state of a fresh checkout. Outputs are moved away, not deleted: for minutes after a deletion ext4
    skips each freed inode, at a millisecond per new file, so the next program would pay for the files of the previous
    one."""
    aside = Path(tempfile.mkdtemp(dir=project.parent))
    for folder in (project / "target", project / "logs", cache):
        if folder.exists():
            folder.rename(aside / folder.name)
