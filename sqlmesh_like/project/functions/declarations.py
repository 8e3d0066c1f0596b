"""What a project declares of its functions, as plain values."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from sqlmesh_like.errors import Location
from sqlmesh_like.names import NodeId, python_call_name

Volatility = Literal["deterministic", "stable"]
"""What decides the result of a function: its arguments, or its arguments and the clock of the run."""


@dataclass(frozen=True)
class FunctionArgument:
    """One argument. `default` is SQL without names; None if a call must give a value."""

    name: str
    type: str
    declared_at: Location
    type_at: Location
    default: str | None = None
    default_at: Location | None = None
    given: object = None  # the default as YAML has it
    description: str = ""


@dataclass(frozen=True)
class PythonEntry:
    """Which function of a file in Python is called, and by which version of Python, such as 3.11, if that is told."""

    entry_point: str
    runtime_version: str | None = None


@dataclass(frozen=True)
class FunctionFile:
    """A function: an expression over its arguments, before Jinja. `unique_id` is `function.<project>.<name>`.

    `volatility` None: its entry says nothing, and its expression decides. `python`: its text is a file in Python, of
    which nothing is known but what is declared.
    """

    unique_id: NodeId
    name: str
    path: str  # relative to the project root
    raw_sql: str
    arguments: tuple[FunctionArgument, ...]
    returns: str
    returns_at: Location
    declared_at: Location  # of its entry's name in properties YAML
    volatility: Volatility | None = None
    description: str = ""
    returns_description: str = ""
    fqn: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    meta: Mapping[str, object] = field(default_factory=dict)
    python: PythonEntry | None = None
    unsupported: tuple[str, str] | None = None  # why no query can call it, and what to do; then little else is known

    @property
    def required(self) -> int:
        """The number of arguments that every call gives."""
        return sum(argument.default is None for argument in self.arguments)

    @cached_property
    def call_name(self) -> str:
        """By what queries call a function in Python: its name, and a hash of all that decides its results.

        So a query with another text of the function is another query, to whatever compares queries.
        """
        types = [argument.type for argument in self.arguments]
        digest = hashlib.sha256(repr((self.raw_sql, self.python, types, self.returns)).encode()).hexdigest()
        return python_call_name(self.name, digest, is_decided=self.volatility == "deterministic")
