"""What templates find when somebody answers, and when nobody does yet: relations, columns, their node and the call.

Expected values are those of dbt-core 1.11.16 with dbt-duckdb, in Spark's words where the dialect differs.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.cli.projects.test_dbt_projects import Project, Shown

MODELS = {
    "models/t.sql": "{{ config(materialized='table', tags=['x']) }}"
    "select 1 as id, 'b' as name, cast(1.5 as decimal(10,2)) as amt, cast(2.5 as double) as ratio",
    "models/v.sql": "select id, name from {{ ref('t') }}",
    "macros/m.sql": "{% macro boo(x) %}{{ return({'a': x}) }}{% endmacro %}{% macro hi(x) %}hi {{ x }}{% endmacro %}",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> Project:
    return Project(tmp_path, monkeypatch, capsys)


def answers(project: Project, expressions: list[str], before: str = "") -> list[str]:
    """What each expression prints in a model of its own, when it runs."""
    names = "-- depends_on: {{ ref('t') }} {{ ref('v') }}\n"
    files = {
        f"models/sub/p{n}.sql": names
        + "{% if execute %}"
        + before
        + f"{{% do log('<{n}:' ~ ({text}) ~ ':{n}>', info=true) %}}{{% endif %}}select 1 as a"
        for n, text in enumerate(expressions)
    }
    shown = project.call("build", files={**MODELS, **files})
    matches = [re.search(rf"<{n}:(.*?):{n}>", shown, re.DOTALL) for n in range(len(expressions))]
    return [match[1] if match else "nothing" for match in matches]


def compare(project: Project, cases: dict[str, str], before: str = "") -> None:
    assert dict(zip(cases, answers(project, list(cases), before), strict=True)) == cases


def test_relations_have_dbts_interface(project: Project) -> None:
    cases = {
        "r": "`s`.`i`",
        "r.type ~ r.is_table ~ r.is_view ~ r.is_cte": "NoneFalseFalseFalse",
        "api.Relation.create(schema='s', identifier='i', type='view').is_view": "True",
        "api.Relation.View ~ api.Relation.Table ~ api.Relation.get_relation_type('cte')": "viewtablecte",
        "api.Relation.create(schema='s').identifier ~ api.Relation.create(schema='s')": "None`s`",
        "r.include(database=false, schema=false) ~ r.include(schema=false).identifier": "`i`i",
        "r.quote(schema=false, identifier=false) ~ r.quote(identifier=false).include(schema=false)": "s.ii",
        "r.replace_path(identifier='j') ~ r.incorporate(path={'schema': 'z'})": "`s`.`j``z`.`i`",
        "r.incorporate(type='view').is_view ~ r.without_identifier()": "True`s`",
        "r.path.schema ~ r.get('identifier') ~ r.get('no', 'x') ~ r.render()": "six`s`.`i`",
        "r.matches(schema='S', identifier='i') ~ r.matches(identifier='j')": "TrueFalse",
        "ref('t') == ref('v') or ref('t') not in [ref('v'), ref('t')]": "False",
        "ref('t').type ~ this.type ~ this.name": "NoneNonep12",
        "make_temp_relation(this) ~ make_backup_relation(this, 'table').type": "`dws`.`p13__dbt_tmp`table",
    }
    compare(project, cases, "{% set r = api.Relation.create(database='d', schema='s', identifier='i') %}")


def test_the_lake_says_what_is_there(project: Project) -> None:
    cases = {
        "adapter.get_relation(this.database, 'dws', 't').type": "table",
        "adapter.get_relation(database=none, schema='dws', identifier='v').is_view": "True",
        "adapter.get_relation(none, 'dws', 'nope')": "None",
        "load_relation(ref('v')).type ~ load_cached_relation(ref('t'))": "view`dws`.`t`",
        "dbt.load_cached_relation(this)": "None",
        "adapter.check_schema_exists(none, 'dws') ~ adapter.check_schema_exists(none, 'nope')": "TrueFalse",
        "adapter.list_relations(none, 'DWS') | map(attribute='type') | unique | sort | join(',')": "table,view",
        "adapter.list_relations_without_caching(this.without_identifier()) | length >= 2": "True",
        "adapter.list_schemas(none)": "['dws']",
        "adapter.get_missing_columns(ref('t'), ref('v')) | map(attribute='name') | join(',')": "amt,ratio",
        "adapter.expand_target_column_types(ref('t'), ref('v'))": "None",
        "adapter.quote_as_configured('a', 'identifier') ~ adapter.quote('a')": "a`a`",
        "get_or_create_relation(none, 'dws', 't', 'table')[0]": "True",
        "get_or_create_relation(none, 'dws', 'u', 'view')[1].type": "view",
        "get_columns_in_query('select 1 as a, 2 as b')": "['a', 'b']",
        "diff_columns(adapter.get_columns_in_relation(ref('t')), []) | length": "4",
        "get_quoted_csv(['a', 'b'])": "`a`, `b`",
        "run_query('select count(*) from ' ~ ref('t')).rows[0][0]": "1",
        "run_query('select max(id) from ' ~ ref('t')).rows[0]['max(id)']": "1",
    }
    compare(project, cases)


def test_columns_have_whole_types_and_can_be_compared(project: Project) -> None:
    cases = {
        "c[2].dtype ~ c[2].data_type ~ c[2].is_numeric() ~ c[2].is_string()": "decimal(10,2)decimal(10,2)TrueFalse",
        "c[0].is_integer() ~ c[1].is_string() ~ c[3].is_float() ~ c[1].string_size()": "TrueTrueTrue256",
        "c[0] in adapter.get_columns_in_relation(ref('v'))": "True",
        "c[2] in adapter.get_columns_in_relation(ref('v'))": "False",
        "c[0] == api.Column('id', c[0].dtype)": "True",
        "api.Column('a', 'varchar', 10).string_size() ~ api.Column('a', 'int').literal('x')": "10cast(x as int)",
    }
    compare(project, cases, "{% set c = adapter.get_columns_in_relation(ref('t')) %}")


def test_results_of_statements_are_stored_as_in_dbt(project: Project) -> None:
    asked = (
        "{% call statement('q', fetch_result=True) %}select id, name from {{ ref('t') }}{% endcall %}"
        "{% call statement('n') %}select 1 as x{% endcall %}"
        "{% do store_result('s', response='R', agate_table=load_result('q').table) %}"
        "{% do store_raw_result('w', message='M', code='C', rows_affected=3) %}"
    )
    cases = {
        "load_result('q').data ~ load_result('q').table.column_names": "[(1, 'b')]('id', 'name')",
        "load_result('q').response ~ load_result('q').response.code": "OKNone",
        "load_result('n').data ~ load_result('no')": "[]None",
        "load_result('s').data ~ load_result('s').response": "[(1, 'b')]R",
        "load_result('w').response ~ load_result('w')['response'].code": "MC",
        "load_result('w').response.rows_affected": "3",
    }
    compare(project, cases, asked)


def test_a_node_knows_itself_and_the_project(project: Project) -> None:
    cases = {
        "model.schema ~ model.database ~ model.relation_name": "dwsNone`dws`.`p0`",
        "model.path ~ model.original_file_path": "sub/p1.sqlmodels/sub/p1.sql",
        "model.raw_code[:10] ~ model.language ~ model.description ~ model.columns ~ model.meta": "-- dependssql{}{}",
        "model.config.enabled ~ model.config.tags ~ model.config.meta ~ model.config.materialized": "True[]{}view",
        "model.depends_on.nodes": "['model.shop.t', 'model.shop.v']",
        "model.refs | map(attribute='name') | list": "['t', 'v']",
        "model.get('sources') ~ model.get('no', 'x')": "[]x",
        "config.get('enabled') ~ config.get('tags', 'x') ~ config.get('no', 'x')": "True[]x",
        "config.persist_relation_docs() ~ config.persist_column_docs()": "FalseFalse",
        "context['model'].resource_type ~ context.get('no', 'x') ~ context['hi']('a')": "modelxhi a",
        "context['shop']['hi']('b')": "hi b",
        "generate_schema_name('x', model) ~ generate_schema_name() ~ generate_alias_name(none, model)": "dws_xdwsp11",
        "builtins.ref('t').identifier ~ builtins.var('no', 'd')": "td",
        "graph.setdefault('kept', {}) ~ graph.kept ~ graph['nodes']['model.shop.t'].tags": "{}{}['x']",
        "flags.WHICH ~ flags.FULL_REFRESH ~ flags.EMPTY ~ invocation_args_dict.which": "runFalseFalserun",
        "selected_resources ~ defer_relation ~ validation.any(1)(2)": "[]NoneNone",
    }
    compare(project, cases)


def test_what_only_the_whole_project_knows_is_asked_when_the_node_runs(project: Project) -> None:
    """While the project is read nobody knows: a text with `[]` in it must not be what is built."""
    asks = "select '{{ model.depends_on.nodes | join(' ') }}' as n from {{ ref('t') }}"
    shown = project.call("show", "m", "--output", "json", files={**MODELS, "models/m.sql": asks})
    assert '"n": "model.shop.t"' in shown


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("fromjson('nope', 'd') ~ fromjson('nope')", "dNone"),
        ("fromyaml('a: [', 'd') ~ toyaml(adapter, 'd')", "dd"),
        ("set(5, 'd') ~ zip(5) ~ zip(5, default='d')", "dNoned"),
        ("diff_of_two_dicts({'a': ['b'], 'C': ['d', 'e']}, {'a': ['B'], 'c': ['d']})", "{'C': ['e']}"),
        ("try_or_compiler_error('bad', boo, 3)", "{'a': 3}"),
        ("modules.re.sub('B', 'x', 'abc', flags=modules.re.IGNORECASE)", "axc"),
        ("modules.re.compile('a').search('ba').start() ~ modules.re.finditer('a', 'aa') | list | length", "12"),
        ("modules.itertools.zip_longest([1, 2], [3]) | list", "[(1, 3), (2, None)]"),
        ("modules.itertools.repeat(1, 3) | list ~ modules.itertools.accumulate([1, 2]) | list", "[1, 1, 1][1, 3]"),
        ("modules.pytz.utc.localize(modules.datetime.datetime(2024, 7, 1)).isoformat()", "2024-07-01T00:00:00+00:00"),
        ("modules.pytz.timezone('Europe/Berlin').zone", "Europe/Berlin"),
    ],
)
def test_plain_functions_are_dbts(project: Project, expression: str, expected: str) -> None:
    text = "select {{ '$$' ~ (" + expression + ") ~ '$$' }} as x"
    files = {**MODELS, "models/m.sql": text.replace("$$", "")}
    assert (
        project.call("compile", "--inline", text, files=files | {"models/m.sql": "select 1 as a"}).split("$$")[1]
        == expected
    )


def test_variables_for_artifacts_are_looked_up_in_each_call(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "select '{{ dbt_metadata_envs.get('TEAM', 'none') }} {{ dbt_metadata_envs.keys() | join }}' as x"
    assert project.compiled(text) == "select 'none ' as x"
    monkeypatch.setenv("DBT_ENV_CUSTOM_ENV_TEAM", "ours")
    assert project.compiled(text) == "select 'ours TEAM' as x"


EVENTS = {
    "models/ev_a.sql": "{{ config(materialized='table') }}select 1 as id",
    "models/ev_b.sql": "select 2 as id",
    "macros/m.sql": '{% macro like(pattern) %}{{ return(run_query("select distinct table_schema, table_name, '
    "case table_type when 'BASE TABLE' then 'table' else lower(table_type) end as `table_type` from "
    "\" ~ target.database ~ \".information_schema.tables where table_schema ilike 'DWS%' "
    "and table_name ilike '\" ~ pattern ~ \"' and table_name not ilike '' order by table_name\")) }}{% endmacro %}",
}


def test_the_information_schema_is_that_of_the_project(project: Project) -> None:
    """As packages look for relations by a pattern, and read them all."""
    united = (
        "{{ config(materialized='table') }}-- depends_on: {{ ref('ev_a') }} {{ ref('ev_b') }}\n"
        "{% for r in like('ev_%') or [] %}select id, '{{ r.table_type }}' as kind from "
        "{{ api.Relation.create(database=none, schema=r.table_schema, identifier=r.table_name, type=r.table_type) }}"
        "{{ ' union all ' if not loop.last }}{% endfor %}"
    )
    shown = project.call("show", "m", "--output", "json", files={**EVENTS, "models/m.sql": united})
    assert re.findall(r'"id": (\d), "kind": "(\w+)"', shown.replace("\n", " ")) == [("1", "table"), ("2", "view")]


def test_columns_and_schemata_are_there_too_and_a_view_that_asks_is_not_for_itself(project: Project) -> None:
    asks = (
        "-- depends_on: {{ ref('ev_b') }}\n{% set c = run_query(\"select table_name, column_name, data_type from "
        "INFORMATION_SCHEMA.COLUMNS where table_schema = 'dws' and ordinal_position = 1 order by 1\") %}"
        "{% set s = run_query('select schema_name from information_schema.schemata') %}"
        "{% set none_at_all = run_query(\"select * from information_schema.tables where table_name = 'm'\") %}"
        "select '{{ c.rows | map('join', ' ') | join('; ') if c else '' }}' as cols, "
        "'{{ s.columns[0].values() | join if s else '' }}' as schemas, {{ none_at_all | length if s else 0 }} as own"
    )
    shown = project.call("show", "m", "--output", "json", files={**EVENTS, "models/m.sql": asks})
    assert '"cols": "ev_b id int", "schemas": "dws", "own": 0' in shown.replace("\n", "")


def test_a_relation_that_is_found_must_be_known_before(project: Project) -> None:
    reads = "select * from {{ (like('ev_a').rows[0].table_name if execute) or 'x' }}"
    files = {**EVENTS, "models/m.sql": reads.replace("from {{", "from dws.{{"), "models/n.sql": "select 1 as a"}
    assert "the table dws.ev_a is not a ref() or source()" in project.call("build", files=files, code=1)
    files = {**EVENTS, "models/m.sql": "select 1 as a", "tests/asks.sql": reads.replace("from {{", "from dws.{{")}
    shown = project.call("build", files=files, code=1)
    assert "data test asks: the table dws.ev_a is not a ref() or source()" in shown


def test_what_is_printed_is_said_and_an_error_is_that_of_its_call(project: Project) -> None:
    prints = {"models/m.sql": "{% do print('a' ~ 'bc') %}select 1 as a"}
    assert "abc" in project.call("compile", files=prints)
    for name in ("raise_compiler_error", "raise_database_error", "raise_fail_fast_error", "missing_relation"):
        raises = {"models/m.sql": f"select 1 as a\n{{{{ exceptions.{name}('gone: ' ~ 5) }}}}"}
        assert "error: models/m.sql:2:15: gone: 5" in project.call("compile", files=raises, code=2)


def test_an_operation_knows_its_call(project: Project) -> None:
    """No JVM is started: nothing is asked of Spark."""
    asks = (
        "{% macro tell() %}{{ flags.WHICH }} {{ invocation_args_dict.which }} {{ invocation_args_dict.vars.day }} "
        "{{ flags.FULL_REFRESH }} {{ flags.DEFER }} {{ adapter.list_schemas(none)[0] }}{% endmacro %}"
    )
    files = {
        "profiles.yml": "shop: {target: t, outputs: {t: {type: spark, warehouse: lake, schema: dws}}}\n",
        **MODELS,
        "macros/m.sql": asks,
    }
    shown = project.call("run-operation", "tell", "--vars", "{day: d1}", files=files)
    assert "run-operation run-operation d1 False False dws" in shown


def test_a_data_test_finds_itself_in_its_context(project: Project) -> None:
    """`model` is what the test is of; of the test itself the whole project knows more than its entry."""
    macro = (
        "{% test tells(model, column_name) %}{% set own = context['model'] %}"
        "{% if execute %}{% do log('own: ' ~ [own.resource_type, own.package_name, own.test_metadata.name, "
        "own.depends_on.nodes, own.config.severity] ~ model, info=true) %}{% endif %}select 1 as a where 1 = 0"
        "{% endtest %}"
    )
    files = {
        **MODELS,
        "macros/m.sql": macro,
        "models/t.yml": "models: [{name: t, columns: [{name: id, data_tests: [tells]}]}]\n",
    }
    shown = project.call("build", files=files)
    assert "own: ['test', 'shop', 'tells', ['model.shop.t'], 'ERROR']`dws`.`t`" in shown
    ephemeral = {"models/e.sql": "{{ config(materialized='ephemeral') }}select 1 as a"}
    asks = "-- depends_on: {{ ref('e') }}\nselect '{{ load_relation(ref('e')) }}' as r"
    assert '"r": "None"' in project.call("show", "m", "--output", "json", files={**ephemeral, "models/m.sql": asks})


def test_views_that_list_relations_do_not_render_each_other(project: Project) -> None:
    """What is there is known by name: each of them would render all others, and these the rest in turn."""
    lists = "select {{ adapter.list_relations(none, 'dws') | length if execute else 0 }} as n"
    files = {f"models/v{n}.sql": lists for n in range(12)}
    assert "PASS=12 " in project.call("build", files=files)
    assert '"n": 11' in project.call("show", "v0", "--output", "json", files=files)
