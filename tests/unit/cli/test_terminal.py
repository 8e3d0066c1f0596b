"""What stands on a terminal: bars, colours, tables, trees, completion – and what does not where there is none."""

from __future__ import annotations

import io
import json
import logging
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

from sqlmesh_like.app.operations.verification import table_verification
from sqlmesh_like.app.setup import dependencies
from sqlmesh_like.cli import app
from sqlmesh_like.cli.app import main
from sqlmesh_like.cli.context import make_output
from sqlmesh_like.cli.options import Flags
from sqlmesh_like.cli.printing.output import LogStep
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.run.ports import RowDifference, Sample
from sqlmesh_like.spark.jvm.java import Jdk
from tests.unit.hudi.test_timeline import Lake

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {target: t, outputs: {t: {type: duckdb, schema: dws},"
    " s: {type: spark, schema: dws, warehouse: w}}}\n",
    "models/s.yml": "sources: [{name: ext, tables: [{name: t, columns: [{name: id, data_type: int},"
    " {name: price, data_type: 'decimal(5,2)'}, {name: words, data_type: string}]}]}]\n",
    "fixtures/ext/t.csv": "id,price,words\n1,2.50,{long}\n",
    "models/one.sql": "select * from {{ source('ext', 't') }}",
    "models/per_id.sql": "select id, sum(price) as total, count(distinct words) as n from {{ ref('one') }} group by id",
    "seeds/rates.csv": "code,rate\na,1\nb,2\nc,3\n",
}
Shown = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text.replace("{long}", "word " * 60))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)
    return tmp_path


def on_a_terminal(*words: str) -> str:
    """All that `sml` prints to a terminal of 80 columns."""
    here, there = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(
        [sys.executable, "-m", "sqlmesh_like", *words], stdin=there, stdout=there, stderr=there, env=environment
    ) as process:
        os.close(there)
        shown = _read_all(here)
        assert process.wait(timeout=300) == 0, shown
    os.close(here)
    return shown


def _read_all(terminal: int) -> str:
    parts: list[bytes] = []
    while True:
        assert select.select([terminal], [], [], 300)[0], b"".join(parts)
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            part = b""
        if not part:
            return b"".join(parts).decode()
        parts.append(part)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_run_has_a_bar_and_colours_on_a_terminal() -> None:
    shown = on_a_terminal("run")
    assert "2/2" in shown and "━" in shown, "how many of how many"
    assert "\x1b[32m" in shown, "green is done"
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert re.search(r"1 of 2 OK created sql incremental model dws\.one \.+ \[", plain)
    assert "\x1b" not in plain and plain.rstrip().endswith("TOTAL=2")


@pytest.mark.parametrize(
    ("flags", "has_bar", "color"),
    [
        (Flags(), True, True),
        (Flags(no_color=True), True, False),
        (Flags(quiet=True), False, True),
        (Flags(log_format="json"), False, True),
    ],
)
def test_flags_turn_bar_and_colours_off(
    flags: Flags, has_bar: bool, color: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    output = make_output(flags, _Terminal(), bar=True)
    assert (output.has_bar, output.color) == (has_bar, color)
    assert not make_output(flags, io.StringIO(), bar=True).has_bar, "a pipe has none"


def test_a_bar_without_colours_has_none() -> None:
    stream = _Terminal()
    output = make_output(Flags(no_color=True), stream, bar=True)
    output.start(LogStep(1, 1, "seed file", "dws.rates"))
    output.success(LogStep(1, 1, "seed file", "dws.rates"), "INSERT 3", 0.1)
    output.close()
    assert "1/1" in stream.getvalue() and "\x1b[3" not in stream.getvalue()


def test_show_fits_the_terminal_and_folds_no_cell_in_a_pipe(capsys: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["show", "one"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert len(rows) == 1 and "word " * 59 in rows[0]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["show", "one"]) == 0
    table = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert len(table) > 2 and max(map(len, table)) <= 80


def test_show_says_where_there_may_be_more(capsys: Shown) -> None:
    assert main(["show", "rates", "--limit", "2"]) == 0
    assert "the first 2 rows; --limit -1 shows all" in capsys.readouterr().err
    assert main(["show", "rates", "--limit", "-1"]) == 0
    assert capsys.readouterr().err == ""


def test_quiet_leaves_results_and_json_lines_are_objects(capsys: Shown) -> None:
    assert main(["run", "-q"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["compile", "-q", "--no-check"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["build", "--log-format", "json", "--now", "2024-05-01T00:00:00Z"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["info"]["level"] for line in lines} == {"info"}
    assert lines[-1]["info"]["msg"].startswith("Done. PASS=3")
    nodes = [line["data"] for line in lines if "unique_id" in line["data"]]
    assert [node["status"] for node in nodes].count("started") == 3
    ended = {node["unique_id"]: node for node in nodes if node["status"] != "started"}
    assert set(ended) == {"model.shop.one", "model.shop.per_id", "seed.shop.rates"}
    assert {name: (node["status"], node["rows"]) for name, node in ended.items()} == {
        "model.shop.one": ("success", 1),
        "model.shop.per_id": ("success", 1),
        "seed.shop.rates": ("success", 3),
    }
    for node in ended.values():
        assert node["elapsed"] >= 0 and isinstance(node["bytes"], int)
        assert set(node) >= {"strategy", "failures", "message", "resource_type", "name"}


def test_fail_fast_stops_at_the_first_failure(project: Path, capsys: Shown) -> None:
    for name in ("t1", "t2", "t3"):
        (project / f"tests/{name}.sql").parent.mkdir(exist_ok=True)
        (project / f"tests/{name}.sql").write_text("select 1 as a")
    assert main(["test", "--threads", "1"]) == 1
    assert "ERROR=3 SKIP=0" in capsys.readouterr().out
    assert main(["test", "-x", "--threads", "1"]) == 1
    assert "ERROR=1 SKIP=2" in capsys.readouterr().out


def test_a_plan_is_a_tree_with_its_columns_in_line_and_a_last_line_for_all(capsys: Shown) -> None:
    assert main(["explain", "-t", "s"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "dws.one  row_based",
        "├─ because    ROW001  projection, filter or UNION ALL of single rows",
        "├─ reads      ext.t  not there yet",
        "└─ next run   full_refresh: HIS001 first build",
        "",
        "dws.per_id  group_recompute",
        "├─ because    GRP001  groups, windows and join keys that the change touches are recomputed",
        "├─ aggregates",
        "│  ├─ mergeable  SUM(price)             models/per_id.sql:1:12",
        "│  └─ rescan     COUNT(DISTINCT words)  models/per_id.sql:1:33"
        "  AGG002 COUNT(DISTINCT words) needs the values of its whole group",
        "├─ reads      dws.one  changes before, in the same run",
        "└─ next run   full_refresh: HIS001 first build",
        "",
        "2 tables: 1 row_based, 1 group_recompute – next run: 2 full_refresh",
    ]


def test_a_plan_foresees_the_columns_of_seeds(project: Path, capsys: Shown) -> None:
    (project / "models/codes.sql").write_text("select code, max(rate) as top from {{ ref('rates') }} group by code")
    assert main(["explain", "codes", "-t", "s"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        "dws.codes  aggregate_merge",
        "├─ aggregates mergeable  MAX(rate)  models/codes.sql:1:14",
    ]


def test_explain_prints_the_delta_program(capsys: Shown) -> None:
    assert main(["explain", "per_id", "-t", "s", "--sql"]) == 0
    text = capsys.readouterr().out
    assert "-- full build\n" in text and "COUNT(DISTINCT" in text.partition("-- full build")[2]


def test_history_shows_the_newest_commits_first_to_go(project: Path, capsys: Shown) -> None:
    lake = Lake(project / "w/dws/one")
    for second in (1, 3, 5):
        lake.commit(second, ["a"])
    assert main(["history", "one", "-t", "s", "--output", "json", "--limit", "2"]) == 0
    assert [entry["time"][17:19] for entry in json.loads(capsys.readouterr().out)] == ["04", "06"]


def test_verify_prints_so_many_of_the_differing_rows(monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    class Engine:
        def verify(self, planned: PlannedModel, limit: int, sample: Sample | None = None) -> RowDifference:
            return RowDifference(5, tuple((1, {"id": number}) for number in range(limit)))

        def stop(self) -> None:
            """Nothing was started."""

    monkeypatch.setattr("sqlmesh_like.app.lakes.lake.spark_engine", lambda *given: Engine())
    monkeypatch.setattr(table_verification, "_verifiable", lambda planned: planned)
    assert main(["verify", "one", "-t", "s", "--limit", "2"]) == 1
    shown = capsys.readouterr().out
    assert shown.count("+ id=") == 2 and "… and 3 more" in shown


def test_deps_fetches_kafkas_jars_where_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(dependencies, "locked_jars", lambda *kinds: asked.append(kinds) or ())
    monkeypatch.setattr(dependencies, "ensure_jars", lambda jars, progress: ())
    monkeypatch.setattr(dependencies, "find_jdk", lambda: Jdk(Path("/jdk"), "11.0.22", "PATH"))
    assert main(["deps", "--kafka"]) == 0
    assert ("kafka",) in asked


def offered(monkeypatch: pytest.MonkeyPatch, capsys: Shown, *words: str) -> set[str]:
    """What bash offers for the last of these words."""
    monkeypatch.setenv("COMP_WORDS", " ".join(["sml", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    monkeypatch.setenv("_SML_COMPLETE", "bash_complete")
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0
    return {line.partition(",")[2] for line in capsys.readouterr().out.splitlines()}


def test_the_tab_key_offers_commands_flags_nodes_and_selectors(monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    assert offered(monkeypatch, capsys, "do") == {"docs"}
    assert offered(monkeypatch, capsys, "docs", "") >= {"generate", "serve"}
    assert offered(monkeypatch, capsys, "show", "") == {"one", "per_id", "rates"}
    assert offered(monkeypatch, capsys, "run", "-s", "+p") >= {"+per_id", "+path:"}
    assert offered(monkeypatch, capsys, "run", "--sel") == {"--select", "--selector"}
    assert offered(monkeypatch, capsys, "explain", "--output", "") == {"text", "json"}
    monkeypatch.chdir("/")
    assert offered(monkeypatch, capsys, "show", "") == {""}, "no project, and no error"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_shells_script(shell: str, capsys: Shown) -> None:
    assert main(["completion", shell]) == 0
    assert "_SML_COMPLETE" in capsys.readouterr().out


def test_the_tab_key_imports_no_command(monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    monkeypatch.setattr(app.importlib, "import_module", lambda name: pytest.fail(f"imports {name}"))
    assert offered(monkeypatch, capsys, "") >= set(app.COMMANDS)


def test_what_any_part_warns_of_is_a_line_like_every_other(capfd: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("sqlmesh_like.cdc")
    for flags, line in (
        ((), r"\d\d:\d\d:\d\d  reading all rows of ods\.t\n"),
        (("--log-format", "json"), r'\{.*"level": "warn".*"msg": "reading all rows of ods\.t".*\}\n'),
        (("--quiet",), ""),
    ):
        assert main(["ls", *flags]) == 0
        capfd.readouterr()
        logger.warning("reading all rows of %s", "ods.t")
        logger.info("a detail")
        assert re.fullmatch(line, capfd.readouterr().err)
