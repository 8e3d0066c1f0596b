"""Where class archives live and when they are used; none is made here."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmesh_like.errors import MachineError
from sqlmesh_like.spark.jvm import cds_archive
from sqlmesh_like.spark.jvm.cds_archive import archive_options, make_archive
from sqlmesh_like.spark.jvm.java import Jdk


@pytest.fixture
def jdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jdk:
    monkeypatch.setenv("SML_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "jdk").mkdir()
    return Jdk(tmp_path / "jdk", "17.0.9", "PATH")


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Stands in for Java: writes the file that the options name; yields the commands."""
    commands: list[list[str]] = []

    def run(command: list[str]) -> None:
        commands.append(command)
        for option in command:
            if option.startswith("-XX:ArchiveClassesAtExit="):
                Path(option.partition("=")[2]).touch()

    monkeypatch.setattr(cds_archive, "_run", run)
    return commands


def test_without_an_archive_there_are_no_options(jdk: Jdk) -> None:
    assert archive_options(jdk, ()) == ()


def test_an_archive_that_was_made_is_used(jdk: Jdk, trained: list[list[str]]) -> None:
    make_archive(jdk, ())
    silent, archive = archive_options(jdk, ())
    assert silent == "-Xlog:disable"
    assert archive.endswith("sessions.jsa")


def test_an_archive_is_made_once(jdk: Jdk, trained: list[list[str]]) -> None:
    make_archive(jdk, ())
    before = len(trained)
    make_archive(jdk, ())
    assert len(trained) == before


def test_another_jdk_or_other_jars_do_not_share_an_archive(jdk: Jdk, trained: list[list[str]], tmp_path: Path) -> None:
    make_archive(jdk, ())
    assert archive_options(Jdk(jdk.home, "17.0.10", "PATH"), ()) == ()
    assert archive_options(jdk, (tmp_path / "other.jar",)) == ()


def test_the_archive_of_a_removed_jdk_goes_with_the_next_one(
    jdk: Jdk, trained: list[list[str]], tmp_path: Path
) -> None:
    make_archive(jdk, ())
    jdk.home.rmdir()
    (tmp_path / "newer").mkdir()
    make_archive(Jdk(tmp_path / "newer", "17.0.9", "PATH"), ())
    assert len(list((tmp_path / "cache" / "classes").glob("*/sessions.jsa"))) == 1


def test_a_java_that_does_not_run_is_told(jdk: Jdk) -> None:
    with pytest.raises(MachineError, match="no class archive was made"):
        make_archive(jdk, ())
    assert archive_options(jdk, ()) == ()
