"""The package that most dbt projects use, dbt_utils, as it is, on a duckdb target: macros, tests and questions."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main

Shown = pytest.CaptureFixture[str]
REPOSITORY, VERSION = "https://github.com/dbt-labs/dbt-utils.git", "1.3.0"
FILES = {
    "dbt_project.yml": "name: used\nversion: '1.0'\nprofile: lake\n",
    "profiles.yml": "lake: {target: d, outputs: {d: {type: duckdb, schema: main}}}\n",
    "packages.yml": "packages: [{local: package}]\n",
    "seeds/facts.csv": "id,kind,amount,day\n1,a,10,2024-01-01\n2,b,20,2024-01-02\n3,a,30,2024-01-03\n",
    "seeds/more.csv": "id,kind,amount,extra\n4,c,5,x\n",
    "models/starred.sql": "select {{ dbt_utils.star(ref('facts'), except=['day']) }} from {{ ref('facts') }}",
    "models/keyed.sql": "select {{ dbt_utils.generate_surrogate_key(['id', 'kind']) }} as sk, "
    "{{ dbt_utils.safe_add(['id', 'amount']) }} as s, {{ dbt_utils.safe_divide('amount', 'id') }} as q "
    "from {{ ref('facts') }}",
    "models/pivoted.sql": "select {{ dbt_utils.pivot('kind', dbt_utils.get_column_values(ref('facts'), 'kind', "
    "order_by='kind'), then_value='amount') }} from {{ ref('facts') }}",
    "models/unioned.sql": "{{ dbt_utils.union_relations([ref('facts'), ref('more')], source_column_name=none) }}",
    "models/deduped.sql": "{{ dbt_utils.deduplicate(ref('facts'), partition_by='kind', order_by='day desc') }}",
    "models/spined.sql": "{{ dbt_utils.date_spine('day', \"cast('2024-01-01' as date)\", "
    "\"cast('2024-01-05' as date)\") }}",
    "models/unpivoted.sql": "{{ dbt_utils.unpivot(ref('facts'), cast_to='string', exclude=['id']) }}",
    "models/p.yml": """
models:
  - name: keyed
    columns: [{name: sk, data_tests: [unique]}]
    data_tests:
      - dbt_utils.expression_is_true: {arguments: {expression: "s > {{ var('least', 0) }}"}}
      - dbt_utils.unique_combination_of_columns: {arguments: {combination_of_columns: [s, sk]}}
  - name: starred
    data_tests: [{dbt_utils.equal_rowcount: {arguments: {compare_model: ref('facts')}}}]
    columns:
      - name: id
        data_tests:
          - dbt_utils.accepted_range: {arguments: {min_value: 2}, config: {severity: warn}}
          - dbt_utils.not_constant
          - dbt_utils.sequential_values
          - dbt_utils.not_null_proportion: {arguments: {at_least: 0.9}}
          - dbt_utils.cardinality_equality: {arguments: {field: id, to: ref('facts')}}
      - {name: kind, data_tests: [dbt_utils.not_empty_string, dbt_utils.at_least_one]}
""",
}
ROWS = {
    "pivoted": "a,b\n40,20",
    "deduped": "id,kind,amount,day\n2,b,20,2024-01-02\n3,a,30,2024-01-03",
    "spined": "date_day\n2024-01-01T00:00:00Z\n2024-01-02T00:00:00Z\n2024-01-03T00:00:00Z\n2024-01-04T00:00:00Z",
}


@pytest.fixture
def used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The project with the package in it: that of `SML_DBT_UTILS`, else from its repository; skips without."""
    if given := os.environ.get("SML_DBT_UTILS"):
        shutil.copytree(given, tmp_path / "package", ignore=shutil.ignore_patterns(".git", "integration_tests"))
    else:
        words = ["git", "clone", "--quiet", "--depth", "1", "--branch", VERSION, REPOSITORY, str(tmp_path / "package")]
        done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "GIT_TERMINAL_PROMPT": "0"})
        if done.returncode:
            pytest.skip(f"dbt_utils cannot be fetched here: {done.stderr.strip().splitlines()[-1:]}")
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)


@pytest.mark.usefixtures("used")
def test_its_macros_and_tests_do_what_they_say(capsys: Shown) -> None:
    assert main(["deps", "-t", "d"]) == 0
    assert main(["build"]) == 0, capsys.readouterr().out
    assert "PASS=19 WARN=1 ERROR=0" in capsys.readouterr().out
    for model, rows in ROWS.items():
        assert main(["show", model, "--output", "csv"]) == 0
        header, *lines = capsys.readouterr().out.replace("\r", "").strip().split("\n")
        assert "\n".join([header, *sorted(lines)]) == rows
