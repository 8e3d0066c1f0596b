"""What people see: rows do nothing to a terminal, a page is framed by nobody, a server answers its own name alone."""

from __future__ import annotations

import ast
import csv
import http.client
import io
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqlmesh_like.cli.app import main
from sqlmesh_like.cli.printing.json_log import json_line
from sqlmesh_like.cli.printing.output import LogStep, Output
from sqlmesh_like.cli.printing.rows import as_csv, as_json, as_table
from sqlmesh_like.control_characters import escape_line
from sqlmesh_like.docs.server import is_own_host, site_server
from sqlmesh_like.duckdb.duck_connection import reader
from sqlmesh_like.duckdb.local_query import _files
from sqlmesh_like.names import Column
from sqlmesh_like.report.chart import Chart
from sqlmesh_like.report.drawing import draw_svg
from sqlmesh_like.run.ports import Rows
from tests.levels import sample
from tests.projects import enter_project
from tools.printing import printed

HOSTILE = (
    "\x1b[2J", "\x1b]0;title\x07", "\x1b[8mhidden\x1b[0m", "\x1b[1A\x1b[2K", "\x1b]8;;http://evil\x07link\x1b]8;;\x07",
    "\x1b]52;c;ZXZpbA==\x07", "\x1bP$q\x1b\\", "\x9b2J", "\x9d0;x\x9c",
    "a\rb", "a\bb", "a\nb", "a\tb", "a\x00b", "a\x07b",
    "a\x0bb", "a\x0cb", "a\x7fb", "a\x85b", "\u202eabc", "\u2066abc\u2069", "\u200fabc", "\u200bx", "\ufeffx",
    "a\u2028b", "a\u2029b", "\ud800", "\udfff", "\ufff9x\ufffb", "\u061cx",
)  # fmt: skip
BAD = {chr(n) for n in (*range(32), *range(127, 160))} - {"\n"} | set(
    "\u202e\u2066\u2069\u200f\u2028\u2029\ud800\udfff\ufeff"
)
Shown = pytest.CaptureFixture[str]


def rows(text: str) -> Rows:
    return Rows((Column(f"c{text}", "string"), Column("n", "int")), ((text, 1), (f"x{text}", 2)))


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_a_row_is_shown_with_its_control_characters_spelt_out(text: str) -> None:
    table = as_table(rows(text), title="t")
    assert not BAD & set(table) and escape_line(text) in table and len(table.splitlines()) == 7
    json_text = as_json(rows(text))
    assert not BAD & set(json_text)
    name, values = f"c{text}", [row[f"c{text}"] for row in json.loads(json_text)]
    assert values == [text, f"x{text}"] and name in json.loads(json_text)[0]


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_csv_holds_what_the_rows_do(text: str) -> None:
    records = list(csv.reader(io.StringIO(as_csv(rows(text)), newline="")))
    assert records == [[f"c{text}", "n"], [text, "1"], [f"x{text}", "2"]]


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_a_line_of_a_run_does_nothing_to_a_terminal(text: str) -> None:
    stream = io.StringIO()
    output = Output(stream=stream, color=True)
    output.line(f"error {text}", "error")
    output.success(LogStep(1, 2, "test", text), text, 0.1)
    output.end(["error"], [f"problem {text}"])
    seen = stream.getvalue()
    for ours in ("\x1b[31m", "\x1b[32m", "\x1b[0m"):
        seen = seen.replace(ours, "")
    assert not BAD & set(seen) - {"\t"}
    assert not BAD & set(json_line("error", text))


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_a_chart_is_drawn_of_any_text(text: str) -> None:
    chart = Chart(kind="bar", title=f"t{text}", x=f"c{text}", y=("n",))
    svg = draw_svg(chart, rows(text), 400, "x")
    assert svg.startswith("<svg") and not BAD & set(svg)


def test_commands_show_errors_and_rows_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    files = {
        "dbt_project.yml": "name: shop\n",
        "profiles.yml": "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
        "models/m.sql": "select 'a\x1b[2J\u202eb' as a",
        "report.yml": 'charts: [{title: "\\e[2J", model: m, kind: table}]\n',
    }
    enter_project(tmp_path, monkeypatch, files)
    for words in (["show", "m"], ["sql", "select * from m"], ["show", "m", "--output", "json"], ["show", "\x1b[2Jx"],
                  ["\x1b[2J"], ["compile", "--select", "\x1b[2J"], ["report"]):  # fmt: skip
        main(words)
        seen = "".join(capsys.readouterr())
        assert seen and not BAD & set(seen), words
    main(["show", "m", "--output", "csv"])
    assert capsys.readouterr().out == "a\na\x1b[2J\u202eb\n"


COMMANDS = (
    "::stop-commands::x", "  ::set-env name=PATH::/tmp", "##[group]x", "a ##[error]b",
    "##vso[task.setvariable variable=a]b", "##teamcity[buildStatus text='x']", "\u00a0::add-mask::x",
)  # fmt: skip
CONTROLS = "\x1b[2J\x9b\u202e\x1b[8mhidden\x1b[30m"


def every_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: str) -> None:
    """A project whose names, comments, descriptions and messages are as bad as they may be."""
    quoted = bad.replace("'", "")
    enter_project(tmp_path, monkeypatch, {
        "dbt_project.yml": "name: shop\nprofile: shop\n",
        "profiles.yml": "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
        "models/m.sql": f"{{{{ log({json.dumps(bad)}, info=true) }}}}\nselect 'x\n{quoted}' as `c{quoted}`",
        "models/n.sql": f"-- {bad}\nselect `c{quoted}` as b, rand() as c, '{quoted}' as d from {{{{ ref('m') }}}}",
        "macros/x.sql": f"{{% macro op() %}}{{{{ print({json.dumps(bad)}) }}}}{{% endmacro %}}",
        "models/y.yml": json.dumps({"models": [{"name": "m", "description": bad, "meta": {"k": bad}}]}),
    })  # fmt: skip


EVERY_CALL = (
    ["parse"], ["ls"], ["ls", "--output", "path"], ["ls", "--output", "json", "--output-keys", "description,meta"],
    ["lint"], ["compile", "-s", "m", "n"], ["lineage", "n"], ["lineage", "m", "--output", "json"],
    ["explain"], ["explain", "--sql"],
    ["show", "m"], ["show", "n", "--output", "json"], ["build"], ["run-operation", "op"], ["import-check"],
    ["compile", "--output", "github"], ["compile", "--output", "json"], ["lint", "--output", "sarif"], ["debug"],
    ["ls", "-s", "{bad}"], ["compile", "--inline", "select '{bad}' as a"], ["compile", "--inline", "{{{{ {bad} }}}}"],
    ["ls", "--vars", "{bad}"], ["build", "--log-format", "json"], ["docs", "generate"], ["report"],
)  # fmt: skip


@pytest.mark.parametrize("words", EVERY_CALL, ids=" ".join)
def test_no_command_prints_a_control_character_of_a_project(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    every_text(tmp_path, monkeypatch, CONTROLS)
    monkeypatch.delenv("CI", raising=False)
    main([word.format(bad=CONTROLS) for word in words])
    seen = "".join(capsys.readouterr())
    for ours in ("\x1b[31m", "\x1b[1m", "\x1b[0m"):
        seen = seen.replace(ours, "")
    assert seen and not BAD & set(seen) - {"\t"}, ascii(seen)


@sample("bad", COMMANDS, every=3)
@pytest.mark.parametrize("words", EVERY_CALL, ids=" ".join)
def test_no_line_is_a_command_to_a_runner_of_ci(
    words: list[str], bad: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    every_text(tmp_path, monkeypatch, bad)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    main([word.format(bad=bad) for word in words])
    lines = "".join(capsys.readouterr()).splitlines()
    ours = tuple(f"::{level} " for level in ("error", "warning")) if "github" in words else ()
    obeyed = [line for line in lines if line.lstrip().startswith("::") or "##[" in line or "##vso[" in line]
    assert lines and all(line.startswith(ours) for line in obeyed if ours) and (ours or not obeyed), obeyed
    assert not any(line.lstrip().startswith("##teamcity[") for line in lines)


def test_elsewhere_a_cast_at_the_begin_of_a_line_is_printed_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    every_text(tmp_path, monkeypatch, "::int")
    for name in ("CI", "GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION"):
        monkeypatch.delenv(name, raising=False)
    assert main(["compile", "--inline", "select 1\n::int as a"]) == 0
    assert capsys.readouterr().out == "select 1\n::int as a\n"


def test_json_artifacts_do_nothing_to_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every_text(tmp_path, monkeypatch, CONTROLS)
    main(["build"])
    written = (tmp_path / "target/manifest.json").read_text()
    assert not BAD & set(written) and json.loads(written)["nodes"]["model.shop.m"]["description"] == CONTROLS
    assert not BAD & set((tmp_path / "target/run_results.json").read_text())


def test_a_call_that_prints_is_found_by_the_linter() -> None:
    text = "click.echo(1)\npartial(click.secho, 1)\nprint(1)\necho(1)\nsys.stdout.write('')"
    assert sorted(line for _, line in printed(ast.parse(text))) == [1, 2, 3, 5]


HOSTS = {
    "127.0.0.1": True, "127.0.0.1:8080": True, "localhost": True, "localhost:1": True, "[::1]:8080": True,
    "LOCALHOST": True,
    "192.168.1.7:8080": True, "evil.example": False, "evil.example:8080": False, "localhost.evil.example": False,
    "127.0.0.1.evil.example": False, "": False, "[": False, "a@localhost": False, "localhost@evil.example": False,
}  # fmt: skip


@pytest.mark.parametrize(("host", "is_own"), HOSTS.items())
def test_a_request_names_this_server(host: str, is_own: bool) -> None:
    assert is_own_host(host) == is_own


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "index.html").write_text("<p>site</p>")
    (tmp_path / "secret.txt").write_text("secret")
    with site_server(tmp_path / "index.html", "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield int(server.server_port)
        server.shutdown()
        thread.join()


def ask(port: int, path: str = "/", host: str = "localhost") -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", path, headers={"Host": host})
    return connection.getresponse()


def test_the_site_is_framed_by_nobody_and_is_what_it_says(port: int) -> None:
    answer = ask(port)
    assert answer.status == 200 and "frame-ancestors 'none'" in str(answer.getheader("Content-Security-Policy"))
    assert answer.getheader("X-Content-Type-Options") == "nosniff" and answer.getheader("X-Frame-Options") == "DENY"


@pytest.mark.parametrize(("path", "host", "status"), [
    ("/", "evil.example", 421), ("/manifest.json", "evil.example:80", 421), ("/secret.txt", "localhost", 404),
    ("/../secret.txt", "localhost", 404), ("/%2e%2e/x", "localhost", 404), ("//evil.example/", "localhost", 404),
])  # fmt: skip
def test_other_names_and_other_files_are_not_served(port: int, path: str, host: str, status: int) -> None:
    answer = ask(port, path, host)
    assert answer.status == status and b"secret" not in answer.read()


@pytest.mark.parametrize("name", ["it's", "a\\b", "a*b", "a?b", "a[b]c", "a\\'*", "a b", "a''b", "{a,b}", "ü"])
def test_files_of_any_folder_are_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / name / "f.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"a": [1]}), path)
    db = reader([str(path)]).connection
    assert db.execute(f"select * from {_files([str(path)], (Column('a', 'int'),))}").fetchall() == [(1,)]
    db.close()
