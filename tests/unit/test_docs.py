"""The pages that are made from code stand as the code makes them."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_page_of_rules_is_the_one_that_code_makes() -> None:
    page = runpy.run_path(str(ROOT / "docs" / "generate_rules.py"))["page"]
    assert (ROOT / "docs" / "rules.md").read_text(encoding="utf-8") == page()


def test_the_page_of_constructs_says_what_the_compiler_decides() -> None:
    page = runpy.run_path(str(ROOT / "docs" / "generate_sql.py"))["page"]
    assert (ROOT / "docs" / "sql.md").read_text(encoding="utf-8") == page(), "run `python docs/generate_sql.py`"


def test_the_page_of_keys_says_what_the_loader_checks() -> None:
    page = runpy.run_path(str(ROOT / "docs" / "generate_reference.py"))["page"]
    assert (ROOT / "docs" / "reference.md").read_text(encoding="utf-8") == page(), (
        "run `python docs/generate_reference.py`"
    )
