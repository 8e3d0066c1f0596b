"""An environment as a value. Owns its form on disk, and which names environments may have."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

from sqlmesh_like.errors import MachineError, NewerVersionError, UsageError

VERSION = 2
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")


@dataclass(frozen=True)
class EnvironmentTable:
    """A table of an environment: its name, and production's when it was cloned.

    `base`: the frontier that was cloned; `newest`: production's newest commit then, services included. None: production
    had no such table. `place`: of its folder on an object store, where each clone gets a new one; empty on a disk.
    """

    table: str
    base: str | None
    newest: str | None
    place: str = ""


@dataclass(frozen=True)
class PromotionStep:
    """What promotion does with one table, and the frontier at which production's is afterwards.

    `link`: production's table gets the commits of its clone; `move`: the environment's table takes its place.
    """

    unique_id: str
    table: str
    commit: str
    way: Literal["link", "move"]


@dataclass(frozen=True)
class Environment:
    """The tables of an environment by unique id; all others are read from production.

    `passed`: data tests that passed in it, by unique id, with the frontiers of the tables that they read. `compared`:
    of tables that were found to be of their models' texts, the keys of these comparisons. `promotion`: the steps of a
    promotion that has begun, inputs first.
    """

    name: str
    project: str
    schema: str
    created_at: str
    tables: Mapping[str, EnvironmentTable] = field(default_factory=dict)
    passed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    compared: Mapping[str, str] = field(default_factory=dict)
    promotion: tuple[PromotionStep, ...] = ()


def is_name(name: str) -> bool:
    """Whether an environment can have this name."""
    return _NAME.fullmatch(name) is not None


def require_name(name: str) -> str:
    """Return the name. Raises UsageError for one that an environment cannot have.

    >>> require_name("dev_2")
    'dev_2'
    """
    if not is_name(name):
        hint = "begin with a small letter; then up to 62 small letters, digits, - and _"
        raise UsageError(f"an environment cannot be named {name!r}", hint=hint)
    return name


def encode_environment(environment: Environment) -> bytes:
    """Return an environment as JSON.

    >>> tables = {"model.p.a": EnvironmentTable("dws.a", "1_2", "1_2")}
    >>> one = Environment("dev", "p", "dws", "2024-05-01T00:00:00Z", tables, {"test.p.t": {"model.p.a": "3_4"}})
    >>> decode_environment(encode_environment(one), "the file") == one
    True
    """
    return json.dumps({"version": VERSION, **asdict(environment)}, indent=1, sort_keys=True).encode()


def decode_environment(content: bytes, name: str) -> Environment:
    """Return the environment of a file. Raises MachineError where it has none, NewerVersionError for a later form."""
    try:
        document = json.loads(content)
        version = int(document.pop("version"))
        if version <= VERSION:
            tables = {each: EnvironmentTable(**entry) for each, entry in document.pop("tables").items()}
            steps = tuple(PromotionStep(**entry) for entry in document.pop("promotion"))
            return Environment(**document, tables=tables, promotion=steps)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        hint = "remove its folder: production has nothing of it"
        raise MachineError(f"{name} does not hold an environment: {error}", hint=hint) from error
    raise NewerVersionError(name, f"its form is version {version}, this one knows {VERSION}")
