"""The plans of the TPC suites as text that a person can read. Owns compiling a suite and the form of its page.

`python -m tests.tpc.plans` writes the `plans.txt` of each suite; `tests/unit/test_tpc.py` holds them to the code.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from sqlmesh_like.classify.rules import Reason
from sqlmesh_like.classify.strategy import Classification
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.compiler import Compiler
from sqlmesh_like.project.loader import load_project
from sqlmesh_like.project.profile import load_target
from sqlmesh_like.render.renderer import render_project
from tests.tpc.suites import SUITES, write_project
from tests.tpc.tables import FOLDER

LEAST = {"h": 22, "ds": 103, "ds27": 31}
"""How many queries of a suite must be incremental at least."""


def plans_of(suite: str) -> dict[str, Classification]:
    """The classification of every query of a suite, by name."""
    return {name: compiled.classification for name, compiled in compiled_suite(suite)}


def compiled_suite(suite: str) -> Iterator[tuple[str, CompiledModel]]:
    """Every query of a suite by name, as it is written."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_project(suite, root)
        project = load_project(root, {})
        rendered = render_project(project, load_target(project, root, None, None, {}))
    for model in rendered.models:
        yield model.name, Compiler().compile(model)


def page(suite: str, plans: Mapping[str, Classification]) -> str:
    """The text of a suite's plans: how many have which strategy, then a block for each query."""
    counts = Counter(plan.strategy for plan in plans.values())
    lines = [
        f"{SUITES[suite].title}: {len(plans)} queries, each with the strategy that its SQL allows and why.",
        f"incremental: {len(plans) - counts['full_refresh']} of {len(plans)}",
        *(f"{strategy}: {counts[strategy]}" for strategy in sorted(counts)),
    ]
    lines += [f"full_refresh by {rule}: {', '.join(names)}" for rule, names in _blocked(plans).items()]
    return "\n".join([*lines, *(_block(name, plan) for name, plan in plans.items())]) + "\n"


def _blocked(plans: dict[str, Classification]) -> dict[str, list[str]]:
    """Queries that are rebuilt in full, by the rule of the first reason."""
    by_rule: dict[str, list[str]] = {}
    for name, plan in plans.items():
        if plan.strategy == "full_refresh":
            by_rule.setdefault(plan.reasons[0].rule, []).append(name)
    return dict(sorted(by_rule.items(), key=lambda item: -len(item[1])))


def _block(name: str, plan: Classification) -> str:
    lines = [f"\n{name}  {plan.strategy}"]
    lines += [f"  {v.reason.rule}  {_place(v.reason)}  {v.verdict}  {_one_line(v.sql)}" for v in plan.aggregates]
    explained = {verdict.reason for verdict in plan.aggregates}
    lines += [f"  {r.rule}  {_place(r)}  {_one_line(r.message)}" for r in plan.reasons if r not in explained]
    return "\n".join(lines)


def _place(reason: Reason) -> str:
    return f"{reason.line}:{reason.column}" if reason.line else "-"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def main() -> None:
    """Write the pages of all suites."""
    for suite in SUITES:
        (FOLDER / suite / "plans.txt").write_text(page(suite, plans_of(suite)), encoding="utf-8")


if __name__ == "__main__":
    main()
