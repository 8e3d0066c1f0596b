"""TPC-H maintenance: 22 models over eight ODS tables. Each change is applied incrementally, then all is rebuilt.

Beside the rebuild DuckDB alone, and dbt-core with dbt-duckdb, compute all queries over the same files.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from statistics import median

from bench import tpch_data
from bench.dbt_duckdb_peer import DbtDuckdb
from bench.dms import Change
from bench.lake import Call, Lake, dms_source
from bench.program import IMPORTABLE, Finished, python, run_program
from bench.result import WHOLE, Figure, Options, SuiteResult, Timings, Unavailable, means_of
from tests.tpc.suites import write_project
from tests.tpc.tables import TABLES

CHANGES = tuple(
    Change(share, spread) for share in (0.0001, 0.001, 0.01, 0.05, 0.2) for spread in ("newest", "scattered")
)

QUICK = (Change(0.001, "newest"), Change(0.05, "scattered"))


def run(options: Options) -> SuiteResult:
    lake, database = Lake(options.folder), tpch_data.database(options.folder)
    write_tpch(lake, options.memory)
    tpch_data.load(database, options.scale)
    first = {"first ingestion": lake.sml("ingest"), "first build": lake.sml("run")}
    changes = options.changes or (QUICK if options.is_quick else CHANGES)
    timings, number = Timings(), 0
    dbt, skipped = _dbt_duckdb(lake, options)
    for repetition in range(options.repeat):
        for change in changes:
            number += 1
            rows = database.change(tpch_data.statements(change, number), number)
            ingested, followed = lake.sml("ingest"), lake.sml("run")
            if repetition == 0:
                lake.sml("verify")  # fails where a table differs from its SELECT
            rebuilt = lake.sml("run", "--full-refresh")
            _add(timings, change.name, followed, rebuilt)
            facts = {"rows_changed": rows, "seconds_ingest": ingested.seconds, **_memory(followed, rebuilt)}
            timings.add(change.name, WHOLE, other=rebuilt.seconds, ours=followed.seconds, **facts)
            alone = _duckdb_alone(lake)
            memory = {"peak_bytes_run": followed.peak_bytes, "peak_bytes_duckdb": alone.peak_bytes}
            timings.add(f"{change.name}, DuckDB alone", WHOLE, other=alone.seconds, ours=followed.seconds, **memory)
            if dbt is not None:
                made = dbt.run()
                memory = {"peak_bytes_run": followed.peak_bytes, "peak_bytes_dbt": made.peak_bytes}
                timings.add(f"{change.name}, dbt-duckdb", WHOLE, other=made.seconds, ours=followed.seconds, **memory)
    figures = timings.figures()
    return SuiteResult(
        "tpch",
        f"TPC-H maintenance at scale factor {options.scale:g}",
        "rebuild, or DuckDB alone, or dbt-duckdb, ÷ incremental run of the same models after the same change",
        figures,
        {
            "by change": {change.name: _summary(figures, change.name) for change in changes},
            **{f"seconds of the {name}": call.seconds for name, call in first.items()},
        },
        skipped,
    )


def write_tpch(lake: Lake, memory: str) -> None:
    """Write the suite's project, with its sources declared as DMS files."""
    write_project("h", lake.root)
    lake.write_settings("tpch", memory)
    ingest: dict[str, dict[str, object]] = {}
    for name, table in TABLES["h"].items():
        ingest[name] = {"primary_key": list(table.primary_key)}
        if column := tpch_data.MONTHS.get(name):
            ingest[name]["partition_by"] = {"column": column, "format": "yyyyMM", "as": f"{column[0]}_month"}
    lake.write_yaml("models/sources.yml", dms_source("tpch", ingest))
    shutil.rmtree(lake.root / "target", ignore_errors=True)


def _add(timings: Timings, change: str, followed: Call, rebuilt: Call) -> None:
    for name, node in sorted(followed.nodes.items()):
        if node.status != "no-op":
            timings.add(change, name, other=rebuilt.nodes[name].seconds, ours=node.seconds, **node.facts)


def _dbt_duckdb(lake: Lake, options: Options) -> tuple[DbtDuckdb | None, tuple[str, ...]]:
    """The same queries as tables of dbt-duckdb; else why it is left out."""
    try:
        return DbtDuckdb.over(lake, options.folder / "dbt_duckdb", os.cpu_count() or 1), ()
    except Unavailable as error:
        return None, (str(error),)


def _duckdb_alone(lake: Lake) -> Finished:
    """All queries over the lake's files, none of which it has seen before."""
    return run_program(python("bench.duckdb_peer", "warehouse", "target/duckdb"), lake.root, IMPORTABLE)


def _memory(followed: Call, rebuilt: Call) -> dict[str, object]:
    return {"peak_bytes_run": followed.peak_bytes, "peak_bytes_rebuild": rebuilt.peak_bytes}


def _summary(figures: Iterable[Figure], change: str) -> dict[str, object]:
    """Return the geometric mean over the models that changed, and the worst of them."""
    moved = [figure for figure in figures if figure.group == change and figure.name != WHOLE]
    if not moved:
        return {"models moved": 0}
    worst = min(moved, key=lambda figure: figure.ratio)
    means = means_of(moved)
    return {
        "models moved": len(moved),
        "geometric mean": median(means),
        "its spread": [means[0], means[-1]],
        "worst": {worst.name: worst.ratio},
        "models below 1": sum(figure.ratio < 1 for figure in moved),
    }
