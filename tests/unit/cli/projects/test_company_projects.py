"""What the warehouses of companies have in their files, and small projects have not: as dbt reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.projects.test_dbt_projects import Project, Shown

DBT_UTILS_LIKE = {
    "packages.yml": "packages: [{local: kit}]\n",
    "kit/dbt_project.yml": "name: kit\nversion: 2.1.0\n",
    "kit/macros/kit.sql": "{% macro one() %}1{% endmacro %}\n",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> Project:
    return Project(tmp_path, monkeypatch, capsys)


def nodes(project: Project, section: str = "nodes") -> dict[str, dict[str, object]]:
    entries: dict[str, dict[str, object]] = json.loads((project.root / "target/manifest.json").read_text())[section]
    return entries


def config(project: Project, unique_id: str) -> dict[str, object]:
    settings = nodes(project)[unique_id]["config"]
    assert isinstance(settings, dict)
    return settings


def test_tables_of_one_source_may_be_described_in_several_files(project: Project) -> None:
    files = {
        "models/a.yml": "sources: [{name: crm, tables: [{name: leads}]}]\n",
        "models/b.yml": "sources: [{name: crm, schema: other, tables: [{name: deals}]}]\n",
        "models/m.sql": "select id from {{ source('crm', 'leads') }} "
        "union all select id from {{ source('crm', 'deals') }}",
    }
    project.call("parse", files=files)
    places = {name: source["schema"] for name, source in nodes(project, "sources").items()}
    assert places == {"source.shop.crm.leads": "crm", "source.shop.crm.deals": "other"}


def test_a_data_test_that_names_what_is_disabled_is_left_out_with_a_warning(project: Project) -> None:
    files = {
        "models/m.sql": "select 1 as id",
        "models/off.sql": "{{ config(enabled=false) }} select 1 as id",
        "models/p.yml": "models: [{name: m, columns: [{name: id, data_tests: [unique, {relationships: "
        "{arguments: {to: ref('off'), field: id}}}]}]}]\n",
        "tests/of_off.sql": "select * from {{ ref('off') }}",
    }
    shown = project.call("ls", "--resource-type", "test", files=files)
    assert "warning: tests/of_off.sql:1:18: data test of_off is left out: ref names 'off', which is disabled" in shown
    assert "warning: models/p.yml:1:62: data test relationships_m_id__id__ref_off_ is left out" in shown
    assert [line for line in shown.splitlines() if "warning" not in line] == ["shop.unique_m_id"]


def test_the_config_of_a_data_test_may_stand_under_its_arguments(project: Project) -> None:
    test = "{accepted_values: {arguments: {values: [a], config: {where: 'id > 1', severity: warn}}}}"
    files = {
        "models/m.sql": "select 1 as id",
        "models/p.yml": f"models: [{{name: m, columns: [{{name: id, data_tests: [{test}]}}]}}]\n",
    }
    project.call("parse", files=files)
    (unique_id,) = (name for name in nodes(project) if name.startswith("test."))
    assert unique_id.startswith("test.shop.accepted_values_m_id__a.")
    assert {"where": "id > 1", "severity": "warn"}.items() <= config(project, unique_id).items()


def test_templates_find_what_dbt_has_for_packages(project: Project) -> None:
    """Each is asked for by a package of the hub, or by a project that looks into dbt."""
    project.call("deps", "-t", "t", files=DBT_UTILS_LIKE)
    text = (
        "{%- call set_sql_header(config) %}set a = 1{% endcall -%}"
        "{% set run = builtins.ref.config %}select '{{ run.project_name }}', '{{ run.dependencies['kit'].version }}', "
        "'{{ context['kit'].one() }}', '{{ render('{{ this.identifier }}') }}', "
        "'{{ config.require('materialized', validator=validation.any['view']) }}', "
        "'{{ try_or_compiler_error('no', local_md5, 'x') }}', '{{ config.get('sql_header') }}', '{{ model.path }}', "
        "{{ assert_not_null('to_date', 'now()') }}, {{ get_quoted_csv(['a', 'b']) }}, "
        "'{{ diff_of_two_dicts({'A': ['b', 'c']}, {'a': ['C']})['A'][0] }}', '{{ invocation_args_dict.full_refresh }}'"
    )
    assert project.compiled(text, {}, "-s", "path:models/m.sql") == (
        "select 'shop', '2.1.0', '1', 'm', 'view', '9dd4e461268c8034f5c8564e155c67a6', 'set a = 1', 'm.sql', "
        "coalesce(to_date(now()), nvl2(to_date(now()), assert_true(to_date(now()) is not null), null)), `a`, `b`, "
        "'b', 'False'"
    )


def test_a_macro_that_a_package_does_not_have_is_named(project: Project) -> None:
    project.call("deps", "-t", "t", files=DBT_UTILS_LIKE)
    shown = project.call("parse", files={"models/m.sql": "select {{ kit.onne() }} as n"}, code=2)
    assert "models/m.sql:1:11: package 'kit' has no macro 'onne'\n  did you mean 'one'?" in shown


def test_the_partitions_of_another_database_are_columns_or_ignored_with_a_warning(project: Project) -> None:
    by = "{{{{ config(materialized='table', partition_by={{'field': 'day', 'data_type': '{}'}}) }}}} select 1 as day"
    files = {"models/dates.sql": by.format("date"), "models/times.sql": by.format("timestamp")}
    shown = project.call("parse", files=files)
    assert "models/times.sql:1:33: config 'partition_by' of another database is ignored" in shown
    assert "dates.sql" not in shown
    assert config(project, "model.shop.dates")["partition_by"] == ["day"]
    assert config(project, "model.shop.times")["partition_by"] in ([], None)


MICROBATCH = (
    "{{{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', "
    "batch_size='day'{}) }}}}"
    " select id, at from {{{{ ref('events') }}}} join {{{{ ref('names') }}}} using (id)"
)
EVENTS = {
    "models/events.sql": "{{ config(materialized='table', event_time='at') }} "
    "select 1 as id, timestamp '2024-01-01' as at",
    "models/names.sql": "{{ config(materialized='table') }} select 1 as id",
}


def test_a_microbatch_model_reads_its_inputs_from_begin_on(project: Project) -> None:
    text = project.compiled(MICROBATCH.format(", begin='2024-02-01'"), EVENTS)
    assert text == (
        "select id, at from (select * from `dws`.`events` where at >= '2024-02-01') join `dws`.`names` using (id)"
    )
    settings = config(project, "model.shop.m")
    assert (settings["incremental_strategy"], settings["begin"]) == ("microbatch", "2024-02-01T00:00:00")
    shown = project.call("build", files={"models/m.sql": MICROBATCH.format(", begin='2023-06-01'"), **EVENTS})
    assert "CFG006 m: microbatch: the whole query from `begin` on is maintained" in shown


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("", "models/m.sql:1:1: a microbatch model needs 'begin'"),
        (", begin='soon'", "models/m.sql:1:1: begin is not a date or time: 'soon'"),
    ],
)
def test_a_microbatch_model_without_its_settings_is_an_error(project: Project, more: str, message: str) -> None:
    assert message in project.call("parse", files={"models/m.sql": MICROBATCH.format(more), **EVENTS}, code=2)


def test_the_project_s_default_of_a_macro_of_dbt_decides_where_tables_are(project: Project) -> None:
    """Stored failures of data tests too."""
    text = "{{ name or 'plain' }}_{{ node.resource_type }}"
    macro = f"{{% macro default__generate_schema_name(name, node) %}}{text}{{% endmacro %}}"
    files = {
        "macros/schema.sql": macro,
        "models/m.sql": "{{ config(schema='mart') }} select '{{ generate_schema_name('x', model) }}' as s",
        "models/p.yml": "models: [{name: m, data_tests: [{unique: {column_name: s}}]}]\n",
        "seeds/s.csv": "id\n1\n",
    }
    project.call("parse", files=files)
    places = {unique_id.partition(".")[0]: node["schema"] for unique_id, node in nodes(project).items()}
    assert places == {"model": "mart_model", "seed": "plain_seed", "test": "dbt_test__audit_test"}
    assert "select 'x_model' as s" in str(nodes(project)["model.shop.m"]["compiled_code"])


def test_a_block_of_text_in_yaml_is_a_setting_without_its_line_s_end(project: Project) -> None:
    files = {
        "models/m.sql": "select 1 as id",
        "models/p.yml": "models:\n  - name: m\n    config:\n      alias: |\n        other\n      meta:\n"
        "        team: |\n          data\n    description: |\n      The last words.\n",
    }
    project.call("parse", files=files)
    node = nodes(project)["model.shop.m"]
    assert (node["alias"], node["meta"], node["description"]) == ("other", {"team": "data"}, "The last words.")


def test_tags_beside_the_name_of_a_model_are_not_its_tags(project: Project) -> None:
    files = {
        "models/m.sql": "select 1 as id",
        "models/p.yml": "models:\n  - name: m\n    tags: [a]\n    config: {tags: [b]}\n",
    }
    shown = project.call("parse", files=files)
    assert "models/p.yml:3:5: tags beside the name are ignored, as in dbt (write config: {tags: […]})" in shown
    assert nodes(project)["model.shop.m"]["tags"] == ["b"]


def test_a_seed_in_the_place_of_a_package_s_is_described_by_the_package(project: Project) -> None:
    files = {
        **DBT_UTILS_LIKE,
        "kit/seeds/exceptions.csv": "id\n1\n",
        "kit/seeds/s.yml": "seeds: [{name: exceptions, description: known, config: {column_types: {id: string}}}]\n",
        "dbt_project.yml": "name: shop\nseeds: {kit: {exceptions: {+enabled: false}}}\n",
        "seeds/exceptions.csv": "id\n2\n",
    }
    project.call("deps", "-t", "t", files=files)
    project.call("parse", files=files)
    seed = nodes(project)["seed.shop.exceptions"]
    assert seed["description"] == "known"
    assert config(project, "seed.shop.exceptions")["column_types"] == {"id": "string"}


def test_settings_of_people_s_own_are_selected_by_and_are_in_the_manifest(project: Project) -> None:
    files = {
        "dbt_project.yml": "name: shop\nmodels: {+warehouse_size: large, +labels: {domain: mart}, "
        "+grants: {select: [a]}, +post-hook: \"{{ 'select 1' }}\"}\n",
        "models/m.sql": "{{ config(grants={'+select': 'b', 'insert': ['c']}) }} select 1 as id",
    }
    assert "shop.m" in project.call("ls", "-s", "config.labels.domain:mart,config.warehouse_size:large", files=files)
    project.call("parse", files=files)
    settings = config(project, "model.shop.m")
    assert settings["grants"] == {"select": ["a", "b"], "insert": ["c"]}
    assert (settings["warehouse_size"], settings["labels"]) == ("large", {"domain": "mart"})
    assert [hook["sql"] for hook in settings["post-hook"]] == ["{{ 'select 1' }}"]  # type: ignore[attr-defined]


def test_how_lines_end_is_no_change_of_a_model(project: Project) -> None:
    files = {"models/m.sql": "select 1\nas id", "macros/f.sql": "{% macro f() %}\n{% endmacro %}"}
    project.call("parse", files=files)
    manifest = json.loads((project.root / "target/manifest.json").read_text())
    manifest["nodes"]["model.shop.m"]["raw_code"] = "select 1\r\nas id"
    manifest["macros"]["macro.shop.f"]["macro_sql"] = "{% macro f() %}\r\n{% endmacro %}"
    (project.root / "before").mkdir()
    (project.root / "before/manifest.json").write_text(json.dumps(manifest))
    shown = project.call("ls", "-s", "state:modified", "--state", "before", files=files)
    assert "shop.m" not in shown


def test_a_broken_model_costs_the_site_its_plan_alone(project: Project) -> None:
    files = {
        "models/m.sql": "select 1 as id",
        "models/bad.sql": "select 1 as a,\n  (2 as b",
        "analyses/a.sql": "select 1 as a",
    }
    shown = project.call("docs", "generate", files={**files, "analyses/b.sql": "select 1 as a"}, code=1)
    assert "warning: models/bad.sql:2:" in shown
    assert ": the site has no plan of this model" in shown
    assert (project.root / "target/index.html").is_file()
    assert set(nodes(project)) >= {"model.shop.m", "model.shop.bad"}
    assert "2 analyses, " in project.call("import-check", "-s", "m", "a", "b", "bad", files=files, code=1)


def test_what_spark_cannot_be_given_unchanged_is_named_at_its_place(project: Project) -> None:
    shown = project.call("compile", files={"models/m.sql": "select 1 as a\nfrom (select 2 as b) for update"}, code=2)
    assert "models/m.sql:" in shown
    assert "the query cannot be carried over unchanged: Locking reads using 'FOR UPDATE/SHARE' are not" in shown
