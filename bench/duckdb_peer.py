"""The queries of TPC-H by DuckDB alone, over the files of the lake's tables: what one may pick on one machine instead.

`python -m bench.duckdb_peer WAREHOUSE FOLDER` computes each of them and writes it as Parquet, with as many threads and
as much memory as DuckDB takes by itself (all cores, four fifths of the memory). Owns their text in DuckDB's SQL.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import duckdb
import sqlglot

from sqlmesh_like.dialects import SPARK
from sqlmesh_like.hudi.timeline import Timeline
from tests.tpc.suites import queries
from tests.tpc.tables import TABLES


def statements() -> Mapping[str, str]:
    """The queries by name, in DuckDB's SQL over tables of the names in the suite."""
    texts = queries("h", lambda table: table)
    return {name: sqlglot.transpile(text, read=SPARK, write="duckdb")[0] for name, text in texts.items()}


def live_files(uri: str) -> list[str]:
    """The files that a copy-on-write table has now."""
    timeline = Timeline(uri)
    assert timeline.frontier is not None, uri
    return sorted(f"{timeline.uri}/{each.path}" for each in timeline.slices(timeline.frontier).values())


def main(warehouse: str, folder: str) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as db:
        for table in TABLES["h"]:
            files = live_files(f"{warehouse}/ods/{table}")
            db.execute(f"create view {table} as select * from read_parquet({files!r}, hive_partitioning = false)")
        for name, text in statements().items():
            db.execute(f"copy ({text}) to '{folder}/{name}.parquet' (format parquet)")


if __name__ == "__main__":
    main(*sys.argv[1:])
