"""What commands write, remove and unpack: below the project's root, through no link, from no archive that lies."""

from __future__ import annotations

import io
import os
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlmesh_like.app.setup import archive
from sqlmesh_like.app.setup.archive import ArchiveError, extract
from sqlmesh_like.cli.app import main
from tests.projects import enter_project

SETTINGS = "name: shop\n"
PROFILES = "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n"
FILES = {"profiles.yml": PROFILES, "models/m.sql": "select 1 as a", "macros/x.sql": "{% macro x() %}1{% endmacro %}"}
WAYS_OUT = (
    "/abs",
    "..",
    "../other",
    "a/../../other",
    "./../other",
    "{outside}",
    "models/../../other",
    "C:\\x",
    "..\\x",
)
Shown = pytest.CaptureFixture[str]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "other"
    (folder / "models").mkdir(parents=True)
    (folder / "dbt_project.yml").write_text("name: other\n")
    (folder / "models" / "precious.sql").write_text("select 1 as precious")
    return folder


def state(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("way", WAYS_OUT)
@pytest.mark.parametrize(
    ("key", "command"),
    [
        ("packages-install-path", "deps"),
        ("target-path", "compile"),
        ("model-paths", "compile"),
        ("macro-paths", "compile"),
        ("clean-targets", "clean"),
    ],
)
def test_a_path_of_the_settings_that_leads_out_is_refused_and_nothing_is_changed(
    key: str, command: str, way: str, outside: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    path = way.format(outside=outside)
    value = f"'{path}'" if key.endswith("-path") else f"['{path}']"
    root = outside.parent / "shop"
    packages = {"packages.yml": "packages: [{local: ../kit}]\n", "../kit/dbt_project.yml": "name: kit\n"}
    enter_project(root, monkeypatch, {**FILES, **packages, "dbt_project.yml": f"{SETTINGS}{key}: {value}\n"})
    before = state(outside.parent)
    assert main([command, *(["-t", "t"] if command == "deps" else [])]) == 2
    shown = "".join(capsys.readouterr())
    assert "is not a folder inside the project" in shown and "Traceback" not in shown
    assert state(outside.parent) == before


@pytest.mark.parametrize(
    "target",
    [
        ".git",
        "sub/.git",
        "macros",
        "models",
        "tests",
        "warehouse",
        "lake",
        "linked",
        "linked/models",
        ".",
        "repository",
    ],
)
def test_clean_refuses_sources_repositories_tables_and_links(
    target: str, outside: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    root = outside.parent / "shop"
    more = {
        ".git/HEAD": "x",
        "sub/.git/HEAD": "x",
        "repository/deep/.git/HEAD": "x",
        "tests/t.sql": "select 1 as a where false",
        "warehouse/ods/t/.hoodie/hoodie.properties": "x",
        "lake/_sml/run.lock": "",
    }
    enter_project(root, monkeypatch, {**FILES, **more, "dbt_project.yml": f"{SETTINGS}clean-targets: ['{target}']\n"})
    (root / "linked").symlink_to(outside)
    before = state(outside.parent)
    assert main(["clean"]) == 2
    assert "Traceback" not in "".join(capsys.readouterr())
    assert state(outside.parent) == before


@pytest.mark.parametrize(
    ("linked", "command"),
    [
        ("models", "ls"), ("models/sub", "ls"), ("seeds", "ls"), ("macros", "compile"), ("tests", "ls"),
        ("target", "compile"), ("profiles.yml", "ls"), ("dbt_project.yml", "ls"), ("packages.yml", "deps"),
        ("selectors.yml", "ls"), ("models/schema.yml", "ls"), ("seeds/s.csv", "ls"),
    ],
)  # fmt: skip
def test_what_is_reached_by_a_link_out_of_the_project_is_neither_read_nor_written(
    linked: str, command: str, outside: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    root = outside.parent / "shop"
    paths = "model-paths: [models, models/sub]\n"
    enter_project(
        root, monkeypatch, {**FILES, "dbt_project.yml": f"{SETTINGS}{paths}", "models/m.sql": "select 1 as a"}
    )
    elsewhere = outside / "secret"
    if "." in linked:
        elsewhere.write_text("password-1: [")
    else:
        elsewhere.mkdir()
        (elsewhere / "x.sql").write_text("select 'password-1' as a")
        (elsewhere / "x.csv").write_text("password-1\n")
    link = root / linked
    if link.is_dir():
        link.rename(root / "moved")
    link.unlink(missing_ok=True)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(elsewhere)
    before, walk, walked = state(outside), os.walk, list[Path]()

    def walk_noted(top: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        walked.append(Path(top).resolve())
        return walk(top)

    monkeypatch.setattr(os, "walk", walk_noted)
    assert main([command]) == 2
    assert elsewhere not in walked, "it may be the root of a file system"
    shown = "".join(capsys.readouterr())
    assert re.search("link that leaves the project|goes through a link", shown), shown
    assert "password-1" not in shown and "Traceback" not in shown
    assert state(outside) == before


def test_clean_removes_what_commands_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    kit = {"dbt_packages/kit/dbt_project.yml": "name: kit\n", "dbt_packages/kit/models/k.sql": "select 1 as a"}
    settings = f"{SETTINGS}clean-targets: [target, dbt_packages]\n"
    enter_project(tmp_path, monkeypatch, {**FILES, **kit, "dbt_project.yml": settings, "target/x": ""})
    assert main(["clean"]) == 0, capsys.readouterr()
    assert not (tmp_path / "target").exists() and not (tmp_path / "dbt_packages").exists()


def project(outside: Path, monkeypatch: pytest.MonkeyPatch, **files: str) -> Path:
    root = outside.parent / "shop"
    kit = {"../kit/dbt_project.yml": "name: kit\n"}
    wanted = {"packages.yml": "packages: [{local: ../kit}]\n"}
    enter_project(root, monkeypatch, {**FILES, **kit, **wanted, "dbt_project.yml": SETTINGS, **files})
    return root


def test_deps_removes_only_what_its_lock_file_names(
    outside: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    root = project(outside, monkeypatch, **{"dbt_packages/mine/dbt_project.yml": "name: mine\n"})
    assert main(["deps", "-t", "t"]) == 0, capsys.readouterr()
    assert (root / "dbt_packages/kit").is_symlink() and (root / "dbt_packages/mine/dbt_project.yml").is_file()


def test_deps_replaces_no_folder_that_it_did_not_make(
    outside: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    root = project(outside, monkeypatch, **{"dbt_packages/kit/precious": "x"})
    assert main(["deps", "-t", "t"]) == 2 and "is there already" in capsys.readouterr().err
    assert (root / "dbt_packages/kit/precious").read_text() == "x"


@pytest.mark.parametrize("where", ["dbt_packages/kit", ".", "./dbt_packages/../dbt_packages/kit"])
def test_deps_links_no_package_to_itself(
    where: str, outside: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    files = {"packages.yml": f"packages: [{{local: '{where}'}}]\n", "dbt_packages/kit/dbt_project.yml": "name: kit\n"}
    root = project(outside, monkeypatch, **files)
    (root.parent / "dbt_project.yml").write_text("name: above\n")
    before = state(outside.parent)
    assert main(["deps", "-t", "t"]) == 2
    assert "Traceback" not in capsys.readouterr().err and state(outside.parent) == before


def test_deps_goes_through_no_link(outside: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    root = project(outside, monkeypatch)
    (root / "dbt_packages").symlink_to(outside)
    before = state(outside)
    assert main(["deps", "-t", "t"]) == 2 and "goes through a link" in capsys.readouterr().err
    assert state(outside) == before


def test_a_package_names_no_secret(outside: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    monkeypatch.setenv("DBT_ENV_SECRET_WORD", "planted-word")
    address = "https://127.0.0.1:9/{{ env_var('DBT_ENV_SECRET_WORD') }}"
    project(outside, monkeypatch, **{"../kit/packages.yml": f'packages: [{{tarball: "{address}"}}]\n'})
    assert main(["deps", "-t", "t"]) == 2
    shown = "".join(capsys.readouterr())
    assert "is not available here" in shown and "planted-word" not in shown


@pytest.mark.parametrize("path", ["models/leak.sql", "macros/leak.sql", "models/leak.yml", "seeds/leak.csv"])
@pytest.mark.parametrize("target", ["/etc/passwd", "{outside}/models/precious.sql", "../../other/models/precious.sql"])
def test_a_link_that_leaves_the_project_is_refused(
    path: str, target: str, outside: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    root = outside.parent / "shop"
    enter_project(root, monkeypatch, {**FILES, "dbt_project.yml": SETTINGS, "seeds/s.csv": "a\n1\n"})
    (root / path).symlink_to(target.format(outside=outside))
    assert main(["parse"]) == 2
    shown = "".join(capsys.readouterr())
    assert "a link that leaves the project" in shown and "precious" not in shown.replace("precious.sql", "")
    assert not (root / "target" / "manifest.json").exists()


def test_a_link_within_the_project_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    enter_project(tmp_path, monkeypatch, {**FILES, "dbt_project.yml": SETTINGS, "shared/n.sql": "select 2 as b"})
    (tmp_path / "models/n.sql").symlink_to("../shared/n.sql")
    assert main(["parse"]) == 0, capsys.readouterr()


def test_a_package_with_a_link_that_leaves_it_is_not_installed(
    outside: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    root = project(outside, monkeypatch)
    (root.parent / "kit/models").mkdir()
    (root.parent / "kit/models/leak.sql").symlink_to("/etc/passwd")
    assert main(["deps", "-t", "t"]) == 2 and "is a link that leaves it" in capsys.readouterr().err
    assert not (root / "dbt_packages/kit").exists()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.size = kind, link, size
    return made


def tarball(*members: tarfile.TarInfo, mode: str = "w:gz") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as opened:  # type: ignore[call-overload]
        for each in members:
            opened.addfile(each, io.BytesIO(b"\0" * each.size))
    return made.getvalue()


BAD_MEMBERS = (
    member("../x"),
    member("/etc/x"),
    member("a/../../x"),
    member(".."),
    member("a\\..\\..\\x"),
    member("C:\\x"),
    member("C:x"),
    member("//host/x"),
    member("link", tarfile.SYMTYPE, "/etc/passwd"),
    member("link", tarfile.SYMTYPE, "../x"),
    member("link", tarfile.SYMTYPE, "inside"),
    member("hard", tarfile.LNKTYPE, "/etc/passwd"),
    member("hard", tarfile.LNKTYPE, "kit/dbt_project.yml"),
    member("pipe", tarfile.FIFOTYPE),
    member("device", tarfile.CHRTYPE),
    member("device", tarfile.BLKTYPE),
    member("bomb", size=30_000_000),
)


@pytest.mark.parametrize("bad", BAD_MEMBERS, ids=lambda bad: f"{bad.name}-{bad.linkname or bad.type.decode()}")
def test_an_archive_with_anything_but_files_and_folders_of_its_own_is_refused(
    bad: tarfile.TarInfo, tmp_path: Path
) -> None:
    with pytest.raises(ArchiveError):
        extract(tarball(member("kit/dbt_project.yml", size=3), bad), tmp_path / "whole")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"x", b"\x1f\x8b", b"PK\x03\x04", os.urandom(2000), b"\0" * 100])
def test_what_is_no_archive_is_refused(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError):
        extract(content, tmp_path / "whole")
    assert list(tmp_path.iterdir()) == []


def test_an_archive_of_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_FILES", 5)
    with pytest.raises(ArchiveError, match="holds more"):
        extract(tarball(*(member(f"f{number}") for number in range(6))), tmp_path / "whole")


def test_files_and_folders_are_taken_and_nothing_of_their_modes(tmp_path: Path) -> None:
    program = member("kit/run", size=2)
    program.mode = 0o6777
    extract(tarball(member("kit", tarfile.DIRTYPE), member("kit/a/b.sql", size=4), program), tmp_path / "whole")
    assert sorted(state(tmp_path / "whole")) == ["kit/a/b.sql", "kit/run"]
    assert not (tmp_path / "whole/kit/run").stat().st_mode & 0o7111
