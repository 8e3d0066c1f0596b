"""Templates of models, macros and tests, rendered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sqlmesh_like.errors import ProjectError
from sqlmesh_like.project.loader import load_project
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.render.library.call import TemplateCall
from sqlmesh_like.render.operations import Operations
from sqlmesh_like.render.rendered import RenderedModel, RenderedProject
from sqlmesh_like.render.renderer import Renderer, render_inline, render_project
from sqlmesh_like.render.tests import storing_failures

OWN = '[tool.sqlmesh_like]\nname = "shop"\nvars = {day = "d1"}\nflags = {strict_undefined = true}\n'
SOURCES = "sources:\n  - name: shop\n    schema: ods\n    tables: [{name: user}, {name: product}]\n"
TARGET = Target("lake", "local", "spark", schema="dws")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


def render(root: Path, files: Mapping[str, str], settings: str = OWN) -> RenderedProject:
    name = "pyproject.toml" if settings.startswith("[") else "dbt_project.yml"
    for path, text in {name: settings, "models/sources.yml": SOURCES, **files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return render_project(load_project(root, {}), TARGET)


def model(root: Path, sql: str, macros: str = "", **files: str) -> RenderedModel:
    return render(root, {"models/m.sql": sql, "macros/x.sql": macros, **files}).model("model.shop.m")


def test_ref_and_source_become_quoted_names_and_inputs(root: Path) -> None:
    rendered = render(
        root,
        {
            "models/m.sql": "select * from {{ ref('base') }} join {{ source('shop', 'user') }}",
            "models/base.sql": "select 1 as a",
        },
    ).model("model.shop.m")
    assert rendered.sql == "select * from `dws`.`base` join `ods`.`user`"
    assert [ref.unique_id for ref in rendered.inputs] == ["model.shop.base", "source.shop.shop.user"]


def test_ref_with_the_projects_name_is_the_same(root: Path) -> None:
    files = {"models/m.sql": "select * from {{ ref('shop', 'base') }}", "models/base.sql": "select 1"}
    assert render(root, files).model("model.shop.m").sql == "select * from `dws`.`base`"


def test_ref_follows_the_schema_and_alias_of_in_file_config(root: Path) -> None:
    files = {
        "models/a.sql": "select * from {{ ref('z') }}",
        "models/z.sql": "{{ config(schema='dwd', alias='zed') }}select 1",
    }
    assert render(root, files).model("model.shop.a").sql == "select * from `dwd`.`zed`"


def test_under_dbt_settings_a_custom_schema_gets_the_targets_as_prefix(root: Path) -> None:
    rendered = render(root, {"models/m.sql": "{{ config(schema='x') }} select 1"}, "name: shop\n")
    assert str(rendered.models[0].table) == "dws_x.m"


def test_generate_schema_name_is_overridden_by_a_macro(root: Path) -> None:
    macro = """{% macro generate_schema_name(custom_schema_name, node) -%}
      {{ custom_schema_name or 'none' }}_{{ node.name }}_{{ node.config.materialized }}
    {%- endmacro %}"""
    assert model(root, "{{ config(schema='x') }}select {{ 1 }}", macro).table.schema == "x_m_incremental"


def test_in_file_config_wins_over_yaml_and_tags_add_up(root: Path) -> None:
    files = {
        "models/p.yml": "models:\n  - name: m\n    config: {materialized: view, unique_key: a, tags: [y]}\n",
        "models/m.sql": "{{ config(materialized='table', tags='f', unique_key=['a', 'b']) }}select 1",
    }
    config = render(root, files).model("model.shop.m").config
    assert (config.materialized, config.tags, config.unique_key) == ("table", ("y", "f"), ("a", "b"))


def test_macros_call_each_other_and_return_values(root: Path) -> None:
    macros = """
{% macro inner(n) %}{% do return(n + 1) %}never{% endmacro %}
{% macro outer(n) %}{% set got = inner(n) %}{{ got * 2 }}{% endmacro %}
"""
    rendered = model(root, "select {{ outer(2) }}", macros)
    assert rendered.sql == "select 6"
    assert rendered.macros == ("macro.shop.inner", "macro.shop.outer")


def test_a_macro_is_found_under_its_package(root: Path) -> None:
    assert model(root, "select {{ shop.one() }}", "{% macro one() %}1{% endmacro %}").sql == "select 1"


def test_dispatch_prefers_spark_over_default(root: Path) -> None:
    macros = """
{% macro f() %}{{ adapter.dispatch('f', 'shop')() }}{% endmacro %}
{% macro default__f() %}default{% endmacro %}{% macro spark__f() %}spark{% endmacro %}"""
    assert model(root, "select '{{ f() }}'", macros).sql == "select 'spark'"


def test_call_blocks_pass_their_body(root: Path) -> None:
    macros = "{% macro wrap() %}({{ caller() }}){% endmacro %}"
    assert model(root, "select {% call wrap() %}1{% endcall %}", macros).sql == "select (1)"


def test_handwritten_incremental_sql_has_both_branches(root: Path) -> None:
    rendered = model(root, "select 1{% if is_incremental() %} from {{ this }}{% endif %}")
    assert rendered.is_handwritten_incremental
    assert (rendered.sql, rendered.incremental_sql) == ("select 1", "select 1 from `dws`.`m`")


def test_nothing_is_executed_while_rendering(root: Path) -> None:
    sql = "{% set r = run_query('select 1') %}{% if execute %}{{ r.rows }}{% endif %}select {{ r is none }}"
    assert model(root, sql).sql == "select True"


def test_var_target_and_log_are_known(root: Path) -> None:
    sql = "{{ log('x') }}{% do log('y') %}select '{{ var('day') }}', '{{ var('no', 7) }}', '{{ target.schema }}'"
    assert model(root, sql).sql == "select 'd1', '7', 'dws'"


def test_hooks_are_rendered_with_the_models_own_names(root: Path) -> None:
    hooks = 'models:\n  - name: m\n    config: {post_hook: "analyze table {{ this }}"}\n'
    rendered = render(root, {"models/m.sql": "select 1", "models/p.yml": hooks}).models[0]
    assert rendered.config.post_hook == ("analyze table `dws`.`m`",)


def test_disabled_models_and_their_tests_are_left_out(root: Path) -> None:
    properties = "models:\n  - name: idle\n    columns: [{name: a, tests: [unique]}]\n"
    files = {"models/idle.sql": "{{ config(enabled=false) }}select 1", "models/p.yml": properties}
    rendered = render(root, files)
    assert (rendered.models, rendered.tests, rendered.disabled) == ((), (), ("model.shop.idle",))


def test_a_seed_has_a_table_and_can_be_referenced(root: Path) -> None:
    rendered = render(root, {"models/m.sql": "select * from {{ ref('s') }}", "seeds/s.csv": "a\n1\n"})
    assert rendered.models[0].sql == "select * from `dws`.`s`"
    assert [(ref.kind, ref.unique_id) for ref in rendered.models[0].inputs] == [("seed", "seed.shop.s")]
    assert str(rendered.seeds[0].table) == "dws.s"


def test_builtin_and_own_generic_tests_are_rendered(root: Path) -> None:
    files = {
        "models/m.sql": "select 1 as a",
        "models/p.yml": """
models:
  - name: m
    columns:
      - name: a
        tests:
          - not_null: {where: a > 0}
          - accepted_values: {values: ["it's"]}
          - relationships: {to: "source('shop', 'user')", field: id}
          - positive: {severity: warn}
""",
        "macros/p.sql": "{% test positive(model, column_name) %}select * from {{ model }} where {{ column_name }} < 0"
        "{% endtest %}",
    }
    tests = {test.name: test for test in render(root, files).tests}
    assert tests["not_null_m_a"].sql == "select * from (select * from `dws`.`m` where a > 0) where a is null"
    assert r"not in ('it\'s')" in tests["accepted_values_m_a__it_s"].sql
    related = tests["relationships_m_a__id__source_shop_user_"]
    assert "parent as (select id as to_field from `ods`.`user`)" in related.sql
    assert {ref.unique_id for ref in related.inputs} == {"model.shop.m", "source.shop.shop.user"}
    assert (tests["positive_m_a"].sql, tests["positive_m_a"].severity) == (
        "select * from `dws`.`m` where a < 0",
        "warn",
    )


def test_a_singular_test_sets_its_severity(root: Path) -> None:
    files = {"tests/gap.sql": "{{ config(severity='warn') }}select * from {{ source('shop', 'user') }}"}
    (test,) = render(root, files).tests
    assert (test.severity, test.sql) == ("warn", "select * from `ods`.`user`")


def test_rendering_twice_gives_the_same(root: Path) -> None:
    files = {"models/m.sql": "select {% for c in ['a', 'b'] %}{{ c }},{% endfor %} 1"}
    assert render(root, files) == render(root, files)


def test_inline_sql_sees_the_project(root: Path) -> None:
    render(root, {"models/base.sql": "{{ config(schema='dwd') }}select 1"})
    rendered = render_inline(load_project(root, {}), TARGET, "select * from {{ ref('base') }}")
    assert rendered.sql == "select * from `dwd`.`base`"


BAD = {
    "unknown ref": ("select *\nfrom {{ ref('bas') }}", "models/m.sql:2:9: no model or seed is named 'bas'", "'base'"),
    "foreign package": ("select * from {{ ref('x', 'base') }}", "models/m.sql:1:18: ref names package 'x'", "shop"),
    "unknown source": ("select * from {{ source('shp', 'user') }}", "m.sql:1:18: no source is named 'shp'", "'shop'"),
    "unknown source table": (
        "select * from {{ source('shop', 'usr') }}",
        "source 'shop' has no table 'usr'",
        "did you mean 'user'?",
    ),
    "unknown macro": ("select\n  {{ cens(1) }}", "models/m.sql:2:6: 'cens' is not defined", "did you mean 'cents'?"),
    "unknown var": ("select {{ var('dayy') }}", "models/m.sql:1:11: var 'dayy' is not set", "did you mean 'day'?"),
    "unknown env_var": ("select {{ env_var('SML_NO') }}", "m.sql:1:11: environment variable 'SML_NO'", "export"),
    "secret": ("select {{ env_var('DBT_ENV_SECRET_X') }}", "not available here", "profiles.yml"),
    "wrong config value": (
        "{{ config(materialized='tabel') }} select 1",
        "models/m.sql:1:11: config 'materialized' is 'tabel'; it must be one of incremental, table, view, ephemeral",
        "did you mean 'table'?",
    ),
    "an option that would lose rows": (
        "{{ config(hudi={'hoodie.record.merge.mode': 'EVENT_TIME_ORDERING'}) }} select 1",
        "models/m.sql:1:11: config 'hudi' has hoodie.record.merge.mode, which is not to be set",
        "leave it out: of two rows of a key the last one written is right",
    ),
    "unclosed tag": ("select {{ 1 ", "models/m.sql:1:", "invalid Jinja"),
    "unclosed block": ("select\n{% if true %} 1", "models/m.sql:2:", "invalid Jinja"),
    "unknown tag": (
        "select\n  {% iff x %} 1",
        "models/m.sql:2:6: invalid Jinja: there is no tag `iff`",
        "did you mean 'if'?",
    ),
    "unknown filter": ("select {{ 'a' | uper }}", "models/m.sql:1:17: invalid Jinja", "did you mean 'upper'?"),
    "compiler error": ("{{ exceptions.raise_compiler_error('no!') }}", "models/m.sql:1:15: no!", ""),
    "division by zero": ("select\n{{ 1 / 0 }}", "models/m.sql:2:1: ZeroDivisionError", ""),
    "undefined printed": ("select {{ nothing }}", "models/m.sql:1:11: 'nothing' is not defined", ""),
    "macro called wrongly": ("select {{ cents() }}", "macros/x.sql:1:", "called from models/m.sql:1"),
    "error inside a macro": ("select {{ bad() }}", "macros/x.sql:3:", "called from models/m.sql:1"),
    "macro without end": ("select {{ forever() }}", "call each other without end", ""),
    "sandbox": ("select {{ ''.__class__.__mro__ }}", "models/m.sql:1:", ""),
    "module escape": ("select {{ modules.datetime.sys.modules }}", "models/m.sql:1:", ""),
    "file access": ("{% include '/etc/passwd' %}", "models/m.sql:1:", ""),
    "endless range": ("{% for i in range(10000000) %}{% endfor %}select 1", "models/m.sql:1:", ""),
    "empty model": ("{# nothing #}\n", "models/m.sql:1:1: model 'm' is empty", ""),
    "return outside": ("{{ return(1) }}", "return() outside of a macro", ""),
    "unprintable mark": ("select '\ufdd0'", "models/m.sql:1:9: character U+FDD0", ""),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_templates_are_refused_with_their_place(root: Path, case: str) -> None:
    sql, message, also = BAD[case]
    macros = (
        "{% macro cents(c) %}{{ c + 1 }}{% endmacro %}\n"
        "{% macro bad() %}\n  {{ ref('nowhere') }}\n{% endmacro %}"
        "{% macro forever() %}{{ forever() }}{% endmacro %}"
    )
    files = {"models/m.sql": sql, "models/base.sql": "select 1", "macros/x.sql": macros}
    with pytest.raises(ProjectError) as caught:
        render(root, files)
    assert message in str(caught.value)
    assert also in str(caught.value)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"models/a/m.sql": "select 1"}, r"^models/m\.sql:1:1: `m` is also models/a/m\.sql"),
        ({"seeds/m.csv": "a\n"}, r"^seeds/m\.csv:1:1: `m` is also models/m\.sql"),
    ],
)
def test_two_enabled_nodes_of_one_name_are_refused(root: Path, other: Mapping[str, str], message: str) -> None:
    with pytest.raises(ProjectError, match=message):
        render(root, {"models/m.sql": "select 1", **other})


def test_a_ref_to_a_disabled_model_says_so(root: Path) -> None:
    files = {"models/m.sql": "select * from {{ ref('off') }}", "models/off.sql": "{{ config(enabled=false) }}select 1"}
    with pytest.raises(ProjectError, match=r"models/m\.sql:1:18: ref names 'off', which is disabled"):
        render(root, files)


def test_a_test_of_an_unknown_macro_is_an_error_of_its_entry(root: Path) -> None:
    files = {
        "models/m.sql": "select 1",
        "models/p.yml": "models:\n  - name: m\n    columns:\n      - name: a\n        tests:\n          - not_nul\n",
    }
    with pytest.raises(
        ProjectError, match=r"models/p\.yml:6:13: no data test is named 'not_nul'\n  did you mean 'not_null'"
    ):
        render(root, files)


def test_a_macro_defined_twice_is_refused(root: Path) -> None:
    files = {"macros/a.sql": "{% macro f() %}{% endmacro %}", "macros/b.sql": "\n{% macro f() %}{% endmacro %}"}
    with pytest.raises(ProjectError, match=r"(?s)macros/b\.sql:2:1: macro 'f' is defined twice.*macros/a\.sql:1:1"):
        render(root, files)


def test_two_models_of_one_table_are_refused(root: Path) -> None:
    files = {"models/a.sql": "select 1", "models/b.sql": "{{ config(alias='a') }}select 1"}
    with pytest.raises(ProjectError, match=r"models/b\.sql:1:1: table dws\.a is written by models/a\.sql too"):
        render(root, files)


def test_a_seed_of_a_models_table_is_refused(root: Path) -> None:
    files = {
        "models/a.sql": "select 1",
        "seeds/rates.csv": "id\n1\n",
        "seeds/p.yml": "seeds: [{name: rates, config: {alias: a}}]",
    }
    with pytest.raises(ProjectError, match=r"seeds/rates\.csv:1:1: table dws\.a is written by models/a\.sql too"):
        render(root, files)


def test_a_snapshot_of_a_models_table_is_refused(root: Path) -> None:
    block = "{% snapshot kept_a %}{{ config(target_schema='dws', alias='a') }}select 1{% endsnapshot %}"
    files = {"models/a.sql": "select 1", "snapshots/s.sql": block}
    with pytest.raises(ProjectError, match=r"snapshots/s\.sql:1:1: table dws\.a is written by models/a\.sql too"):
        render(root, files)


def test_in_a_seeds_hooks_this_is_the_seeds_own_table(root: Path) -> None:
    hook = "analyze table {{ this }} -- {{ model.name }}, a {{ model.resource_type }}"
    files = {
        "seeds/rates.csv": "id\n1\n",
        "seeds/p.yml": f'seeds: [{{name: rates, config: {{schema: raw, alias: fx, pre_hook: "{hook}"}}}}]',
    }
    render(root, files)
    project = load_project(root, {})
    renderer = Renderer.of(project, TARGET)
    operations = Operations(renderer, project, TARGET, None, dict, TemplateCall())  # type: ignore[arg-type]
    assert list(operations.of_node("seed.shop.rates", "pre_hook")) == ["analyze table `raw`.`fx` -- rates, a seed"]


def test_in_file_config_may_use_the_name_of_a_ref(root: Path) -> None:
    files = {
        "models/m.sql": "{{ config(alias=ref('a').identifier ~ '_copy') }}select * from {{ ref('a') }}",
        "models/a.sql": "select 1",
    }
    assert str(render(root, files).model("model.shop.m").table) == "dws.a_copy"


def test_a_data_test_of_a_broken_file_is_that_files_error(root: Path) -> None:
    files = {
        "models/m.sql": "select 1 as a",
        "models/m.yml": "models: [{name: m, columns: [{name: a, data_tests: [positive]}]}]",
        "macros/t.sql": "{% data_test positive(model, column_name) %}select {{ }}{% enddata_test %}",
    }
    with pytest.raises(ProjectError):
        render(root, files)
    [test] = render_project(load_project(root, {}), TARGET, broken=True).tests
    assert test.error is not None and str(test.error).startswith("macros/t.sql:1:")


def test_a_schema_that_is_no_folder_name_is_refused(root: Path) -> None:
    with pytest.raises(ProjectError, match="cannot be a table's name"):
        model(root, "{{ config(schema='../up') }}select 1")


def test_every_test_that_does_not_say_no_may_store_its_failures(root: Path) -> None:
    listed = "[unique, {not_null: {config: {store_failures: false}}}]"
    described = f"models: [{{name: m, columns: [{{name: a, data_tests: {listed}}}]}}]"
    files = {"models/m.sql": "select 1 as a", "models/m.yml": described}
    tests = storing_failures(render(root, files).tests)
    assert {test.name: str(test.table) for test in tests} == {
        "unique_m_a": "dws_dbt_test__audit.unique_m_a", "not_null_m_a": "None",
    }  # fmt: skip
