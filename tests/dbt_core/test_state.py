"""`state:` against a manifest that dbt-core 1.11.16 wrote finds what dbt finds."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.dbt_core.cafe import FILES as CAFE
from tests.dbt_core.program import asked, python_of_dbt
from tests.dbt_core.semantic import FILES as SEMANTIC
from tests.dbt_core.test_manifest import HOOKED, SHOP
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]
Edit = tuple[str, str, str]
"""A file, what is replaced in it, and by what; a file that is not there yet is made."""
METHODS = (
    "state:modified", "state:modified+", "state:new", "state:unmodified", "state:modified.body",
    "state:modified.configs", "state:modified.relation", "state:modified.macros", "state:modified.contract",
    "state:modified.persisted_descriptions",
)  # fmt: skip
TEMPLATES: Mapping[str, str] = {
    **SHOP,
    "dbt_project.yml": "name: shop\nversion: '1.0'\nprofile: lake\nmodels:\n  shop:\n"
    "    +materialized: \"{{ 'table' if target.name == 'prod' else 'view' }}\"\n"
    '    marts: {+schema: "{{ target.name }}_marts"}\n',
    "profiles.yml": "lake: {target: d, outputs: {d: &d {type: duckdb, path: x.duckdb, schema: main}, prod: *d}}",
}
EDITS: Mapping[str, tuple[Mapping[str, str], tuple[Edit, ...]]] = {
    "nothing": (HOOKED, ()),
    "another target": (TEMPLATES, ()),
    "texts": (
        SHOP,
        (
            ("models/stg_bills.sql", "select sku", "select sku, 1 as one"),
            ("seeds/products.csv", "b,250", "b,251"),
            ("models/fresh.sql", "", "select 1 as one"),
            ("models/docs.md", "taken", "taken in"),
            ("models/marts/p.yml", "data_tests: [unique]", "data_tests: [unique, not_null]"),
            ("models/marts/sums.sql", "'night'", "'day'"),
            ("models/marts/p.yml", 'description: "key"', 'description: "the key"'),
        ),
    ),
    "macros": (
        CAFE,
        (
            ("macros/tests.sql", "% 2 = 1", "% 2 <> 0"),
            ("models/versioned/tills_v2.sql", "select 2 as till", "select 4 as till"),
            ("dbt_project.yml", "smallest: 0", "smallest: 1"),
        ),
    ),
    "settings": (
        SHOP,
        (
            ("models/marts/sums.sql", "alias='totals'", "alias='total'"),
            ("dbt_project.yml", "+schema: raw", "+schema: raw2"),
            ("models/marts/p.yml", "severity: warn", "severity: error"),
            ("models/src.yml", "identifier: products", "identifier: product"),
            ("models/e.yml", "maturity: low", "maturity: high"),
            ("kit/macros/cents.sql", "/ 100", "/ 100.0"),
            ("models/marts/p.yml", "data_type: double", "data_type: bigint"),
            ("tests/none_is_free.sql", "total = 0", "total <= 0"),
        ),
    ),
    "hooks and a snapshot": (
        HOOKED,
        (
            ("models/p.yml", "check_cols: [n]", "check_cols: [id]"),
            ("models/added.sql", "select 2", "select 3"),
            ("models/p.yml", "rows: [{id: 1, n: 2}]", "rows: [{id: 1, n: 3}]"),
            ("models/p.yml", "limit: 3", "limit: 4"),
        ),
    ),
    "a semantic layer": (
        SEMANTIC,
        (
            ("models/semantic/loaves.yml", "expr: price, create_metric", "expr: price + 1, create_metric"),
            ("models/semantic/loaves.yml", "label: Filled", "label: Filled up"),
            ("models/semantic/loaves.yml", "{measure: loaf_count}", "{measure: takings}"),
            ("models/semantic/metrics.yml", "label: Weight", "label: Weight\n    config: {meta: {a: 1}}"),
            ("models/semantic/metrics.yml", "export_as: table", "export_as: view"),
            ("models/semantic/metrics.yml", "period_agg: last", "period_agg: first"),
            ("scales/models/w.yml", "weighed_on, type: time", "weighed_on, label: On, type: time"),
            (
                "models/fresh.yml",
                "",
                "metrics: [{name: fresh, label: F, type: simple, type_params: {measure: takings}}]",
            ),
        ),
    ),
    "a saved query": (
        SEMANTIC,
        (
            ("models/semantic/metrics.yml", "limit: 5", "limit: 6"),
            ("models/semantic/metrics.yml", "alias: all_loaves", "alias: others"),
        ),
    ),
    "settings of a semantic layer": (
        SEMANTIC,
        (
            ("dbt_project.yml", "made_by: ada", "made_by: bo"),
            ("models/models.yml", "owner: {name: Ada}", "owner: {name: Bo}"),
        ),
    ),
}


@pytest.mark.release
@pytest.mark.parametrize("name", EDITS)
def test_what_changed_since_dbt_s_manifest_is_what_dbt_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    python_of_dbt()
    files, edits = EDITS[name]
    enter_project(tmp_path, monkeypatch, files)
    deps = [["deps"]] if "packages.yml" in files else []
    asked(tmp_path, [*deps, ["parse", *(["--target", "prod"] if files is TEMPLATES else [])]])
    shutil.copytree("target", "prod")
    if deps:
        assert main(["deps", "--target", "d"]) == 0, capsys.readouterr()
        capsys.readouterr()
    for path, old, new in edits:
        text = Path(path).read_text() if Path(path).exists() else ""
        assert old in text
        Path(path).write_text(text.replace(old, new) if old else new)
    calls = [["ls", "--output", "json", "--output-keys", "unique_id", "--state", "prod", "-s", m] for m in METHODS]
    differing = {}
    for method, words, answer in zip(METHODS, calls, asked(tmp_path, calls), strict=True):
        names = answer["names"]
        assert isinstance(names, list)
        main(words)
        mine = {line for line in capsys.readouterr().out.splitlines() if line.startswith("{")}
        if mine != set(names):
            differing[method] = f"only here {sorted(mine - set(names))}, only dbt {sorted(set(names) - mine)}"
    assert not differing, "\n".join(f"{method}: {how}" for method, how in differing.items())
