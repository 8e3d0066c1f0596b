"""What people see: rows do nothing to a terminal, a page is framed by nobody, a server answers its own name alone."""

from __future__ import annotations

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
from sqlmesh_like.control_characters import shown
from sqlmesh_like.docs.server import is_own_host, site_server
from sqlmesh_like.duckdb.duck_connection import reader
from sqlmesh_like.duckdb.local_query import _files
from sqlmesh_like.names import Column
from sqlmesh_like.report.chart import Chart
from sqlmesh_like.report.drawing import drawing
from sqlmesh_like.run.ports import Rows
from tests.projects import enter_project

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
    assert not BAD & set(table) and shown(text) in table and len(table.splitlines()) == 7
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
    svg = drawing(chart, rows(text), 400, "x")
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


HOSTS = {
    "127.0.0.1": True, "127.0.0.1:8080": True, "localhost": True, "localhost:1": True, "[::1]:8080": True,
    "LOCALHOST": True,
    "192.168.1.7:8080": True, "evil.example": False, "evil.example:8080": False, "localhost.evil.example": False,
    "127.0.0.1.evil.example": False, "": False, "[": False, "a@localhost": True, "localhost@evil.example": False,
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
    db = reader([str(path)])
    assert db.execute(f"select * from {_files([str(path)], (Column('a', 'int'),))}").fetchall() == [(1,)]
    db.close()
