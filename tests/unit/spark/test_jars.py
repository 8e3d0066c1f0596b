"""The jar cache, against a Maven repository on loopback."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import BinaryIO

import pytest

from sqlmesh_like.errors import MachineError
from sqlmesh_like.spark.jvm.jars import Jar, cache_dir, ensure_jars, jar_path, jar_state, locked_jars

CONTENT = b"the bytes of a jar"
JAR = Jar("org.example", "lib_2.12", "1.0", hashlib.sha256(CONTENT).hexdigest())
OTHER_HASH = Jar(JAR.group, JAR.artifact, JAR.version, "0" * 64)


class _Quiet(SimpleHTTPRequestHandler):
    requested: list[str]

    def log_message(self, format: str, *arguments: object) -> None:
        self.requested.append(self.path)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SML_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("sqlmesh_like.spark.jvm.jars._WAITS_SECONDS", (0.01, 0.01))
    return tmp_path / "cache"


@pytest.fixture
def requests_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A mirror that has the jar; yields the paths asked of it."""
    published = tmp_path / "maven/org/example/lib_2.12/1.0/lib_2.12-1.0.jar"
    published.parent.mkdir(parents=True)
    published.write_bytes(CONTENT)
    requested: list[str] = []
    handler = type("Handler", (_Quiet,), {"requested": requested})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(tmp_path / "maven"))) as server:
        Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        monkeypatch.setenv("SML_MAVEN_URL", f"http://127.0.0.1:{server.server_port}/")
        yield requested
        server.shutdown()


def test_a_missing_jar_is_fetched_from_the_mirror(requests_made: list[str]) -> None:
    assert jar_state(JAR) == "missing"
    (path,) = ensure_jars((JAR,))
    assert path == jar_path(JAR)
    assert path.read_bytes() == CONTENT
    assert jar_state(JAR) == "verified"


def test_a_verified_jar_is_not_fetched_again(requests_made: list[str]) -> None:
    ensure_jars((JAR,))
    before = len(requests_made)
    ensure_jars((JAR,))
    assert len(requests_made) == before


def test_nothing_but_jar_stamp_and_lock_stays_in_the_cache(requests_made: list[str], cache: Path) -> None:
    ensure_jars((JAR,))
    assert sorted(file.name for file in (cache / "jars").iterdir()) == [
        ".lock",
        "lib_2.12-1.0.jar",
        "lib_2.12-1.0.jar.verified",
    ]


def test_two_at_once_fetch_it_once(requests_made: list[str]) -> None:
    with ThreadPoolExecutor(2) as pool:
        paths = [each for (each,) in pool.map(lambda _: ensure_jars((JAR,)), range(2))]
    assert paths[0] == paths[1]
    assert len([path for path in requests_made if path.endswith(".jar")]) == 1


def test_progress_ends_at_the_full_size(requests_made: list[str]) -> None:
    seen: list[tuple[str, int, int]] = []
    ensure_jars((JAR,), progress=lambda *step: seen.append(step))
    assert seen[-1] == ("lib_2.12-1.0.jar", len(CONTENT), len(CONTENT))


def test_a_download_with_a_wrong_hash_is_set_aside_and_told(requests_made: list[str]) -> None:
    with pytest.raises(MachineError) as caught:
        ensure_jars((OTHER_HASH,))
    rejected = jar_path(JAR).with_name("lib_2.12-1.0.jar.rejected")
    assert rejected.read_bytes() == CONTENT
    assert not jar_path(JAR).exists()
    for part in (str(rejected), OTHER_HASH.sha256, JAR.sha256, "sml deps"):
        assert part in str(caught.value)


def test_a_cached_jar_with_a_wrong_hash_is_left_alone_and_told(cache: Path) -> None:
    jar_path(JAR).parent.mkdir(parents=True)
    jar_path(JAR).write_bytes(b"tampered")
    with pytest.raises(MachineError, match="wrong SHA-256") as caught:
        ensure_jars((JAR,))
    assert jar_path(JAR).read_bytes() == b"tampered"
    assert caught.value.hint == "it was left as it is: delete the file and run `sml deps`"
    assert caught.value.exit_code == 2


def test_a_jar_changed_after_its_verification_is_noticed(requests_made: list[str]) -> None:
    ensure_jars((JAR,))
    jar_path(JAR).write_bytes(b"changed and longer than before")
    assert jar_state(JAR) == "unverified"
    with pytest.raises(MachineError, match="wrong SHA-256"):
        ensure_jars((JAR,))


def test_no_network_names_the_way_out_and_hides_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("SML_MAVEN_URL", f"http://me:hunter2@127.0.0.1:{closed.getsockname()[1]}")
        with pytest.raises(MachineError, match="cannot reach the mirror in SML_MAVEN_URL") as caught:
            ensure_jars((JAR,))
    assert "sml deps" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_download_trusts_the_authorities_of_the_machine(
    requests_made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "authorities.pem").touch()
    monkeypatch.setattr("sqlmesh_like.spark.jvm.jars._SYSTEM_AUTHORITIES", (tmp_path / "authorities.pem",))
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    seen: list[str | None] = []
    ensure_jars((JAR,), progress=lambda *step: seen.append(os.environ.get("REQUESTS_CA_BUNDLE")))
    assert set(seen) == {str(tmp_path / "authorities.pem")}
    assert "REQUESTS_CA_BUNDLE" not in os.environ


def test_authorities_that_the_user_chose_stay(requests_made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "chosen.pem")
    seen: list[str | None] = []
    ensure_jars((JAR,), progress=lambda *step: seen.append(os.environ.get("REQUESTS_CA_BUNDLE")))
    assert set(seen) == {"chosen.pem"}


def test_a_connection_that_breaks_in_the_middle_is_tried_twice_more(
    requests_made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks = [True, True]

    def half_first(self: _Quiet, source: BinaryIO, target: BinaryIO) -> None:
        target.write(source.read()[: 5 if breaks and breaks.pop() else None])

    monkeypatch.setattr(_Quiet, "copyfile", half_first)
    (path,) = ensure_jars((JAR,))
    assert path.read_bytes() == CONTENT
    assert requests_made.count(f"/org/example/lib_2.12/1.0/{JAR.file_name}") == 3
    path.unlink()
    breaks.extend([True] * 3)
    with pytest.raises(MachineError, match=r"cannot reach the mirror in SML_MAVEN_URL \(ChunkedEncodingError\)"):
        ensure_jars((JAR,))
    assert (breaks, path.exists()) == ([], False)


def test_a_busy_mirror_is_asked_again(requests_made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    busy = [True, True]
    get = _Quiet.do_GET

    def unavailable(self: _Quiet) -> None:
        if busy:
            busy.pop()
            self.send_error(503)
        else:
            get(self)

    monkeypatch.setattr(_Quiet, "do_GET", unavailable)
    (path,) = ensure_jars((JAR,))
    assert (path.read_bytes(), busy) == (CONTENT, [])


def test_a_jar_the_mirror_lacks_is_told(requests_made: list[str]) -> None:
    with pytest.raises(MachineError, match=r"org.example:other:2.0: the mirror in SML_MAVEN_URL does not have it"):
        ensure_jars((Jar("org.example", "other", "2.0", ""),))


def test_a_cache_that_cannot_be_written_names_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SML_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(MachineError, match="cannot write to the jar cache") as caught:
        ensure_jars((JAR,))
    assert "SML_CACHE_DIR" in str(caught.value)


def test_the_cache_is_per_user_where_no_variable_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SML_CACHE_DIR")
    assert cache_dir().name == "sqlmesh_like"


def test_every_locked_jar_has_coordinates_and_a_hash() -> None:
    assert [str(jar) for jar in locked_jars()] == ["org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"]
    assert all(len(jar.sha256) == 64 for jar in locked_jars())
