"""Values that templates know: `target`, `flags`, `model`, `ref.config`, and of `modules` what is within reach."""

from __future__ import annotations

import copy
import datetime
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from types import SimpleNamespace
from zoneinfo import ZoneInfo

from sqlmesh_like.project.nodes import ParsedProject, Target


class Zone(ZoneInfo):
    """`modules.pytz.timezone('Europe/Berlin')`, with what templates call of pytz's zones."""

    def localize(self, moment: datetime.datetime, is_dst: bool = False) -> datetime.datetime:  # noqa: ARG002
        """A moment without a zone, in this one."""
        return moment.replace(tzinfo=self)

    def normalize(self, moment: datetime.datetime) -> datetime.datetime:
        return moment.astimezone(self)


def _stepped(function: Callable[..., Iterable[object]]) -> Callable[..., Iterator[object]]:
    """The same items, each by a step of Python: what runs in C alone cannot be stopped."""

    @wraps(function, assigned=("__name__", "__doc__"))
    def call(*args: object, **named: object) -> Iterator[object]:
        for item in function(*args, **named):  # noqa: UP028 (`yield from` is no step)
            yield item

    return call


_RE_FUNCTIONS = ("match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer", "escape", "compile")
_RE_FLAGS = ("A", "ASCII", "I", "IGNORECASE", "M", "MULTILINE", "S", "DOTALL", "X", "VERBOSE", "U", "UNICODE")


# Chosen functions only: a module itself would lead out of the sandbox (`modules.datetime.sys`).
MODULES = SimpleNamespace(
    pytz=SimpleNamespace(timezone=Zone, utc=datetime.UTC, UTC=datetime.UTC),
    datetime=SimpleNamespace(
        datetime=datetime.datetime,
        date=datetime.date,
        time=datetime.time,
        timedelta=datetime.timedelta,
        timezone=datetime.timezone,
    ),
    re=SimpleNamespace(
        **{name: getattr(re, name) for name in (*_RE_FUNCTIONS, *_RE_FLAGS)},
    ),
    itertools=SimpleNamespace(
        **{
            name: _stepped(getattr(itertools, name))
            for name in ("chain", "product", "combinations", "permutations", "islice")
        }
    ),
)


class TemplateTarget(dict[str, object]):
    """`target` of one node's templates. Its type is `spark` within a macro `spark__…`, also on a `duckdb` target.

    A package's author counts on it that dispatch and `target.type` agree.
    """

    def __init__(self, words: Mapping[str, object]) -> None:
        super().__init__(words)
        self._calls = 0

    def __getitem__(self, key: str) -> object:
        return "spark" if key == "type" and self._calls else super().__getitem__(key)

    def get(self, key: str, default: object = None) -> object:
        return self.__getitem__(key) if key in self else default

    @contextmanager
    def within(self, macro: str) -> Iterator[None]:
        """While a macro of this name is called."""
        is_spark = macro.startswith("spark__")
        self._calls += is_spark
        try:
            yield
        finally:
            self._calls -= is_spark


class TemplateFlags(dict[str, object]):
    """`flags` of templates. Which command it is shows when a node is run: to look at it is to ask."""

    def __init__(self, full_refresh: bool, command: str, note: Callable[[], None]) -> None:
        super().__init__(FULL_REFRESH=full_refresh, WHICH=command)
        self._note = note

    def __getitem__(self, key: str) -> object:
        if key == "WHICH":
            self._note()
        return super().__getitem__(key)

    def get(self, key: str, default: object = None) -> object:
        return self.__getitem__(key) if key in self else default


class TemplateNode(Mapping[str, object]):
    """`model` of templates: what is known of a node while it is read, and once it is run all that manifest.json has."""

    __slots__ = ("_graph", "_known")

    def __init__(self, known: Mapping[str, object], graph: Callable[[], Mapping[str, object]] | None) -> None:
        self._known = dict(known)
        self._graph = graph

    def _complete(self) -> dict[str, object]:
        graph, self._graph = self._graph, None
        nodes = {} if graph is None else graph()["nodes"]
        entry = nodes.get(str(self._known.get("unique_id"))) if isinstance(nodes, Mapping) else None
        if isinstance(entry, Mapping):
            self._known = {**copy.deepcopy(dict(entry)), **self._known}
        return self._known

    def __getitem__(self, key: str) -> object:
        return self._known[key] if key in self._known else self._complete()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._complete())

    def __len__(self) -> int:
        return len(self._complete())


class RuntimeConfig:
    """What packages read of the whole project by `builtins.ref.config`, where dbt has its own object.

    Every value is a copy: what a template changes of it no other one sees.
    """

    __slots__ = ("_vars", "_versions", "profile_name", "project_name", "target_name", "threads")

    def __init__(self, project: ParsedProject, target: Target) -> None:
        self.project_name, self.profile_name = project.name, target.profile
        self.target_name, self.threads = target.name, target.threads
        self._versions = dict(project.versions)
        self._vars = project.vars

    @property
    def version(self) -> str | None:
        return self._versions.get(self.project_name)

    @property
    def dependencies(self) -> dict[str, SimpleNamespace]:
        """The project itself and its packages, by name."""
        return {name: SimpleNamespace(project_name=name, version=version) for name, version in self._versions.items()}

    def load_dependencies(self) -> dict[str, SimpleNamespace]:
        return self.dependencies

    @property
    def vars(self) -> Mapping[str, object]:
        return copy.deepcopy(dict(self._vars))
