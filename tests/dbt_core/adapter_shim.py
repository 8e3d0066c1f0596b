"""Runs dbt's adapter suite on DuckDB, as its package has it, and records each call of dbt.

Not part of this project's own tests: `test_adapter_suite` gives this file to pytest in the suite's environment, with
the plugin `dbt.tests.fixtures.project`. The folder `SML_RECORDS` gets, for each call, the project as it was before
(`<number>/project`) and what was called and answered (`<number>/call.json`): statuses, the rows that each node's table
has after the call, and those of tables that the suite itself has changed since the call before.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

MODULES = (
    "basic.test_base", "basic.test_empty", "basic.test_ephemeral", "basic.test_generic_tests", "basic.test_incremental",
    "basic.test_singular_tests", "basic.test_singular_tests_ephemeral", "basic.test_snapshot_check_cols",
    "basic.test_snapshot_timestamp", "basic.test_table_materialization", "ephemeral.test_ephemeral",
    "simple_seed.test_seed", "simple_snapshot.test_snapshot", "incremental.test_incremental_unique_id",
    "incremental.test_incremental_predicates", "incremental.test_incremental_on_schema_change",
    "hooks.test_model_hooks", "hooks.test_run_hooks", "constraints.test_constraints", "aliases.test_aliases",
    "store_test_failures_tests.test_store_test_failures", "unit_testing.test_types",
    "unit_testing.test_case_insensitivity", "unit_testing.test_invalid_input", "dbt_show.test_dbt_show",
)  # fmt: skip
"""Modules below `dbt.tests.adapter`."""
RECORDS = Path(os.environ["SML_RECORDS"])


@pytest.fixture(scope="class")
def dbt_profile_target(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {"type": "duckdb", "path": str(tmp_path_factory.mktemp("duck") / "dbt.duckdb"), "threads": 1}


@pytest.fixture(autouse=True)
def recorded_calls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    from dbt.cli.main import dbtRunner

    invoke = dbtRunner.invoke

    def recorded(self: Any, args: list[str], **given: Any) -> Any:
        folder = RECORDS / f"{len(list(RECORDS.iterdir())):04d}"
        shutil.copytree(Path.cwd(), folder / "project", ignore=shutil.ignore_patterns("logs", "target", "*.duckdb*"))
        words, project = _without_folders(args), request.getfixturevalue("project")
        tables = project.__dict__.setdefault("recorded_tables", {})
        changed = {node: now for node, (relation, rows) in tables.items() if (now := _rows(project, relation)) != rows}
        for node, rows in changed.items():
            tables[node] = (tables[node][0], rows)
        answer = invoke(self, args, **given)
        made = {node: (relation, _rows(project, relation)) for node, relation in _relations(answer).items()}
        tables |= made
        rows = {node: rows for node, (_, rows) in made.items() if rows is not None}
        entry = {"test": request.node.nodeid, "args": words, "success": bool(answer.success), "nodes": _nodes(answer)}
        entry |= {"rows": rows, "changed": changed}
        (folder / "call.json").write_text(json.dumps(entry))
        return answer

    monkeypatch.setattr(dbtRunner, "invoke", recorded)


def _relations(answer: Any) -> dict[str, str]:
    """The table or view that each successful node of a call stands for."""
    results = [each for each in getattr(answer.result, "results", None) or [] if hasattr(each, "node")]
    named = {each.node.unique_id: each.node.relation_name for each in results if each.status == "success"}
    return {node: name for node, name in named.items() if name and node.split(".")[0] in ("model", "seed", "snapshot")}


def _rows(project: Any, relation: str) -> list[dict[str, str | None]] | None:
    """The rows of a table or view, values as texts; None where there is none of this name any more."""
    try:
        names = [name for name, *_ in project.run_sql(f"describe {relation}", fetch="all")]
        values = project.run_sql(f"select columns(*)::varchar from {relation}", fetch="all")
    except Exception:  # noqa: BLE001 - each database has its own
        return None
    return sorted((dict(zip(names, row, strict=True)) for row in values), key=repr)


def _without_folders(args: list[str]) -> list[str]:
    """The words of a call without `--project-dir` and `--profiles-dir`."""
    kept, skip = [], False
    for word in args:
        if not skip and word not in ("--project-dir", "--profiles-dir"):
            kept.append(word)
        skip = not skip and word in ("--project-dir", "--profiles-dir")
    return kept


def _nodes(answer: Any) -> dict[str, str]:
    """Statuses by unique id, or the names that `list` prints."""
    result = answer.result
    if isinstance(result, list) and all(isinstance(name, str) for name in result):
        return dict.fromkeys(result, "listed")
    return {
        each.node.unique_id: str(each.status)
        for each in getattr(result, "results", None) or []
        if hasattr(each, "node")
    }


def _classes(module: str) -> list[type]:
    """The classes with tests that a module defines; of one and those derived from it without more tests, the first."""
    suite = importlib.import_module(f"dbt.tests.adapter.{module}")
    own = [each for _, each in inspect.getmembers(suite, inspect.isclass) if each.__module__ == suite.__name__]
    tested = [each for each in own if any(part.startswith("test_") for part in dir(each))]
    return [
        each
        for each in tested
        if not any(other in each.__mro__[1:] and not vars(each).keys() - _PLAIN for other in tested)
    ]


_PLAIN = {"__module__", "__doc__", "__firstlineno__", "__static_attributes__"}

for _module in MODULES:
    for _class in _classes(_module):
        _name = f"Test{_module.split('.')[1].removeprefix('test_').title().replace('_', '')}{_class.__name__}"
        globals()[_name] = type(_name, (_class,), {"__module__": __name__})
