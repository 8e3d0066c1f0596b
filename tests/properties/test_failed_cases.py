"""Cases that failed once do not fail again, and what fails is kept in a form that can be tried."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, seed

from tests.properties import mutants
from tests.properties.case import Case, travelled
from tests.properties.cases import Drawn, cases, examples
from tests.properties.failed_cases import FOLDER, keep, kept

FILES = sorted(FOLDER.glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_case_that_failed_once_equals_a_recompute(path: Path) -> None:
    case = kept(path)
    case.follow()
    assert travelled(case, case.path) == travelled(case, [case.path[0], case.path[-1]])


def test_what_fails_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mutants.after_images_only(monkeypatch)

    @seed(0)
    @examples(100, shrink=False)
    @given(drawn=cases("filter", largest=1))
    def every_case(drawn: Drawn) -> None:
        drawn.case.follow()

    with pytest.raises(AssertionError) as failed:
        every_case()
    path = keep(failed.value, "test_x[a b]", tmp_path / "new")
    assert path and path.name == "test_x_a_b.py"
    with pytest.raises(AssertionError, match=r"^(rows|state) after"):
        kept(path).follow()
    monkeypatch.undo()
    assert kept(path).follow() > 0


def test_a_failure_without_a_case_is_not_kept(tmp_path: Path) -> None:
    assert keep(AssertionError("something else"), "test_x", tmp_path / "new") is None
    assert not (tmp_path / "new").exists()


def test_the_cases_found_so_far_are_there() -> None:
    assert FILES and all(isinstance(kept(path), Case) for path in FILES)
