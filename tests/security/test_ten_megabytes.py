"""Ten megabytes of one kind keep no command busy: it ends with its result, or with an error that names the file.

In a process of its own, whose time and memory the system tells. All kinds by `make test-deep`, the dearest one of each
command before a release.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.security.ten_megabytes import KINDS, files_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory and tells why it ended")
SECONDS, KILOBYTES = 30, 2_000_000
COMMANDS = ("parse", "compile", "ls", "docs generate", "lsp")
DEAREST = {
    ("exposures", "parse"), ("unions", "compile"), ("unit tests", "ls"), ("descriptions", "docs generate"),
    ("blanks", "lsp"),
}  # fmt: skip
CASES = [
    pytest.param(kind, command, marks=pytest.mark.release if (kind, command) in DEAREST else pytest.mark.deep)
    for command in COMMANDS
    for kind in KINDS
]


@dataclass(frozen=True)
class Ended:
    """How a process ended: what it said, and what it and those below it took."""

    code: int
    output: str
    seconds: float
    kilobytes: int


def call(root: Path, command: str, given: bytes) -> Ended:
    """Run `sml` in a project, with `given` on its standard input, without what an earlier call remembers of it."""
    caches = {"SML_CACHE_DIR": str(root.parent / "cache"), "DBT_PARTIAL_PARSE": "false"}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **caches}
    (root.parent / "given").write_bytes(given)
    with (root.parent / "given").open("rb") as stdin, (root.parent / "output").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "sqlmesh_like", *command.split()],
            cwd=root,
            env=environment,
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    said = (root.parent / "output").read_text(errors="replace")
    return Ended(process.returncode, said, used.ru_utime + used.ru_stime, used.ru_maxrss)


def an_editor(root: Path, path: str, text: str) -> bytes:
    """What an editor sends that opens a file, edits it ten times, and asks at several places."""
    sent: list[dict[str, object]] = []

    def ask(method: str, params: object) -> None:
        sent.append({"id": len(sent), "method": method, "params": params})

    def notify(method: str, params: object) -> None:
        sent.append({"method": method, "params": params})

    document, line = {"uri": (root / path).as_uri()}, len(text.split("\n", 1)[0])
    ask("initialize", {"processId": None, "rootUri": root.as_uri(), "capabilities": {}})
    notify("initialized", {})
    notify("textDocument/didOpen", {"textDocument": {**document, "languageId": "sql", "version": 1, "text": text}})
    for version in range(2, 12):
        edited = {"textDocument": {**document, "version": version}, "contentChanges": [{"text": text + " " * version}]}
        notify("textDocument/didChange", edited)
    for row, column in ((0, line), (0, line // 2), (text.count("\n"), 3)):
        for method in ("completion", "hover", "definition"):
            place = {"line": row, "character": column}
            ask(f"textDocument/{method}", {"textDocument": document, "position": place})
    ask("shutdown", None)
    notify("exit", None)
    bodies = [json.dumps({"jsonrpc": "2.0", **message}).encode() for message in sent]
    return b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(body), body) for body in bodies)


@pytest.mark.parametrize(("kind", "command"), CASES)
def test_no_ten_megabytes_keep_a_command_busy(kind: str, command: str, tmp_path: Path) -> None:
    root, files = tmp_path / "shop", files_of(kind)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode(errors="surrogateescape"))
    path = KINDS[kind][0]
    shown = files[path].encode(errors="replace").decode()
    ended = call(root, command, an_editor(root, path, shown) if command == "lsp" else b"")
    assert ended.seconds < SECONDS and ended.kilobytes < KILOBYTES, ended
    assert "unexpected" not in ended.output and "Traceback" not in ended.output, ended.output[-2_000:]
    if command == "lsp":
        assert ended.code == 0 and ended.output.count('"result"') == 11, ended.output[-2_000:]
    else:
        assert ended.code == 0 or (ended.code == 2 and f"error: {path}" in ended.output), ended.output[-2_000:]
