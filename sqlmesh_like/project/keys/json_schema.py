"""Declarations as JSON Schema, draft 7, which VS Code's YAML extension reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sqlmesh_like.project.keys.shape import Shape


def json_schema(shape: Shape, title: str) -> dict[str, object]:
    """The schema of a file; entries that occur in several places are definitions."""
    shapes = shapes_of(shape)
    names = definition_names(shapes)
    definitions = {names[id(one)]: _plain(one.schema(), names) for one in shapes}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": title,
        "allOf": [{"$ref": f"#/definitions/{names[id(shape)]}"}],
        "definitions": definitions,
    }


def shapes_of(shape: Shape) -> list[Shape]:
    """The shape and all that are nested in it, each once, the outermost first."""
    shapes: dict[int, Shape] = {}
    pending = [shape]
    while pending:
        one = pending.pop(0)
        if id(one) not in shapes:
            shapes[id(one)] = one
            pending += _shapes_in(one.schema())
    return list(shapes.values())


def _shapes_in(value: object) -> Iterator[Shape]:
    if isinstance(value, Shape):
        yield value
    elif isinstance(value, Mapping):
        for child in value.values():
            yield from _shapes_in(child)
    elif isinstance(value, list | tuple):
        for child in value:
            yield from _shapes_in(child)


def definition_names(shapes: list[Shape]) -> dict[int, str]:
    """A name for each shape, by `id`: its own, with a number if several have the same."""
    names: dict[int, str] = {}
    for shape in shapes:
        name = re.sub(r"\W+", "_", shape.name)
        taken = [one for one in names.values() if one == name or re.fullmatch(rf"{name}_\d+", one)]
        names[id(shape)] = f"{name}_{len(taken) + 1}" if taken else name
    return names


def _plain(value: object, names: Mapping[int, str]) -> object:
    if isinstance(value, Shape):
        return {"$ref": f"#/definitions/{names[id(value)]}"}
    if isinstance(value, Mapping):
        return {str(key): _plain(child, names) for key, child in value.items()}
    return [_plain(child, names) for child in value] if isinstance(value, list | tuple) else value
