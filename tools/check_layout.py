"""Layout. Owns the checks that `make lint` adds: modules per folder, state of modules.

`tools.file_access` adds who opens files, `tools.printing` who prints.

`python -m tools.check_layout` prints one line for each finding and exits with code 1 if there is any.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.file_access import direct_access
from tools.printing import other_printing

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "sqlmesh_like"
MOST_MODULES = 20

PROCESS_STATE = frozenset({
    "sqlmesh_like/cli/printing/activity.py",  # the terminal: standard output is one for all threads
    "sqlmesh_like/project/reading/bounds.py",  # signal and timer
    "sqlmesh_like/secrets.py",  # what nobody in this process may print, whoever learned it
})  # fmt: skip
"""Modules whose state belongs to the process, so that it cannot be owned by a value of one call."""

UNLIMITED = "sqlmesh_like/cli/commands"
"""Folder with one module per command, which has no limit."""


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
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        for word, line in mutable_globals(ast.parse(path.read_text(encoding="utf-8"))):
            if name not in PROCESS_STATE:
                yield f"{name}:{line}: {word} is state of a module; let a value own it, or functools.cache"


def large_folders() -> Iterator[str]:
    """Yield findings about folders with more than `MOST_MODULES` modules."""
    for folder in sorted({path.parent for path in PACKAGE.rglob("*.py")}):
        name = folder.relative_to(ROOT).as_posix()
        count = sum(path.name != "__init__.py" for path in folder.glob("*.py"))
        if count > MOST_MODULES and name != UNLIMITED:
            yield f"{name}: {count} modules; a folder has at most {MOST_MODULES}"


def main() -> int:
    """Print all findings and return the exit code."""
    findings = [*module_state(), *large_folders(), *direct_access(PACKAGE), *other_printing(PACKAGE)]
    print("\n".join(findings) or "layout: nothing to report")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
