"""Functions of `manifest.json`, in the shape of dbt's schema v12. Owns the shape."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import PurePosixPath

from sqlmesh_like.names import NodeId
from sqlmesh_like.project.paths import within_package
from sqlmesh_like.render.rendered import RenderedFunction


def function_entry(rendered: RenderedFunction, schema: str) -> dict[str, object]:
    """Return an entry of the manifest's `functions`; `schema` is the target's, though no function is created there."""
    function = rendered.function
    package, text = function.unique_id.package, function.raw_sql.strip()
    path = within_package(function.path, package)
    tags, meta = list(function.tags), dict(function.meta)
    return {
        "unique_id": function.unique_id,
        "name": function.name,
        "resource_type": "function",
        "package_name": package,
        "path": PurePosixPath(*PurePosixPath(path).parts[1:]).as_posix(),
        "original_file_path": path,
        "patch_path": f"{package}://{within_package(function.declared_at.path, package)}",
        "fqn": list(function.fqn),
        "database": None,
        "schema": schema,
        "alias": function.name,
        "relation_name": None,
        "checksum": {"name": "sha256", "checksum": hashlib.sha256(text.encode()).hexdigest()},
        "config": {
            "enabled": True, "type": "scalar", "volatility": function.volatility, "runtime_version": None,
            "entry_point": None, "tags": tags, "meta": meta, "materialized": "function",
        },
        "tags": tags,
        "meta": meta,
        "description": function.description,
        "arguments": [
            {"name": one.name, "data_type": one.type, "description": one.description, "default_value": one.default}
            for one in function.arguments
        ],
        "returns": {"data_type": function.returns, "description": function.returns_description},
        "raw_code": text,
        "language": "sql",
        "compiled_code": rendered.query.compiled,
        "depends_on": {"macros": [], "nodes": []},
    }  # fmt: skip


def called(functions: Iterable[str]) -> dict[str, object]:
    """Return the key `functions` of a node that calls these, given by unique id."""
    return {"functions": [[NodeId.parse(unique_id).name] for unique_id in functions]}
