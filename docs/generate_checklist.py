"""Writes docs/checklist.md from docs/checklist.yml and the tests: `python docs/generate_checklist.py`. A test compares.

The number of a row stands at the tests that show it, as `@pytest.mark.checklist(12, 13)`; here it is read from their
text, so that no test needs to be imported.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

DOCS = Path(__file__).resolve().parent
TESTS = DOCS.parent / "tests"
HEAD = """# What the described systems can do

Written by `python docs/generate_checklist.py` from [checklist.yml](checklist.yml) and the tests.

The three published systems that this project was measured by can do 80 things. Each row names the command or setting
that does it here, and the tests that show it: `python -m pytest --checklist 12` runs those of row 12.
"""


@dataclass(frozen=True)
class Row:
    """One thing that a described system can do."""

    number: int
    capability: str
    command: str
    outside: str | None


def sections() -> dict[str, list[Row]]:
    """Rows of each section, in order."""
    read = yaml.safe_load((DOCS / "checklist.yml").read_text(encoding="utf-8"))
    return {
        section["name"]: [Row(row["n"], row["is"], row["do"], row.get("outside")) for row in section["rows"]]
        for section in read["sections"]
    }


def shown_by() -> Mapping[int, Sequence[str]]:
    """Node ids of the tests that say they show a row, by its number."""
    proofs: dict[int, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.checklist" in text:
            for number, name in _marked(ast.parse(text)):
                proofs[number].append(f"{path.relative_to(DOCS.parent)}::{name}")
    return proofs


def _marked(module: ast.Module) -> Iterator[tuple[int, str]]:
    for node in module.body:
        for call in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.checklist":
                for argument in call.args:
                    yield ast.literal_eval(argument), node.name  # type: ignore[union-attr]


def page() -> str:
    """The whole page."""
    tests = shown_by()
    parts = [HEAD]
    for name, rows in sections().items():
        lines = [f"| {row.number} | {row.capability} | `{_cell(row.command)}` | {_shown(row, tests)} |" for row in rows]
        parts.append("\n".join([f"## {name}\n", "| | | here | shown by |", "|---|---|---|---|", *lines, ""]))
    return "\n".join(parts)


def _shown(row: Row, tests: Mapping[int, Sequence[str]]) -> str:
    links = [f"[{_words(node)}](../{node.split('::')[0]})" for node in tests.get(row.number, ())]
    return "; ".join([*links, *([f"outside: {row.outside}"] if row.outside else [])])


def _words(node: str) -> str:
    return node.split("::test_")[1].replace("_", " ")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    (DOCS / "checklist.md").write_text(page(), encoding="utf-8")
