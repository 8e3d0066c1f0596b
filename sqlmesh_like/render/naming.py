"""In which schema and under which name a model's table lives. Owns dbt's rules and their overriding macros."""

from __future__ import annotations

from collections.abc import Callable

from sqlmesh_like.errors import Location, ProjectError
from sqlmesh_like.names import TableName
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.render.macros import MacroCall, TemplateScope
from sqlmesh_like.render.templates import Templates


def table_of(
    name: str,
    schema: str | None,
    alias: str | None,
    scope: TemplateScope,
    target: Target,
    is_dbt: bool,
    templates: Templates,
    path: str,
) -> TableName:
    """The table of a model or seed with these settings.

    dbt's default puts a custom schema behind the target's (`dws_staging`); under `[tool.sqlmesh_like]` it is used as it
    is, since its layers (ods, dwd, dws) are schemas. `generate_schema_name` and `generate_alias_name` override both.
    """
    custom = schema.strip() if schema else None
    prefixed = f"{target.schema}_{custom}" if is_dbt else custom
    default = (prefixed if custom else None) or target.schema
    table = TableName(
        _generated("generate_schema_name", custom, default, scope, templates, path),
        _generated("generate_alias_name", alias, (alias or name).strip(), scope, templates, path),
    )
    if not table.is_path_safe():
        hint = "schemas and names are folders of the warehouse: letters, digits, _ and - only"
        raise ProjectError(f"{table} cannot be a table's name", location=Location(path), hint=hint)
    return table


def schema_of_failures(schema: object, scope: TemplateScope, target: Target, templates: Templates, path: str) -> str:
    """In which schema the failing rows of a data test are stored, whose config gives this one."""
    custom = None if schema is None else str(schema).strip() or None
    default = target.schema if custom is None else f"{target.schema}_{custom}"
    return _generated("generate_schema_name", custom, default, scope, templates, path)


def _generated(
    macro: str, custom: str | None, default: str, scope: TemplateScope, templates: Templates, path: str
) -> str:
    """What the project's macro gives; the default where it has none."""
    call = scope.get(macro)
    if not callable(call) or (isinstance(call, MacroCall) and call.is_plain):
        return default
    made: Callable[..., object] = call
    return templates.run(lambda: str(made(custom, scope["model"])).strip(), path, scope)
