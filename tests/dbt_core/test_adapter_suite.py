"""dbt's public suite for adapters: each call that it makes of dbt-core 1.11.16 on DuckDB ends the same way by `sml`.

The suite is read from its package (`adapter_suite.in`). Nothing outlives a call on a `duckdb` target, which builds what
a call reads: so statuses are compared there, call by call. On Spark the calls of a test follow each other on one lake:
the rows that each leaves are compared as well. What ends otherwise is listed with its reason in `docs/dbt.md` and here:
a test fails when either side changes.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from pathlib import Path

import pytest
import yaml
from filelock import FileLock
from pyspark.sql import SparkSession

from sqlmesh_like.cli.app import main
from tests.dbt_core.program import HERE, QUIET
from tests.environments import python_of
from tests.spark.demo_lake import share

pytestmark = pytest.mark.release
_SUITE = ("-q", "-p", "no:cacheprovider", "-p", "dbt.tests.fixtures.project", "--noconftest", "-c", os.devnull)
_SECONDS = 3_000
LEAST_CALLS = 250
_OF_ROWS = "rows differ; "
_ANYWHERE = {
    r"'incremental_strategy' is 'bad_strategy'": "an unknown strategy is refused by the first run already",
    r"is not a ref\(\) or source\(\)|dbt\.seed.*does not exist": "tables are read by ref() and source() only",
    r"unique_key names '.*', which is not one of its columns": "a key is checked before the first run",
    r"rows share one|have NULL in unique_key": "rows of a key are one row of a table, from its first run on",
    r"where is_incremental\(\) is true the query has no column": "the branch has all columns of the whole query",
    r"new_col|known: a, b, c|post_hook failed": "hooks are Spark's, and columns that they add not their model's",
    r"selector '.*' matches nothing": "a name that matches nothing is an error",
    r"the contract says (text|int)\[\]": "types of a contract are Spark's",
    r"Spark 3\.5 does not read `::`": "SQL is Spark's",
    r"^show .*limit 1$": "a query that has a LIMIT keeps it",
    r"'sql_header' has no effect": "no statement runs before a query, and that is said",
}
OTHERWISE = {
    **_ANYWHERE,
    r"not checkable here": "DuckDB computes what is proven to be as on Spark",
    r"on-run-start and on-run-end are statements for Spark": "they are not run on DuckDB, and that is said",
    r"'constraints' of a column has no effect": "constraints are not enforced, and that is said",
}
"""What is said here by calls that end otherwise, with the reasons as in `docs/dbt.md`. Of `show`: the call itself."""
OTHERWISE_ON_SPARK = {
    **_ANYWHERE,
    r"the table dbt\.fact does not exist yet": "what the suite creates by statements is no table of the project",
    r"the table .*/dbt/(ref_)?foo does not exist": "its model was refused before",
    rf"^{_OF_ROWS}(?s:.*)CFG004": "the table is kept equal to the whole query, and that is said",
    rf"^{_OF_ROWS}(?s:.*)CFG005(?s:.*)NO-OP=1": "a branch is run where an input has changed, and NO-OP says it was not",
}
"""The same on a `spark` target, where rows are compared as well."""
Shown = pytest.CaptureFixture[str]
Table = list[dict[str, str | None]]


@dataclass(frozen=True)
class Call:
    """A call of dbt by the suite. `nodes`: statuses by unique id; `rows`: what their tables have after the call.

    `changed`: the rows of tables that the suite itself has changed since the call before; None where one is gone.
    """

    test: str
    args: list[str]
    success: bool
    nodes: dict[str, str]
    rows: dict[str, Table]
    changed: dict[str, Table | None]
    project: Path

    @property
    def lake(self) -> str:
        """What the calls that follow each other on one database have in common."""
        return self.test.split("::")[1]


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[Call]:
    if given := os.environ.get("SML_ADAPTER_RECORDS"):  # a folder of an earlier run, while working on this test
        return list(_recorded(Path(given)))
    python, root = python_of("dbt-adapter-suite", HERE / "adapter_suite.txt"), tmp_path_factory.getbasetemp()
    records = (root.parent if "PYTEST_XDIST_WORKER" in os.environ else root) / "adapter-suite"
    with FileLock(f"{records}.lock"):  # workers share what one of them recorded
        if not records.exists():
            records.mkdir()
            _record(python, records, tmp_path_factory.mktemp("suite"))
    return list(_recorded(records))


def _record(python: Path, records: Path, place: Path) -> None:
    words = [str(python), "-m", "pytest", *_SUITE, "--rootdir", str(place), str(HERE / "adapter_shim.py")]
    environment = {**os.environ, **QUIET, "SML_RECORDS": str(records)}
    environment.pop("PYTHONPATH", None)
    subprocess.run(words, cwd=place, capture_output=True, env=environment, timeout=_SECONDS, check=False)


def _recorded(records: Path) -> Iterator[Call]:
    for folder in sorted(records.iterdir()):
        if (folder / "call.json").exists():  # else dbt raised an exception that the suite expects
            entry = json.loads((folder / "call.json").read_text())
            args = [str(word) for word in entry.pop("args")]
            yield Call(**entry, args=args, project=folder / "project")


@pytest.mark.timeout(_SECONDS)
def test_each_call_of_the_suite_ends_as_in_dbt(
    calls: list[Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    assert len(calls) >= LEAST_CALLS
    listed = _Listed(OTHERWISE)
    for number, call in enumerate(calls):
        place = tmp_path / str(number)
        shutil.copytree(call.project, place)
        _write_profile(place, {"type": "duckdb"})
        monkeypatch.chdir(place)
        listed.compare(call, *_answered(call.args, capsys), _statuses(place))
    listed.check()


@pytest.mark.timeout(_SECONDS)
def test_each_call_of_the_suite_ends_as_in_dbt_on_spark(
    calls: list[Call], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    share(spark, monkeypatch)
    listed = _Listed(OTHERWISE_ON_SPARK)
    for name, group in groupby(calls, lambda call: call.lake):
        place = tmp_path / name
        place.mkdir()
        monkeypatch.chdir(place)
        for call in group:
            _take_project(call, place)
            for node, rows in call.changed.items():
                _follow(node, rows, capsys)
            shutil.rmtree("target", ignore_errors=True)
            success, said = _answered(call.args, capsys)
            if listed.compare(call, success, said, _statuses(place)):
                for node, rows in call.rows.items():
                    listed.compare_rows(call, node, rows, *_stored(node, call.args, capsys), said)
    listed.check()


class _Listed:
    """What ended otherwise, and of what is listed, what was met."""

    def __init__(self, otherwise: Mapping[str, str]) -> None:
        self._otherwise = otherwise
        self._unknown: list[str] = []
        self._met: set[str] = set()

    def compare(self, call: Call, success: bool, said: str, statuses: Mapping[str, str]) -> bool:
        """Return whether a call ended as in dbt, and well."""
        if _ends_alike(call, success, statuses):
            return success
        changed = {node: (call.nodes.get(node), statuses.get(node)) for node in call.nodes.keys() | statuses.keys()}
        changed = {node: pair for node, pair in changed.items() if pair[0] != pair[1]}
        self._note(call, f"{' '.join(call.args).strip()}\n{said}", f"dbt {call.success}, here {success} {changed}")
        return False

    def compare_rows(self, call: Call, node: str, expected: Table, stored: Table, refusal: str, said: str) -> None:
        """Compare the rows of a node's table: `refusal` of reading them, if any, and what the call `said`."""
        seen, wanted = _comparable(stored), _comparable(expected)
        if refusal:
            self._note(call, refusal, f"{node} cannot be read")
        elif seen != wanted:
            only = [row for row in seen if row not in wanted][:2], [row for row in wanted if row not in seen][:2]
            counts = f"{node} has {len(seen)} rows, {len(wanted)} in dbt"
            self._note(call, f"{_OF_ROWS}{said}", f"{counts}; here only {only[0]}, in dbt only {only[1]}")

    def _note(self, call: Call, said: str, difference: str) -> None:
        of_rows = said.startswith(_OF_ROWS)  # a reason why a call ends otherwise is none why its rows differ
        possible = [pattern for pattern in self._otherwise if pattern.startswith(f"^{_OF_ROWS}") == of_rows]
        reasons = {pattern for pattern in possible if re.search(pattern, said, re.MULTILINE)}
        self._met |= reasons
        if not reasons:
            self._unknown.append(f"{call.test}: {difference}: {said[-700:]}")

    def check(self) -> None:
        assert not self._unknown, "\n".join(self._unknown)
        assert self._met == self._otherwise.keys()  # what ends as in dbt now is no longer listed


def _answered(args: list[str], capsys: Shown) -> tuple[bool, str]:
    success = main(args) == 0
    shown = capsys.readouterr()
    return success, shown.out + shown.err


def _ends_alike(call: Call, success: bool, nodes: Mapping[str, str]) -> bool:
    """What fails may fail earlier here, before any node runs; `show` and `docs` have no results here."""
    is_run = call.args[0] not in ("show", "docs")
    return success == call.success and (not success or not is_run or nodes == call.nodes)


def _take_project(call: Call, place: Path) -> None:
    """The project as it was before a call; the lake stays."""
    for path in place.iterdir():
        if path.name != "warehouse":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(call.project, place, dirs_exist_ok=True)
    _write_profile(place, {"type": "spark", "warehouse": "warehouse"})


def _follow(node: str, rows: Table | None, capsys: Shown) -> None:
    """Do to a node's table what the suite did: it drops tables between its tests, and gives seeds other rows."""
    name = node.split(".", 2)[2]
    if rows is None:
        for folder in Path("warehouse").glob(f"*/{name}"):
            shutil.rmtree(folder)
    elif node.startswith("seed.") and (files := list(Path().glob(f"*/**/{name}.csv"))):
        with files[0].open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        success, said = _answered(["seed", "-s", name], capsys)
        assert success, said


def _stored(node: str, args: list[str], capsys: Shown) -> tuple[Table, str]:
    """The rows of a node as a user sees them, or none and what is said where they cannot be read."""
    name = node.split(".", 2)[2]
    name = f"dbt.{name}" if "." in name else name
    variables = args[args.index("--vars") :][:2] if "--vars" in args else []
    success, said = _answered(["show", name, "--output", "json", "--limit", "-1", "-q", *variables], capsys)
    if not success:
        return [], said
    rows: list[dict[str, object]] = json.loads(said)
    return [{name: None if value is None else str(value) for name, value in row.items()} for row in rows], ""


def _comparable(rows: Table) -> list[dict[str, str | bool | None]]:
    """Rows without what two systems spell or number in their own way: of a snapshot's own columns, what is NULL."""
    plain = [
        {
            name.lower(): (value is None) if name.lower().startswith("dbt_") else _plain_value(value)
            for name, value in row.items()
        }
        for row in rows
    ]
    return sorted(plain, key=lambda row: str(sorted(row.items())))


def _plain_value(value: str | None) -> str | None:
    if value is None:
        return None
    if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?([eE]-?[0-9]+)?", value):
        return str(Decimal(value).normalize())
    if re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:", value):
        return value.replace("T", " ").rstrip("Z").rstrip("0" if "." in value else "").rstrip(".")
    return value.lower() if value in ("True", "False") else value


def _write_profile(project: Path, output: Mapping[str, str]) -> None:
    name = yaml.safe_load((project / "dbt_project.yml").read_text())["profile"]
    outputs = {"default": {**output, "schema": "dbt"}}
    (project / "profiles.yml").write_text(yaml.safe_dump({name: {"target": "default", "outputs": outputs}}))


def _statuses(project: Path) -> dict[str, str]:
    results = project / "target" / "run_results.json"
    if not results.exists():
        return {}
    results = json.loads(results.read_text())["results"]
    return {each["unique_id"]: each["status"].replace("no-op", "success") for each in results}
