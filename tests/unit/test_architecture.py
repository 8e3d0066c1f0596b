"""The files that documents name are there, and the paths of the architecture's page lead from each to the next."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "sqlmesh_like"
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
DOCUMENTS = [
    path for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")) if path.name not in ("CHANGELOG.md",)
]
MOST_FILES = 9


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_module_that_a_document_names_is_there(document: Path) -> None:
    modules = {path.name for folder in ("sqlmesh_like", "tests", "tools", "docs", "bench", "demo", "examples")
               for path in (ROOT / folder).rglob("*.py")}  # fmt: skip
    named = re.findall(r"`([\w/.]+\.py)(?:::\w+)?`", document.read_text(encoding="utf-8"))
    folders = (ROOT, PACKAGE, document.parent)
    missing = [
        name
        for name in named
        if not any((folder / name).is_file() for folder in folders) and ("/" in name or name not in modules)
    ]
    assert missing == []


def paths() -> list[list[tuple[str, str]]]:
    """The paths of the page, each a list of files with the name by which it is reached."""
    text = ARCHITECTURE.partition("## Three paths, file by file")[2].partition("\n## ")[0]
    tables = [table for table in text.split("\n\n") if table.startswith("| |")]
    rows = r"^\| \d+ \| `([\w/.]+)` \| .+ \| ?(?:\(?`([\w/.]+)`\)?)? ?\|$"
    return [re.findall(rows, table, re.MULTILINE) for table in tables]


def identifiers(module: str) -> Iterator[str]:
    """Names that a module defines, imports or uses; of what it imports from this package, the files too."""
    for node in ast.walk(ast.parse((PACKAGE / module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)
            yield f"{(node.module or '').removeprefix('sqlmesh_like.').replace('.', '/')}.py"
        elif isinstance(node, ast.Attribute):
            yield node.attr


@pytest.mark.parametrize("path", paths(), ids=lambda path: path[0][0])
def test_each_file_of_a_path_is_reached_from_one_above_it(path: list[tuple[str, str]]) -> None:
    assert 5 <= len(path) <= MOST_FILES
    known: set[str] = set(identifiers(path[0][0]))
    for module, name in path[1:]:
        own = set(identifiers(name if name.endswith(".py") else module))
        assert name in known, f"no file above {module} names {name}"
        assert (module if name.endswith(".py") else name) in own, f"{name} does not lead to {module}"
        known |= set(identifiers(module))


def test_all_three_paths_are_there() -> None:
    assert [len(path) for path in paths()] == [9, 9, 9, 9]
