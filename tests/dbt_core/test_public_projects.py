"""Public dbt projects, unedited, beside dbt-core 1.11.16 on DuckDB, where each node ends the same way; and on Spark.

`SML_DBT_PROJECTS` is a folder with clones of dbt-utils, dbt-audit-helper, dbt-date, dbt-expectations and jaffle-shop,
by these names; dbt-codegen, dbt-project-evaluator and dbt-data-reliability (elementary) are tried where they are there.
Packages that their `packages.yml` takes from the hub are given as `local:`, and the profile is ours.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.dbt_core.program import QUIET, python_of_dbt

Shown = pytest.CaptureFixture[str]
GIVEN = os.environ.get("SML_DBT_PROJECTS")
VARS = ("--vars", '{"load_source_data": true}')
OURS = "{target: duckdb, outputs: {duckdb: {type: duckdb, schema: main, on_unproven: warn}}}"
THEIRS = "{target: duckdb, outputs: {duckdb: {type: duckdb, schema: main, path: theirs.duckdb}}}"
ON_SPARK = "{target: spark, outputs: {spark: {type: spark, schema: main, warehouse: lake}}}"
ENDED_WELL = ("success", "pass", "no-op", "warn")
PATTERNS = r"_match_(regex|regex_list)_data_text_(email|postal)"


@dataclass(frozen=True)
class Public:
    """A project of a clone: its folder, the packages that it takes from the hub, and which nodes end otherwise, why.

    `on_spark`: nodes that do not end well there.
    """

    folder: str
    packages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    otherwise: Mapping[str, str] = field(default_factory=dict)
    on_spark: Mapping[str, str] = field(default_factory=dict)


PROJECTS = {
    "dbt-date": Public("dbt-date/integration_tests"),
    "dbt-expectations": Public(
        "dbt-expectations/integration_tests",
        {"dbt-expectations/packages.yml": ("../../dbt-date",)},
        otherwise={PATTERNS: "Spark reads '\\d' as 'd', and the package's macro for it drops the flags"},
    ),
    "dbt-utils": Public(
        "dbt-utils/integration_tests",
        otherwise={
            r"test_date_spine": "dbt: DuckDB adds no interval to a text",
            r"test_get_relations_by_pref|test_get_relations_by_pattern": "dbt: DuckDB has no db.information_schema",
        },
        on_spark={
            r"^seed\..*\.data_get_column_values_dropped$": "no template drops a table of the project",
            r"equality_data_test_equality_floats": "Spark compares the doubles, the test expects those of eight digits",
        },
    ),
    "dbt-audit-helper": Public(
        "dbt-audit-helper/integration_tests",
        {"dbt-audit-helper/packages.yml": ("../../dbt-utils",)},
        otherwise={
            r"model.*\.compare_and_classify_query_results": "dbt: DuckDB counts no distinct rows of two columns",
            r"\.unit_compare_classify(\.|$)": "dbt: as above",
            r"\.unit_compare_classify_struct\.": "dbt skips them: its own model raises 'Unknown adapter'",
            r"\.unit_quick_are_queries_identical\.": "neither is for DuckDB; dbt skips the others once one has failed",
        },
        on_spark={
            r"unit_test_struct_model_|unit_compare_classify_struct": "the package raises \"Unknown adapter 'spark'\"",
            r"unit_quick_are_queries_identical": "the package raises 'not implemented for adapter'",
            r"unit_compare_queries(\.identical_records_compare_queries)?$": "its check on DuckDB rounds no double",
        },
    ),
    "jaffle-shop": Public(
        "jaffle-shop",
        {"jaffle-shop/packages.yml": ("../dbt-utils", "../dbt-date")},
    ),
    "dbt-codegen": Public(
        "dbt-codegen/integration_tests",
        {"dbt-codegen/packages.yml": ("../../dbt-utils",)},
        otherwise={
            r"test_generate_model_repeated_yaml": "the integer type is int, and not integer",
            r"\.test_generate_source": "dbt: DuckDB has no db.information_schema",
        },
    ),
    "dbt-project-evaluator": Public(
        "dbt-project-evaluator/integration_tests_2",
        {"dbt-project-evaluator/packages.yml": ("../../dbt-utils",)},
        otherwise={r"^operation\.": "hooks of a run are no nodes here"},
    ),
    "dbt-data-reliability": Public(
        "dbt-data-reliability/integration_tests/dbt_project",
        {
            "dbt-data-reliability/packages.yml": ("../../../dbt-utils",),
            "dbt-data-reliability/integration_tests/dbt_project/packages.yml": ("../../", "../../../dbt-utils"),
        },
        otherwise={
            r"^(operation|exposure)\.": "hooks of a run and exposures are no nodes that run here",
            r"elementary_exposure_schema_validity": "elementary keeps findings in `graph`, from node to node",
        },
    ),
}


SPARK_TOO = ("dbt-date", "dbt-expectations", "dbt-utils", "dbt-audit-helper", "jaffle-shop")
needs_projects = pytest.mark.skipif(not GIVEN, reason="SML_DBT_PROJECTS names no folder with clones of public projects")


@needs_projects
@pytest.mark.parametrize("name", PROJECTS)
def test_a_public_project_ends_as_with_dbt(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    require_clone(name)
    theirs = ended_with_dbt(name, tmp_path.parent)
    ours = built(name, OURS, tmp_path, monkeypatch, capsys)
    require_named(
        PROJECTS[name].otherwise,
        {
            unique_id: f"{ours.get(unique_id)}, dbt {theirs.get(unique_id)}"
            for unique_id in ours.keys() | theirs.keys()
            if not is_same(ours.get(unique_id), theirs.get(unique_id))
        },
    )


@needs_projects
@pytest.mark.parametrize("name", SPARK_TOO)
def test_a_public_project_is_built_on_spark(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    require_clone(name)
    ours = built(name, ON_SPARK, tmp_path, monkeypatch, capsys, is_apart=True)
    bad = {unique_id: str(ended) for unique_id, ended in ours.items() if ended[0] not in ENDED_WELL}
    require_named(PROJECTS[name].on_spark, bad)


def require_clone(name: str) -> None:
    if not Path(str(GIVEN), name).is_dir():
        pytest.skip(f"there is no clone of {name}")


def require_named(known: Mapping[str, str], different: Mapping[str, str]) -> None:
    """Each node that ends otherwise is known to, and each that is known to still does."""
    unnamed = {i: how for i, how in different.items() if not any(re.search(pattern, i) for pattern in known)}
    assert not unnamed, json.dumps(unnamed, indent=1)
    stale = [pattern for pattern in known if not any(re.search(pattern, unique_id) for unique_id in different)]
    assert not stale, f"no node ends otherwise any more: {stale}"


def built(
    name: str, profile: str, root: Path, monkeypatch: pytest.MonkeyPatch, shown: Shown, *, is_apart: bool = False
) -> dict[str, tuple[str, int]]:
    """How each node of an unedited project ends here; all of it is read and compiled without an error.

    `is_apart`: what is run is run by another process, whose Java ends with it.
    """
    project = copied(PROJECTS[name], root)
    (root / "profiles" / "profiles.yml").write_text(profiles(profile))
    monkeypatch.chdir(project)
    words = ("--profiles-dir", str(root / "profiles"))
    assert main(["deps", *words]) == 0, shown.readouterr()
    for command in ("parse", "ls", "compile"):
        assert main([command, *words, *VARS]) == 0, shown.readouterr().out
    for command in ("seed", "build") if (project / "seeds" / "jaffle-data").exists() else ("build",):
        if is_apart:
            call = [sys.executable, "-m", "sqlmesh_like", command, *words, *VARS]
            subprocess.run(call, cwd=project, capture_output=True, timeout=900, check=False)
        else:
            main([command, *words, *VARS])
    return results(project / "target")


def is_same(mine: tuple[str, int] | None, other: tuple[str, int] | None) -> bool:
    """Both ended well, or both did not; a failing test found as many rows."""
    if mine is None or other is None:
        return False
    if mine[0] in ENDED_WELL or other[0] in ENDED_WELL:
        return mine[0] in ENDED_WELL and other[0] in ENDED_WELL
    return mine == other


def results(folder: Path) -> dict[str, tuple[str, int]]:
    """How each node ended, with its failures."""
    rows = json.loads((folder / "run_results.json").read_text())["results"]
    return {row["unique_id"]: (row["status"], row.get("failures") or 0) for row in rows}


@cache
def ended_with_dbt(name: str, folder: Path) -> dict[str, tuple[str, int]]:
    root = folder / f"theirs-{name}"
    project = copied(PROJECTS[name], root)
    (root / "profiles" / "profiles.yml").write_text(profiles(THEIRS))
    words = ["--profiles-dir", str(root / "profiles"), *VARS]
    for command in ("deps", "seed", "build"):
        subprocess.run(
            [str(python_of_dbt()), "-m", "dbt.cli.main", command, *words],
            cwd=project, env={**os.environ, **QUIET}, capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
    return results(project / "target")


def copied(public: Public, root: Path) -> Path:
    """The clones, and the project of one of them with our profile."""
    left_out = shutil.ignore_patterns(".git", "target", "dbt_packages")
    for name in filter(lambda name: Path(str(GIVEN), name).is_dir(), PROJECTS):
        shutil.copytree(Path(str(GIVEN), name), root / name, ignore=left_out, dirs_exist_ok=True)
    for path, locals_ in public.packages.items():
        (root / path).write_text(json.dumps({"packages": [{"local": local} for local in locals_]}))
    (root / public.folder / "package-lock.yml").unlink(missing_ok=True)  # it names versions of the hub
    if public.folder == "jaffle-shop":
        write_missing_seeds(root / public.folder / "seeds" / "jaffle-data")
    (root / "profiles").mkdir()
    return root / public.folder


def profiles(text: str) -> str:
    return f"integration_tests: {text}\ndefault: {text}\nelementary_tests: {text}\n"


def write_missing_seeds(folder: Path) -> None:
    """The two largest seeds, which a clone without large files lacks: five orders of the first customer and store."""
    customer, store = (
        (folder / f"raw_{name}.csv").read_text().splitlines()[1].partition(",")[0] for name in ("customers", "stores")
    )
    orders = [f"o-{n},{customer},2024-01-0{n}T08:00:00,{store},1100,66,1166" for n in range(1, 6)]
    missing = {
        "raw_orders.csv": ["id,customer,ordered_at,store_id,subtotal,tax_paid,order_total", *orders],
        "raw_items.csv": ["id,order_id,sku", *(f"i-{n},o-{n},JAF-001" for n in range(1, 6))],
    }
    for name, lines in missing.items():
        if not (folder / name).exists():
            (folder / name).write_text("\n".join(lines) + "\n")
