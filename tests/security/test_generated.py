"""Payloads that a generator makes of the classes that got in before: none does anything outside, or is "unexpected".

Each number is one payload. The suite tries two of a class, `make test-all` 300 and `make test-deep` 3,000.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import socket
import tarfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from sqlmesh_like.app.monitoring.status_server import is_near_host
from sqlmesh_like.app.setup.archive import ArchiveError, extract
from sqlmesh_like.cli.app import main
from sqlmesh_like.docs.server import is_own_host, site_server
from tests.levels import count, parametrize
from tests.security.payloads import CLASSES, NAMES, PRECIOUS, SECRET, STEPS, Payload, payload_of, texts

Shown = pytest.CaptureFixture[str]
SECONDS = 30
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_FAULT = re.compile(r"unexpected [A-Z]\w+: |Traceback \(most")
_INSIDE = re.compile(
    r"<(?:module|frame|code object|slot wrapper|built-in|class '(?:type|object|module|os\.|sys\.))|mappingproxy"
)
"""What a template prints that has come to Python's own objects."""
_FOR_A_RUNNER = re.compile(r"^(?:::|##)", re.MULTILINE)


@parametrize("number", suite=range(2 * len(CLASSES)), release=range(2 * len(CLASSES), count(300, 300, 3_000)))
def test_a_generated_payload_gets_nowhere(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    payload, root, outside = payload_of(number), tmp_path / "shop", tmp_path / "other"
    monkeypatch.setenv("DBT_ENV_SECRET_X", SECRET)
    monkeypatch.setenv("SML_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CI", "1")
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)
    _plant_precious(outside)
    _put_together(payload, root, outside)
    monkeypatch.chdir(root)
    before, started = (_state(outside), sorted(tmp_path.iterdir())), time.process_time()
    code = main(payload.command)
    printed = capsys.readouterr()
    said = printed.out + printed.err + "".join(_written(root))
    assert time.process_time() - started < SECONDS
    assert code in (0, 1, 2) and not _FAULT.search(said), printed.err[-600:]
    assert SECRET not in said and PRECIOUS not in said
    assert not _INSIDE.search(said)
    raw = printed.err if "csv" in payload.command else printed.out + printed.err
    assert not _CONTROL.search(raw) and not _FOR_A_RUNNER.search(raw)
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)
    assert (_state(outside), sorted(tmp_path.iterdir())) == before


def _plant_precious(outside: Path) -> None:
    (outside / "models").mkdir(parents=True)
    (outside / "dbt_project.yml").write_text("name: other\n")
    (outside / "models/p.sql").write_text(f"select '{PRECIOUS}' as p")
    (outside / "p.csv").write_text(f"a\n{PRECIOUS}\n")
    (outside / "x.yml").write_text(f"a: {PRECIOUS}\n")


def _put_together(payload: Payload, root: Path, outside: Path) -> None:
    """Make the project; what the system does not take, such as a name, is not there."""
    root.mkdir()
    for path, content in payload.files.items():
        text = (
            content
            if isinstance(content, bytes)
            else content.replace("{outside}", str(outside)).encode(errors="surrogatepass")
        )
        with suppress(OSError, ValueError):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(text)
    for path, target in payload.links.items():
        with suppress(OSError):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).symlink_to(target.replace("{outside}", str(outside)))
    for path in (*payload.pipes, *payload.folders):
        with suppress(OSError):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (os.mkfifo if path in payload.pipes else os.mkdir)(root / path)


def _state(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _written(root: Path) -> list[str]:
    paths = (path for path in (root / "target").rglob("*") if not (root / "target").is_symlink())
    return [path.read_text(errors="replace") for path in paths if path.is_file() and not path.is_symlink()]


_TYPES = (
    *(tarfile.REGTYPE,) * 6, *(tarfile.DIRTYPE,) * 2, tarfile.AREGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE,
    tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE, b"V", b"M", b"\xff",
)  # fmt: skip


def _archive(chance: Random) -> bytes:
    """A tarball of some members, sometimes with some of its bytes replaced."""
    content = io.BytesIO()
    form = chance.choice((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT))
    with tarfile.open(fileobj=content, mode=chance.choice(("w", "w:gz", "w:xz", "w:bz2")), format=form) as archive:
        for _ in range(chance.randint(1, 6)):
            member = tarfile.TarInfo("/".join(chance.choices((*STEPS, *NAMES, "a", "a"), k=chance.randint(1, 4)))[:600])
            member.type = chance.choice(_TYPES)
            member.linkname = chance.choice(("../../x", "/etc/passwd", "x", "a", "a/a"))
            member.mode = chance.choice((0o644, 0o4777, 0))
            data = b"x" * chance.choice((0, 0, 3, 600))
            member.size = len(data)
            if chance.random() < 0.4:
                member.pax_headers = {
                    chance.choice(texts("tar_attributes")): chance.choice(texts("tar_values")) for _ in range(2)
                }
            with suppress(ValueError, UnicodeError, OverflowError):
                archive.addfile(member, io.BytesIO(data))
    spoilt = bytearray(content.getvalue())
    for _ in range(chance.choice((0, 0, 3, 30))):
        spoilt[chance.randrange(len(spoilt))] = chance.randrange(256)
    return bytes(spoilt)


def test_generated_archives_write_nothing_elsewhere(tmp_path: Path) -> None:
    for number in range(count(150, 600, 6_000)):
        into, started = tmp_path / "in" / str(number), time.process_time()
        with suppress(ArchiveError):
            extract(_archive(Random(number)), into)
        assert all(path.is_relative_to(tmp_path / "in") for path in tmp_path.rglob("*") if path != tmp_path / "in")
        inside = [path for path in into.rglob("*") if not path.is_dir() or path.is_symlink()]
        assert all(path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o7000 == 0 for path in inside)
        assert time.process_time() - started < SECONDS, number
        shutil.rmtree(into, ignore_errors=True)


_EVIL = ("evil.test", "localhost.evil.test", "127.0.0.1.evil.test", "xn--localhost-x.test", "a.b")


def test_generated_hosts_are_not_ours() -> None:
    for number in range(300):
        chance = Random(number)
        host = chance.choice(texts("around_hosts")).format(chance.choice(_EVIL))
        host = chance.choice((host, host.upper(), f" {host}", host.replace(".", "\uff0e")))
        assert not is_own_host(host) and not is_near_host(host), host


def test_generated_requests_get_no_file_and_no_header_of_their_own(tmp_path: Path) -> None:
    """Sent as they are, without a library that would refuse them."""
    (tmp_path / "target").mkdir()
    (tmp_path / "target/index.html").write_text("the site")
    (tmp_path / "target/dbt.log").write_text(PRECIOUS)
    (tmp_path / "p.csv").write_text(PRECIOUS)
    (tmp_path / "target/catalog.json").symlink_to(tmp_path / "p.csv")
    server = site_server(tmp_path / "target/index.html", "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    answered, asked = 0, count(60, 300, 3_000)
    try:
        for number in range(asked):
            request = _request(Random(number))
            with socket.create_connection(server.server_address[:2], timeout=60) as client:  # type: ignore[arg-type]
                answer = _answer(client, request)
            answered += bool(answer)
            head, _, body = answer.partition(b"\r\n\r\n")
            assert PRECIOUS.encode() not in answer and b"Traceback" not in answer, request
            assert b"x-made" not in head.lower() and b"set-cookie" not in head.lower(), request
            assert b"<script" not in body, request
    finally:
        server.shutdown()
        server.server_close()
    assert answered > asked / 2


def _answer(client: socket.socket, request: bytes) -> bytes:
    """What the server sends: it may refuse a request, and close, before it has read all of it."""
    answer = b""
    with suppress(OSError):
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
    with suppress(ConnectionError):
        while part := client.recv(65_536):
            answer += part
    return answer


def _request(chance: Random) -> bytes:
    kinds = ("methods", "request_paths", "versions", "request_hosts", "headers")
    method, path, version, host, more = (chance.choice(texts(kind)) for kind in kinds)
    text = f"{method} {path} {version}\r\nHost: {host}\r\n{more}Connection: close\r\n\r\n"
    return text.encode(errors="surrogatepass")
