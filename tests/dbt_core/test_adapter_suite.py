"""dbt's public suite for adapters: each call that it makes of dbt-core 1.11.16 on DuckDB ends the same way by `sml`.

The suite is read from its package (`adapter_suite.in`). Nothing outlives a call on a `duckdb` target, which builds what
a call reads: so statuses are compared, call by call, not the rows that earlier calls left. What ends otherwise is
listed with its reason in `docs/dbt.md` and here: a test fails when either side changes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from sqlmesh_like.cli.app import main
from tests.dbt_core.program import HERE, QUIET
from tests.environments import python_of

pytestmark = pytest.mark.release
_SUITE = ("-q", "-p", "no:cacheprovider", "-p", "dbt.tests.fixtures.project", "--noconftest", "-c", os.devnull)
_SECONDS = 3_000
LEAST_CALLS = 250
OTHERWISE = {
    r"'incremental_strategy' is 'bad_strategy'": "an unknown strategy is refused by the first run already",
    r"is not a ref\(\) or source\(\)|dbt\.seed.*does not exist": "tables are read by ref() and source() only",
    r"unique_key names '.*', which is not one of its columns": "a key is checked before the first run",
    r"rows share one|have NULL in unique_key": "rows of a key are one row of a table, from its first run on",
    r"not checkable here": "DuckDB computes what is proven to be as on Spark",
    r"where is_incremental\(\) is true the query has no column": "the branch has all columns of the whole query",
    r"new_col|known: a, b, c": "columns that a hook adds to a table are not its model's",
    r"on-run-start and on-run-end are statements for Spark": "they are not run on DuckDB, and that is said",
    r"selector '.*' matches nothing": "a name that matches nothing is an error",
    r"the contract says (text|int)\[\]": "types of a contract are Spark's",
    r"'constraints' of a column has no effect": "constraints are not enforced, and that is said",
    r"^show .*limit 1$": "a query that has a LIMIT keeps it",
    r"'sql_header' has no effect": "no statement runs before a query, and that is said",
}
"""What is said here by calls that end otherwise, with the reasons as in `docs/dbt.md`. Of `show`: the call itself."""


@dataclass(frozen=True)
class Call:
    """A call of dbt by the suite. `nodes`: statuses by unique id."""

    test: str
    args: list[str]
    success: bool
    nodes: dict[str, str]
    project: Path


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[Call]:
    python = python_of("dbt-adapter-suite", HERE / "adapter_suite.txt")
    records, place = tmp_path_factory.mktemp("records"), tmp_path_factory.mktemp("suite")
    words = [str(python), "-m", "pytest", *_SUITE, "--rootdir", str(place), str(HERE / "adapter_shim.py")]
    environment = {**os.environ, **QUIET, "SML_RECORDS": str(records)}
    environment.pop("PYTHONPATH", None)
    if not (given := os.environ.get("SML_ADAPTER_RECORDS")):  # a folder of an earlier run, while working on this test
        subprocess.run(words, cwd=place, capture_output=True, env=environment, timeout=_SECONDS, check=False)
    records = Path(given) if given else records
    return list(_recorded(records))


def _recorded(records: Path) -> Iterator[Call]:
    for folder in sorted(records.iterdir()):
        if (folder / "call.json").exists():  # else dbt raised an exception that the suite expects
            entry = json.loads((folder / "call.json").read_text())
            yield Call(
                entry["test"],
                [str(word) for word in entry["args"]],
                entry["success"],
                entry["nodes"],
                folder / "project",
            )


@pytest.mark.timeout(_SECONDS)
def test_each_call_of_the_suite_ends_as_in_dbt(
    calls: list[Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(calls) >= LEAST_CALLS
    unknown, met = [], set()
    for number, call in enumerate(calls):
        place = tmp_path / str(number)
        shutil.copytree(call.project, place)
        _write_profile(place)
        monkeypatch.chdir(place)
        success = main(call.args) == 0
        shown = capsys.readouterr()
        if not _ends_alike(call, success, _statuses(place)):
            message = f"{' '.join(call.args).strip()}\n{shown.out}{shown.err}"
            reasons = {pattern for pattern in OTHERWISE if re.search(pattern, message, re.MULTILINE)}
            met |= reasons
            if not reasons:
                unknown.append(f"{call.test}: dbt {call.success}, here {success}: {message[-500:]}")
    assert not unknown, "\n".join(unknown)
    assert met == OTHERWISE.keys()  # what ends as in dbt now is no longer listed


def _ends_alike(call: Call, success: bool, nodes: Mapping[str, str]) -> bool:
    """What fails may fail earlier here, before any node runs; `show` and `docs` have no results here."""
    is_run = call.args[0] not in ("show", "docs")
    return success == call.success and (not success or not is_run or nodes == call.nodes)


def _write_profile(project: Path) -> None:
    name = yaml.safe_load((project / "dbt_project.yml").read_text())["profile"]
    outputs = {"default": {"type": "duckdb", "schema": "dbt"}}
    (project / "profiles.yml").write_text(yaml.safe_dump({name: {"target": "default", "outputs": outputs}}))


def _statuses(project: Path) -> dict[str, str]:
    results = project / "target" / "run_results.json"
    if not results.exists():
        return {}
    return {each["unique_id"]: each["status"] for each in json.loads(results.read_text())["results"]}
