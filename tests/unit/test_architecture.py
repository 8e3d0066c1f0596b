"""The files that documents name are there, and the paths of the architecture's page lead from each to the next.

The path of a changed row without a JVM is walked: the calls of a run are compared with the page.
"""

from __future__ import annotations

import ast
import re
import sys
import threading
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from types import FrameType

import pytest

from sqlmesh_like.cli.app import main

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


PROJECT = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {target: a, outputs: {a: {type: spark, schema: dws, warehouse: w}}}\n",
    "seeds/orders.csv": "id,day,amount\n" + "".join(f"{id_},2024-01-{id_ % 28 + 1:02d},7\n" for id_ in range(199)),
    "models/daily.sql": "select day, sum(amount) as total from {{ ref('orders') }} group by day",
}
PASSED_BY = {"duckdb/programs/shared_rows.py"}
"""Files between two of the path that one does not open: rows that several models of a run read are read once."""


def called(frame: FrameType | None) -> Iterator[str]:
    """The files of the package whose functions have called this one, the nearest first; those of one file once."""
    last = None
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(f"{PACKAGE}/") and file != last:
            last = file
            yield str(Path(file).relative_to(PACKAGE))
        frame = frame.f_back


def up_to(listed: list[str], callers: list[str]) -> set[str]:
    """The nearest callers, up to one that is listed."""
    return set(takewhile(lambda name: name not in listed, callers))


def test_a_changed_row_takes_the_path_of_the_page(tmp_path: Path) -> None:
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    flags = ["-q", "--project-dir", str(tmp_path), "--profiles-dir", str(tmp_path)]
    assert main(["build", *flags]) == 0
    orders = tmp_path / "seeds/orders.csv"
    orders.write_text(orders.read_text().replace("\n0,2024-01-01,7\n", "\n0,2024-01-01,8\n"))
    assert main(["seed", *flags]) == 0
    on_spark, here = paths()[:2]
    listed = [module for module, _ in (*on_spark[:2], *here)]
    files = {str(PACKAGE / module): module for module in listed}
    callers: dict[str, list[list[str]]] = {module: [] for module in listed}
    seen: set[tuple[object, object]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        module = files.get(frame.f_code.co_filename)
        call = (frame.f_code, frame.f_back and frame.f_back.f_code)
        if event == "call" and module and frame.f_code.co_name != "<module>" and call not in seen:
            seen.add(call)
            callers[module].append([*called(frame)][1:])

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        assert main(["run", *flags]) == 0
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    for number, module in enumerate(listed):
        assert callers[module], f"a changed row does not pass {module}"
        earlier = listed[:number]
        calls = [above for above in callers[module] if set(above) & set(earlier)]
        between = [up_to(earlier, above) for above in calls]
        assert number < 2 or any(names <= PASSED_BY for names in between), f"{module} is reached through {between}"
