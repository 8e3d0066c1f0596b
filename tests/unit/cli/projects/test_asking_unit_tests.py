"""Unit tests of models whose templates ask the lake: the rows that are given answer, or an error says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.projects.test_dbt_projects import Project, Shown

MODELS = {
    "models/facts.sql": "{{ config(materialized='table') }}select 1 as id, 'real' as kind",
    "models/other.sql": "{{ config(materialized='table') }}select 1 as id",
    "models/wide.sql": "{% set kinds = run_query('select distinct kind from ' ~ ref('facts') ~ ' order by 1 desc') %}"
    "select id{% for row in kinds or [] %}, kind = '{{ row.kind }}' as is_{{ row.kind }}{% endfor %} "
    "from {{ ref('facts') }}",
    "models/m.sql": "{{ config(materialized='table') }}select "
    "{% for c in adapter.get_columns_in_relation(ref('wide')) %}{{ c.name }} as c_{{ c.name }}, {% endfor %}"
    "'{{ execute }}' as e, '{{ load_relation(this) }}' as there from {{ ref('wide') }}",
    "models/beyond.sql": "{{ config(materialized='table') }}"
    "{% if execute %}{% set n = run_query('select count(*) from ' ~ ref('other')).rows[0][0] %}{% endif %}"
    "select {{ n or 0 }} as n from {{ ref('facts') }}",
    "models/grown.sql": "{{ config(materialized='table') }}select id, "
    "{{ (adapter.get_columns_in_relation(this) | map(attribute='name') | list | tojson) if execute else 0 }} as names "
    "from {{ ref('facts') }}",
}
ROWS = "{input: ref('facts'), rows: [{id: 1, kind: p}, {id: 2, kind: q}]}"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> Project:
    return Project(tmp_path, monkeypatch, capsys)


def units(*tests: str, **more: str) -> dict[str, str]:
    listed = "".join(f"- {{name: u{number}, {test}}}\n" for number, test in enumerate(tests))
    return {**MODELS, "models/u.yml": f"unit_tests:\n{listed}", **more}


def test_the_rows_that_are_given_answer_also_through_a_view_that_asks(project: Project) -> None:
    """No text of `execute = false` is compared, neither that of the model nor that of the view below it."""
    expected = (
        "{rows: [{c_id: 1, c_is_p: true, c_is_q: false, e: 'True', there: 'None'}, "
        "{c_id: 2, c_is_p: false, c_is_q: true, e: 'True', there: 'None'}]}"
    )
    of_view = f"model: wide, given: [{ROWS}], expect: {{rows: [{{id: 1, is_p: true}}, {{id: 2, is_p: false}}]}}"
    assert "PASS=2 " in project.call("test", files=units(f"model: m, given: [{ROWS}], expect: {expected}", of_view))


def test_this_that_is_given_is_there(project: Project) -> None:
    given = f"[{ROWS}, {{input: this, rows: [{{id: 1, names: x}}]}}]"
    expect = """{rows: [{id: 1, names: '["id", "names"]'}, {id: 2, names: '["id", "names"]'}]}"""
    files = units(f"model: grown, given: {given}, expect: {expect}")
    files["models/grown.sql"] = MODELS["models/grown.sql"].replace("{{ (", "'{{ (").replace(" 0 }}", " 0 }}'")
    assert "PASS=1 " in project.call("test", files=files)


def test_what_the_rows_do_not_say_is_an_error_of_that_test(project: Project) -> None:
    fine = f"model: wide, given: [{ROWS}], expect: {{rows: [{{id: 1}}, {{id: 2}}]}}"
    files = units(f"model: beyond, given: [{ROWS}], expect: {{rows: []}}", fine)
    shown = project.call("test", files=files, code=1)
    assert "PASS=1 WARN=0 ERROR=1" in shown
    assert "models/beyond.sql:1:1: unit test 'u0' has no rows for `dws`.`other`, which the template asks about" in shown
    assert "add -- depends_on: {{ ref('…') }} and its rows in given" in shown
    override = "overrides: {macros: {execute: false}}, expect: {rows: [{n: 0}, {n: 0}]}"
    overridden = f"model: beyond, given: [{ROWS}], {override}"
    assert "PASS=1 " in project.call("test", files=units(overridden))


def test_a_text_that_changes_do_change_is_refused(project: Project) -> None:
    change = "changes: [{input: ref('facts'), key: [id], upsert: [{id: 2, kind: r}]}]"
    same = change.replace("kind: r", "kind: p").replace("upsert: [", "upsert: [{id: 3, kind: q}, ")
    expect = "expect: {rows: [{id: 1}, {id: 2}, {id: 3}]}"
    assert "PASS=1 " in project.call("test", files=units(f"model: wide, given: [{ROWS}], {same}, {expect}"))
    shown = project.call("test", files=units(f"model: wide, given: [{ROWS}], {change}, {expect}"), code=2)
    assert "models/u.yml:2:" in shown and "the template of wide gives another text once the changes are done" in shown


def test_the_sql_of_a_fixture_is_rendered_with_execute_too(project: Project) -> None:
    """What raises only where somebody answers costs that test alone."""
    strict = "{% if execute %}{{ exceptions.raise_compiler_error('not for ' ~ target.type) }}{% endif %}select 1 as id"
    asks = "select {{ run_query('select 4 + 1 as n').rows[0].n if execute else 0 }} as id, 'p' as kind"
    expect = "expect: {rows: [{id: 5, is_p: true}]}"
    tests = [f"model: wide, given: [{{input: ref('facts'), format: sql, fixture: {name}}}], {expect}" for name in "ab"]
    files = {**units(*tests), "tests/fixtures/a.sql": strict, "tests/fixtures/b.sql": asks}
    project.call("parse", files=files)
    shown = project.call("test", files=files, code=1)
    assert "PASS=1 WARN=0 ERROR=1" in shown and "tests/fixtures/a.sql:1:" in shown and "not for duckdb" in shown
    files["tests/fixtures/a.sql"] = "select {{ run_query('select * from dws.facts') and 1 }} as id, 'p' as kind"
    assert "has no rows for dws.facts" in project.call("test", files=files, code=1)
