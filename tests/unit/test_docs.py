"""The pages that are made from code stand as the code makes them."""

from __future__ import annotations

import json
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


def test_the_tables_of_faults_have_the_counts_of_the_deep_tests() -> None:
    written = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert written == runpy.run_path(str(ROOT / "docs" / "generate_faults.py"))["page"]()


def test_counts_of_kills_are_added_up(tmp_path: Path) -> None:
    module = runpy.run_path(str(ROOT / "docs" / "generate_faults.py"))
    one = {"what": "run", "recovered": 2, "refused": 0, "lost": 0, "doubled": 0, "stuck": 0, "silent": 0}
    for number, tally in enumerate(
        [
            {**one, "kills": {"publish.begin": 1, "at random": 1}},
            {**one, "kills": {"publish.begin": 2}, "recovered": 0, "refused": 1, "lost": 1},
            {**one, "what": "seed", "kills": {"seed.begin": 1}, "recovered": 1},
        ]
    ):
        (tmp_path / f"{number}.json").write_text(json.dumps(tally))
    counts = module["added_up"](tmp_path)
    assert counts["run"]["steps"] == {"at random": 1, "publish.begin": 3}
    assert module["section"](counts).splitlines()[2:] == [
        "| run | 1 | 4 | 2 | 1 | 1 | 0 | 0 | 0 |",
        "| seed | 1 | 1 | 1 | 0 | 0 | 0 | 0 | 0 |",
        "| all | | 5 | 3 | 1 | 1 | 0 | 0 | 0 |",
    ]


def test_counts_of_faults_are_added_up(tmp_path: Path) -> None:
    module = runpy.run_path(str(ROOT / "docs" / "generate_faults.py"))
    case = {"what": "full disk", "ends": "refuses", "tried": 2}
    (tmp_path / "1.json").write_text(json.dumps([{**case, "is_right": True}, {**case, "is_right": False}]))
    (tmp_path / "2.json").write_text(json.dumps([{**case, "is_right": True}]))
    assert module["faults_section"](module["faults_of"](tmp_path)).splitlines()[2:] == [
        "| full disk | fails, and says what to do first | 6 | 2 |",
    ]
