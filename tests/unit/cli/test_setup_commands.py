"""`sml deps` and `sml debug`, called as click calls them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from sqlmesh_like.app.reporter import LogReporter
from sqlmesh_like.app.setup import dependencies
from sqlmesh_like.app.setup.doctor import Check, CheckRequest
from sqlmesh_like.cli.app import main
from sqlmesh_like.cli.commands import debug
from sqlmesh_like.errors import MachineError
from sqlmesh_like.spark.jvm.jars import Jar
from sqlmesh_like.spark.jvm.java import Jdk

JDK_11 = Jdk(Path("/jdk"), "11.0.22", "PATH")
JDK_17 = Jdk(Path("/jdk"), "17.0.9", "PATH")
CONTENT = b"the bytes of a jar"
JAR = Jar("org.example", "lib", "1.0", hashlib.sha256(CONTENT).hexdigest())


def test_deps_names_every_verified_jar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SML_CACHE_DIR", str(tmp_path))
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / JAR.file_name).write_bytes(CONTENT)
    monkeypatch.setattr(dependencies, "locked_jars", lambda: (JAR,))
    monkeypatch.setattr(dependencies, "find_jdk", lambda: JDK_11)
    assert main(["deps", "--project-dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"org.example:lib:1.0 verified: {tmp_path / 'jars' / 'lib-1.0.jar'}\n"


def test_debug_ends_with_all_checks_passed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(debug, "run_checks", lambda asked: iter([Check("python", True, "3.11")]))
    assert main(["debug", "--project-dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "All checks passed!"


def test_debug_exits_1_where_a_check_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(debug, "run_checks", lambda asked: iter([Check("JDK", False, "none"), Check("x", True, "")]))
    assert main(["debug", "--project-dir", str(tmp_path)]) == 1
    shown = capsys.readouterr()
    assert "All checks passed!" not in shown.out
    assert "1 check failed" in shown.err


def test_debug_passes_its_flags_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[CheckRequest] = []
    monkeypatch.setattr(debug, "run_checks", lambda asked: iter(seen.append(asked) or ()))
    main(["debug", "--project-dir", str(tmp_path), "--profile", "p", "-t", "x", "--vars", "{a: 1}"])
    assert seen == [CheckRequest(tmp_path.resolve(), None, "p", "x", {"a": 1})]


def test_a_class_archive_that_cannot_be_made_is_a_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(jdk: Jdk, jars: tuple[Path, ...]) -> None:
        raise MachineError("no class archive was made: disk full")

    monkeypatch.setenv("SML_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(dependencies, "make_archive", fail)
    monkeypatch.setattr(dependencies, "find_jdk", lambda: JDK_17)
    messages: list[str] = []
    dependencies.prepare_archive((), LogReporter(), messages.append)
    assert messages[-1] == "warning: no class archive was made: disk full"


def test_a_jdk_that_cannot_write_archives_is_not_asked_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dependencies, "make_archive", lambda jdk, jars: pytest.fail("was asked"))
    monkeypatch.setattr(dependencies, "find_jdk", lambda: JDK_11)
    messages: list[str] = []
    dependencies.prepare_archive((), LogReporter(), messages.append)
    assert messages == []
