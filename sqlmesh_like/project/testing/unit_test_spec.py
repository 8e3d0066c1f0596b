"""Unit tests as their entries declare them. Owns the shape only; `unit_tests` reads YAML into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlmesh_like.errors import Location
from sqlmesh_like.names import NodeId
from sqlmesh_like.project.reading.yaml_node import YamlNode

FixtureFormat = Literal["dict", "csv", "sql"]


@dataclass(frozen=True)
class Fixture:
    """Rows as written. `rows` is a list of mappings (dict) or None; `text` is CSV or SQL, `text_path` its own file.

    Without both the fixture gives no rows: a seed then has those of its own file. `template` is the SQL as written, if
    it queries a lake: it is rendered again when a lake answers.
    """

    format: FixtureFormat
    location: Location
    rows: YamlNode | None = None
    text: str | None = None
    text_path: str | None = None
    template: str | None = None

    @property
    def path(self) -> str:
        """The file that contains it."""
        return self.text_path or self.location.path

    @property
    def is_silent(self) -> bool:
        return self.rows is None and self.text is None


@dataclass(frozen=True)
class GivenInput:
    """Rows of one input, which is named as in a template: `ref('x')`, `source('a', 'b')` or `this`."""

    input: str
    location: Location
    fixture: Fixture


@dataclass(frozen=True)
class ChangedInput:
    """What happens to one input after the first build: rows written over those of their key, and rows removed."""

    input: str
    location: Location
    upsert: Fixture
    delete: Fixture
    key: tuple[str, ...] = ()


@dataclass(frozen=True)
class UnitTestFile:
    """A unit test as its entry declares it; `unique_id` is `unit_test.<project>.<model>.<name>`."""

    unique_id: NodeId
    name: str
    model: str
    path: str
    description: str
    given: tuple[GivenInput, ...]
    expect: Fixture
    declared_at: Location
    model_at: Location
    changes: tuple[ChangedInput, ...] = ()
    overrides: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    now: str | None = None
    tags: tuple[str, ...] = ()
    config: Mapping[str, object] = field(default_factory=dict)
