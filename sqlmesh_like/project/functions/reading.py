"""`functions:` of properties YAML and the files of functions → `FunctionFile`. Owns what a declaration must say."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from sqlmesh_like.errors import Location, ProjectError
from sqlmesh_like.names import NodeId
from sqlmesh_like.project.doc_blocks import Descriptions
from sqlmesh_like.project.functions.declarations import FunctionArgument, FunctionFile, PythonEntry, Volatility
from sqlmesh_like.project.functions.python_files import require_entry_point, require_python_type
from sqlmesh_like.project.keys.function_keys import FUNCTION, FUNCTION_ARGUMENT, FUNCTION_CONFIG, RETURNS
from sqlmesh_like.project.reading.column_types import spark_type_fault
from sqlmesh_like.project.reading.files import files_under, read_text, relative
from sqlmesh_like.project.reading.project_warnings import warn
from sqlmesh_like.project.reading.values import ValueRenderer
from sqlmesh_like.project.reading.yaml_node import YamlNode
from sqlmesh_like.project.sources import required_text

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def read_functions(
    nodes: Iterable[YamlNode],
    root: Path,
    folders: Sequence[str],
    project: str,
    values: ValueRenderer,
    descriptions: Descriptions,
) -> tuple[FunctionFile, ...]:
    """The functions of one project. Raises ProjectError at the first wrong entry, and for one without its file.

    A file of SQL without an entry is left out with a warning: nothing says what its arguments are. A function of a kind
    that is not supported is an error only where a query calls it: dbt's projects may have some.
    """
    paths = files_under(root, folders, (".sql", ".py"))
    entries = [values.render(node, frozenset({"description"})) for node in nodes]
    read = (_function(node, paths, root, folders, project, descriptions) for node in entries if _is_enabled(node))
    functions = tuple(read)
    described = {str(name.value) for node in entries if (name := node.mapping("a function").get("name")) is not None}
    for path in paths:
        if path.suffix.lower() == ".sql" and path.stem not in described:
            hint = "declare its name, arguments and returns under functions: in a YAML file"
            place = Location(relative(path, root), 1, 1)
            warn(place, "this function has no entry in properties YAML: it is left out", hint)
    return functions


def _is_enabled(node: YamlNode) -> bool:
    enabled = node.mapping("a function").mapping_of("config").get("enabled")
    return enabled is None or enabled.flag("enabled")


def without_foreign_python(functions: Iterable[FunctionFile], allowed: Collection[str]) -> Iterator[FunctionFile]:
    """The functions, of which those in Python cannot be called if they are of a package that is not allowed."""
    for function in functions:
        package = function.unique_id.package
        if function.python is not None and package not in allowed:
            message = f"function {function.name!r} is in Python, of the package {package!r}, whose code is not run"
            hint = f"read it, then write in your settings  flags: {{python_model_packages: [{package}]}}"
            function = replace(function, unsupported=(message, hint))
        yield function


def refuse_same_names(functions: Iterable[FunctionFile]) -> None:
    """Raise ProjectError if two functions of the project and its packages share a name: SQL does not mind its case."""
    seen: dict[str, FunctionFile] = {}
    for function in functions:
        name = function.name.lower()
        if name in seen:
            message = f"function {function.name!r} is declared twice"
            hint = f"the first is declared at {seen[name].declared_at}; rename one"
            raise ProjectError(message, location=function.declared_at, hint=hint)
        seen[name] = function


def _function(
    node: YamlNode, paths: Sequence[Path], root: Path, folders: Sequence[str], project: str, descriptions: Descriptions
) -> FunctionFile:
    FUNCTION.check(node)
    name, place = required_text(node, "name", "a function"), node.children["name"].location
    _check_name("a function", name, place)
    settings = node.get("config")
    config = {} if settings is None else FUNCTION_CONFIG.read(settings)
    path = _file_of(name, [path for path in paths if path.stem == name], root, folders, place)
    unique_id = NodeId("function", project, name)
    if (fault := _unsupported_reason(name, config, path)) is not None:
        warn(place, f"{fault[0]}: queries cannot call it", fault[1])
        return FunctionFile(unique_id, name, relative(path, root), "", (), "", place, place, unsupported=fault)
    arguments = _arguments(node, descriptions)
    returns = node.children.get("returns")
    if returns is None:
        raise node.error(f"function {name!r} needs 'returns'", "add returns: {data_type: …}")
    RETURNS.check(returns)
    type_, type_at = _type(returns, f"what function {name!r} returns")
    text = read_text(path, root)
    python = _python_entry(name, config, place, path)
    if python is not None:
        for argument in arguments:
            require_python_type(argument.type, f"argument {argument.name!r}", argument.type_at)
        require_python_type(type_, f"what function {name!r} returns", type_at)
        at = settings.children["entry_point"].location if settings is not None else place
        require_entry_point(text, relative(path, root), python.entry_point, arguments, at)
    own_meta = node.get("meta")
    base = next(root / folder for folder in folders if path.is_relative_to(root / folder))
    return FunctionFile(
        unique_id=unique_id,
        name=name,
        path=relative(path, root),
        raw_sql=text,
        python=python,
        arguments=arguments,
        returns=type_,
        returns_at=type_at,
        declared_at=place,
        volatility=cast(Volatility | None, config.get("volatility")),
        description=descriptions.of(node),
        returns_description=descriptions.of(returns),
        fqn=(project, *path.relative_to(base).parts[:-1], name),
        tags=tuple(map(str, cast(list[str], config.get("tags") or []))),
        meta={**_mapping(own_meta.value if own_meta is not None else None), **_mapping(config.get("meta"))},
    )


def _mapping(value: object) -> dict[str, object]:
    return {str(key): one for key, one in value.items()} if isinstance(value, dict) else {}


def _file_of(name: str, files: list[Path], root: Path, folders: Sequence[str], place: Location) -> Path:
    if len(files) > 1:
        listed = " and ".join(relative(path, root) for path in files)
        raise ProjectError(f"function {name!r} has several files: {listed}", location=place, hint="remove one")
    if not files:
        folder = folders[0] if folders else "functions"
        hint = f"write its expression into {folder}/{name}.sql"
        raise ProjectError(f"function {name!r} has no file", location=place, hint=hint)
    return files[0]


def _unsupported_reason(name: str, config: dict[str, object], path: Path) -> tuple[str, str] | None:
    """Why a function cannot be written into a query as an expression, and what to do; None if it can."""
    if path.suffix.lower() != ".py" and (config.get("entry_point") or config.get("runtime_version")):
        return (
            f"function {name!r} is one of Python by its config, and its file is {path.name}",
            f"write it into {name}.py, or remove entry_point and runtime_version",
        )
    if config.get("type") == "aggregate":
        return (
            f"function {name!r} is an aggregate, which is not supported",
            "write a function of one row, and aggregate its results",
        )
    if config.get("volatility") == "non-deterministic":
        return (
            f"function {name!r} is declared non-deterministic, which is not supported",
            "write its expression into the model, where the plan says what follows from it",
        )
    return None


def _python_entry(name: str, config: dict[str, object], place: Location, path: Path) -> PythonEntry | None:
    """What is called of a file in Python; None for another file. Raises ProjectError."""
    if path.suffix.lower() != ".py":
        return None
    entry_point = config.get("entry_point")
    if not entry_point:
        hint = "write config: {entry_point: main}, the name of a function in its file"
        raise ProjectError(f"function {name!r} in Python has no entry_point", location=place, hint=hint)
    version = config.get("runtime_version")
    return PythonEntry(str(entry_point), None if version is None else str(version))


def _arguments(node: YamlNode, descriptions: Descriptions) -> tuple[FunctionArgument, ...]:
    arguments: list[FunctionArgument] = []
    for entry in node.elements_of("arguments"):
        FUNCTION_ARGUMENT.check(entry)
        name, place = required_text(entry, "name", "an argument"), entry.children["name"].location
        _check_name("an argument", name, place)
        if name.lower() in {argument.name.lower() for argument in arguments}:
            raise ProjectError(f"argument {name!r} is declared twice", location=place, hint="rename one")
        type_, type_at = _type(entry, f"argument {name!r}")
        default = entry.get("default_value")
        if (default is None or default.value is None) and arguments and arguments[-1].default is not None:
            message = f"argument {name!r} has no default, but the one before it has"
            raise ProjectError(message, location=place, hint="arguments with a default_value come last")
        argument = FunctionArgument(name, type_, place, type_at, description=descriptions.of(entry))
        if default is not None and default.value is not None:
            argument = replace(argument, default=_default(default), default_at=default.location, given=default.value)
        arguments.append(argument)
    return tuple(arguments)


def _default(node: YamlNode) -> str:
    """A default as SQL: a date of YAML would be a difference of numbers there."""
    match node.value:
        case bool():
            return str(node.value).lower()
        case datetime.datetime():
            return f"timestamp '{node.value.isoformat(sep=' ')}'"
        case datetime.date():
            return f"date '{node.value.isoformat()}'"
    return str(node.value)


def _type(node: YamlNode, what: str) -> tuple[str, Location]:
    child = node.get("data_type")
    if child is None:
        raise node.error(f"{what} needs 'data_type'", "add data_type: a type of Spark SQL")
    text = child.text("data_type").strip()
    if fault := spark_type_fault(text):
        raise ProjectError(fault[0], location=child.location, hint=fault[1])
    return text, child.location


def _check_name(what: str, name: str, place: Location) -> None:
    if not _NAME.fullmatch(name):
        hint = "a name is letters, digits and _, and does not start with a digit"
        raise ProjectError(f"{name!r} cannot be the name of {what}", location=place, hint=hint)
