"""Our artifacts as a reader of dbt's reads them: every field by dbt's published schemas."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.dbt_artifacts import read_catalog, read_manifest, read_run_results
from tests.unit.docs.conftest import make_project


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_project(tmp_path_factory.mktemp("artifacts"))
    assert main(["docs", "generate", "--project-dir", str(root), "--profiles-dir", str(root)]) == 0
    return root / "target"


def read(folder: Path, name: str) -> dict[str, object]:
    data: dict[str, object] = json.loads((folder / name).read_text())
    return data


def test_catalog_json_is_dbts_v1_with_columns_and_sizes_of_the_lake(folder: Path) -> None:
    catalog = read_catalog(read(folder, "catalog.json"))
    assert list(catalog.nodes) == ["model.shop.daily"] and catalog.sources == {}
    daily = catalog.nodes["model.shop.daily"]
    assert (daily.metadata.schema_, daily.metadata.name, daily.metadata.type) == (
        "dws", "daily", "hudi copy_on_write",
    )  # fmt: skip
    assert [(c.name, c.type, c.index) for c in daily.columns.values()] == [("day", "date", 1), ("total", "double", 2)]
    assert daily.columns["day"].comment == "The day of sale"
    assert daily.stats["row_count"].value == 2 and daily.stats["last_modified"].value == "2024-01-01T00:00:04.000Z"


def test_run_results_json_is_dbts_v6(folder: Path) -> None:
    results = read_run_results(read(folder, "run_results.json"))
    daily, test, top = (result.unique_id for result in results.results)
    assert (daily, top) == ("model.shop.daily", "model.shop.top") and test.startswith("test.shop.not_null_daily_day")


def test_manifest_json_is_dbts_v12(folder: Path) -> None:
    manifest = read_manifest(read(folder, "manifest.json"))
    assert manifest.nodes["model.shop.daily"].columns["day"].description == "The day of sale"
    assert "doc.shop.amount" in manifest.docs
    arguments = manifest.macros["macro.shop.cents"].arguments
    assert arguments is not None and arguments[0].type == "column"
