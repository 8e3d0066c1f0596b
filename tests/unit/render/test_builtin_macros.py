"""The macros that come with us: a project pays for those that it uses."""

from __future__ import annotations

import pytest
from jinja2 import Environment

from sqlmesh_like.project.nodes import MacroFile
from sqlmesh_like.render.jinja.template_errors import MACRO_PREFIX
from sqlmesh_like.render.jinja.templates import Templates
from sqlmesh_like.render.macros import _builtin_files


@pytest.mark.parametrize("file", _builtin_files(), ids=lambda file: file.path)
def test_its_macros_and_lines_are_known_without_parsing_it(file: MacroFile, monkeypatch: pytest.MonkeyPatch) -> None:
    templates = Templates()
    _, parsed = templates._macros_of(file.path, file.raw)
    with monkeypatch.context() as patched:
        patched.setattr(Environment, "parse", None)
        compiled, known = templates.macros_of(file.path, file.raw)
    assert known == parsed and known
    assert {f"{MACRO_PREFIX}{name}" for name in known} <= set(dir(compiled().module)), (
        "it is compiled when it is called"
    )
