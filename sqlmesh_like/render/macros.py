"""All macros of a project and its packages. Owns their names, dispatch and calling; compiling is `templates`' matter.

As in dbt an unqualified name means a macro of the calling node's own package, else of the root project, else a
built-in one; `package.name` means that of a package. A macro that calls another does so from its own package.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from jinja2 import Template

from sqlmesh_like.errors import JinjaError, Location, ProjectError, nearest
from sqlmesh_like.names import NodeId
from sqlmesh_like.project.nodes import MacroFile
from sqlmesh_like.render.jinja.template_errors import MACRO_PREFIX, MacroReturn, TemplateFault
from sqlmesh_like.render.jinja.templates import BUILTIN, Templates
from sqlmesh_like.render.library.target import TemplateTarget
from sqlmesh_like.sql_text import spark_identifier

TemplateScope = dict[str, object]
_BUILT_IN = "dbt"
_PREFIXES = ("spark__", "default__")
_OF_LAKE = frozenset(
    {
        *("get_relation", "load_relation", "get_columns_in_relation", "check_schema_exists", "create_schema"),
        *("list_relations", "list_relations_without_caching", "list_schemas", "get_missing_columns"),
        "expand_target_column_types",
        *("drop_schema", "drop_relation", "verify_database"),
    }
)
"""Functions of `adapter` that ask a lake; nothing else of it is within reach of a template."""
_OF_ROOT = frozenset({"generate_schema_name", "generate_alias_name", "generate_database_name"})
"""Macros by which the root project decides where tables stand, those of its packages too."""


_BLOCK = re.compile(r"\{%[-+]?\s*(macro|test)\s+(\w+)")
_CALLED = re.compile(r"(\w+)\s*\(")


@dataclass(frozen=True)
class _Macro:
    name: str
    package: str
    template: Callable[[], Template]  # compiles the file, once
    declared_at: Location

    @property
    def unique_id(self) -> NodeId:
        return NodeId("macro", self.package, self.name)


class Macros:
    """Macros by package and name."""

    def __init__(
        self,
        project: str,
        own: tuple[MacroFile, ...],
        templates: Templates,
        dispatch: Mapping[str, tuple[str, ...]] | None = None,
        behavior: frozenset[str] = frozenset(),
    ) -> None:
        self.project = project
        self.behavior = behavior
        self.order = dispatch or {}
        self.errors: dict[str, JinjaError] = {}
        """What is wrong with files of macros, by path: a call of a macro that may be one of theirs raises it."""
        self._packages: dict[str, dict[str, _Macro]] = {_BUILT_IN: {}, project: {}}
        for file in _builtin_files():
            self._add(file, _BUILT_IN, templates)
        for file in own:
            self._add(file, file.package or project, templates)
        for file in own:
            if file.path in self.errors:
                self._add_broken(file, file.package or project)

    def _add(self, file: MacroFile, package: str, templates: Templates) -> None:
        if package == _BUILT_IN and not file.path.startswith(BUILTIN):
            raise _taken(package, Location(file.path))
        try:
            template, lines = templates.macros_of(file.path, file.raw)
        except JinjaError as error:
            if package == _BUILT_IN:
                raise
            self.errors[file.path] = error
            return
        known = self._packages.setdefault(package, {})
        for name, line in lines.items():
            place = Location(file.path, line, 1)
            if name in known:
                hint = f"the first is in {known[name].declared_at}"
                raise ProjectError(f"macro {name!r} is defined twice", location=place, hint=hint)
            known[name] = _Macro(name, package, template, place)

    def _add_broken(self, file: MacroFile, package: str) -> None:
        """Each name that the file may define: as its blocks say, and built-in ones that it mentions.

        None of these may mean something else in silence: `generate_schema_name` says where tables are.
        """
        error = self.errors[file.path]
        names = {f"test_{name}" if kind == "test" else name for kind, name in _BLOCK.findall(file.raw)}
        names |= (self._packages[_BUILT_IN].keys() | _OF_ROOT) & set(_CALLED.findall(file.raw))
        known = self._packages.setdefault(package, {})
        for name in sorted(names - known.keys()):
            known[name] = _Macro(name, package, _raising(error), error.location or Location(file.path, 1, 1))

    def declared(self) -> Iterator[tuple[NodeId, Location]]:
        """Unique id (`macro.<package>.<name>`) and place of each macro that a plain name of the root can mean, by id.

        Those of packages, and built-in ones that the project does not have itself, are among them.
        """
        own = self._packages[self.project]
        macros_found = [macro for macros in self._packages.values() for macro in macros.values()]
        for macro in sorted(macros_found, key=lambda macro: macro.unique_id):
            if macro.package != _BUILT_IN or macro.name not in own:
                yield macro.unique_id, macro.declared_at

    def visible(self, package: str, functions: Collection[str]) -> dict[str, _Macro]:
        """What a name alone means to a node of a package; `functions` are the names that templates have anyway."""
        own = self.own(package, functions) if package != self.project else {}
        return {**self._packages[_BUILT_IN], **self._packages[self.project], **own}

    def own(self, package: str, functions: Collection[str]) -> dict[str, _Macro]:
        """What a name alone means to a macro of a package, among the package's own.

        The root project may put a macro in the place of `ref` or `env_var`, as in dbt; a stranger's package may not.
        """
        macros = self._packages.get(package, {})
        if package == self.project:
            return macros
        kept = {*functions, *(_OF_ROOT & self._packages[self.project].keys())}
        return {name: macro for name, macro in macros.items() if name not in kept}

    def dispatch_order(self, namespace: str | None, node_package: str) -> tuple[str, ...]:
        """The packages where `adapter.dispatch` looks for macros of a namespace, one after the other."""
        if namespace is not None and namespace in self.order:
            return self.order[namespace]
        if namespace in self._packages:
            return self.project, namespace
        return tuple(dict.fromkeys((node_package, self.project, _BUILT_IN, *self._packages)))

    def dispatched(self, name: str, packages: Iterable[str]) -> _Macro | None:
        """The macro that `adapter.dispatch` finds, by its prefix in each package."""
        for package in packages:
            known = self.package(package)
            for prefix in _PREFIXES:
                if prefix + name in known:
                    return known[prefix + name]
        return None

    def place_tables(self, name: str, scope: TemplateScope) -> bool:
        """Whether `generate_schema_name` or another macro of this kind is not dbt's own in a node's scope."""
        call = scope.get(name)
        if not isinstance(call, _MacroCall) or not call.is_built_in:
            return callable(call)
        macro = self.dispatched(name, self.dispatch_order(_BUILT_IN, self.project))
        return macro is not None and macro.package != _BUILT_IN

    def package(self, name: str) -> Mapping[str, _Macro]:
        return self._packages.get(name, {})

    def bind(self, scope: TemplateScope, used: Callable[[str], None], package: str = "") -> None:
        """Adds the macros to the scope of a package's node (none: the root project's), and `adapter.dispatch`.

        `used` is called with the unique id of each macro that is called.
        """
        _Binding(self, used).enter(scope, package or self.project, self._packages)

    @property
    def packages(self) -> tuple[str, ...]:
        return tuple(self._packages)


@dataclass
class _Binding:
    """The macros of one node: a file of macros is run once for it, at the first call of one of its macros."""

    macros: Macros
    used: Callable[[str], None]
    modules: dict[Callable[[], Template], object] = field(default_factory=dict)
    scopes: dict[str, TemplateScope] = field(default_factory=dict)
    package: str = ""  # of the node
    node_scope: TemplateScope = field(default_factory=dict)
    functions: frozenset[str] = frozenset()

    def enter(self, scope: TemplateScope, package: str, packages: Mapping[str, object]) -> None:
        self.package, self.node_scope, self.functions = package, scope, frozenset(scope)
        scope["adapter"] = Adapter(self, scope.get("adapter"))
        for name in packages:
            if name in self.functions and name not in (self.macros.project, _BUILT_IN):
                raise _taken(name, next(iter(self.macros.package(name).values())).declared_at)
            scope[name] = _Package(self, name, scope.get(name))
        scope.update(self.calls(package))
        self.scopes[package] = scope

    def calls(self, package: str) -> dict[str, _MacroCall]:
        return {name: _MacroCall(self, macro) for name, macro in self.macros.visible(package, self.functions).items()}

    def scope(self, package: str) -> TemplateScope:
        """The names that macros of a package see: what its own names mean differs from package to package."""
        if package == _BUILT_IN:
            package = self.macros.project
        if package not in self.scopes:
            macros = self.macros.own(package, self.functions)
            own = {name: _MacroCall(self, macro) for name, macro in macros.items()}
            self.scopes[package] = {**self.node_scope, **own}
        return self.scopes[package]


class _MacroCall:
    """A macro as one node calls it."""

    def __init__(self, binding: _Binding, macro: _Macro) -> None:
        self._binding = binding
        self._macro = macro

    @property
    def is_built_in(self) -> bool:
        return self._macro.package == _BUILT_IN

    def __call__(self, *args: object, **kwargs: object) -> object:
        macro, modules = self._macro, self._binding.modules
        self._binding.used(macro.unique_id)
        if macro.template not in modules:
            module = macro.template().make_module(self._binding.scope(macro.package), shared=True)
            modules[macro.template] = module
        function: Callable[..., object] = getattr(modules[macro.template], MACRO_PREFIX + macro.name)
        target = self._binding.node_scope.get("target")
        try:
            with target.within(macro.name) if isinstance(target, TemplateTarget) else nullcontext():
                return function(*args, **kwargs)
        except MacroReturn as returned:
            return returned.value


class _Package(Mapping[str, object]):
    """`package` of `package.macro(…)`. What was there under this name before, such as functions, stays."""

    def __init__(self, binding: _Binding, name: str, before: object) -> None:
        self._binding = binding
        self._package_name = name  # as messages have it
        self._macros = binding.macros.package(name)
        self._before = before if isinstance(before, Mapping) else {}

    def __getitem__(self, name: str) -> object:
        macro = self._macros.get(name)
        return self._before[name] if macro is None else _MacroCall(self._binding, macro)

    def __iter__(self) -> Iterator[str]:
        return iter({**self._before, **self._macros})

    def __len__(self) -> int:
        return len({**self._before, **self._macros})


class Behavior:
    """`adapter.behavior`: dbt's flags of behaviour, each true where `flags:` of the project says so."""

    def __init__(self, flags: frozenset[str]) -> None:
        self._flags = flags

    def __getattr__(self, name: str) -> BehaviorFlag:
        return BehaviorFlag(name in self._flags)


@dataclass(frozen=True)
class BehaviorFlag:
    """`adapter.behavior.<flag>`: dbt asked by `no_warn` does not warn that the flag is off; here nothing does."""

    no_warn: bool

    def __bool__(self) -> bool:
        return self.no_warn


class Adapter:
    """`adapter` of templates: dispatch, and the questions to a lake that `lake` answers."""

    def __init__(self, binding: _Binding, lake: object) -> None:
        self._binding = binding
        self._lake = lake
        self.behavior = Behavior(binding.macros.behavior)

    def dispatch(self, macro_name: str, macro_namespace: str | None = None) -> _MacroCall:
        """The macro `spark__<name>`, else `default__<name>`: of the root project, then of the namespace.

        `dispatch:` of the settings gives another order of packages. Without a namespace, or with one that is not a
        package, it is what the plain name means to the node, else one of any package.
        """
        macros = self._binding.macros
        if "." in macro_name:
            raise TemplateFault(f"dispatch takes a name without a dot, not {macro_name!r}", r"\bdispatch\b")
        searched = macros.dispatch_order(macro_namespace, self._binding.package)
        if macro := macros.dispatched(macro_name, searched):
            return _MacroCall(self._binding, macro)
        wanted = " or ".join(prefix + macro_name for prefix in _PREFIXES)
        candidates = [name for package in searched for name in macros.package(package)]
        hint = nearest(_PREFIXES[1] + macro_name, candidates) or f"searched: {', '.join(searched)}"
        raise TemplateFault(f"no macro {wanted} to dispatch to", r"\bdispatch\b", hint)

    def quote(self, name: str) -> str:
        return spark_identifier(name)

    def quote_as_configured(self, identifier: str, _part: object = None) -> str:
        """As dbt-spark is configured: without quotes."""
        return identifier

    def type(self) -> str:
        return "spark"

    def __getattr__(self, name: str) -> object:
        if name in _OF_LAKE:
            return getattr(self._lake, name)
        hint = "ask by run_query, or override the macro that calls it"
        raise TemplateFault(f"adapter.{name} is not supported", rf"\b{re.escape(name)}\b", hint)


def _raising(error: JinjaError) -> Callable[[], Template]:
    def raises() -> Template:
        raise error

    return raises


def _taken(package: str, place: Location) -> ProjectError:
    hint = "templates have a function of this name, or an object; a package of it would stand in its place"
    return ProjectError(f"{package!r} cannot be the name of a package", location=place, hint=hint)


@cache
def _builtin_files() -> tuple[MacroFile, ...]:
    folder = files("sqlmesh_like.render") / "builtin_macros"
    sql_files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return tuple(MacroFile(BUILTIN + file.name, file.read_text(encoding="utf-8")) for file in sql_files)
