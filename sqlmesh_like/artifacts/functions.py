"""Functions of `manifest.json`, in the shape of dbt's schema v12. Owns the shape."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import PurePosixPath

from sqlmesh_like.artifacts import dbt_keys
from sqlmesh_like.names import NodeId
from sqlmesh_like.project.functions.declarations import FunctionArgument, PythonEntry
from sqlmesh_like.project.paths import within_package
from sqlmesh_like.render.rendered import RenderedFunction, RenderedModel, RenderedProject, RenderedTest


def function_entry(rendered: RenderedFunction, schema: str) -> dict[str, object]:
    """Return an entry of the manifest's `functions`; `schema` is the target's, though no function is created there."""
    function = rendered.function
    package, text = function.unique_id.package, function.raw_sql.strip()
    path = within_package(function.path, package)
    tags, meta = list(function.tags), dict(function.meta)
    return {
        **dbt_keys.FUNCTION,
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
            **dbt_keys.FUNCTION_CONFIG,
            "volatility": function.volatility,
            "tags": tags,
            "meta": meta,
            **_python(function.python),
        },
        "tags": tags,
        "meta": meta,
        "description": function.description,
        "arguments": [_argument(one) for one in function.arguments],
        "returns": {"data_type": function.returns, "description": function.returns_description or None},
        "raw_code": text,
        "language": "sql" if function.python is None else "python",
        "compiled_code": rendered.query.compiled,
        "depends_on": {"macros": [], "nodes": list(rendered.calls)},
        **called_functions(rendered.calls),
    }


def _python(entry: PythonEntry | None) -> dict[str, object]:
    return {} if entry is None else {"entry_point": entry.entry_point, "runtime_version": entry.runtime_version}


def _argument(argument: FunctionArgument) -> dict[str, object]:
    given, words = argument.given, argument.description or None
    plain = given if given is None or isinstance(given, str | int | float) else argument.default
    return {"name": argument.name, "data_type": argument.type, "description": words, "default_value": plain}


def called_functions(functions: Iterable[str]) -> dict[str, object]:
    """Return the key `functions` of a node that calls these, given by unique id."""
    return {"functions": [[NodeId.parse(unique_id).name] for unique_id in functions]}


def with_functions(
    parents: dict[str, list[str]], rendered: RenderedProject
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return what each node and function reads, given what nodes read of each other, and what reads each of them."""
    callers: tuple[RenderedModel | RenderedTest, ...] = (*rendered.models, *rendered.tests, *rendered.analyses)
    calls = {str(node.unique_id): node.functions for node in callers}
    above = {unique_id: [*read, *calls.get(unique_id, ())] for unique_id, read in parents.items()}
    above |= {str(function.unique_id): list(function.calls) for function in rendered.functions}
    below: dict[str, list[str]] = {unique_id: [] for unique_id in sorted(above)}
    for unique_id in below:
        for parent in above[unique_id]:
            below.setdefault(parent, []).append(unique_id)
    return {unique_id: sorted(above[unique_id]) for unique_id in sorted(above)}, below
