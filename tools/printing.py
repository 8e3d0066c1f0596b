"""Who prints. Owns the check that everything which is printed goes through `cli/printing/writer.py`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

WRITER = "cli/printing/writer.py"
_OF_CLICK = frozenset({"echo", "secho", "style", "echo_via_pager"})


def printed(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield each call that prints or colours in another way, with its line.

    >>> list(printed(ast.parse("click.echo('a')\\necho('a')\\nprint('a')\\nsys.stderr.write('a')")))
    [('click.echo', 1), ('print', 3), ('sys.stderr.write', 4)]
    """
    for node in ast.walk(tree):
        text = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "click" and node.attr in _OF_CLICK:
            yield ast.unparse(node), node.lineno
        elif isinstance(node, ast.Call) and text in ("print", "sys.stdout.write", "sys.stderr.write"):
            yield text, node.lineno


def other_printing(package: Path) -> Iterator[str]:
    """Yield findings about modules that print in another way."""
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        for what, line in printed(ast.parse(path.read_text(encoding="utf-8"))) if name != WRITER else ():
            yield f"{package.name}/{name}:{line}: {what}: {package.name}/{WRITER} prints"
