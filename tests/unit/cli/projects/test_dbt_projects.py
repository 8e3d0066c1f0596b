"""Projects as people have them: what dbt takes is taken, as its users know it."""

from __future__ import annotations

import datetime
import json
import re
import time
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]
FILES = {
    "profiles.yml": "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
    "dbt_project.yml": "name: shop\n",
}


class Project:
    """A dbt project in a temporary folder, and what a call on it prints."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
        self.root, self._monkeypatch, self._capsys = root, monkeypatch, capsys

    def call(self, *words: str, files: dict[str, str], code: int = 0) -> str:
        """What a call prints, standard error included."""
        enter_project(self.root, self._monkeypatch, {**FILES, **files})
        ended = main([*words])
        shown = self._capsys.readouterr()
        assert ended == code, shown
        assert "Traceback" not in shown.err
        return shown.out + shown.err

    def compiled(self, model: str, files: dict[str, str] | None = None, *words: str) -> str:
        """The text that a model comes to."""
        self.call("compile", *words, files={"models/m.sql": model, **(files or {})})
        return (self.root / "target/compiled/shop/models/m.sql").read_text().strip()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> Project:
    return Project(tmp_path, monkeypatch, capsys)


def test_compile_and_show_know_when_they_started(project: Project) -> None:
    before = datetime.datetime.now(datetime.UTC)
    started = project.compiled("select '{{ run_started_at.isoformat() }}' as at").split("'")[1]
    inline = project.call("compile", "--inline", "{{ run_started_at.isoformat() }}", files={}).strip()
    after = datetime.datetime.now(datetime.UTC)
    assert before <= datetime.datetime.fromisoformat(started) <= datetime.datetime.fromisoformat(inline) <= after


def test_a_disabled_model_or_test_may_ask_for_what_is_not_there(project: Project) -> None:
    off = "{{ config(enabled=var('on', false)) }}select {{ var('nope') | int }} as n from {{ ref('gone') }}"
    files = {"models/off.sql": off, "tests/off_too.sql": off.replace("'nope'", "'neither'")}
    assert project.compiled("select 1 as id", files) == "select 1 as id"
    shown = project.call("compile", "--vars", "{on: true}", files=files, code=2)
    assert "models/off.sql:1:49: var 'nope' is not set" in shown


def test_a_variable_that_names_a_schema_must_be_there(project: Project) -> None:
    macro = "{% macro generate_schema_name(name, node) %}{{ var('nope') }}{% endmacro %}"
    files = {"macros/schema.sql": macro, "models/m.sql": "select {{ var('also', 1) }} as id"}
    assert "var 'nope' is not set" in project.call("compile", files=files, code=2)


PACKAGE = {"dbt_packages/kit/dbt_project.yml": "name: kit\n"}


def test_doc_finds_blocks_of_other_packages_the_own_ones_first(project: Project) -> None:
    described = "models: [{name: %s, description: \"{{ doc('%s') }} {{ doc('both') }} {{ doc('kit', 'both') }}\"}]\n"
    files = {
        **PACKAGE,
        "models/m.yml": described % ("m", "theirs"),
        "models/d.md": "{% docs ours %}of the shop{% enddocs %}{% docs both %}shop's{% enddocs %}",
        "dbt_packages/kit/models/k.sql": "select 1 as id",
        "dbt_packages/kit/models/k.yml": described % ("k", "ours"),
        "dbt_packages/kit/models/d.md": "{% docs theirs %}of the kit{% enddocs %}{% docs both %}kit's{% enddocs %}",
    }
    project.compiled("select 1 as id", files)
    nodes = json.loads((project.root / "target/manifest.json").read_text())["nodes"]
    assert nodes["model.shop.m"]["description"] == "of the kit shop's kit's"
    assert nodes["model.kit.k"]["description"] == "of the shop kit's kit's"


def test_doc_of_an_unknown_block_or_package_names_the_nearest(project: Project) -> None:
    files = {**PACKAGE, "models/m.sql": "select 1 as id", "dbt_packages/kit/models/d.md": "{% docs a %}{% enddocs %}"}
    for call, message in {
        "doc('kitt', 'a')": "models/m.yml:1:33: doc names package 'kitt', which is not installed",
        "doc('kit', 'b')": "models/m.yml:1:33: no doc block is named 'b'",
    }.items():
        files["models/m.yml"] = f'models: [{{name: m, description: "{{{{ {call} }}}}"}}]\n'
        assert message in project.call("parse", files=files, code=2)


def test_random_chooses_by_the_node(project: Project) -> None:
    picks = (
        "{% set n = range(1000) | list %}select {{ n | random }} as a, {{ pick(n) }} as b, '{{ 'xyz' | random }}' as c"
    )
    files = {"macros/x.sql": "{% macro pick(n) %}{{ n | random }}{% endmacro %}", "models/n.sql": picks}
    chosen = project.compiled(picks, files)
    assert project.compiled(picks + " ", files) == chosen  # read anew
    a, b = re.findall(r"\d+", chosen)
    assert a == b and (project.root / "target/compiled/shop/models/n.sql").read_text().strip() != chosen


def test_random_of_nothing_is_undefined(project: Project) -> None:
    shown = project.call("compile", files={"models/m.sql": "select {{ [] | random }}1 as id"})
    assert "m.sql:1:8: No random item, sequence was empty" in shown


UNDEFINED = {
    "{{ nothing }}": "models/m.sql:1:11: 'nothing' is not defined",
    "{{ var_ }}": "models/m.sql:1:11: 'var_' is not defined",
    "{{ {'a': 1}['z'] }}": "models/m.sql:1:21: 'dict object' has no attribute 'z'; it is an empty text here",
    "{{ target.nope }}": "has no attribute 'nope'; it is an empty text here",
    "{{ shown('a') }}": "macros/x.sql:2:4: parameter 'b' was not provided; it is an empty text here",
}


@pytest.mark.parametrize("expression", UNDEFINED)
def test_what_is_undefined_prints_as_nothing_with_one_warning(project: Project, expression: str) -> None:
    files = {"macros/x.sql": "{% macro shown(a, b) %}\n   {{- b -}}\n{% endmacro %}"}
    files["models/m.sql"] = f"select {expression}1 as id"
    for _ in range(2):  # the second time from the cache
        shown = project.call("compile", files=files)
        assert shown.count("it is an empty text here") == 1 and UNDEFINED[expression] in shown
        assert (project.root / "target/compiled/shop/models/m.sql").read_text().strip() == "select 1 as id"


def test_strict_undefined_makes_it_an_error(project: Project) -> None:
    files = {
        "dbt_project.yml": "name: shop\nflags: {strict_undefined: true}\n",
        "models/m.sql": "select {{ nothing }}1",
    }
    assert "error: models/m.sql:1:11: 'nothing' is not defined" in project.call("compile", files=files, code=2)


@pytest.mark.parametrize("call", ["ref('m')", "source('ods', 'm')"])
def test_names_without_quotes_are_to_be_quoted_also_with_strict_undefined(project: Project, call: str) -> None:
    files = {
        "dbt_project.yml": "name: shop\nflags: {strict_undefined: true}\n",
        "models/n.sql": f"select * from {{{{ {call.replace(chr(39), '')} }}}}",
    }
    assert f"quote it: {call}" in project.call("compile", files=files, code=2)


def test_a_long_word_is_read_once(project: Project) -> None:
    files = {"models/m.sql": f"select '{'x' * 1_000_000}' as id"}
    began = time.process_time()
    project.call("compile", files=files)
    assert time.process_time() - began < 60  # an hour, if each of its letters were where a name may begin


def test_a_disabled_model_warns_of_nothing(project: Project) -> None:
    files = {"models/m.sql": "{{ config(enabled=false) }}select {{ nothing }}", "models/n.sql": "select 1 as id"}
    assert "nothing" not in project.call("compile", files=files)


KEYS = {
    "file": (
        {"models/p.yml": "model:\n  - name: m\n"},
        "models/p.yml:1:1: unknown key 'model' in a properties file is",
    ),
    "model": (
        {"models/p.yml": "models: [{name: m, descripton: x}]\n"},
        "p.yml:1:20: unknown key 'descripton' in a model",
    ),
    "column": (
        {"models/p.yml": "models: [{name: m, columns: [{name: id, owner: x}]}]\n"},
        "'owner' in a column is ignored",
    ),
    "table": (
        {"models/p.yml": "sources: [{name: s, tables: [{name: t, owner: x}]}]\n"},
        "'owner' in a source table is",
    ),
    "YAML config": (
        {"models/p.yml": "models:\n  - name: m\n    config: {materialised: table}\n"},
        "models/p.yml:3:14: unknown config key 'materialised' is ignored (did you mean 'materialized'?)",
    ),
    "folder": (
        {"dbt_project.yml": "name: shop\nmodels:\n  +transient: true\n"},
        "dbt_project.yml:3:3: unknown config key",
    ),
    "plain folder key": (
        {"dbt_project.yml": "name: shop\nmodels:\n  bind: false\n"},
        "dbt_project.yml:3:3: unknown config",
    ),
    "config()": (
        {"models/m.sql": "{{ config(\n    unique_keys='a'\n) }}\nselect 1 as id"},
        "models/m.sql:2:5: unknown config key 'unique_keys' is ignored (did you mean 'unique_key'?)",
    ),
    "config() before a block": (
        {"models/m.sql": "{{ config(indexes=[{'columns': ['id']}]) }}{% if true %}select 1 as id{% endif %}"},
        "models/m.sql:1:11: unknown config key 'indexes' is ignored",
    ),
    "test config": (
        {"models/p.yml": "models: [{name: m, data_tests: [{unique: {column_name: id, config: {owner: x}}}]}]\n"},
        "models/p.yml:1:69: unknown config key 'owner' of a data test is ignored",
    ),
    "key twice": (
        {"models/p.yml": "models:\n  - name: m\n    description: a\n    description: b\n"},
        "models/p.yml:4:5: key 'description' occurs twice: the value before this one is ignored",
    ),
    "old paths": (
        {"dbt_project.yml": "name: shop\nsource-paths: [models]\ndata-paths: [data]\n", "data/s.csv": "id\n1\n"},
        "dbt_project.yml:2:1: source-paths is an old name (write model-paths)",
    ),
}


@pytest.mark.parametrize("case", KEYS)
def test_a_key_without_a_meaning_is_ignored_with_one_warning(project: Project, case: str) -> None:
    files, message = KEYS[case]
    files = {"models/m.sql": "select 1 as id", "models/n.sql": "select 2 as id", **files}
    for _ in range(2):  # the second time from the cache
        assert project.call("compile", files=files).count(message) == 1
    shown = project.call("compile", "--warn-error", files=files, code=2)
    assert "error: " in shown and message.partition(" (")[0] in shown.partition("error: ")[2]


def test_old_names_of_folders_are_followed_and_the_last_of_two_values_counts(project: Project) -> None:
    files = {**KEYS["old paths"][0], **KEYS["key twice"][0], "models/m.sql": "select * from {{ ref('s') }}"}
    assert "models/m" in project.call("ls", "--output", "path", files=files)
    project.call("compile", files=files)
    manifest = json.loads((project.root / "target/manifest.json").read_text())
    assert manifest["nodes"]["model.shop.m"]["description"] == "b" and "seed.shop.s" in manifest["nodes"]


def test_templates_read_a_setting_of_their_own(project: Project) -> None:
    files = {"dbt_project.yml": "name: shop\nmodels: {+owner: finance}\n"}
    model = "{{ config(depth=3) }}select '{{ config.get('owner') }}' as o, {{ config.get('depth') }} as d"
    assert project.compiled(model, files) == "select 'finance' as o, 3 as d"


def test_warn_error_has_an_end_where_nothing_is_wrong(project: Project) -> None:
    project.call("compile", "--warn-error", files={"models/m.sql": "select 1 as id"})
    mixed = {"models/m.sql": "select 1 as id union all select 'x' as id"}
    shown = project.call("compile", "--warn-error", files=mixed, code=2)
    assert "error: models/m.sql:1:" in shown and "LNT002" in shown
    shown = project.call("parse", "--warn-error", files={"models/m.sql": "{{ exceptions.warn('no') }}select 1"}, code=2)
    assert "error: no\n  --warn-error makes warnings errors; there are 1" in shown


def test_warn_error_makes_a_test_that_would_warn_fail(project: Project) -> None:
    files = {
        "models/m.sql": "select 1 as id union all select 1 as id",
        "models/reader.sql": "select id from {{ ref('m') }}",
        "models/m.yml": "models: [{name: m, columns: [{name: id, data_tests: [{unique: {severity: warn}}]}]}]\n",
    }

    def statuses() -> list[str]:
        results = json.loads((project.root / "target/run_results.json").read_text())["results"]
        return [result["status"] for result in results]

    shown = project.call("build", files=files)
    assert statuses() == ["success", "warn", "success"] and "warn-error" not in shown
    shown = project.call("build", "--warn-error", files=files, code=1)
    assert statuses() == ["success", "fail", "skipped"]
    assert (
        "Failure in test" in shown and "Got 1 result, configured to warn if != 0; --warn-error makes it fail" in shown
    )


def test_warn_error_ends_a_run_that_warns_later_with_the_text_and_code_1(project: Project) -> None:
    files = {"models/m.sql": "{{ config(post_hook='analyze table {{ this }}') }}select 1 as id"}
    warning = "m: a hook that is a statement for Spark is not run on DuckDB"
    assert f"warning: {warning}" in project.call("run", files=files)
    for quiet in ((), ("-q",)):
        shown = project.call("run", "--warn-error", *quiet, files=files, code=1)
        assert f"error: {warning}" in shown and "--warn-error makes warnings errors; there are 1" in shown
    results = json.loads((project.root / "target/run_results.json").read_text())["results"]
    assert [result["status"] for result in results] == ["success"]
    files = {"models/m.sql": "select {{ 1 if execute else 2 }} as id"}  # which is told of, and nothing wrong
    assert "m ask the lake" in project.call("compile", "--warn-error", files=files)


def test_a_type_of_a_column_that_a_seed_does_not_have_is_ignored_with_one_warning(project: Project) -> None:
    files = {
        "seeds/s.csv": "id,amount\n1,2\n",
        "seeds/s.yml": "seeds: [{name: s, config: {column_types: {amont: int, amount: string}}}]\n",
        "models/m.sql": "select amount || 'x' as a from {{ ref('s') }}",
    }
    shown = project.call("build", files=files)
    assert shown.count("column_types names 'amont'") == 1
    assert "seeds/s.csv:1: column_types names 'amont', which is not one of its columns: ignored (did you mean" in shown
    assert "2x" in project.call("show", "m", files=files)


NAMED_TWICE = {
    **PACKAGE,
    "dbt_packages/kit/models/days.sql": "select 1 as theirs",
    "dbt_packages/kit/models/days.yml": "models: [{name: days, columns: [{name: theirs, data_tests: [unique]}]}]\n",
    "dbt_packages/kit/seeds/rates.csv": "theirs\n1\n",
    "dbt_packages/kit/seeds/rates.yml": "seeds: [{name: rates, columns: [{name: theirs, data_tests: [unique]}]}]\n",
    "models/days.sql": "select 1 as ours",
    "models/rates.sql": "select 2 as ours",
    "models/m.sql": "select a.ours, b.ours as others from {{ ref('days') }} a cross join {{ ref('rates') }} b",
}


def test_the_root_replaces_nodes_of_a_package_that_it_disables(project: Project) -> None:
    off = "name: shop\nmodels: {kit: {days: {+enabled: false}}}\nseeds: {kit: {+enabled: false}}\n"
    project.call("build", files={**NAMED_TWICE, "dbt_project.yml": off})
    manifest = json.loads((project.root / "target/manifest.json").read_text())
    assert set(manifest["nodes"]) == {"model.shop.days", "model.shop.rates", "model.shop.m"}


def test_two_nodes_of_one_name_are_refused_where_both_are_enabled(project: Project) -> None:
    shown = project.call("parse", files=NAMED_TWICE, code=2)
    assert "dbt_packages/kit/models/days.sql:1:1: `days` is also models/days.sql" in shown


def test_of_two_files_of_one_name_one_may_be_disabled_in_its_text(project: Project) -> None:
    files = {
        "models/old/m.sql": "{{ config(enabled=false) }}select 1 as id",
        "models/m.yml": "models: [{name: m, columns: [{name: id, data_tests: [unique]}]}]\n",
    }
    assert project.compiled("select 2 as id", files) == "select 2 as id"
    assert "unique_m_id" in project.call("ls", files={})


def test_the_root_enables_what_a_package_disables(project: Project) -> None:
    files = {
        "dbt_packages/kit/dbt_project.yml": "name: kit\nmodels: {kit: {+enabled: false}}\n",
        "dbt_packages/kit/models/k.sql": "select 1 as id",
        "dbt_project.yml": "name: shop\nmodels: {kit: {+enabled: true}}\n",
    }
    assert project.compiled("select id from {{ ref('kit', 'k') }}", files) == "select id from `dws`.`k`"


@pytest.mark.parametrize(
    ("comment", "warnings"),
    [("'{{ said(node) }}'", 1), ("{comment: '{{ said(node) }}', append: true}", 1), ("", 0), ("''", 0)],
)
def test_a_query_comment_is_not_rendered(project: Project, comment: str, warnings: int) -> None:
    files = {"dbt_project.yml": f"name: shop\nquery-comment: {comment}\n", "models/m.sql": "select 1 as id"}
    shown = project.call("compile", files=files)
    assert shown.count("dbt_project.yml:2:1: query-comment is ignored") == warnings


def test_a_seed_described_as_a_model_gets_its_tests_with_a_warning(project: Project) -> None:
    files = {
        "seeds/s.csv": "id\n1\n1\n",
        "models/s.yml": "models: [{name: s, description: x, columns: [{name: id, data_tests: [unique]}]}]\n",
        "seeds/s.yml": "seeds: [{name: s, description: y, columns: [{name: id, data_tests: [not_null]}]}]\n",
    }
    shown = project.call("build", files=files, code=1)
    assert "models/s.yml:1:10: 's' is a seed: here it gets its data tests only (describe it under seeds:)" in shown
    assert "FAIL 1 unique_s_id" in shown and "PASS not_null_s_id" in shown
    manifest = json.loads((project.root / "target/manifest.json").read_text())
    seed = manifest["nodes"]["seed.shop.s"]
    assert (seed["description"], seed["patch_path"]) == ("y", "shop://seeds/s.yml")


def test_sources_and_exposures_have_the_name_of_their_package(project: Project) -> None:
    described = """
sources: [{name: %s, tables: [{name: t}]}]
exposures: [{name: %s, type: notebook, owner: {name: x}, depends_on: ["source('%s', 't')"]}]
"""
    files = {
        **PACKAGE,
        "models/staging/s.yml": described % ("s", "board", "s"),
        "dbt_packages/kit/models/raw/s.yml": described % ("k", "sheet", "k"),
        "dbt_packages/kit/models/m.sql": "select * from {{ source('k', 't') }}",
    }
    project.call("parse", files=files)
    listed = project.call("ls", files={}).split()
    assert set(listed) == {"source:shop.s.t", "source:kit.k.t", "exposure:shop.board", "exposure:kit.sheet", "kit.m"}
    assert project.call("ls", "-s", "source:kit.k.t+", files={}).split() == [
        "source:kit.k.t",
        "kit.m",
        "exposure:kit.sheet",
    ]
    manifest = json.loads((project.root / "target/manifest.json").read_text())
    assert manifest["sources"]["source.kit.k.t"]["fqn"] == ["kit", "raw", "k", "t"]
    assert manifest["sources"]["source.shop.s.t"]["fqn"] == ["shop", "staging", "s", "t"]
    assert manifest["exposures"]["exposure.kit.sheet"]["fqn"] == ["kit", "raw", "sheet"]


# The ids, names and aliases that dbt gives to these tests.
OF_DBT = {
    "test.shop.unique_customers_customer_id.c5af1ff4b1": "unique_customers_customer_id",
    "test.shop.relationships_orders_customer_id__customer_id__ref_customers_.c6ec7f58f2": (
        "relationships_orders_customer_id__customer_id__ref_customers_"
    ),
    "test.shop.accepted_values_orders_status__placed__shipped__completed__return_pending__returned.be6b5b5ec3": (
        "accepted_values_orders_1ce6ab157c285f7cd2ac656013faf758"
    ),
}


def test_data_tests_have_the_ids_names_and_aliases_of_dbt(project: Project) -> None:
    statuses = "[placed, shipped, completed, return_pending, returned]"
    files = {
        **PACKAGE,
        "dbt_packages/kit/macros/t.sql": "{% test least(model, column_name, n) %}select {{ n }}{% endtest %}",
        "models/customers.sql": "select 1 as customer_id",
        "models/orders.sql": "select 1 as customer_id, 'placed' as status",
        "models/m.yml": f"""
models:
  - name: customers
    columns: [{{name: customer_id, data_tests: [unique, kit.least: {{arguments: {{n: 1}}}}]}}]
  - name: orders
    columns:
      - name: customer_id
        data_tests: [relationships: {{to: ref('customers'), field: customer_id}}]
      - name: status
        data_tests: [accepted_values: {{values: {statuses}}}]
""",
    }
    project.call("compile", files=files)
    nodes = json.loads((project.root / "target/manifest.json").read_text())["nodes"]
    tests = {unique_id: node for unique_id, node in nodes.items() if unique_id.startswith("test.")}
    assert {unique_id: tests[unique_id]["alias"] for unique_id in OF_DBT} == OF_DBT
    for unique_id, alias in OF_DBT.items():
        test = tests[unique_id]
        assert (test["name"], test["path"]) == (unique_id.split(".")[2], f"{alias}.sql")
        assert (project.root / test["compiled_path"]).is_file()
    (other,) = tests.keys() - OF_DBT.keys()
    assert tests[other]["test_metadata"] == {
        "namespace": "kit",
        "name": "least",
        "kwargs": {"column_name": "customer_id", "n": 1, "model": "{{ get_where_subquery(ref('customers')) }}"},
    }


def test_two_tests_of_one_name_have_files_of_their_own(project: Project) -> None:
    values = "[{accepted_values: {name: known, values: [a]}}, {accepted_values: {name: known, values: [a, b]}}]"
    described = f"models: [{{name: m, columns: [{{name: id, data_tests: {values}}}]}}]\n"
    project.call("compile", files={"models/m.sql": "select 'a' as id", "models/m.yml": described})
    nodes = json.loads((project.root / "target/manifest.json").read_text())["nodes"]
    tests = [node for node in nodes.values() if node["resource_type"] == "test"]
    assert [test["name"] for test in tests] == ["known", "known"]
    assert len({test["compiled_path"] for test in tests}) == len({test["alias"] for test in tests}) == 2


def test_deps_does_not_read_models(project: Project) -> None:
    files = {
        "packages.yml": "packages: [{local: kit}]\n",
        "kit/dbt_project.yml": "name: kit\n",
        "models/m.sql": "{{ config(materialized='tabel') }}{% if %}",
        "models/m.yml": "models: [{name: [1]}]\n",
    }
    assert "installed kit" in project.call("deps", "-t", "t", files=files)
    assert (project.root / "dbt_packages/kit/dbt_project.yml").is_file()


def test_a_function_of_another_kind_is_an_error_only_where_it_is_called(project: Project) -> None:
    files = {
        "models/m.sql": "select 1 as id",
        "functions/x.py": "def main(a): return a",
        "functions/x.yml": "functions: [{name: x, config: {type: aggregate}, returns: {data_type: INT64}}]\n",
    }
    said = "function 'x' is an aggregate, which is not supported"
    assert f"functions/x.yml:1:20: {said}: queries cannot call it" in project.call("compile", files=files)
    files["models/m.sql"] = "select\n  {{ function('x') }}(1) as id"
    assert f"models/m.sql:2:3: {said}" in project.call("compile", files=files, code=2)


BROKEN = {
    "seeds/s.csv": "id\n1\n",
    "models/good.sql": "{{ config(materialized='table') }}select id from {{ ref('s') }}",
    "models/bad.sql": "{{ config(materialized='table') }}\nselec 1",
    "models/wrong.sql": "select idd from {{ ref('s') }}",
    "models/reader.sql": "{{ config(materialized='table') }}select * from {{ ref('wrong') }}",
    "models/m.yml": "models: [{name: good, columns: [{name: id, data_tests: [unique]}]}]\n",
}


def test_a_broken_model_costs_itself_and_its_readers(project: Project) -> None:
    shown = project.call("build", files=BROKEN, code=1)
    results = json.loads((project.root / "target/run_results.json").read_text())["results"]
    statuses = {result["unique_id"].split(".")[2]: result["status"] for result in results}
    assert statuses == {
        "s": "success",
        "good": "success",
        "unique_good_id": "pass",
        "bad": "error",
        "wrong": "error",
        "reader": "skipped",
    }
    assert "models/bad.sql:2:1: unexpected `selec`" in shown
    assert "models/wrong.sql:1:8: unknown column 'idd'" in shown and "did you mean 'id'?" in shown
    lines = [line.partition("  ")[2] for line in shown.splitlines()]
    caret = lines.index("    1 | select idd from {{ ref('s') }}") + 1  # as with every error, once
    assert lines[caret] == "      |        ^" and shown.count("| select idd") == 1
    places = {result["unique_id"].split(".")[2]: result["adapter_response"].get("location") for result in results}
    assert places["wrong"] == {"path": "models/wrong.sql", "line": 1, "column": 8}
    assert places["bad"] == {"path": "models/bad.sql", "line": 2, "column": 1}
    assert places["s"] is places["good"] is places["unique_good_id"] is places["reader"] is None


def test_where_nothing_sound_is_left_nothing_is_run(project: Project) -> None:
    shown = project.call("run", "-s", "bad", "wrong", "reader", files=BROKEN, code=1)
    assert "models/bad.sql:2:1" in shown  # the reader alone is sound, and skipped
    shown = project.call("run", "-s", "bad", files=BROKEN, code=2)
    assert "error: models/bad.sql:2:1" in shown
    shown = project.call("run", "-s", "reader", files=BROKEN, code=2)
    assert "error: models/wrong.sql:1:8" in shown


BROKEN_TEMPLATES = {
    "seeds/s.csv": "id\n1\n",
    "macros/fine.sql": "{% macro one() %}1{% endmacro %}",
    "macros/cut.sql": "{% macro half() %}2{% endmacr %}",
    "models/good.sql": "{{ config(materialized='table') }}select id, {{ one() }} as one from {{ ref('s') }}",
    "models/typo.sql": "select * from {{ ref('goood') }}",
    "models/calls.sql": "select {{ half() }} as a",
    "models/wrong.sql": "{{ config(materialised='table', refresh='sometimes') }}select 1 as a",
    "models/py.py": "def model(dbt, session):\n    return dbt.ref(dbt.config.get('x'))\n",
    "models/reader.sql": "{{ config(materialized='table') }}select * from {{ ref('calls') }}",
    "models/m.yml": "models: [{name: good, columns: [{name: id, data_tests: [unique, nix]}]}]\n",
    "tests/asks.sql": "select * from {{ ref('good') }} where id < {{ least }",
    "tests/reads.sql": "select * from {{ ref('calls') }}",
}
PLACES = {
    "typo": "models/typo.sql:1:18: no model or seed is named 'goood'",
    "calls": "macros/cut.sql:1:23: invalid Jinja",
    "wrong": "models/wrong.sql:1:33: config 'refresh' is 'sometimes'",
    "py": "models/py.py:2:20: ",
    "nix_good_id": "models/m.yml:1:65: no data test is named 'nix'",
    "asks": "tests/asks.sql:1:",
}


def test_a_broken_template_costs_its_node_and_readers(project: Project) -> None:
    shown = project.call("build", files=BROKEN_TEMPLATES, code=1)
    results = json.loads((project.root / "target/run_results.json").read_text())["results"]
    statuses = {result["unique_id"].split(".")[2]: result["status"] for result in results}
    assert statuses == {
        "s": "success",
        "good": "success",
        "unique_good_id": "pass",
        "reader": "skipped",
        "reads": "skipped",
        **dict.fromkeys(PLACES, "error"),
    }
    messages = {result["unique_id"].split(".")[2]: result["message"] for result in results}
    for name, place in PLACES.items():
        assert place in messages[name] and place in shown
    # What nobody asks for is said and costs nothing; what asks for it cannot be done.
    assert "warning: macros/cut.sql:1:23" in project.call("run", "-s", "good", files=BROKEN_TEMPLATES)
    assert "macros/cut.sql:1:23" in project.call("run", "-s", "reader", files=BROKEN_TEMPLATES, code=2)
    shown = project.call("test", "-s", "reads", "unique_good_id", files=BROKEN_TEMPLATES, code=1)
    assert "PASS=1" in shown and "reads: macros/cut.sql:1:23" in shown


@pytest.mark.parametrize("command", ["parse", "compile", "ls"])
def test_all_broken_templates_are_reported_at_once(project: Project, command: str) -> None:
    assert "macros/cut.sql:1:23" in (shown := project.call(command, files=BROKEN_TEMPLATES, code=2))
    if command != "compile":
        assert [place for place in PLACES.values() if place not in shown] == []
    sound = {**BROKEN_TEMPLATES, "macros/cut.sql": "{% macro half() %}2{% endmacro %}"}
    shown = project.call(command, files=sound, code=2)
    assert [name for name, place in PLACES.items() if place not in shown] == ["calls"]


BROKEN_ENTRIES = {
    "seeds/s.csv": "id\n1\n",
    "seeds/t.csv": "id\n1\n",
    "models/good.sql": "select id from {{ ref('s') }}",
    "models/bad.sql": "{{ config(materialized='table') }}select 1 as id",
    "models/tested.sql": "select 1 as id",
    "models/reader.sql": "{{ config(materialized='table') }}select id from {{ ref('bad') }}",
    "models/of_t.sql": "{{ config(materialized='table') }}select id from {{ ref('t') }}",
    "models/p.yml": "models:\n"
    "  - {name: good, columns: [{name: id, data_tests: [unique]}]}\n"
    "  - {name: bad, config: {refresh: often}, columns: [{name: id, data_tests: [unique]}]}\n"
    "  - {name: tested, columns: [{name: id, data_tests: [{unique: {config: {severity: loud}}}]}]}\n"
    "seeds:\n  - {name: t, config: {enabled: maybe}}\n",
}


def test_a_broken_entry_of_yaml_costs_its_node_and_readers(project: Project) -> None:
    shown = project.call("build", files=BROKEN_ENTRIES, code=1)
    results = json.loads((project.root / "target/run_results.json").read_text())["results"]
    assert {result["unique_id"].split(".")[2]: result["status"] for result in results} == {
        "s": "success",
        "good": "success",
        "unique_good_id": "pass",
        "bad": "error",
        "tested": "error",
        "t": "error",
        "reader": "skipped",
        "of_t": "skipped",
    }
    places = ("models/p.yml:3:26", "models/p.yml:4:73", "models/p.yml:6:24")
    assert [place for place in places if place not in shown] == []
    for command in ("parse", "ls"):
        shown = project.call(command, files=BROKEN_ENTRIES, code=2)
        assert [place for place in places if place not in shown] == []
    # What several nodes share, or what is described twice, is sure of nobody.
    twice = {**BROKEN_ENTRIES, "models/q.yml": "models: [{name: good}]\n"}
    assert "described twice" in project.call("build", files=twice, code=2)


def test_a_broken_file_of_macros_hides_no_built_in_one(project: Project) -> None:
    """Of the project's own `generate_schema_name` nothing is known: no table may be written by the built-in one."""
    cut = {"macros/schema.sql": "{% macroo generate_schema_name(name, node) %}x{% endmacro %}"}
    shown = project.call("build", files={**cut, "models/good.sql": "select 1 as id"}, code=2)
    assert "error: macros/schema.sql:1:4" in shown


ASKING = {
    "seeds/facts.csv": "id,kind,at\n1,a,2024-01-01\n2,b,2024-01-02\n",
    "models/wide.sql": "{% set kinds = run_query('select distinct kind from ' ~ ref('facts') ~ ' order by 1') %}"
    "select id{% for row in kinds or [] %}, kind = '{{ row.kind }}' as is_{{ row.kind }}{% endfor %} "
    "from {{ ref('facts') }}",
    "models/again.sql": "{% set columns = adapter.get_columns_in_relation(ref('wide')) %}"
    "select {{ columns | map(attribute='name') | join(', ') or '1' }} from {{ ref('wide') }}",
    "models/m.sql": "{{ config(materialized='table') }}"
    "select {% for column in adapter.get_columns_in_relation(ref('again')) %}{{ column.name }} as c_{{ column.name }}, "
    "{% endfor %}'x' as last from {{ ref('again') }}",
    "models/asker.sql": "select '{{ adapter.get_columns_in_relation(this) | length }}' as n",
}


def test_views_that_ask_are_seen_as_they_are(project: Project) -> None:
    """A table asks about a view that asks about a view that asks for rows: none is taken as it was before an answer."""
    shown = project.call("show", "m", "--output", "json", files=ASKING)
    assert json.loads(shown) == [
        {"c_id": 1, "c_is_a": True, "c_is_b": False, "last": "x"},
        {"c_id": 2, "c_is_a": False, "c_is_b": True, "last": "x"},
    ]


def test_a_view_that_asks_about_itself_is_not_there_yet(project: Project) -> None:
    assert '"n": "0"' in project.call("show", "asker", "--output", "json", files=ASKING)
    files = {**ASKING, "models/asker.sql": "select {{ run_query('select * from ' ~ this) or 1 }} as n"}
    assert "the template of 'asker' asks about itself" in project.call("build", "-s", "asker", files=files, code=1)


def test_columns_of_a_result_are_a_mapping_too(project: Project) -> None:
    asking = (
        "{% set found = run_query('select * from ' ~ ref('facts')) %}{% if execute %}select "
        "{% for name, column in found.columns.items() %}'{{ column.values() | join('+') }}' as {{ name }}, {% endfor %}"
        "'{{ found.columns.keys() | join }}' as names, '{{ found.columns.get('no', '-') }}' as no"
        "{% else %}select 1 as x{% endif %}"
    )
    shown = project.call(
        "show", "m", "--output", "json", files={"seeds/facts.csv": "a,b\n1,x\n2,y\n", "models/m.sql": asking}
    )
    assert '"a": "1+2", "b": "x+y", "names": "ab", "no": "-"' in shown.replace("\n", "")


SEEDED = {
    "seeds/raw_orders.csv": "id,at\n1,2024-01-01T10:00:00\n2,2024-01-02T11:00:00\n",
    "models/sources.yml": "sources: [{name: ecom, schema: dws, tables: [{name: raw_orders}]}]\n",
    "models/stg.sql": "select id, date_trunc('day', at) as day from {{ source('ecom', 'raw_orders') }}",
    "models/m.sql": "{{ config(materialized='table') }}select id, day from {{ ref('stg') }}",
    "models/m.yml": "unit_tests: [{name: u, model: m, given: [{input: ref('stg'), rows: [{id: 5}]}], "
    "expect: {rows: [{id: 5}]}}]\n",
}


def test_a_source_may_be_the_table_of_a_seed(project: Project) -> None:
    """As in jaffle-shop; the unit test knows the columns that it does not give by the seed's."""
    assert "PASS=4 " in project.call("build", files=SEEDED)
    assert '"day": "2024-01-02T00:00:00' in project.call("show", "m", "--output", "json", files=SEEDED)


def test_the_sql_of_a_fixture_is_a_template(project: Project) -> None:
    files = {
        "macros/m.sql": "{% macro five() %}5{% endmacro %}",
        "models/src.sql": "select 1 as id",
        "models/m.sql": "select id + 1 as id from {{ ref('src') }}",
        "tests/fixtures/rows.sql": "{% if target.name == 't' %}select {{ five() }} as id{% else %}no{% endif %}",
        "models/m.yml": "unit_tests: [{name: u, model: m, given: [{input: ref('src'), format: sql, fixture: rows}], "
        "expect: {format: sql, rows: 'select {{ five() }} + 1 as id'}}]\n",
    }
    assert "PASS=1 " in project.call("test", files=files)
    files["tests/fixtures/rows.sql"] = "\n{{ fivee() }}"
    assert "error: tests/fixtures/rows.sql:2:4: 'fivee' is not defined" in project.call("test", files=files, code=2)


def test_a_broken_unit_test_costs_itself_and_its_model(project: Project) -> None:
    files = {
        "models/m.sql": "select 1 as id",
        "models/other.sql": "{{ config(materialized='table') }}select 1 as id",
        "models/src.sql": "select 1 as id",
        "models/r.sql": "select id from {{ ref('src') }}",
        "models/m.yml": "unit_tests: [{name: u, model: r, given: [{input: ref('src'), format: sql, rows: 'selec 1'}], "
        "expect: {rows: [{id: 1}]}}]\n",
    }
    shown = project.call("build", files=files, code=1)
    assert "Done. PASS=3 WARN=0 ERROR=1 SKIP=1" in shown and "models/m.yml:1:" in shown
    assert project.call("test", files=files, code=2).startswith("error: models/m.yml:1:")


def test_views_with_ctes_of_one_name_are_read_twice(project: Project) -> None:
    view = "with data as (select 1 as id), more as (select data.id from data) select id from more"
    files = {
        "models/v.sql": view,
        "models/m.sql": "{{ config(materialized='table') }}with data as (select id from {{ ref('v') }}), "
        "b as (select id from {{ ref('v') }}) select data.id, b.id as other from data join b on data.id = b.id",
    }
    assert '"id": 1, "other": 1' in project.call("show", "m", "--output", "json", files=files).replace("\n", "")


def test_graph_has_the_nodes_of_the_manifest_once_somebody_answers(project: Project) -> None:
    files = {
        "models/a.sql": "{{ config(tags=['x']) }}select 1 as id",
        "models/b.sql": "select 2 as id",
        "models/m.sql": "-- depends_on: {{ ref('a') }}\n{% set names = [] %}{% for node in graph.nodes.values() "
        "| selectattr('resource_type', 'equalto', 'model') if 'x' in node.tags %}"
        "{% do names.append(node.name) %}{% endfor %}"
        "select '{{ names | join }}' as tagged, {{ graph.sources | length }} as sources, '{{ graph.no }}' as no",
    }
    shown = project.call("show", "m", "--output", "json", files=files)
    assert json.JSONDecoder().raw_decode(shown)[0] == [{"tagged": "a", "sources": 0, "no": ""}]
    inline = "select {{ graph.nodes | length }} as n"
    assert '"n": 3' in project.call("show", "--inline", inline, "--output", "json", files=files)
    assert '"n": 3' in project.call("sql", inline, "--output", "json", files=files)


def test_columns_can_be_made_in_templates(project: Project) -> None:
    made = (
        "{% set c = api.Column('n', 'varchar', char_size=7) %}select '{{ c.name }} {{ c.dtype }} {{ c.char_size }} "
        "{{ c.is_string() }} {{ api.Column.create('k', 'TEXT').data_type }} {{ api.Column.translate_type('integer') }} "
        "{{ api.Column.numeric_type('decimal', 5, 2) }}' as x"
    )
    assert project.compiled(made) == "select 'n varchar 7 True string int decimal(5,2)' as x"
