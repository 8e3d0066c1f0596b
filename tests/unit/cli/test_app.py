"""`sml` as a user calls it: commands that need no engine, exit codes and errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

import sqlmesh_like
from sqlmesh_like.cli import app
from sqlmesh_like.cli.app import COMMANDS, main
from sqlmesh_like.cli.help import GROUPS, command_groups
from tests.projects import enter_project

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\nclean-targets = ["target", "logs"]\n',
    "profiles.yml": "lake: {target: a, outputs: {a: {type: spark, schema: dws}, b: {type: duckdb, schema: other}}}\n",
    "models/s.yml": "sources:\n  - name: shop\n    schema: ods\n    tables: [{name: user}]\n",
    "models/users.sql": "{{ config(tags='daily') }}\nselect id from {{ source('shop', 'user') }}",
    "models/agg.sql": "select count(*) as n from {{ ref('users') }}{% if is_incremental() %} where true{% endif %}",
}
Shown = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter_project(tmp_path, monkeypatch, FILES)
    return tmp_path


def python(*words: str) -> subprocess.CompletedProcess[str]:
    """A new interpreter, which finds the package under test installed or not."""
    root = str(Path(sqlmesh_like.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), root])}
    command = [sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def listed(capsys: Shown, *words: str) -> list[str]:
    assert main([*words]) == 0
    return capsys.readouterr().out.split()


def test_ls_lists_every_node_after_its_inputs(capsys: Shown) -> None:
    assert listed(capsys, "ls") == ["source:shop.shop.user", "shop.users", "shop.agg"]


def test_ls_prints_names_and_paths(capsys: Shown) -> None:
    assert listed(capsys, "ls", "--output", "name") == ["user", "users", "agg"]
    assert listed(capsys, "ls", "--output", "path", "--resource-type", "model") == [
        "models/users.sql",
        "models/agg.sql",
    ]


def test_ls_prints_one_json_object_a_node(capsys: Shown) -> None:
    records = [json.loads(line) for line in _out(capsys, "ls", "--output", "json").splitlines()]
    assert [record["unique_id"] for record in records] == [
        "source.shop.shop.user",
        "model.shop.users",
        "model.shop.agg",
    ]
    assert records[1]["config"]["materialized"] == "incremental"
    assert records[2]["depends_on"] == {"nodes": ["model.shop.users"]}


def _out(capsys: Shown, *words: str) -> str:
    assert main([*words]) == 0
    return capsys.readouterr().out


def test_a_selection_takes_several_words(capsys: Shown) -> None:
    assert listed(capsys, "ls", "-s", "users", "agg", "--exclude", "tag:daily", "--output", "name") == ["agg"]


def test_shared_flags_stand_before_or_after_the_command(capsys: Shown, project: Path) -> None:
    before = listed(capsys, "--project-dir", str(project / "models"), "-s", "users", "ls", "--output", "name")
    after = listed(capsys, "ls", "--output", "name", "--project-dir", str(project / "models"), "-s", "users")
    assert before == after == ["users"]


def test_a_flag_after_the_command_wins(capsys: Shown) -> None:
    assert listed(capsys, "-s", "users", "ls", "-s", "agg", "--output", "name") == ["agg"]


def test_compile_writes_sql_and_manifest(project: Path) -> None:
    assert main(["compile", "--no-check", "-q"]) == 0
    folder = project / "target" / "compiled" / "shop" / "models"
    assert (folder / "users.sql").read_text() == "\nselect id from `ods`.`user`"
    assert (folder / "agg.sql").read_text() == "select count(*) as n from `dws`.`users`"
    assert (folder / "agg.incremental.sql").read_text() == "select count(*) as n from `dws`.`users` where true"
    assert (project / "target" / "manifest.json").is_file()


def test_compile_prints_both_branches_of_a_selected_model(capsys: Shown) -> None:
    text = _out(capsys, "compile", "--no-check", "-s", "agg")
    assert "from `dws`.`users`\n\n-- agg: where the table exists (is_incremental() is true)\n" in text
    assert "from `dws`.`users` where true" in text


def test_compile_follows_the_target(project: Path) -> None:
    assert main(["compile", "--no-check", "-q", "-t", "b"]) == 0
    compiled = project / "target" / "compiled" / "shop" / "models" / "agg.sql"
    assert "`other`.`users`" in compiled.read_text()


def test_vars_reach_the_templates(project: Path) -> None:
    (project / "models" / "v.sql").write_text("select '{{ var('day') }}' as d")
    assert main(["compile", "--no-check", "-q", "--vars", "{day: d1}"]) == 0
    assert (project / "target/compiled/shop/models/v.sql").read_text() == "select 'd1' as d"


def test_compiled_files_are_replaced_where_they_are_other_ones(project: Path) -> None:
    assert main(["compile", "-q", "--no-check"]) == 0
    files = sorted((project / "target/compiled").rglob("*.sql"))
    texts, before = [file.read_text() for file in files], [file.stat().st_ino for file in files]
    assert len(files) > 2
    files[0].write_text("select 'an older text'")
    files[1].unlink()
    assert main(["compile", "-q", "--no-check"]) == 0
    assert [file.read_text() for file in files] == texts
    after = [file.stat().st_ino for file in files]
    assert after[0] != before[0]
    assert after[2:] == before[2:], "what is right is not written again"


def test_a_first_compile_gives_its_folder_the_name_when_all_files_are_in_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, real = project / "target/compiled", os.replace
    moved: list[Path] = []

    def replaced(source: Path, target: Path) -> None:
        if Path(target) == folder / "shop":
            assert not folder.joinpath("shop").exists()
            moved.extend(path.relative_to(source) for path in sorted(Path(source).rglob("*.sql")))
        real(source, target)

    monkeypatch.setattr(os, "replace", replaced)
    assert main(["compile", "-q", "--no-check"]) == 0
    assert moved == [path.relative_to(folder / "shop") for path in sorted(folder.rglob("*.sql"))] != []
    assert [path.name for path in folder.iterdir()] == ["shop"]


def test_a_first_compile_beside_another_one_writes_into_its_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, real = project / "target/compiled", os.replace

    def overtaken(source: Path, target: Path) -> None:
        if Path(target) == folder / "shop":
            (folder / "shop/models").mkdir(parents=True)
            (folder / "shop/models/mine.sql").write_text("select 1")
        real(source, target)

    monkeypatch.setattr(os, "replace", overtaken)
    assert main(["compile", "-q", "--no-check"]) == 0
    assert [path.name for path in folder.iterdir()] == ["shop"]
    names = {path.name for path in folder.rglob("*.sql")}
    assert {"users.sql", "agg.sql", "mine.sql"} <= names


def test_parse_writes_the_manifest(project: Path, capsys: Shown) -> None:
    assert "Parsed 3 nodes of shop" in _out(capsys, "parse")
    assert json.loads((project / "target" / "manifest.json").read_text())["nodes"]


def test_clean_removes_its_targets_only(project: Path) -> None:
    for name in ("target", "logs", "warehouse"):
        (project / name).mkdir()
    assert main(["clean", "-q"]) == 0
    assert [path.name for path in sorted(project.iterdir()) if path.is_dir()] == ["models", "warehouse"]


@pytest.mark.parametrize("target", ["..", ".", "models", "../elsewhere", "/"])
def test_clean_refuses_to_remove_anything_but_outputs(project: Path, capsys: Shown, target: str) -> None:
    (project / "logs").mkdir()
    (project / "pyproject.toml").write_text(f'[tool.sqlmesh_like]\nclean-targets = ["logs", "{target}"]\n')
    assert main(["clean"]) == 2
    assert "clean-targets" in capsys.readouterr().err
    assert (project / "logs").is_dir()
    assert (project / "models" / "agg.sql").is_file()


@pytest.mark.parametrize("name", ["macros", "fixtures", "docs", ".github", ".venv", "src/lib", "data"])
def test_clean_removes_other_folders_only_where_commands_wrote_all_that_is_in_them(
    project: Path, capsys: Shown, name: str
) -> None:
    settings = f'[tool.sqlmesh_like]\nname = "shop"\nclean-targets = ["{name}"]\n'
    (project / "pyproject.toml").write_text(f'{settings}target-path = "{name}"\n')
    assert main(["parse", "-q"]) == 0
    own = project / name / "own.txt"
    own.write_text("mine")
    assert main(["clean"]) == 2
    assert f"'{name}' holds own.txt, which no command wrote" in capsys.readouterr().err
    own.unlink()
    assert main(["clean", "-q"]) == 0
    assert not (project / name).exists() and (project / "models").is_dir()


def test_a_new_project_compiles_as_it_is(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    assert main(["init", "my_lake"]) == 0
    monkeypatch.chdir(project / "my_lake")
    capsys.readouterr()
    assert listed(capsys, "ls", "--output", "name", "--resource-type", "model") == ["product_sales"]
    assert main(["compile", "--no-check"]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lss"], "no such command 'lss': did you mean 'ls'?"),
        (["frobnicate"], "known commands: init, debug"),
        (["ls", "--selct", "x"], "No such option"),
        (["ls", "-s", "userz"], "selector 'userz' matches nothing\n  did you mean"),
        (["ls", "--output", "xml"], "'xml' is not one of"),
        (["ls", "--output", "jsn"], "did you mean 'json'?"),
        (["ls", "--resource-type", "modle"], "did you mean 'model'?"),
        (["schema", "projet"], "did you mean 'project'?"),
        (["ls", "-t", "c"], "profile 'lake' has no target 'c'; it has: a, b"),
        (["ls", "--profile", "lak"], "did you mean 'lake'?"),
        (["ls", "--vars", "[1]"], "--vars must be a mapping"),
        (["ls", "--vars", "{a"], "--vars is not valid YAML"),
        (["ls", "--vars", "{a: \udcff}"], "is not allowed"),  # a byte that is not UTF-8, as Python passes it on
        (["ls", "--threads", "0"], "0 is not in the range"),
        (["ls", "--project-dir", "nowhere"], "does not exist"),
        (["init", "a b"], "cannot be a project's name"),
        (["init", "models"], "models exists already"),
    ],
)
def test_a_wrong_call_exits_2_and_says_what_to_do(capsys: Shown, words: list[str], message: str) -> None:
    assert main(words) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert "Traceback" not in shown.err
    assert shown.out == ""


def test_a_broken_model_exits_2_with_its_place(project: Path, capsys: Shown) -> None:
    (project / "models" / "agg.sql").write_text("select *\nfrom {{ ref('user') }}")
    assert main(["compile"]) == 2
    assert "models/agg.sql:2:9: no model or seed is named 'user'" in capsys.readouterr().err
    assert not (project / "target").exists()


def test_outside_of_a_project_the_way_out_is_shown(tmp_path_factory: pytest.TempPathFactory, capsys: Shown) -> None:
    assert main(["ls", "--project-dir", str(tmp_path_factory.mktemp("empty"))]) == 2
    assert "sml init NAME" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags", [["--log-format", "json"], ["--log-format=json"], ["--output", "json"], ["--output=json"]]
)
def test_an_error_is_one_json_line_where_json_is_asked_for(capsys: Shown, flags: list[str]) -> None:
    assert main(["ls", "-s", "nope", *flags]) == 2
    assert json.loads(capsys.readouterr().err)["info"]["level"] == "error"


def test_a_node_named_json_asks_for_no_json(capsys: Shown) -> None:
    assert main(["show", "json"]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_what_a_template_logs_stays_out_of_the_output(project: Path, capsys: Shown) -> None:
    (project / "models" / "users.sql").write_text("{{ log('hello', info=true) }}select 1 as id")
    assert main(["ls", "-s", "users", "--output", "json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["name"] == "users"
    assert "hello" in shown.err


def test_an_unexpected_error_is_one_line_unless_debug_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    @click.command()
    @click.option("--debug", is_flag=True)
    def broken(debug: bool) -> None:
        raise RuntimeError("out of luck\nwith details")

    monkeypatch.setattr(app.LazyGroup, "get_command", lambda *_: broken)
    assert main(["run"]) == 1
    assert capsys.readouterr().err.splitlines()[0].endswith("unexpected RuntimeError: out of luck")
    assert main(["run", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_full_disk_behind_the_output_is_an_error_that_says_what_to_do() -> None:
    root = str(Path(sqlmesh_like.__file__).parents[1])
    with open("/dev/full", "w") as full:  # noqa: PTH123 (a device)
        done = subprocess.run(
            [sys.executable, "-m", "sqlmesh_like", "ls", "--no-color"], stdout=full, stderr=subprocess.PIPE, text=True,
            check=False, env={**os.environ, "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), root])},
        )  # fmt: skip
    first, then = done.stderr.splitlines()[:2]
    assert (done.returncode, first) == (1, "error: the output: No space left on device")
    assert then == "  free space on its file system, then: the same command again"


def test_a_call_that_imports_duckdb_first_ends_without_a_list_of_its_objects() -> None:
    done = python("-m", "sqlmesh_like", "forget", "shop.user", "1", "-t", "b", "--no-color")
    first, _hint = done.stderr.splitlines()
    assert (done.returncode, first) == (2, "error: the target 'b' has no lake: its type is duckdb")


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["ls", "--help"]])
def test_help_and_version_import_no_engine(words: list[str]) -> None:
    code = (
        "import sys; from sqlmesh_like.cli.app import main; assert main(sys.argv[1:]) == 0;"
        "unwanted = "
        "{'pyspark', 'py4j', 'duckdb', 'pyarrow', *(f'sqlmesh_like.{p}' for p in ('hudi', 'spark', 'duckdb', 'cdc'))};"
        "print(sorted(unwanted & set(sys.modules)))"
    )
    done = python("-c", code, *words)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_names_every_command_once_below_a_heading(capsys: Shown) -> None:
    shown = _out(capsys, "--help")
    assert all(shown.count(f"\n  {name} ") == 1 for name in COMMANDS)
    headings = [line[:-1] for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == [*GROUPS, "Options"]


def test_a_command_that_is_in_no_group_is_listed_all_the_same() -> None:
    assert dict(command_groups({"run": "Run.", "dance": "Dance."}))["Others"] == [("dance", "Dance.")]


@pytest.mark.parametrize("words", [["run"], ["docs", "generate"]])
def test_flags_of_every_command_stand_below_a_heading_of_their_own(words: list[str], capsys: Shown) -> None:
    own, heading, shared = _out(capsys, *words, "--help").partition("Options of every command:\n")
    assert heading and "  -t, --target NAME" in shared and "--target" not in own
    assert ("--now" if words == ["run"] else "--static") in own.partition("Options:\n")[2]
    assert shared.rstrip().splitlines()[-1].startswith("  Example: sml ")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_for_itself_and_its_options(name: str) -> None:
    command = app.build_app().get_command(click.Context(app.build_app()), name)
    assert command is not None
    assert command.help
    missing = [p.name for p in command.params if isinstance(p, click.Option) and not p.help]
    assert missing == []
    leaves = command.commands.values() if isinstance(command, click.Group) else [command]
    assert all((leaf.epilog or "").startswith(f"Example: sml {name}") for leaf in leaves)


def test_python_m_is_the_same_command() -> None:
    done = python("-m", "sqlmesh_like", "lss")
    assert done.returncode == 2
    assert "did you mean 'ls'?" in done.stderr


def test_a_run_over_a_table_that_is_not_there_fails_before_spark_starts(project: Path, capsys: Shown) -> None:
    assert main(["run", "-s", "users"]) == 1
    shown = capsys.readouterr().out
    assert "the table ods.user does not exist yet" in shown
    assert "run `sml ingest` or build its model first" in shown
    assert not (project / "target" / "logs").exists()


def test_a_data_test_of_a_table_that_is_not_there_fails_before_spark_starts(project: Path, capsys: Shown) -> None:
    (project / "models" / "tested.yml").write_text(
        "sources: [{name: later, schema: ods, tables: [{name: user, columns: [{name: id, data_tests: [unique]}]}]}]\n"
    )
    assert main(["test", "-s", "source:later"]) == 1
    shown = capsys.readouterr().out
    assert "the table ods.user does not exist yet" in shown
    assert "run `sml ingest` or build its model first" in shown
    assert not (project / "target" / "logs").exists()
