"""All macros of a project and its packages. Owns their names, dispatch and calling; `templates` compiles them.

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
"""Functions of `adapter` that query a lake; templates can reach nothing else of it."""
_OF_ROOT = frozenset({"generate_schema_name", "generate_alias_name", "generate_database_name"})
"""Macros by which the root project decides where tables are stored, including those of its packages."""


_BLOCK = re.compile(r"\{%[-+]?\s*(macro|test|data_test)\s+(\w+)")
_CALLED = re.compile(r"\b(\w+)\s*\(")


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
        """Errors of macro files, by path: a call of a macro that such a file may define raises its error."""
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
            raise _reserved_name_error(package, Location(file.path))
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
        """Add each macro that a broken file may define: those of its blocks, and built-in ones that it mentions.

        None of these names may silently mean another macro: `generate_schema_name` decides where tables are.
        """
        error = self.errors[file.path]
        names = {f"test_{name}" if kind != "macro" else name for kind, name in _BLOCK.findall(file.raw)}
        names |= (self._packages[_BUILT_IN].keys() | _OF_ROOT) & set(_CALLED.findall(file.raw))
        known = self._packages.setdefault(package, {})
        for name in sorted(names - known.keys()):
            known[name] = _Macro(name, package, _raising(error), error.location or Location(file.path, 1, 1))

    def declarations(self) -> Iterator[tuple[NodeId, Location]]:
        """Unique id (`macro.<package>.<name>`) and location of each macro that the root project can call, by id.

        Those of packages are among them, and built-in ones that the project does not override.
        """
        own = self._packages[self.project]
        macros_found = [macro for macros in self._packages.values() for macro in macros.values()]
        for macro in sorted(macros_found, key=lambda macro: macro.unique_id):
            if macro.package != _BUILT_IN or macro.name not in own:
                yield macro.unique_id, macro.declared_at

    def visible(self, package: str, functions: Collection[str]) -> dict[str, _Macro]:
        """The macros that a node of a package can call by name alone; `functions` are the names in scope anyway."""
        own = self.own(package, functions) if package != self.project else {}
        return {**self._packages[_BUILT_IN], **self._packages[self.project], **own}

    def own(self, package: str, functions: Collection[str]) -> dict[str, _Macro]:
        """The package's own macros that its macros can call by name alone.

        As in dbt, the root project may replace `ref` or `env_var` with a macro; a package may not.
        """
        macros = self._packages.get(package, {})
        if package == self.project:
            return macros
        kept = {*functions, *(_OF_ROOT & self._packages[self.project].keys())}
        return {name: macro for name, macro in macros.items() if name not in kept}

    def dispatch_order(self, namespace: str | None, node_package: str) -> tuple[str, ...]:
        """The packages in which `adapter.dispatch` searches for macros of a namespace, in order."""
        if namespace is not None and namespace in self.order:
            return self.order[namespace]
        if namespace in self._packages:
            return self.project, namespace
        return tuple(dict.fromkeys((node_package, self.project, _BUILT_IN, *self._packages)))

    def find_dispatched(self, name: str, packages: Iterable[str]) -> _Macro | None:
        """The macro that `adapter.dispatch` finds: the first one with a dispatch prefix, in order of packages."""
        for package in packages:
            known = self.package(package)
            for prefix in _PREFIXES:
                if prefix + name in known:
                    return known[prefix + name]
        return None

    def place_tables(self, name: str, scope: TemplateScope) -> bool:
        """Whether `generate_schema_name`, or another macro that places tables, is not dbt's own in a node's scope."""
        call = scope.get(name)
        if not isinstance(call, _MacroCall) or not call.is_built_in:
            return callable(call)
        macro = self.find_dispatched(name, self.dispatch_order(_BUILT_IN, self.project))
        return macro is not None and macro.package != _BUILT_IN

    def package(self, name: str) -> Mapping[str, _Macro]:
        return self._packages.get(name, {})

    def bind(self, scope: TemplateScope, used: Callable[[str], None], package: str = "") -> None:
        """Add the macros, and `adapter.dispatch`, to the scope of a node of `package` (empty: the root project).

        `used` is called with the unique id of each macro that is called.
        """
        _Binding(self, used).enter(scope, package or self.project, self._packages)

    @property
    def packages(self) -> tuple[str, ...]:
        return tuple(self._packages)


@dataclass
class _Binding:
    """The macros of one node: a macro file is run once per node, at the first call of one of its macros."""

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
                raise _reserved_name_error(name, next(iter(self.macros.package(name).values())).declared_at)
            scope[name] = _Package(self, name, scope.get(name))
        scope.update(self.calls(package))
        self.scopes[package] = scope

    def calls(self, package: str) -> dict[str, _MacroCall]:
        return {name: _MacroCall(self, macro) for name, macro in self.macros.visible(package, self.functions).items()}

    def scope(self, package: str) -> TemplateScope:
        """The names in scope of a package's macros: unqualified names differ from package to package."""
        if package == _BUILT_IN:
            package = self.macros.project
        if package not in self.scopes:
            macros = self.macros.own(package, self.functions)
            own = {name: _MacroCall(self, macro) for name, macro in macros.items()}
            self.scopes[package] = {**self.node_scope, **own}
        return self.scopes[package]


class _MacroCall:
    """A macro as one node calls it. Each scope has one of each macro: a hundred in a project without any of its own."""

    __slots__ = ("_binding", "_macro")

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
    """`package` of `package.macro(…)`. Items that this name had before, such as functions, stay available."""

    def __init__(self, binding: _Binding, name: str, before: object) -> None:
        self._binding = binding
        self._package_name = name  # read by error messages
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
    """`adapter.behavior`: dbt's behavior flags, each true if `flags:` of the project sets it."""

    def __init__(self, flags: frozenset[str]) -> None:
        self._flags = flags

    def __getattr__(self, name: str) -> BehaviorFlag:
        return BehaviorFlag(name in self._flags)


@dataclass(frozen=True)
class BehaviorFlag:
    """`adapter.behavior.<flag>`: in dbt, reading `no_warn` avoids the warning that it is off; here none is given."""

    no_warn: bool

    def __bool__(self) -> bool:
        return self.no_warn


class Adapter:
    """`adapter` of templates: dispatch, and the queries that `lake` answers."""

    def __init__(self, binding: _Binding, lake: object) -> None:
        self._binding = binding
        self._lake = lake
        self.behavior = Behavior(binding.macros.behavior)

    def dispatch(self, macro_name: str, macro_namespace: str | None = None) -> _MacroCall:
        """The macro `spark__<name>`, else `default__<name>`: of the root project, then of the namespace.

        `dispatch:` of the settings can change the order of packages. Without a namespace, or with one that is not a
        package, the node's own package is searched, then the root project, then all others.
        """
        macros = self._binding.macros
        if "." in macro_name:
            raise TemplateFault(f"dispatch takes a name without a dot, not {macro_name!r}", r"\bdispatch\b")
        searched = macros.dispatch_order(macro_namespace, self._binding.package)
        if macro := macros.find_dispatched(macro_name, searched):
            return _MacroCall(self._binding, macro)
        wanted = " or ".join(prefix + macro_name for prefix in _PREFIXES)
        candidates = [name for package in searched for name in macros.package(package)]
        hint = nearest(_PREFIXES[1] + macro_name, candidates) or f"searched: {', '.join(searched)}"
        raise TemplateFault(f"no macro {wanted} to dispatch to", r"\bdispatch\b", hint)

    def quote(self, name: str) -> str:
        return spark_identifier(name)

    def quote_as_configured(self, identifier: str, _part: object = None) -> str:
        """Return the identifier without quotes, as dbt-spark is configured."""
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


def _reserved_name_error(package: str, place: Location) -> ProjectError:
    hint = "templates have a function of this name, or an object; a package of it would stand in its place"
    return ProjectError(f"{package!r} cannot be the name of a package", location=place, hint=hint)


@cache
def _builtin_files() -> tuple[MacroFile, ...]:
    folder = files("sqlmesh_like.render") / "builtin_macros"
    sql_files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return tuple(MacroFile(BUILTIN + file.name, file.read_text(encoding="utf-8")) for file in sql_files)
