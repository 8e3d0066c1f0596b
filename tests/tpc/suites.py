"""The suites of queries as projects in a folder. Owns where the queries come from and what files a project has.

`python -m tests.tpc.suites ds FOLDER` writes one to look at: the lines of `plans.txt` are those of its models.
"""

from __future__ import annotations

import argparse
import re
import tomllib
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import yaml

from sqlmesh_like.spark.jvm.jars import Jar, ensure_jars
from tests.tpc import query_text
from tests.tpc.tables import FOLDER, TABLES


@dataclass(frozen=True)
class Suite:
    """A set of queries over one source; `queries` is their folder in the jar."""

    title: str
    queries: str
    source: str


SUITES = {
    "h": Suite("TPC-H", "tpch", "tpch"),
    "ds": Suite("TPC-DS", "tpcds", "tpcds"),
    "ds27": Suite("TPC-DS 2.7", "tpcds-v2.7.0", "tpcds"),
}


def jar() -> Path:
    """The jar with the queries, in the user's cache. Raises MachineError where it cannot be fetched."""
    locked = tomllib.loads((FOLDER / "queries.lock.toml").read_text(encoding="utf-8"))
    return ensure_jars(tuple(Jar(**entry) for entry in locked["jar"]))[0]


def queries(suite: str, relation: Callable[[str], str], *, without_limit: bool = False) -> dict[str, str]:
    """The queries of a suite by name (q01, q14a) in order, as `query_text.model_text` writes them.

    `relation` says how a table is written, e.g. as a call of `source()`. `without_limit` cuts the LIMIT at the end.
    """
    texts = {}
    with zipfile.ZipFile(jar()) as archive:
        for path in map(PurePosixPath, archive.namelist()):
            if str(path.parent) == SUITES[suite].queries and path.suffix == ".sql":
                sql = archive.read(str(path)).decode()
                if without_limit:
                    sql = query_text.without_limit(sql) or sql
                texts[_padded(path.stem)] = query_text.model_text(sql.rstrip(), TABLES[suite], relation)
    return dict(sorted(texts.items()))


def write_project(
    suite: str, folder: Path, *, source: str | None = None, schema: str = "ods", without_limit: bool = False
) -> None:
    """Write a suite as a project of models that read tables of a source, which the YAML says to be in `schema`."""
    name = source or SUITES[suite].source
    files = {
        "pyproject.toml": f'[tool.sqlmesh_like]\nname = "{name}"\nprofile = "lake"\n',
        "profiles.yml": "lake: {target: local, outputs: {local: {type: spark, schema: dws}}}\n",
        "models/sources.yml": _source_yaml(suite, name, schema),
    }
    for query, sql in queries(suite, lambda table: source_call(name, table), without_limit=without_limit).items():
        files[f"models/{query}.sql"] = sql + "\n"
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def source_call(source: str, table: str) -> str:
    """
    >>> source_call("tpch", "orders")
    "{{ source('tpch', 'orders') }}"
    """
    return f"{{{{ source('{source}', '{table}') }}}}"


def _source_yaml(suite: str, source: str, schema: str) -> str:
    tables = [
        {"name": name, "columns": [{"name": column, "data_type": type_} for column, type_ in table.columns.items()]}
        for name, table in TABLES[suite].items()
    ]
    declared = {"version": 2, "sources": [{"name": source, "schema": schema, "tables": tables}]}
    return yaml.safe_dump(declared, sort_keys=False)


def _padded(name: str) -> str:
    """
    >>> _padded("q5a")
    'q05a'
    """
    return re.sub(r"\d+", lambda digits: digits[0].zfill(2), name)


def main() -> None:
    """Write a project into a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--without-limit", action="store_true", help="cut the LIMIT at the end of queries")
    chosen = parser.parse_args()
    write_project(chosen.suite, chosen.folder, without_limit=chosen.without_limit)


if __name__ == "__main__":
    main()
