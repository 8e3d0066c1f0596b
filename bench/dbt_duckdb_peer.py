"""The queries of TPC-H as a project of dbt-core with dbt-duckdb, which makes each table anew with each run.

Its sources are the files that the lake's tables have when it runs; its tables are in one DuckDB file of its own. Owns
the project; `bench.duckdb_peer` has the text of the queries.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import sqlglot
from sqlglot import exp

from bench.dbt_run import dbt_run
from bench.duckdb_peer import live_files, statements
from bench.environment import python_of
from bench.lake import Call, Lake
from tests.tpc.tables import TABLES

NAME = "dbt-duckdb-1.11.1"


@dataclass(frozen=True)
class DbtDuckdb:
    """The project over the tables of a lake, with all cores of the machine."""

    lake: Lake
    project: Lake
    python: Path

    @staticmethod
    def over(lake: Lake, folder: Path, cores: int) -> DbtDuckdb:
        """Write the project. Raises Unavailable where dbt cannot be installed."""
        python, project = python_of(NAME, Path(__file__).parent / "dbt_duckdb"), Lake(folder)
        project.write_yaml("dbt_project.yml", {"name": "tpch", "version": "1.0", "profile": "lake"})
        output = {"type": "duckdb", "path": "tables.duckdb", "threads": 1, "settings": {"threads": cores}}
        project.write_yaml("profiles.yml", {"lake": {"target": "local", "outputs": {"local": output}}})
        for name, text in statements().items():
            project.write(f"models/{name}.sql", f"{{{{ config(materialized='table') }}}}\n{source_calls(text)}\n")
        return DbtDuckdb(lake, project, python)

    def run(self) -> Call:
        """Make all tables of the files that the lake's tables have now; which these are is written before."""
        tables = []
        for name in TABLES["h"]:
            files = live_files(f"{self.lake.root}/warehouse/ods/{name}")
            location = f"read_parquet({files!r}, hive_partitioning = false)"
            tables.append({"name": name, "config": {"meta": {"external_location": location}}})
        self.project.write_yaml("models/sources.yml", {"version": 2, "sources": [{"name": "ods", "tables": tables}]})
        return dbt_run(self.python, self.project)


def source_calls(text: str) -> str:
    """The query with its tables as sources of dbt, under their own names.

    >>> source_calls("SELECT n FROM orders JOIN lineitem AS l1 ON TRUE")
    "SELECT n FROM {{ source('ods', 'orders') }} AS orders JOIN {{ source('ods', 'lineitem') }} AS l1 ON TRUE"
    """
    tree = sqlglot.parse_one(text, read="duckdb")
    for table in [each for each in tree.find_all(exp.Table) if each.name in TABLES["h"]]:
        name = table.name
        table.set("alias", table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name)))
        table.set("this", exp.to_identifier(f"source_{name}"))
    return re.sub(r"\bsource_(\w+)", r"{{ source('ods', '\1') }}", tree.sql("duckdb"))
