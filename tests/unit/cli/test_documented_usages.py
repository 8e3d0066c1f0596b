"""Usages that dbt's documentation shows, each in a project of its own: calls, their exit codes and what they tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main

Shown = pytest.CaptureFixture[str]
SETTINGS = "name: p\nversion: '1.0'\nprofile: lake\nvars: {least: 1}\n"
BASE = {
    "dbt_project.yml": SETTINGS,
    "profiles.yml": "lake: {target: dev, outputs: {dev: {type: duckdb, schema: main}, "
    "prod: {type: duckdb, schema: prod}}}\n",
    "seeds/raw.csv": "id,name,v\n1,a,10\n2,b,20\n3,,30\n",
    "models/stg.sql": "select id, name, v from {{ ref('raw') }}",
}


@dataclass(frozen=True)
class Usage:
    """Files beside the base, and calls with their exit code and a text that they tell; `!text` must not be told."""

    files: Mapping[str, str]
    calls: tuple[tuple[str, int, str], ...]


def entry(test: str, column: str = "name") -> str:
    return f"models: [{{name: stg, columns: [{{name: {column}, data_tests: [{test}]}}]}}]\n"


FAILS = entry("not_null")
WARNS = "PASS=2 WARN=1"
USAGES: dict[str, Usage] = {
    "a test may be less severe in a target": Usage(
        {
            "models/p.yml": entry(
                """not_null: {config: {severity: "{{ 'error' if target.name == 'prod' else 'warn' }}"}}"""
            )
        },
        (("build", 0, WARNS), ("build -t prod", 1, "ERROR=1")),
    ),
    "a variable turns a test off": Usage(
        {"models/p.yml": entry("""not_null: {config: {enabled: "{{ var('strict', false) }}"}}""")},
        (("build", 0, "PASS=2 WARN=0"), ("build --vars {strict:\xa0true}", 1, "ERROR=1")),
    ),
    "where holds templates": Usage(
        {"models/p.yml": entry("""not_null: {config: {where: "id < {{ var('until', 3) }}"}}""")},
        (("build", 0, "PASS=3"),),
    ),
    "a project has its own get_where_subquery": Usage(
        {
            "models/p.yml": entry("not_null: {config: {where: id < __until__}}"),
            "macros/w.sql": "{% macro get_where_subquery(relation) -%}{% set where = config.get('where') %}"
            "{%- set filtered -%}(select * from {{ relation }} "
            "where {{ where | replace('__until__', '3') }}) dbt_subquery{%- endset -%}"
            "{% do return(filtered) %}{%- endmacro %}",
        },
        (("build", 0, "PASS=3"),),
    ),
    "a test's argument holds templates": Usage(
        {
            "models/p.yml": entry("""holds: {arguments: {expression: "v >= {{ var('least') }} * 10"}}""", "v"),
            "tests/generic/holds.sql": "{% test holds(model, column_name, expression) %}"
            "select * from {{ model }} where not ({{ expression }}){% endtest %}",
        },
        (("build", 0, "PASS=3"), ("test --vars {least:\xa02}", 1, "Got 1 result")),
    ),
    "settings of the project make tests warn": Usage(
        {"models/p.yml": FAILS, "dbt_project.yml": SETTINGS + "data_tests: {+severity: warn, p: {+tags: slow}}\n"},
        (("build", 0, WARNS), ("ls -s tag:slow --output name", 0, "not_null_stg_name")),
    ),
    "tests: is the older word for them": Usage(
        {"models/p.yml": FAILS, "dbt_project.yml": SETTINGS + "tests: {p: {severity: warn}}\n"}, (("build", 0, WARNS),)
    ),
    "settings of tests go by folder, and an entry wins": Usage(
        {
            "models/sub/m.sql": "select * from {{ ref('stg') }}",
            "models/sub/p.yml": "models: [{name: m, columns: [{name: name, data_tests: [not_null]}, "
            "{name: v, data_tests: [{accepted_values: {values: [1], config: {severity: error}}}]}]}]\n",
            "dbt_project.yml": SETTINGS + "data_tests: {p: {sub: {+severity: warn}}}\n",
        },
        (("build", 1, "PASS=3 WARN=1 ERROR=1"), ("ls -s p.sub --resource-type test", 0, "p.sub.not_null_m_name")),
    ),
    "settings of the project filter tests and turn them off": Usage(
        {"models/p.yml": FAILS, "dbt_project.yml": SETTINGS + "data_tests: {+where: id < 3}\n"},
        (("build", 0, "PASS=3"),),
    ),
    "all tests are off": Usage(
        {
            "models/p.yml": FAILS,
            "tests/one.sql": "select 1",
            "dbt_project.yml": SETTINGS + "data_tests: {+enabled: false}\n",
        },
        (("build", 0, "TOTAL=2"),),
    ),
    "an entry wins over the macro of its test": Usage(
        {
            "models/p.yml": "models: [{name: stg, columns: [{name: id, data_tests: [{odd: {config: {severity: error}}}"
            ", {odd: {name: other}}]}]}]\n",
            "tests/generic/odd.sql": "{% test odd(model, column_name) %}{{ config(severity='warn') }}"
            "select * from {{ model }} where {{ column_name }} % 2 = 1{% endtest %}",
        },
        (("build", 1, "PASS=2 WARN=1 ERROR=1"),),
    ),
    "YAML describes and sets a singular test": Usage(
        {
            "tests/bad.sql": "select * from {{ ref('stg') }}",
            "tests/p.yml": "data_tests:\n- {name: bad, description: it fails, config: {severity: warn, tags: [z]}}\n",
        },
        (("build", 0, WARNS), ("ls -s tag:z --output name", 0, "bad")),
    ),
    "a source lies where the target says": Usage(
        {
            "models/p.yml": 'sources: [{name: s, database: "{{ target.database }}", schema: "{{ target.schema }}_raw", '
            "tables: [{name: t}]}]\n",
            "fixtures/s/t.csv": "id\n1\n",
            "models/b.sql": "select * from {{ source('s', 't') }}",
        },
        (("compile -s b", 0, "`main_raw`.`t`"), ("compile -s b -t prod", 0, "`prod_raw`.`t`")),
    ),
    "folders are on in one target": Usage(
        {"dbt_project.yml": SETTINGS + "models: {p: {+enabled: \"{{ target.name == 'prod' }}\"}}\n"},
        (("ls --output name", 0, "!stg"), ("ls -t prod --output name", 0, "stg")),
    ),
    "a source, an exposure and a unit test are off where settings or their own config say so": Usage(
        {
            "dbt_project.yml": SETTINGS + "unit_tests: {+enabled: false}\nexposures: {p: {+enabled: false}}\n"
            "sources: {p: {s: {+enabled: false}}}\n",
            "models/p.yml": "sources:\n- {name: s, tables: [{name: t, columns: [{name: id, data_tests: [unique]}]}]}\n"
            "- {name: o, config: {enabled: false}, tables: [{name: t}]}\n"
            "- {name: q, tables: [{name: t, config: {enabled: false}}]}\n"
            "exposures: [{name: e, type: dashboard, owner: {email: a@b.c}}]\n"
            "unit_tests: [{name: u, model: stg, given: [{input: ref('raw'), rows: []}], expect: {rows: [{id: 2}]}}]\n",
        },
        (("build", 0, "TOTAL=2"), ("ls --output name", 0, "!t\n")),
    ),
    "types are chosen and left out": Usage(
        {"models/p.yml": entry("unique", "id")},
        (
            ("build --resource-type seed", 0, "PASS=1 "),
            ("build --resource-types model seed", 0, "PASS=2 "),
            ("build --exclude-resource-type test", 0, "PASS=2 "),
            ("test --exclude-resource-types unit_test", 0, "PASS=1 "),
            ("test --resource-type unit_test", 0, "holds no unit_test"),
            ("ls --output name --exclude-resource-type model seed", 0, "unique_stg_id"),
        ),
    ),
    "ls prints the keys that are asked for": Usage(
        {},
        (
            ("ls -s raw --output json --output-keys name resource_type", 0, '{"name": "raw", "resource_type": "seed"}'),
            (
                "ls -s stg --output json --output-keys config.materialized,alias",
                0,
                '{"config.materialized": "view", "alias": "stg"}',
            ),
        ),
    ),
    "a query is compiled": Usage(
        {}, (("compile --inline select\xa0*\xa0from\xa0{{ref('stg')}}", 0, "select * from `main`.`stg`"),)
    ),
    "colours have dbt's flag too": Usage({}, (("build --no-use-colors", 0, "PASS=2"),)),
    "a file is chosen with and without its suffix": Usage(
        {}, (("ls -s file:stg.sql", 0, "p.stg"), ("ls -s file:stg", 0, "p.stg"))
    ),
    "templates know zones, versions and meta": Usage(
        {
            "models/m.sql": """{{ config(meta={'who': 'ada'}, pre_hook=before_begin('select 1')) }}
{%- set noon = modules.pytz.timezone('America/New_York').localize(modules.datetime.datetime(2024, 1, 1, 12)) %}
select '{{ noon.astimezone(modules.pytz.utc).hour }}' as h, '{{ dbt_version.split('.')[0] }}' as v,
'{{ config.meta_get('who') }}' as w, {{ invocation_id | length }} as n, {{ set_strict([1, 1]) | length }} as s,
{{ zip_strict([1], [2]) | list | length }} as z, {{ '7' | as_number }} as k"""
        },
        (("show m --output csv", 0, "17,1,ada,36,1,1,7"),),
    ),
    "a materialization of dbt's is passed over, and a model that asks for it refused": Usage(
        {
            "macros/m.sql": "{% materialization mine, default, supported_languages=['sql'] %}"
            "{% set x = 1 %}{{ return({'relations': []}) }}{% endmaterialization %}{% macro one() %}1{% endmacro %}"
            "{% data_test never(model) %}select 1 as a where false{% enddata_test %}",
            "models/m.sql": "select {{ one() }} as a",
            "models/p.yml": "models: [{name: m, data_tests: [never]}]\n",
        },
        (("build", 0, "PASS=4"),),
    ),
    "append_new_columns lets the author's branch have fewer columns": Usage(
        {
            "models/m.sql": "{{ config(materialized='incremental', incremental_strategy='append',\n"
            "on_schema_change=var('how')) }}\n"
            "select id {% if not is_incremental() %}, 1 as b{% endif %} from {{ ref('raw') }}"
        },
        (
            ("compile -s m --vars how:\xa0append_new_columns", 0, "select id"),
            ("compile -s m --vars how:\xa0sync_all_columns", 2, "is true the query has no column 'b'"),
        ),
    ),
    "predicates narrow a merge, and are refused where they have no meaning": Usage(
        {
            "models/m.sql": "{{ config(materialized='incremental', unique_key='id', incremental_strategy=var('how'),\n"
            "incremental_predicates=[var('what')]) }}\nselect id from {{ ref('raw') }}"
            "{% if is_incremental() %} where id > 1{% endif %}"
        },
        tuple(
            (f"compile -s m --vars {{how:\xa0{how},what:\xa0'{what}'}}".replace(" >", "\xa0>\xa0"), code, message)
            for how, what, code, message in (
                ("merge", "DBT_INTERNAL_DEST.id >1", 0, "where id > 1"),
                ("append", "DBT_INTERNAL_DEST.id >1", 2, "models/m.sql:2:1: incremental_predicates have no meaning"),
                ("delete+insert", "id >1", 0, "where id > 1"),
                ("merge", "id >1", 2, "models/m.sql:2:1: incremental_predicates: write DBT_INTERNAL_DEST.id or"),
                ("merge", "id >(", 2, "models/m.sql:2:1: incremental_predicates: 'id"),
            )
        ),
    ),
    "tests of sources are named so, and those of a column have its tags": Usage(
        {
            "models/p.yml": "sources:\n- name: s\n  tables:\n  - name: t\n"
            "    columns: [{name: id, tags: [key], data_tests: [unique, {not_null: {config: {tags: more}}}]}]\n"
        },
        (
            ("ls -s tag:key --output name", 0, "source_not_null_s_t_id\nsource_unique_s_t_id"),
            ("ls -s tag:more --output name", 0, "!unique"),
        ),
    ),
    "a source that is asked by a query is refused": Usage(
        {"models/p.yml": "sources:\n- name: s\n  loaded_at_query: select 1\n  tables: [{name: t}]\n"},
        (("parse", 2, "models/p.yml:3:3: loaded_at_query is not supported"),),
    ),
    "models have versions": Usage(
        {
            "models/dim_v1.sql": "select 1 as a, 3 as c",
            "models/dim_of_2.sql": "select 1 as a, 2 as b",
            "models/p.yml": "models:\n- name: dim\n  latest_version: 2\n  description: all\n"
            "  columns: [{name: a, data_tests: [unique]}, {name: c, data_tests: [not_null]}]\n"
            "  versions:\n  - {v: 1, config: {alias: old_dim}}\n  - v: 2\n    defined_in: dim_of_2\n"
            "    columns: [{include: '*', exclude: [c]}, {name: b, data_tests: [not_null]}]\n"
            "unit_tests:\n- {name: u, model: dim, given: [], expect: {rows: [{a: 1}]}}\n"
            "- {name: w, model: dim, versions: {include: [2]}, given: [], expect: {rows: [{b: 2}]}}\n",
            "models/x.sql": "select a, b from {{ ref('dim') }} union all select a, c from {{ ref('dim', v=1) }} "
            "union all select a, b from {{ ref('p', 'dim', version=2) }}",
        },
        (
            ("build", 0, "main.old_dim "),
            ("show x --output csv", 0, "1,2\n1,3\n1,2"),
            ("ls -s dim --output name --resource-type model", 0, "dim.v2\ndim.v1"),
            ("ls -s dim.v2 --resource-type test unit_test --output name", 0, "w_v2"),
            ("ls -s version:latest --resource-type model", 0, "p.dim.v2"),
            ("ls -s version:lates", 2, "did you mean 'latest'"),
            ("compile --inline {{ref('dim',v=3)}}", 2, "no version 3"),
            ("compile --inline {{ref('stg',v=3)}}", 2, "has no versions"),
        ),
    ),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)


@pytest.mark.parametrize("name", USAGES)
def test_it_ends_as_documented(name: str, capsys: Shown) -> None:
    for path, text in {**BASE, **USAGES[name].files}.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
    for call, code, message in USAGES[name].calls:
        exit_code = main([word.replace("\xa0", " ") for word in call.split(" ")])
        out, err = capsys.readouterr()
        assert exit_code == code, f"{call}: exit {exit_code}\n{out}{err}"
        assert (message[1:] not in out + err) if message.startswith("!") else (message in out + err), (
            f"{call}:\n{out}{err}"
        )
