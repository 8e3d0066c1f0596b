"""Every test has a level, each level is what `make` runs, and what took its time is printed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import SYSTEM_PATH
from tests.levels import FAST, SUITE, TESTS, is_fast, level_of, parametrize
from tools.suite_times import lines

ROOT = TESTS.parent
LEVELS = {"test-fast": FAST, "test": (*FAST, *SUITE), "test-all": (*FAST, *SUITE)}


def commands(target: str) -> str:
    """What `make` would run, everything being installed."""
    words = ["make", "--dry-run", "--old-file=.venv/.installed-dev", target]
    environment = {**os.environ, "PATH": SYSTEM_PATH}
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, env=environment).stdout


@pytest.mark.parametrize("target", LEVELS)
def test_each_level_runs_its_folders_and_none_of_the_higher_markers(target: str) -> None:
    runs = [line for line in commands(target).splitlines() if "-m pytest" in line]
    of_levels = [run for run in runs if "SML_SMALL_BATCHES" not in run]
    assert sorted(re.findall(r"\btests/(\w+)", " ".join(of_levels))) == sorted(LEVELS[target])
    left_out = "not deep" if target == "test-all" else "not release and not deep"
    assert all(f'-m "{left_out}"' in run for run in runs)


def test_a_release_runs_the_tests_of_events_once_more_without_spark() -> None:
    (run,) = [line for line in commands("test-all").splitlines() if "SML_SMALL_BATCHES=1" in line]
    files = re.findall(r"tests/[\w/]+\.py", run)
    assert len(files) > 5
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_a_deep_test_is_run_by_make_test_deep() -> None:
    marked = [path for path in TESTS.rglob("test_*.py") if re.search(r"mark\.deep\b", path.read_text("utf-8"))]
    run = commands("test-deep")
    assert marked, "deep tests are marked so"
    for path in marked:
        if path != Path(__file__):
            assert str(path.relative_to(ROOT)) in run, path


def test_every_file_of_tests_stands_in_a_folder_that_has_a_level() -> None:
    files = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]
    assert {path.parts[0] for path in files} == {*FAST, *SUITE}


class _Marked:
    def __init__(self, path: Path, *marks: str) -> None:
        self.path, self.marks = path, marks

    def get_closest_marker(self, name: str) -> object:
        return name if name in self.marks else None


@pytest.mark.parametrize(
    ("folder", "marks", "level"),
    [
        ("unit", (), "fast"),
        ("spark", (), "suite"),
        ("spark", ("release",), "release"),
        ("unit", ("release", "deep"), "deep"),
        ("other", (), None),
    ],
)
def test_a_level_is_seen_by_path_and_marker(folder: str, marks: tuple[str, ...], level: str | None) -> None:
    assert level_of(_Marked(TESTS / folder / "test_x.py", *marks)) == level  # type: ignore[arg-type]
    assert is_fast(TESTS / folder) == (folder in FAST)


def test_cases_are_part_of_the_suite_or_of_a_release() -> None:
    one = parametrize("order", suite=[("m",)], release=[(), pytest.param(("n",), id="N")]).args[1]
    assert [(case.values, case.id) for case in one[1:]] == [(((),), None), ((("n",),), "N")]
    two = parametrize(("kind", "order"), suite=[("a", 1)], release=[("b", 2)]).args[1]
    assert two[0] == ("a", 1) and two[1].values == ("b", 2)
    assert all([mark.name for mark in case.marks] == ["release"] for case in (*one[1:], two[1]))


def test_stages_and_the_slowest_tests_are_printed(tmp_path: Path) -> None:
    (tmp_path / "lint.stage").write_text("61\n")
    (tmp_path / "tests without a JVM.stage").write_text("300\n")
    (tmp_path / "fast.json").write_text(json.dumps({f"test_{number}": number for number in range(30)}))
    (tmp_path / "spark.json").write_text(json.dumps({"test_slow": 90.5}))
    shown = "\n".join(lines(tmp_path))
    assert "   361 s  in all" in shown and "    61 s  lint" in shown
    assert shown.index("90.5 s  test_slow") < shown.index("29.0 s  test_29") and "test_10" not in shown


def test_a_run_writes_its_times(tmp_path: Path) -> None:
    (tmp_path / "test_two.py").write_text("def test_a():\n    pass\ndef test_b():\n    assert False\n")
    options = ["-p", "tests.suite_times", "--times", str(tmp_path / "out/times.json"), f"--rootdir={tmp_path}"]
    words = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider", *options, str(tmp_path)]
    assert subprocess.run(words, cwd=ROOT, capture_output=True, check=False).returncode == 1
    times = json.loads((tmp_path / "out/times.json").read_text())
    assert times.keys() == {"test_two.py::test_a", "test_two.py::test_b"}
