"""dbt's documented examples of tests, unit tests, snapshots and selectors end here as in dbt-core 1.11.16 on DuckDB."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.dbt_core.cafe import FILES, SELECTIONS
from tests.dbt_core.program import asked, python_of_dbt
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]
MODES = ("eager", "buildable", "cautious", "empty")
EXCLUDED = [
    ["--exclude", "tag:daily"],
    ["-s", "+above", "--exclude", "stg_bills"],
    ["-s", "stg_bills+", "--exclude", "test_type:data"],
]
LS = ("ls", "--output", "name")


@pytest.fixture
def cafe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    python_of_dbt()
    enter_project(tmp_path, monkeypatch, FILES)
    return tmp_path


def ours(words: list[str], shown: Shown) -> tuple[bool, str]:
    code = main(words)
    return code == 0, shown.readouterr().out


def plain(name: object) -> str:
    """A name without the hash that tells long names of generic tests apart."""
    return re.sub(r"_[0-9a-f]{32}$", "", str(name))[:40]


def ended(shown: Shown, words: list[str]) -> list[tuple[str, str, str, object]]:
    main(words)
    shown.readouterr()
    results = json.loads(Path("target/run_results.json").read_text())["results"]
    return sorted(
        (kind, plain(one["unique_id"].split(".")[-1 if kind == "unit_test" else 2]),
         one["status"], one.get("failures"))
        for one in results
        for kind in [one["unique_id"].partition(".")[0]]
    )  # fmt: skip


@pytest.mark.release
def test_what_is_selected_is_what_dbt_selects(cafe: Path, capsys: Shown) -> None:
    calls = [[*LS, "-s", *text.split()] for text in SELECTIONS]
    for text in ("stg_bills", "+dim_guests"):
        calls += [[*LS, "-s", text, "--indirect-selection", mode] for mode in MODES]
    calls += [[*LS, *words] for words in EXCLUDED]
    differing = {}
    for words, answer in zip(calls, asked(cafe, calls), strict=True):
        names = answer["names"]
        assert isinstance(names, list)
        _, message = ours(words, capsys)
        mine, theirs = sorted(map(plain, message.split())), sorted(map(plain, names))
        if mine != theirs:
            differing[" ".join(words[3:])] = (sorted(set(mine) - set(theirs)), sorted(set(theirs) - set(mine)))
    assert not differing, "\n".join(f"{words}: only here {a}, only dbt {b}" for words, (a, b) in differing.items())


@pytest.mark.release
def test_a_build_ends_as_it_does_in_dbt(cafe: Path, capsys: Shown) -> None:
    calls = [["seed"], ["run"], ["test"], ["snapshot"], ["build"]]
    for words, answer in zip(calls, asked(cafe, calls), strict=True):
        nodes = answer["nodes"]
        assert isinstance(nodes, list)
        theirs = sorted((k, plain(name), status, failures) for k, name, status, failures in nodes)
        mine = ended(capsys, words)
        # Here a unit test needs no model above its own: it runs where dbt skips it, and tells more.
        unrun = {one[1] for one in theirs if one[0] == "unit_test" and one[2] == "skipped"}
        both = [{one[:3] for one in outcome if one[1] not in unrun} for outcome in (mine, theirs)]
        assert both[0] == both[1], f"{words}: only here {both[0] - both[1]}, only dbt {both[1] - both[0]}"
        if words == ["test"]:
            tests = [one for one in theirs if one[0] == "test"]
            assert [one for one in mine if one[0] == "test"] == tests
