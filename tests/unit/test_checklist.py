"""Every row of the checklist is shown by a test that says so, or says why no test can."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
CHECKLIST = runpy.run_path(str(DOCS / "generate_checklist.py"))
ROWS = [row for rows in CHECKLIST["sections"]().values() for row in rows]
SHOWN = CHECKLIST["shown_by"]()


def test_there_are_eighty_rows_in_order() -> None:
    assert [row.number for row in ROWS] == list(range(1, 81))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.number))
def test_a_row_is_shown_by_a_test(row: object) -> None:
    assert SHOWN.get(row.number), f"no test has @pytest.mark.checklist({row.number})"  # type: ignore[attr-defined]


def test_no_test_shows_a_row_that_is_none() -> None:
    assert set(SHOWN) <= {row.number for row in ROWS}


def test_the_page_of_the_checklist_is_the_one_that_code_makes() -> None:
    page = (DOCS / "checklist.md").read_text(encoding="utf-8")
    assert page == CHECKLIST["page"](), "run `python docs/generate_checklist.py`"
