"""Destinations of published tables, as profile and config declare them. Owns the values and their forms.

A destination may contain a password: it never appears in a `repr` or a message.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from sqlmesh_like.project.keys.shape import Key, Shape
from sqlmesh_like.project.keys.value_types import text
from sqlmesh_like.project.reading.yaml_node import YamlNode

DestinationKind = Literal["url", "duckdb", "parquet"]
_KINDS: tuple[DestinationKind, ...] = ("url", "duckdb", "parquet")
_SQLITE_FILE = re.compile(r"(sqlite(?:\+pysqlite)?:///)((?!:memory:|file:|/).+)", re.DOTALL)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
DESTINATION = Shape("a publish destination", {
    "url": Key(text, help="A database by its SQLAlchemy URL; an SQLite file is relative to the project.", example="postgresql+psycopg://bi@db.example.com/bi"),
    "duckdb": Key(text, help="A DuckDB file, relative to the project.", example="serving.duckdb"),
    "parquet": Key(text, help="A folder of Parquet files, or a URI.", example="s3://serving/shop"),
    "schema": Key(text, help="Schema of the tables there.", example="shop"),
})  # fmt: skip


@dataclass(frozen=True)
class Publish:
    """`publish` of a model's config. `to` empty: the target's own destination; `table`: another name there."""

    to: tuple[str, ...] = ()
    table: str | None = None


@dataclass(frozen=True)
class Destination:
    """A database by its SQLAlchemy URL, a DuckDB file or a folder of Parquet files; tables are in `schema` there."""

    name: str
    kind: DestinationKind
    place: str = field(repr=False)
    schema: str | None = None


def read_destinations(node: YamlNode | None, root: Path) -> Mapping[str, Destination]:
    """The `publish:` block of an output, by name. Raises ProjectError for an unknown key or a wrong value."""
    if node is None:
        return {}
    return {name: _destination(name, child, root) for name, child in node.mapping("publish").items()}


def _destination(name: str, node: YamlNode, root: Path) -> Destination:
    what = f"publish destination {name!r}"
    replace(DESTINATION, what=what).check(node)
    given = [kind for kind in _KINDS if node.get(kind) is not None]
    if len(given) != 1:
        raise node.error(f"{what} must have one of {', '.join(_KINDS)}", "e.g. bi: {duckdb: serving.duckdb}")
    kind, schema = given[0], node.get("schema")
    place = node.children[kind].text(f"{what}: {kind}")
    if kind == "url":
        place = _SQLITE_FILE.sub(lambda match: f"{match[1]}{root / match[2]}", place)
    elif not _URI.match(place):
        place = str(root / os.path.expanduser(place))  # noqa: PTH111 (not a RuntimeError for a user that is not there)
    return Destination(name, kind, place, None if schema is None else schema.text("schema"))
