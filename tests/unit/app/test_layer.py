"""The application prints nothing: whoever calls it decides what is shown."""

from __future__ import annotations

import ast
from pathlib import Path

APP = Path(__file__).parents[3] / "sqlmesh_like" / "app"


def test_no_module_prints() -> None:
    places = []
    for path in APP.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            is_print = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
            is_stream = isinstance(node, ast.Attribute) and node.attr in ("stdout", "stderr", "stdin")
            is_subprocess = (
                isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "called"
            )
            if is_print or (is_stream and not is_subprocess):
                places.append(f"{path.name}:{node.lineno}")
    assert places == []
