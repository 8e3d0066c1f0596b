"""What templates know of a model or seed from its own file and settings: `model`, and `node` of naming macros."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from sqlmesh_like.errors import Location, ProjectError
from sqlmesh_like.names import TableName
from sqlmesh_like.project.config import build_config
from sqlmesh_like.project.nodes import ModelFile, SeedFile
from sqlmesh_like.project.paths import within_package
from sqlmesh_like.render.library.node import DEFAULT_SETTINGS


def node_words(file: ModelFile | SeedFile, config: Mapping[str, object], table: TableName) -> dict[str, object]:
    """`model` of templates, and the `node` that is passed to `generate_schema_name`."""
    version = file.version if isinstance(file, ModelFile) else None
    path = within_package(file.path, file.unique_id.package)
    return {
        "unique_id": file.unique_id,
        "name": version.of if version else file.name,
        "version": version.v if version else None,
        "alias": config.get("alias") or file.name,
        "resource_type": file.unique_id.kind,
        "original_file_path": path,
        "path": path.partition("/")[2] or path,
        "fqn": list(file.fqn),
        "tags": list(build_config({"tags": config.get("tags")}).tags),
        "config": _copy_config({**DEFAULT_SETTINGS, **config}, file.path),
        "package_name": file.unique_id.package,
        "database": None,
        "schema": table.schema,
        "relation_name": table.sql(),
        "description": file.description,
        "meta": copy.deepcopy(config.get("meta") or {}),
        **(_text_of(file) if isinstance(file, ModelFile) else {}),
    }


_IMMUTABLE = frozenset({str, int, float, bool, type(None)})


def _copy_config(config: Mapping[str, object], path: str) -> object:
    """A copy that templates may change. Raises ProjectError for a value other than data, such as an iterator."""
    try:
        return {key: value if type(value) in _IMMUTABLE else copy.deepcopy(value) for key, value in config.items()}
    except (TypeError, RecursionError) as error:
        hint = "config() takes texts, numbers, lists and mappings: | list makes a list of what filters give"
        raise ProjectError(f"a value of config() is not data: {error}", location=Location(path), hint=hint) from error


def _text_of(file: ModelFile) -> dict[str, object]:
    columns = {column.name: column for column in file.columns}
    return {
        "raw_code": file.raw_sql,
        "language": "python" if file.is_python else "sql",
        "columns": {
            name: {
                "name": name,
                "data_type": columns[name].type if name in columns else None,
                "description": docs.description,
                "tags": list(docs.tags),
                "meta": copy.deepcopy(dict(docs.meta)),
            }
            for name, docs in file.column_docs.items()
        },
    }
