"""Who opens files. Owns the check that everything below a project is read and written by the door to it.

The door is `sqlmesh_like/regular_files.py`, with `project/reading/files.py` and `artifacts/files.py`, which know the
project's folders. Whoever opens other files is listed here with the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "sqlmesh_like"
DOOR = frozenset({"regular_files.py", "own_files.py"})
EXCEPTIONS = {
    "hudi/": "files of tables, below the target's warehouse",
    "cdc/": "notes beside tables, and the file of metrics that the command line names",
    "releases/release_file.py": "the releases of a lake, in the target's warehouse",
    "environments/environment_file.py": "the tables of an environment, in the target's warehouse",
    "publish/": "destinations that the profile names",
    "spark/jvm/": "jars, the JDK and Java's class archive, in the user's cache",
    "app/lakes/lock_registry.py": "locks in the target's warehouse, and /proc",
    "app/lakes/store_registry.py": "/proc: whether the process of a lock still runs",
    "app/setup/archive.py": "a new folder of its own, names checked",
    "app/setup/project_package.py": "libraries of this Python environment, and jars of the user's cache",
    "app/setup/new_project.py": "a new folder of its own, and templates of this package",
    "cli/commands/forget.py": "a file that the command line names, which may be a pipe",
    "limits/child.py": "/proc",
    "cli/app.py": "os.devnull in the place of closed streams",
    "cli/language_server/server.py": "the process's own streams",
    "project/reading/bounds.py": "/proc",
    "docs/libraries.py": "assets of this package",
    "inline_html.py": "assets of this package",
    "render/macros.py": "assets of this package",
    "app/loading/project_cache.py": "the user's cache, by file descriptors",
}
"""Modules and folders that open files themselves, with the reason."""

_METHODS = frozenset({"open", "read_text", "read_bytes", "write_text", "write_bytes"})
_OF_OTHER_THINGS = frozenset({"webbrowser", "tarfile"})
"""Modules whose `open` opens no path, or only what was read already."""


def opened(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield each call that opens a file by its path, with its line.

    >>> list(opened(ast.parse("open('a')\\nPath('a').read_text()\\nread_text(path, root)\\nwebbrowser.open('a')")))
    [('open', 1), ('read_text', 2)]
    """
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id == "open":
            yield "open", node.lineno
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            owner = node.func.value
            if not (isinstance(owner, ast.Name) and owner.id in _OF_OTHER_THINGS):
                yield node.func.attr, node.lineno


def direct_access(package: Path) -> Iterator[str]:
    """Yield findings about modules that open files and are not listed, and about entries that nothing needs."""
    needed: set[str] = set()
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if name in DOOR:
            continue
        entry = next((entry for entry in EXCEPTIONS if name == entry or name.startswith(entry)), None)
        for method, line in opened(ast.parse(path.read_text(encoding="utf-8"))):
            if entry is None:
                yield f"{PACKAGE}/{name}:{line}: {method}: files are opened by {PACKAGE}/project/reading/files.py"
            else:
                needed.add(entry)
    yield from (f"tools/file_access.py: {entry!r} is not needed" for entry in EXCEPTIONS if entry not in needed)
