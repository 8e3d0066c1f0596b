"""Writes docs/rules.md from the rules in code. Owns the page's form; a test holds the page to it."""

from __future__ import annotations

from pathlib import Path

from sqlmesh_like.classify.rules import RULES


def page() -> str:
    """The page's text."""
    head = (
        "# Rules\n\n"
        "Every decision of a plan has a rule. `sml explain` prints it with the place in the model's file it is about.\n"
        "[sql.md](sql.md) shows which rules each construct of SQL meets.\n"
        "What may make a plan cheaper is the author's choice: it may give other values, as a sum of decimals does.\n"
        "Plans say only what has been tried on the query: a clause is rewritten so that all rows are kept, or\n"
        "`partition_by` is changed. Where that plan is cheaper, the new clause and the strategy are printed:\n"
        "`JOI003 … (write t.a = CAST(u.n AS INT), as Spark compares them)`.\n"
        "This page is made from `sqlmesh_like/classify/rules.py` by `python docs/generate_rules.py`.\n\n"
        "| rule | meaning | what may make it cheaper |\n|---|---|---|\n"
    )
    return head + "".join(f"| {rule.id} | {rule.meaning} | {rule.advice or '–'} |\n" for rule in RULES.values())


if __name__ == "__main__":
    (Path(__file__).parent / "rules.md").write_text(page(), encoding="utf-8")
