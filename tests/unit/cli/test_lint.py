"""Checks for CI: what `sml lint` points at, and errors of `sml compile` in the forms that a CI reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]
FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {target: d, outputs: {d: {type: duckdb}}}\n",
    "models/s.yml": """
sources:
  - name: ods
    tables:
      - {name: a, columns: [{name: id, data_type: int}, {name: d, data_type: date}, {name: t, data_type: string}]}
""",
    "models/good.sql": "select id, d, t from {{ source('ods', 'a') }}",
}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter_project(tmp_path, monkeypatch, FILES)


def test_a_described_column_that_the_query_does_not_have_is_pointed_at(capsys: Shown) -> None:
    Path("models/good.yml").write_text("models:\n  - name: good\n    columns: [{name: id}, {name: idd}]\n")
    assert main(["lint"]) == 1
    assert "models/good.yml:3:34: LNT006 the query has no column 'idd', which is" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "select x.id from {{ ref('good') }} x\njoin {{ ref('good') }} y on x.id = y.t",
            "2:29: LNT001 this join",
        ),
        (
            "select id from {{ ref('good') }}\nunion all select t from {{ ref('good') }}",
            "2:18: LNT002 the column 'id' is",
        ),
        ("with c as (select 1 as a) select id from {{ ref('good') }}", "1:6: LNT003 nothing reads 'c'"),
        (
            "with c as (select id, d from {{ ref('good') }})\nselect id from c",
            "1:23: LNT004 nothing reads the column 'd'",
        ),
        (
            "select id\nfrom {{ ref('good') }} {% if is_incremental() %} where id > 9 {% endif %}",
            "2:30: LNT005 the is_incremental() branch is not run",
        ),
    ],
)
def test_a_likely_mistake_is_pointed_at(capsys: Shown, sql: str, message: str) -> None:
    Path("models/m.sql").write_text(sql)
    assert main(["compile", "-q"]) == 0  # it runs
    assert main(["lint"]) == 1
    out = capsys.readouterr().out
    assert f"models/m.sql:{message}" in out and "1 findings" in out
    rule = message.split()[1]
    assert main(["lint", "--off", rule, "-q"]) == 0
    Path("models/m.sql").write_text(f"{{{{ config(meta={{'lint_off': ['{rule}']}}) }}}}{sql}")
    assert main(["lint", "-q"]) == 0


def test_a_project_without_them_is_fine(capsys: Shown) -> None:
    join = "select x.id from {{ ref('good') }} x join {{ ref('good') }} y on x.id = y.id and x.d = '2024-01-01'"
    Path("models/m.sql").write_text(join.replace("'2024-01-01'", "date '2024-01-01'"))
    assert main(["lint"]) == 0
    assert "0 findings" in capsys.readouterr().out
    assert main(["lint", "--off", "LNT999"]) == 2


def test_only_models_that_are_linted_are_counted(capsys: Shown) -> None:
    Path("models/asking.sql").write_text("{% if execute %}{% do run_query('select 1') %}{% endif %}select 1 as a")
    Path("models/program.py").write_text("def model(dbt, session):\n    return dbt.ref('good')\n")
    assert main(["lint"]) == 0
    assert "Linted 1 models: 0 findings" in capsys.readouterr().out


def test_findings_have_the_forms_that_a_ci_reads(capsys: Shown) -> None:
    Path("models/m.sql").write_text("with c as (select 1 as a) select id from {{ ref('good') }}")
    assert main(["lint", "--output", "github"]) == 1
    assert capsys.readouterr().out.startswith(
        "::warning file=models/m.sql,line=1,col=6,title=LNT003::nothing reads 'c'"
    )
    assert main(["lint", "--output", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["rule"] == "LNT003"


def test_errors_of_compile_have_them_too(capsys: Shown) -> None:
    Path("models/m.sql").write_text("select nope from {{ ref('good') }}")
    Path("models/n.sql").write_text("select id\nfrom {{ ref('good') }}\nwhere idd > 1")
    assert main(["compile", "--output", "github"]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("::error file=models/m.sql,line=1,col=8,title=compile::")
    assert (
        lines[1].startswith("::error file=models/n.sql,line=3,col=7,title=compile::") and "%0Adid you mean" in lines[1]
    )
    assert main(["compile", "--output", "sarif"]) == 2
    run = json.loads(capsys.readouterr().out)["runs"][0]
    place = run["results"][1]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "models/n.sql"}, "region": {"startLine": 3, "startColumn": 7}}
    Path("models/s.yml").write_text("models: [")
    assert main(["compile", "--output", "json"]) == 2
    assert json.loads(capsys.readouterr().out)["findings"][0]["path"] == "models/s.yml"
    for name in ("models/m.sql", "models/n.sql"):
        Path(name).unlink()
    Path("models/s.yml").write_text(FILES["models/s.yml"])
    assert main(["compile", "--output", "sarif"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["results"] == []
