"""In which schema and under which name a model's table is stored. Owns dbt's rules and their overriding macros."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlmesh_like.errors import Location, ProjectError
from sqlmesh_like.names import TableName
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.render.jinja.templates import Templates
from sqlmesh_like.render.macros import TemplateScope


@dataclass(frozen=True)
class DefaultName:
    """`generate_schema_name` or `generate_alias_name` as templates call it if the project has no such macro."""

    name_of: Callable[[str | None, Mapping[str, object]], str]

    def __call__(self, custom: str | None = None, node: Mapping[str, object] | None = None) -> str:
        return self.name_of(custom, node or {})


def default_names(target: Target, is_dbt: bool) -> dict[str, DefaultName]:
    """dbt's default naming functions, by name."""
    return {
        "generate_schema_name": DefaultName(lambda custom, _node: default_schema(custom, target, is_dbt)),
        "generate_alias_name": DefaultName(_default_alias),
    }


def default_schema(custom: str | None, target: Target, is_dbt: bool) -> str:
    """The schema of a node whose config sets the schema `custom`."""
    own = custom.strip() if custom else ""
    return target.schema if not own else f"{target.schema}_{own}" if is_dbt else own


def _default_alias(custom: str | None, node: Mapping[str, object]) -> str:
    version = f"_v{node['version']}".replace(".", "_") if node.get("version") else ""
    return custom.strip() if custom else f"{node.get('name', '')}{version}"


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

    dbt's default appends a custom schema to the target's (`dws_staging`); under `[tool.sqlmesh_like]` it is used as it
    is, since layers (ods, dwd, dws) are schemas there. `generate_schema_name` and `generate_alias_name` override both,
    as do `default__generate_schema_name` and the like, to which dbt's own macros dispatch.
    """
    custom = schema.strip() if schema else None
    default = default_schema(custom, target, is_dbt)
    table = TableName(
        _call_naming_macro("generate_schema_name", custom, default, scope, templates, path),
        _call_naming_macro("generate_alias_name", alias, (alias or name).strip(), scope, templates, path),
    )
    if not table.is_path_safe():
        hint = "schemas and names are folders of the warehouse: letters, digits, _ and - only"
        raise ProjectError(f"{table} cannot be a table's name", location=Location(path), hint=hint)
    return table


def schema_of_failures(schema: object, scope: TemplateScope, target: Target, templates: Templates, path: str) -> str:
    """The schema that stores the failing rows of a data test; `schema` is the one in its config."""
    custom = None if schema is None else str(schema).strip() or None
    default = target.schema if custom is None else f"{target.schema}_{custom}"
    return _call_naming_macro("generate_schema_name", custom, default, scope, templates, path)


def _call_naming_macro(
    macro: str, custom: str | None, default: str, scope: TemplateScope, templates: Templates, path: str
) -> str:
    """The result of the project's macro; the default if it has none."""
    call = scope.get(macro)
    if not callable(call) or isinstance(call, DefaultName):
        return default
    made: Callable[..., object] = call
    return templates.run(lambda: str(made(custom, scope["model"])).strip(), path, scope)
