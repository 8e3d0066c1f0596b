"""dbt packages: fetched by `sml deps` from folders, repositories and tarballs, and what their macros and models are."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main

Shown = pytest.CaptureFixture[str]
Ask = Callable[..., tuple[int, str]]

# A package in the manner of dbt_utils: dispatch, macros that call each other, questions to the lake, tests, a model.
TOOLS = {
    "dbt_project.yml": "name: tools\nvars: {unit: cent, tools_only: 1}\nmodels: {tools: {+schema: kit}}\n",
    "macros/keys.sql": """
{% macro hashed(names) %}{{ return(adapter.dispatch('hashed', 'tools')(names)) }}{% endmacro %}
{% macro default__hashed(names) %}
  {%- set parts = [] -%}
  {%- for name in names -%}
    {%- do parts.append("coalesce(cast(" ~ name ~ " as " ~ dbt.type_string() ~ "), '-')") -%}
  {%- endfor -%}
  {{ dbt.hash(dbt.concat(parts)) }}
{%- endmacro %}
{% macro inner() %}tools{% endmacro %}
{% macro outer() %}{{ inner() }}{% endmacro %}
""",
    "macros/asking.sql": """
{% macro others(from, except=[]) %}
  {%- if not tools.is_relation(from) %}{% do exceptions.raise_compiler_error('no relation') %}{% endif -%}
  {%- if not execute -%}{{ return('*') }}{%- endif -%}
  {%- set names = [] -%}
  {%- for column in adapter.get_columns_in_relation(from) if column.name not in except -%}
    {%- do names.append(adapter.quote(column.name)) -%}
  {%- endfor -%}
  {{ names | join(', ') }}
{%- endmacro %}
{% macro is_relation(it) %}
  {{ return(it is mapping and it.get('metadata', {}).get('type', '').endswith('Relation')) }}
{% endmacro %}
{% macro values_of(relation, column) %}
  {%- call statement('found', fetch_result=true) -%}
    select distinct {{ column }} as v from {{ relation }} order by 1
  {%- endcall -%}
  {%- if not execute %}{{ return([]) }}{% endif -%}
  {{ return(load_result('found')['data'] | map(attribute=0) | list) }}
{% endmacro %}
""",
    "macros/tests.sql": "{% test at_least(model, column_name, least) %}{% if least > 5 %}{% set odd = 1 %}{% endif %}"
    "select * from {{ model }} where {{ column_name }} < {{ least }} {{ odd }}{% endtest %}",
    "models/kit_model.sql": "select {{ inner_of_kit() }} as unit, {{ var('tools_only') }} as n",
    "macros/kit.sql": "{% macro inner_of_kit() %}'{{ var('unit') }}'{% endmacro %}",
}
SHOP = {
    "dbt_project.yml": "name: shop\nvars: {tools: {unit: euro}}\nmodels: {tools: {+materialized: table}}\n",
    "profiles.yml": "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
    "packages.yml": "packages: [{local: ../tools}]\n",
    "macros/own.sql": "{% macro inner() %}shop{% endmacro %}",
    "models/s.yml": """
sources: [{name: ods, tables: [{name: orders}]}]
models:
  - name: orders
    columns: [{name: id, data_tests: [{tools.at_least: {least: 1}}]}]
""",
    "models/orders.sql": "select {{ tools.others(source('ods', 'orders'), except=['note']) }}, "
    "{{ tools.hashed(['id', 'note']) }} as sk from {{ source('ods', 'orders') }}",
    "models/names.sql": "select '{{ tools.outer() }}' as theirs, '{{ inner() }}' as ours, unit "
    "from {{ ref('tools', 'kit_model') }}",
    "models/wide.sql": "select id{% for v in tools.values_of(ref('orders'), 'id') %}, {{ v }} as v{{ v }}{% endfor %} "
    "from {{ ref('orders') }}",
    "fixtures/ods/orders.csv": "id,amount,note\n1,5.00,a\n2,7.00,\n",
}


def write(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> Ask:
    """Writes more files into the project `shop`, beside which the package `tools` lies, and calls `sml` there."""
    write(tmp_path / "tools", TOOLS)
    write(tmp_path / "shop", SHOP)
    monkeypatch.chdir(tmp_path / "shop")
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)

    def call(*words: str, **files: str) -> tuple[int, str]:
        write(Path(), files)
        code = main([*words])
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return code, shown.out + shown.err

    return call


def rows(ask: Ask, model: str) -> object:
    code, message = ask("show", model, "--output", "json")
    assert code == 0, message
    return json.loads(message)


def test_packages_that_are_not_installed_are_asked_for(ask: Ask) -> None:
    code, message = ask("parse")
    assert code == 2
    assert "packages.yml:1:12: the packages of this project are not installed" in message and "`sml deps`" in message


def test_a_local_package_is_linked_and_its_macros_and_models_are_used(ask: Ask) -> None:
    assert ask("deps", "-t", "t") == (0, "installed tools from ../tools\n")
    code, message = ask("build")
    assert code == 0 and "PASS=5 " in message, message
    assert "OK created sql table model dws_kit.kit_model" in message
    assert rows(ask, "orders") == [
        {"id": 1, "amount": "5.00", "sk": hashlib.md5(b"1a").hexdigest()},
        {"id": 2, "amount": "7.00", "sk": hashlib.md5(b"2-").hexdigest()},
    ]


def test_a_project_inside_a_package_tests_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    """As the integration tests of dbt's packages do: `local: ../`, beside another one that lies elsewhere."""
    inner = {**SHOP, "packages.yml": "packages: [{local: ../}, {local: ../../kit}]\n"}
    files = {**TOOLS, **{f"integration_tests/{path}": text for path, text in inner.items()}}
    write(tmp_path / "tools", files)
    write(tmp_path / "kit", {"dbt_project.yml": "name: kit\n"})
    monkeypatch.chdir(tmp_path / "tools/integration_tests")
    for _ in range(2):  # the second time there are links below the package
        assert main(["deps", "-t", "t"]) == 0, capsys.readouterr().err
        assert main(["ls"]) == 0
        shown = capsys.readouterr().out
        assert "installed tools from ../\n" in shown and "tools.kit_model\n" in shown


def test_local_packages_of_a_package_are_looked_for_from_the_root_as_in_dbt_or_from_the_package(ask: Ask) -> None:
    write(Path("../tools"), {"packages.yml": "packages: [{local: ../kits/one}, {local: two}]\n"})
    write(Path("../kits/one"), {"dbt_project.yml": "name: one\n"})
    write(Path("../tools/two"), {"dbt_project.yml": "name: two\n"})
    code, message = ask("deps", "-t", "t")
    assert code == 0 and "installed one from ../kits/one\ninstalled two from two\n" in message


def test_a_package_of_the_hub_may_be_given_in_another_way(ask: Ask) -> None:
    """By an entry of the root, where a package asks for it, or by an earlier `dbt deps`."""
    write(Path("../tools"), {"packages.yml": "packages: [{package: dbt-labs/one, version: 1.0.0}]\n"})
    write(Path("../one"), {"dbt_project.yml": "name: one\n"})
    code, message = ask("deps", "-t", "t")
    assert code == 2 and "packages.yml:1:22: dbt's hub is not asked\n  name the repository of dbt-labs/one" in message
    both = "packages: [{local: ../tools}, {local: ../one}, {package: dbt-labs/two, version: 1.0.0}]\n"
    files = {"packages.yml": both, "dbt_packages/two/dbt_project.yml": "name: two\n"}
    code, message = ask("deps", "-t", "t", **files)
    assert (code, message) == (0, "installed tools from ../tools\ninstalled one from ../one\n")
    assert ask("parse")[0] == 0


def test_names_mean_what_the_package_means_by_them_and_variables_of_the_root_win(ask: Ask) -> None:
    ask("deps", "-t", "t")
    assert rows(ask, "names") == [{"theirs": "tools", "ours": "shop", "unit": "euro"}]


def test_a_template_that_asks_the_lake_is_rendered_when_it_runs(ask: Ask) -> None:
    ask("deps", "-t", "t")
    assert rows(ask, "wide") == [{"id": 1, "v1": 1, "v2": 2}, {"id": 2, "v1": 1, "v2": 2}]
    code, message = ask("compile")
    assert code == 0 and "orders, wide ask the lake while they are rendered" in message


def test_a_macro_of_the_project_is_dispatched_to_first(ask: Ask) -> None:
    ask("deps", "-t", "t")
    macro = "{% macro default__hashed(names) %}'{{ names | join('+') }}'{% endmacro %}"
    ask("parse", **{"macros/mine.sql": macro})
    assert {row["sk"] for row in rows(ask, "orders")} == {"id+note"}  # type: ignore[attr-defined]


def test_dispatch_searches_the_packages_that_the_settings_name(ask: Ask) -> None:
    ask("deps", "-t", "t")
    macro = "{% macro default__hashed(names) %}'mine'{% endmacro %}"
    order = "dispatch: [{macro_namespace: tools, search_order: [tools, shop]}]\n"
    ask("parse", **{"macros/mine.sql": macro, "dbt_project.yml": SHOP["dbt_project.yml"] + order})
    assert {row["sk"] for row in rows(ask, "orders")} != {"mine"}  # type: ignore[attr-defined]


def test_what_is_read_must_be_known_before_the_lake_answers(ask: Ask) -> None:
    ask("deps", "-t", "t")
    model = "{% if execute %}select * from {{ ref('orders') }}{% else %}select 1 as a{% endif %}"
    code, message = ask("run", "-s", "late", **{"models/late.sql": model})
    assert code == 1 and "add -- depends_on: {{ ref('orders') }}" in message
    assert ask("run", "-s", "late", **{"models/late.sql": f"-- depends_on: {{{{ ref('orders') }}}}\n{model}"})[0] == 0


def test_run_query_takes_a_select_while_a_model_is_rendered(ask: Ask) -> None:
    ask("deps", "-t", "t")
    model = "{% do run_query('drop table x') %}select 1 as a"
    code, message = ask("run", "-s", "bad", **{"models/bad.sql": model})
    assert code == 1 and "run_query takes a SELECT here, not DROP" in message


def test_results_are_read_as_agates_tables_are(ask: Ask) -> None:
    ask("deps", "-t", "t")
    model = (
        "{% set t = run_query('select id, note from ' ~ source('ods', 'orders') ~ ' order by id') %}"
        "{% if execute %}select {{ t.rows | length }} as n, '{{ t.columns[0].values() | join(',') }}' as ids, "
        "'{{ t.columns['note'].values()[0] }}' as note, "
        "'{{ t.rows[0]['id'] }}{{ t.rows[0].note }}{{ t.rows[0][1] }}' as r,"
        " '{{ t.column_names | join('+') }}' as names{% endif %}"
    )
    ask("parse", **{"models/asked.sql": model})
    assert rows(ask, "asked") == [{"n": 2, "ids": "1,2", "note": "a", "r": "1aa", "names": "id+note"}]


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """git, which may lie beside the java that these tests must not find."""
    program = shutil.which("git", path=os.defpath + os.pathsep + os.environ["PATH"])
    if program is None:
        pytest.skip("git is not installed")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/git").symlink_to(program)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")


def repository(folder: Path, files: dict[str, str]) -> str:
    write(folder, files)
    setting = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"], ["tag", "v1"]):
        subprocess.run(["git", *setting, *words], cwd=folder, check=True, capture_output=True)
    process = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True)
    return process.stdout.strip()


def test_a_repository_is_fetched_at_its_revision_and_pinned(ask: Ask, git: None, tmp_path: Path) -> None:
    commit = repository(tmp_path / "origin", {f"sub/{path}": text for path, text in TOOLS.items()})
    entry = f"packages: [{{git: 'file://{tmp_path}/origin', revision: v1, subdirectory: sub}}]\n"
    code, message = ask("deps", "-t", "t", **{"packages.yml": entry})
    assert code == 0 and commit[:12] in message, message
    assert commit in Path("package-lock.yml").read_text()
    assert not Path("dbt_packages/tools").is_symlink()
    write(tmp_path / "origin", {"sub/macros/kit.sql": "{% macro inner_of_kit() %}'new'{% endmacro %}"})
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qam", "two"],
        cwd=tmp_path / "origin", check=True,
    )  # fmt: skip
    subprocess.run(["git", "tag", "-f", "v1"], cwd=tmp_path / "origin", check=True, capture_output=True)
    assert commit[:12] in ask("deps", "-t", "t")[1]  # the lock file holds it
    Path("package-lock.yml").unlink()
    assert commit[:12] not in ask("deps", "-t", "t")[1]


def test_a_tarball_is_unpacked_and_may_not_lead_out(ask: Ask, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "tools.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "tools", "tools-1.0")
    entry = {"packages.yml": f"packages: [{{tarball: '{tmp_path}/tools.tar.gz', name: tools}}]\n"}
    assert ask("deps", "-t", "t", **entry)[0] == 0
    assert rows(ask, "names")
    with tarfile.open(tmp_path / "tools.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "tools", "../../tools")
    code, message = ask("deps", "-t", "t")
    assert code == 2 and "is not what it was" in message
    Path("package-lock.yml").unlink()
    code, message = ask("deps", "-t", "t")
    assert code == 2 and "leads out of the archive" in message
    assert not (tmp_path.parent / "tools").exists()


def test_packages_of_packages_come_along_and_those_not_asked_for_go(ask: Ask, tmp_path: Path) -> None:
    write(tmp_path / "tools", {"packages.yml": "packages: [{local: ../base}]\n"})
    write(tmp_path / "base", {"dbt_project.yml": "name: base\n", "macros/m.sql": "{% macro b() %}1{% endmacro %}"})
    code, message = ask("deps", "-t", "t")
    assert code == 0 and "installed base from ../base" in message
    (tmp_path / "tools/packages.yml").unlink()
    assert ask("deps", "-t", "t")[0] == 0
    assert not Path("dbt_packages/base").exists()
    assert (tmp_path / "base/dbt_project.yml").exists()  # the link went, not what it led to


def test_after_a_failed_fetch_nothing_is_installed(ask: Ask) -> None:
    entries = "packages: [{local: ../tools}, {local: %s}]\n"
    assert ask("deps", "-t", "t", **{"packages.yml": entries % "../nowhere"})[0] == 2
    assert not Path("dbt_packages").exists()
    assert ask("deps", "-t", "t", **{"packages.yml": SHOP["packages.yml"]})[0] == 0


def test_an_interrupted_install_does_not_block_the_next_one(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    write(Path("../base"), {"dbt_project.yml": "name: base\n"})
    link = Path.symlink_to

    def link_first(path: Path, target: str, target_is_directory: bool = False) -> None:
        if path.name == "base":
            raise OSError("disk full")
        link(path, target, target_is_directory)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "symlink_to", link_first)
        code, message = ask("deps", "-t", "t", **{"packages.yml": "packages: [{local: ../tools}, {local: ../base}]\n"})
        assert code != 0 and "disk full" in message and Path("dbt_packages/tools").is_symlink()
    assert ask("deps", "-t", "t")[0] == 0


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{package: dbt-labs/dbt_utils, version: 1.3.0}", "dbt's hub is not asked"),
        ("{local: ../nowhere}", "packages.yml:1:12: there is no folder '../nowhere'"),
        ("{local: ../shop/models}", "has no dbt_project.yml"),
        ("{git: 'file:///nowhere/at/all'}", "cannot fetch file:///nowhere/at/all"),
        ("{git: 'ext::sh -c x'}", "cannot fetch"),
        ("{git: x, subdirectory: ../up}", "leads out of the package"),
        ('{local: "a\\0b"}', "local must not contain NUL"),
        ("{git: 'http://[::1/a.git'}", "git is not an address or a path"),
        ('{git: x, revision: "\\0"}', "revision must not contain NUL"),
        ('{git: x, subdirectory: "\\ud800"}', "half of a character"),
        ("{tarball: nowhere.tar.gz}", "there is no file"),
        ("{locl: ../tools}", "did you mean 'local'?"),
        ("{git: 'https://me:word@127.0.0.1:9/a.git'}", "cannot fetch https://127.0.0.1:9/a.git"),
    ],
)
def test_an_entry_that_cannot_be_fetched_is_told_at_its_place(ask: Ask, git: None, entry: str, message: str) -> None:
    code, said = ask("deps", "-t", "t", **{"packages.yml": f"packages: [{entry}]\n"})
    assert code == 2 and "packages.yml:1:" in said and message in said
    assert "word@" not in said
