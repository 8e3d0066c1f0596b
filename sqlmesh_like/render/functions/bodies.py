"""The files of functions after Jinja. Owns what their templates can read: variables, macros, the target."""

from __future__ import annotations

from dataclasses import replace

from sqlmesh_like.names import TableName
from sqlmesh_like.project.functions.declarations import FunctionFile
from sqlmesh_like.project.keys.config_values import ConfigFault
from sqlmesh_like.render.context import ConfigCall, RenderEnvironment, RenderTrace, build_scope
from sqlmesh_like.render.functions.expression import SELECT
from sqlmesh_like.render.functions.library import FunctionBody, FunctionLibrary
from sqlmesh_like.render.functions.pieces import Piece, join_pieces
from sqlmesh_like.render.rendered import SourceMap

_UNREAD = SourceMap("", "")


def with_functions(around: RenderEnvironment, functions: tuple[FunctionFile, ...]) -> RenderEnvironment:
    """The environment with functions as its templates render them. Raises JinjaError."""
    named = replace(around, functions=FunctionLibrary([FunctionBody(one, _UNREAD) for one in functions]))
    bodies = [
        _body(one, named) if one.unsupported is None and one.python is None else FunctionBody(one, _UNREAD)
        for one in functions
    ]
    return replace(around, functions=FunctionLibrary(bodies))


def _body(function: FunctionFile, around: RenderEnvironment) -> FunctionBody:
    this = TableName(around.target.schema, function.name)
    node = {
        "unique_id": function.unique_id, "name": function.name, "resource_type": "function",
        "package_name": function.unique_id.package, "original_file_path": function.path, "fqn": list(function.fqn),
    }  # fmt: skip
    findings = RenderTrace()
    scope = build_scope(around, None, node, this, ConfigCall({}, findings, _refuse_config), findings)
    text = around.templates.render(function.path, function.raw_sql, scope)
    return FunctionBody(function, join_pieces(text, [Piece(SELECT, 0), Piece(text.compiled, 0, is_copied=True)]))


def _refuse_config(name: str, value: object) -> object:
    del value
    message = f"a function's file has no config(): {name!r} cannot be set here"
    raise ConfigFault(name, message, "set it under functions: in properties YAML")
