"""Vocabulary and layout. Owns the checks that `make lint` adds: retired words, modules per folder, state of modules.

`tools.file_access` adds who opens files, `tools.printing` who prints.

`python -m tools.check_words` prints one line for each finding and exits with code 1 if there is any.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.file_access import direct_access
from tools.printing import other_printing

ROOT = Path(__file__).resolve().parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"
CODE = ("sqlmesh_like", "tests", "demo", "docs", "bench", "tools", "examples")
"""Folders of code, the package first."""
MOST_MODULES = 20

PROCESS_STATE = frozenset({
    "sqlmesh_like/cli/printing/activity.py",  # the terminal: standard output is one for all threads
    "sqlmesh_like/project/reading/bounds.py",  # signal and timer
    "sqlmesh_like/secrets.py",  # what nobody in this process may print, whoever learned it
})  # fmt: skip
"""Modules whose state belongs to the process, so that it cannot be owned by a value of one call."""

UNLIMITED = "sqlmesh_like/cli/commands"
"""Folder with one module per command, which has no limit."""


@dataclass(frozen=True)
class Retired:
    """The left columns of the glossary's tables of retired words.

    `names` in code, `phrases` in any text, and names of `modules` only.
    """

    names: frozenset[str]
    phrases: tuple[re.Pattern[str], ...]
    modules: frozenset[str] = frozenset()


def retired_words(glossary: str) -> Retired:
    """Return the words of the tables below "Retired words" and "Retired names of modules".

    >>> words = retired_words('## Retired words\\n| retired | use |\\n|---|---|\\n| `aim`, "mend" | x |')
    >>> sorted(words.names), words.phrases[0].search("how to mend it") is not None
    (['aim'], True)
    """
    table, _, of_modules = glossary.partition("## Retired words")[2].partition("## Retired names of modules")
    cells = _left_cells(table)
    phrases = [phrase for cell in cells for phrase in re.findall(r'"([^"]+)"', cell)]
    patterns = tuple(re.compile(rf"(?<![Tt]here )\b{re.escape(phrase)}\b(?! longer)") for phrase in phrases)
    return Retired(_quoted(cells), patterns, _quoted(_left_cells(of_modules)))


def _left_cells(table: str) -> list[str]:
    return [line.split("|")[1] for line in table.splitlines() if line.startswith("| ")]


def _quoted(cells: list[str]) -> frozenset[str]:
    return frozenset(name for cell in cells for name in re.findall(r"`([^`]+)`", cell))


def names_in(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield each name that a module defines, with its line: classes, functions, parameters, variables and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno


def texts_in(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield each text of a module, docstrings and messages, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, node.lineno


def wrong_names(retired: Retired) -> Iterator[str]:
    """Yield findings about modules and names that are retired words, and about phrases in the package's texts."""
    for path in sorted(path for folder in CODE for path in (ROOT / folder).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        is_package = path.is_relative_to(ROOT / CODE[0])
        if path.stem in retired.names | retired.modules:
            yield f"{name}: the module's name is a retired word"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        yield from (
            f"{name}:{line}: {word!r} is a retired word" for word, line in names_in(tree) if word in retired.names
        )
        for text, line in texts_in(tree) if is_package else ():
            yield from (f"{name}:{line}: {phrase!r} is a retired phrase" for phrase in phrases_in(text, retired))


def wrong_documents(retired: Retired) -> Iterator[str]:
    """Yield findings about retired phrases in documents; checklist.md quotes names of other systems' tests."""
    for path in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]:
        if path == GLOSSARY or path.name == "checklist.md":
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for phrase in phrases_in(line, retired):
                yield f"{path.relative_to(ROOT)}:{number}: {phrase!r} is a retired phrase"


def phrases_in(text: str, retired: Retired) -> list[str]:
    """Return the retired phrases in a text."""
    return [match[0] for phrase in retired.phrases if (match := phrase.search(text)) is not None]


def mutable_globals(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield names of a module whose values are changed after it is imported, with the line of the change.

    >>> source = "KNOWN = {}\\nWORDS = {'a': 1}\\ndef learn(word):\\n    KNOWN[word] = WORDS.get(word)"
    >>> list(mutable_globals(ast.parse(source)))
    [('KNOWN', 4)]
    """
    assigned = {name.id for node in tree.body if isinstance(node, _ASSIGNMENTS) for name in _targets(node)}
    for node in ast.walk(tree):
        changed: ast.expr | None = None
        if isinstance(node, ast.Global):
            yield from ((name, node.lineno) for name in node.names)
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            changed = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MUTATORS:
            changed = node.func.value
        if isinstance(changed, ast.Name) and changed.id in assigned:
            yield changed.id, changed.lineno


_ASSIGNMENTS = (ast.Assign, ast.AnnAssign)
_MUTATORS = frozenset(
    "add append clear discard extend insert pop popitem remove reverse setdefault sort update".split()
)


def _targets(node: ast.Assign | ast.AnnAssign) -> Iterator[ast.Name]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return (target for target in targets if isinstance(target, ast.Name))


def module_state() -> Iterator[str]:
    """Yield findings about state in modules that are not in `PROCESS_STATE`."""
    for path in sorted((ROOT / "sqlmesh_like").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        for word, line in mutable_globals(ast.parse(path.read_text(encoding="utf-8"))):
            if name not in PROCESS_STATE:
                yield f"{name}:{line}: {word} is state of a module; let a value own it, or functools.cache"


def large_folders() -> Iterator[str]:
    """Yield findings about folders with more than `MOST_MODULES` modules."""
    for folder in sorted({path.parent for path in (ROOT / "sqlmesh_like").rglob("*.py")}):
        name = folder.relative_to(ROOT).as_posix()
        count = sum(path.name != "__init__.py" for path in folder.glob("*.py"))
        if count > MOST_MODULES and name != UNLIMITED:
            yield f"{name}: {count} modules; a folder has at most {MOST_MODULES}"


def main() -> int:
    """Print all findings and return the exit code."""
    retired = retired_words(GLOSSARY.read_text(encoding="utf-8"))
    findings = [*wrong_names(retired), *wrong_documents(retired), *module_state(), *large_folders()]
    findings += [*direct_access(ROOT / CODE[0]), *other_printing(ROOT / CODE[0])]
    print("\n".join(findings) or "vocabulary and layout: nothing to report")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
