"""Pointers moved over 100 tables: promotion of an environment, and the return from its release to the one before, as
whole calls.

Both are compared with the start of the program alone (`sml --version`). No JVM is started.
"""

from __future__ import annotations

import shutil

from bench.lake import Lake
from bench.program import IMPORTABLE, python, run_program
from bench.result import Options, SuiteResult, Timings

_MODEL = "select customer, sum(amount){more} + {number} as total from {{{{ ref('orders') }}}} group by customer\n"


def run(options: Options) -> SuiteResult:
    """Edit all models beside production once; then promote copies of that lake, and return to the first release."""
    count = 10 if options.is_quick else 100
    lake, timings = Lake(options.folder / "lake"), Timings()
    lake.root.mkdir()
    lake.write_settings("shop", options.memory)
    lake.write("pyproject.toml", '[tool.sqlmesh_like]\nname = "shop"\nprofile = "lake"\nrelease = "always"\n')
    lake.write("seeds/orders.csv", "customer,amount\n1,20\n1,5\n2,30\n")
    _write_models(lake, count, "")
    lake.sml("build")
    _write_models(lake, count, " + 1000")
    lake.sml("run", "-e", "dev")
    warehouse, kept = lake.root / "warehouse", options.folder / "kept"
    shutil.copytree(warehouse, kept, symlinks=True)
    for _ in range(options.repeat):
        shutil.rmtree(warehouse)
        shutil.copytree(kept, warehouse, symlinks=True)
        # The return moves each table of the release that the promotion has made.
        for name, words in (("promotion", ("promote", "dev")), ("return to a release", ("release", "rollback", "1"))):
            start = run_program(python("sqlmesh_like", "--version"), lake.root, IMPORTABLE).seconds
            timings.add(f"{count} tables", name, other=start, ours=lake.sml(*words).seconds)
    return SuiteResult("releases", f"Pointers over {count} tables", "`sml --version` ÷ the call", timings.figures())


def _write_models(lake: Lake, count: int, more: str) -> None:
    for number in range(count):
        lake.write(f"models/m{number}.sql", _MODEL.format(number=number, more=more))
