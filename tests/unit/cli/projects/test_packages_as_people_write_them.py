"""What public packages ask of dbt beside its documentation: names, dispatch, hooks and settings that only some have."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]
Call = Callable[..., str]
FILES = {
    "profiles.yml": "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
    "dbt_project.yml": "name: shop\nversion: 1.2.0\nvars: {unit: cent}\n",
    "packages.yml": "packages: [{local: kit}]\n",
    "dbt_packages/kit/dbt_project.yml": "name: kit\nversion: 0.9.1\n",
}


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> Call:
    """Writes more files and calls `sml`; all that it prints."""

    def do(*words: str, code: int = 0, **files: str) -> str:
        enter_project(tmp_path, monkeypatch, {**FILES, **files})
        ended = main([*words])
        shown = capsys.readouterr()
        assert ended == code and "Traceback" not in shown.err, shown
        return shown.out + shown.err

    return do


def compiled(call: Call, model: str, **files: str) -> str:
    call("compile", **{"models/m.sql": model, **files})
    return Path("target/compiled/shop/models/m.sql").read_text().strip()


def ended(call: Call, *words: str, code: int = 0, **files: str) -> dict[str, str]:
    call(*words, code=code, **files)
    results = json.loads(Path("target/run_results.json").read_text())["results"]
    return {result["unique_id"].split(".")[2]: result["status"] for result in results}


def test_dbts_own_macro_of_schemas_can_be_called(call: Call) -> None:
    asked = "select '{{ generate_schema_name('raw') }}' as a, '{{ generate_schema_name() }}' as b"
    assert compiled(call, asked) == "select 'dws_raw' as a, 'dws' as b"


def test_what_dbts_macro_of_schemas_dispatches_to_may_be_replaced(call: Call) -> None:
    macro = "{% macro default__generate_schema_name(custom, node) %}{{ custom or 'plain' }}{% endmacro %}"
    compiled(call, "{{ config(schema='x') }}select 1 as a", **{"macros/m.sql": macro})
    manifest = json.loads(Path("target/manifest.json").read_text())
    assert manifest["nodes"]["model.shop.m"]["schema"] == "x"


def test_dispatch_with_a_namespace_that_is_no_package_finds_what_the_name_means_to_the_node(call: Call) -> None:
    macros = (
        "{% macro least_of() %}{{ return(adapter.dispatch('least_of', 'macros')()) }}{% endmacro %}"
        "{% macro default__least_of() %}'kit'{% endmacro %}"
    )
    files = {"dbt_packages/kit/macros/m.sql": macros, "dbt_packages/kit/models/k.sql": "select {{ least_of() }} as a"}
    assert compiled(call, "select {{ kit.least_of() }} as a", **files) == "select 'kit' as a"
    own = {"macros/mine.sql": "{% macro default__least_of() %}'shop'{% endmacro %}"}
    assert compiled(call, "select {{ kit.least_of() }} as a", **files, **own) == "select 'shop' as a"
    assert Path("target/compiled/shop/dbt_packages/kit/models/k.sql").read_text().strip() == "select 'kit' as a"


def test_the_projects_own_settings_are_seen_by_ref_config(call: Call) -> None:
    asked = (
        "{% set c = builtins.ref.config %}{% do c.vars.update({'unit': 'x'}) %}"
        "select '{{ c.project_name }} {{ c.version }} {{ c.dependencies['kit'].version }} {{ c.vars.unit }}' as a"
    )
    assert compiled(call, asked) == "select 'shop 1.2.0 0.9.1 cent' as a"


def test_a_pattern_in_a_template_is_what_it_is(call: Call) -> None:
    asked = r"select '{{ modules.re.sub('\s+', '-', 'a  b') }}' as a"
    assert compiled(call, asked) == "select 'a-b' as a"
    settings = FILES["dbt_project.yml"] + r"""models: {shop: {+enabled: '{{ "\d" == "\d" }}'}}""" + "\n"
    assert compiled(call, asked, **{"dbt_project.yml": settings}) == "select 'a-b' as a"


def test_the_context_is_there_under_its_own_name(call: Call) -> None:
    macros = "{% macro one() %}1{% endmacro %}"
    asked = "select {{ context['one']() }} as a, '{{ context.model.name }}' as b, {{ render('{{ one() }}') }} as c"
    assert compiled(call, asked, **{"macros/m.sql": macros}) == "select 1 as a, 'm' as b, 1 as c"
    assert compiled(call, "select {{ [1] is sequence and ([1] | is_list) }} as a") == "select True as a"
    flags = "select {{ modules.re.findall('A', 'aA', modules.re.IGNORECASE) | length }} as a"
    assert compiled(call, flags) == "select 2 as a"


def test_a_filter_within_an_expression_of_yaml_changes_nothing(call: Call) -> None:
    settings = FILES["dbt_project.yml"] + (
        "models: {shop: {off: {+enabled: \"{{ target.type == 'bigquery' | as_bool }}\"},"
        " m: {+enabled: \"{{ 'true' | as_bool }}\"}}}\n"
    )
    listed = call("ls", **{"dbt_project.yml": settings, "models/off.sql": "select 1", "models/m.sql": "select 1 as a"})
    assert "shop.m" in listed and "shop.off" not in listed
    wrong = FILES["dbt_project.yml"] + "models: {shop: {m: {+enabled: \"{{ 'perhaps' | as_bool }}\"}}}\n"
    shown = call("ls", code=2, **{"dbt_project.yml": wrong})
    assert "dbt_project.yml:4:" in shown and "'perhaps' is not a boolean" in shown


BY_ENGINE = (
    "{% macro deep() %}{{ return(adapter.dispatch('deep', 'shop')()) }}{% endmacro %}"
    "{% macro depth() %}{{ var('depth') }}, '{{ target.type }}'{% endmacro %}"
    "{% macro spark__deep() %}{{ shop.depth() }}, '{{ target.get('type') }}'{% endmacro %}"
)


def test_within_a_macro_for_spark_the_target_is_one_of_spark(call: Call) -> None:
    variables = "vars: {depth: \"{{ 9 if target.type == 'spark' else -1 }}\"}\n"
    files = {"dbt_project.yml": "name: shop\n" + variables, "macros/m.sql": BY_ENGINE}
    asked = "select '{{ target.type }}', {{ deep() }}, '{{ target.type }}'"
    assert compiled(call, f"{asked} as a", **files) == "select 'duckdb', 9, 'spark', 'spark', 'duckdb' as a"


BROKEN = {
    "models/text.sql": "{{ config(materialized='ephemeral') }}{{ this.name }}.",
    "models/outer.sql": "{{ config(materialized='ephemeral') }}select * from {{ ref('text') }}",
    "models/good.sql": "{{ config(materialized='table') }}select 1 as a",
}


def test_an_ephemeral_model_that_nothing_built_reads_costs_nothing(call: Call) -> None:
    shown = call("compile", **BROKEN)
    assert "models/text.sql:1:" in shown and "it is ephemeral, and nothing that is built reads it" in shown
    assert ended(call, "build") == {"good": "success"}
    read = {"models/reader.sql": "{{ config(materialized='table') }}select * from {{ ref('outer') }}"}
    assert "error: models/text.sql:1:" in call("compile", code=2, **read)
    assert ended(call, "build", code=1) == {"good": "success", "reader": "error"}


SOURCES = "sources: [{name: pay, tables: [{name: bills}]}]"


def test_a_source_without_rows_costs_its_readers(call: Call) -> None:
    files = {
        "models/s.yml": SOURCES,
        "models/good.sql": "{{ config(materialized='table') }}-- {{ source('pay', 'bills') }}\nselect 1 as a",
        "models/bad.sql": "{{ config(materialized='table') }}select * from {{ source('pay', 'bills') }}",
        "models/below.sql": "{{ config(materialized='table') }}select * from {{ ref('bad') }}",
        "models/asks.sql": "{{ config(materialized='table') }}{% set s = source('pay', 'bills') %}"
        "{% set there = adapter.get_relation(none, s.schema, s.name) %}select {{ 1 if there else 0 }} as n",
    }
    statuses = {"good": "success", "asks": "success", "bad": "error", "below": "skipped"}
    assert ended(call, "build", code=1, **files) == statuses
    shown = call("run", "-s", "bad", code=2)
    assert "models/s.yml:1:32: the target 't' has no rows for source pay.bills" in shown
    assert "make fixtures/pay/bills.csv" in shown


def test_a_source_that_nothing_reads_is_there_for_those_who_ask(call: Call) -> None:
    asked = "{{ 1 if adapter.get_relation(target.database, 'pay', 'bills') else 0 }}"
    model = "{{ config(materialized='table') }}select " + asked + " as n"
    files = {"models/s.yml": SOURCES, "models/m.sql": model, "fixtures/pay/bills.csv": "id\n"}
    assert json.loads(call("show", "m", "--output", "json", **files)) == [{"n": 1}]


def test_a_source_may_be_chosen_once_the_lake_has_answered(call: Call) -> None:
    """Fivetran's packages read a history where there is one; dbt wants to know of models beforehand alone."""
    chosen = (
        "{% set name = 'old' if adapter.get_relation(none, 'pay', 'old') else 'bills' %}"
        "select * from {{ source('pay', name) if execute else source('pay', 'bills') }}"
    )
    files = {
        "models/s.yml": SOURCES.replace("{name: bills}", "{name: bills}, {name: old}"),
        "models/v.sql": chosen,
        "models/m.sql": "{{ config(materialized='table') }}select id from {{ ref('v') }}",
        "models/m.yml": "models: [{name: v, columns: [{name: id, data_tests: [not_null]}]}]",
        "fixtures/pay/bills.csv": "id\n1\n",
        "fixtures/pay/old.csv": "id,at\n7,2024-01-01\n",
    }
    assert set(ended(call, "build", **files).values()) == {"success", "pass"}
    assert json.loads(call("show", "m", "--output", "json")) == [{"id": 7}]
    assert json.loads(call("show", "v", "--output", "json")) == [{"id": 7, "at": "2024-01-01"}]


HOOKED = (
    "{{ config(materialized='table', post_hook=["
    "\"insert into {{ this }} values (2, 'b'), (3, 'c'); delete from {{ this }} where id = 1\", '{{ add(this) }}']) }}"
    "select 1 as id, 'a' as name"
)
ADD = (
    "{% macro add(to) %}{% call statement('more') %}insert into {{ to }} values (9, "
    "'{{ run_query('select max(id) from ' ~ to).rows[0][0] if execute }}'){% endcall %}{% endmacro %}"
)


def test_hooks_that_change_rows_are_run_on_duckdb_too(call: Call) -> None:
    files = {"models/m.sql": HOOKED, "macros/add.sql": ADD, "models/r.sql": "select max(name) as n from {{ ref('m') }}"}
    files["tests/t.sql"] = "select * from {{ ref('m') }} where id = 1 or (id = 9 and name <> '3')"
    assert "not run on DuckDB" not in call("build", **files)


def test_a_hook_changes_nothing_where_its_values_would_not_be_those_of_spark(call: Call) -> None:
    hook = "insert into {{ this }} select cast(name as int), name from {{ this }}"
    model = f"{{{{ config(materialized='table', post_hook=\"{hook}\") }}}}select id, name from {{{{ ref('s') }}}}"
    files = {"models/m.sql": model, "tests/t.sql": "select * from {{ ref('m') }} where name = '7' and id = 7"}
    shown = call("build", **files, **{"seeds/s.csv": "id,name\n1,1.9\n2,m\n"})
    assert "a hook that is a statement for Spark is not run on DuckDB: post_hook failed: not checkable here" in shown
    assert "the cast to INT of" in shown
    assert ended(call, "build", code=1, **{"seeds/s.csv": "id,name\n1,7\n2,8\n", **files})["t"] == "fail", "it is run"


def test_a_question_need_not_name_its_columns(call: Call) -> None:
    asked = (
        "{% set r = run_query('select max(id), count(*) from ' ~ ref('s')) %}{% if execute %}"
        "select '{{ r.columns[0][0] }} {{ r.rows[0][1] }} {{ r.column_names | join(' ') | lower }}' as a{% endif %}"
    )
    files = {"models/m.sql": "{{ config(materialized='table') }}" + asked, "seeds/s.csv": "id\n1\n7\n"}
    assert json.loads(call("show", "m", "--output", "json", **files)) == [{"a": "7 2 max(id) count(*)"}]


def test_a_hook_that_duckdb_does_not_run_is_left_out_with_its_reason(call: Call) -> None:
    model = "{{ config(materialized='table', post_hook='analyze table {{ this }} compute statistics') }}select 1 as a"
    shown = call("build", **{"models/m.sql": model})
    assert "warning: m: a hook that is a statement for Spark is not run on DuckDB" in shown


def test_a_node_of_templates_is_dbts_own(call: Call) -> None:
    """`path` starts below the folder of models, and once a node is run all that manifest.json has is there."""
    macro = "{% macro generate_schema_name(custom, node) %}{{ node.path.split('/')[0] }}_{{ node.name }}{% endmacro %}"
    known = "{{ model.depends_on.nodes | join }} {{ model.get('schema') }} {{ 'refs' in model }}"
    deep = f"select {{% if execute %}}'{known}'{{% else %}}1{{% endif %}} as a -- {{{{ ref('top') }}}}"
    files = {"macros/m.sql": macro, "models/mart/deep.sql": deep, "models/top.sql": "select 1 as a"}
    test = "select 1 as a where '{{ model.original_file_path if execute else 'tests/t.sql' }}' <> 'tests/t.sql'"
    assert ended(call, "build", **files, **{"tests/t.sql": test}) == {"deep": "success", "top": "success", "t": "pass"}
    manifest = json.loads(Path("target/manifest.json").read_text())
    assert manifest["nodes"]["model.shop.deep"]["schema"] == "mart_deep"
    shown = json.loads(call("show", "deep", "--output", "json"))
    assert shown == [{"a": "model.shop.top mart_deep True"}]


def test_constraints_of_columns_are_known_to_templates(call: Call) -> None:
    yaml = "models: [{name: m, columns: [{name: a, quote: true, constraints: [{type: not_null}]}]}]"
    call("parse", **{"models/m.sql": "select 1 as a", "models/m.yml": yaml})
    column = json.loads(Path("target/manifest.json").read_text())["nodes"]["model.shop.m"]["columns"]["a"]
    assert column["quote"] is True
    assert column["constraints"] == [
        {
            "type": "not_null", "name": None, "expression": None, "warn_unenforced": True, "warn_unsupported": True,
            "to": None, "to_columns": [],
        }
    ]  # fmt: skip


def test_a_seed_that_cannot_be_read_costs_its_readers(call: Call) -> None:
    files = {
        "seeds/bad.csv": "id,all-funky\n1,2\n",
        "seeds/good.csv": "id\n1\n",
        "models/s.yml": "sources: [{name: pay, schema: dws, tables: [{name: bad}]}]",
        "models/reader.sql": "{{ config(materialized='table') }}select * from {{ ref('bad') }}",
        "models/other.sql": "{{ config(materialized='table') }}select * from {{ source('pay', 'bad') }}",
        "models/fine.sql": "{{ config(materialized='table') }}select * from {{ ref('good') }}",
    }
    statuses = {"bad": "error", "good": "success", "reader": "skipped", "other": "error", "fine": "success"}
    assert ended(call, "build", code=1, **files) == statuses
    shown = call("build", code=1)
    assert shown.count("seeds/bad.csv:1:4: 'all-funky' cannot be the name of a column") >= 2
    assert "error: seeds/bad.csv:1:4" in call("run", "-s", "reader", code=2)
    assert "error: seeds/bad.csv:1:4" in call("compile", code=2)


def test_unit_tests_of_a_package_are_there_too(call: Call) -> None:
    unit = "{name: one, model: k, given: [{input: ref('top'), rows: [{a: 1}]}], expect: {rows: [{b: 2}]}}"
    odd = "{name: odd, model: k, given: [{input: ref('nope'), rows: []}], expect: {rows: []}}"
    files = {
        "dbt_packages/kit/models/top.sql": "select 7 as a",
        "dbt_packages/kit/models/k.sql": "select a + 1 as b from {{ ref('top') }}",
        "dbt_packages/kit/models/u.yml": f"unit_tests: [{unit}, {odd}]\n",
    }
    shown = call("ls", "--resource-type", "unit_test", "--output", "json", "--output-keys", "unique_id", **files)
    assert "unit_test.kit.k.one" in shown
    assert "dbt_packages/kit/models/u.yml:1:" in shown and "unit test 'odd' is left out" in shown
    assert ended(call, "build")["k"] == "success"
    assert "1 of 1 PASS k::one" in call("test", "-s", "one")
    off = FILES["dbt_project.yml"] + "unit_tests: {kit: {+enabled: false}}\n"
    assert "unit_test.kit" not in call("ls", "--output", "json", **{"dbt_project.yml": off})


def test_a_data_test_of_a_disabled_node_is_left_out(call: Call) -> None:
    off = "{relationships: {arguments: {to: ref('off'), field: id}}}"
    nope = "{relationships: {arguments: {to: ref('nope'), field: id}}}"
    tested = "models: [{name: %s, columns: [{name: id, data_tests: [unique, %s]}]}]\n"
    files = {
        "models/m.sql": "select 1 as id",
        "models/off.sql": "{{ config(enabled=false) }}select 1 as id",
        "models/m.yml": tested % ("m", off),
        "tests/t.sql": "select * from {{ ref('off') }}",
        "dbt_packages/kit/models/k.sql": "select 1 as id",
        "dbt_packages/kit/models/k.yml": tested % ("k", nope),
    }
    shown = call("parse", **files)
    assert "is left out: ref names 'off', which is disabled" in shown and "models/m.yml:1:" in shown
    assert "tests/t.sql:1:" in shown and "data test t is left out" in shown
    assert "dbt_packages/kit/models/k.yml:1:" in shown and "is left out: no model or seed is named 'nope'" in shown
    statuses = ended(call, "build")
    assert statuses == {"m": "success", "k": "success", "unique_m_id": "pass", "unique_k_id": "pass"}
    assert "is left out" in call("parse", "--warn-error", code=2)
    shown = call("parse", code=2, **{"models/m.yml": tested % ("m", nope)})
    assert "error: models/m.yml:1:" in shown and "no model or seed is named 'nope'" in shown
