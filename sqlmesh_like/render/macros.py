"""All macros of a project. Owns their names, dispatch and calling; compiling them is `templates`' matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files

from jinja2 import Template

from sqlmesh_like.errors import Location, ProjectError, nearest
from sqlmesh_like.project.spec import MacroFile
from sqlmesh_like.render.templates import BUILTIN, MACRO_PREFIX, Fault, MacroReturn, Templates

Scope = dict[str, object]
_PREFIXES = ("spark__", "default__")


class Macros:
    """Macros by name. Those of the project win over the built-in ones of the same name."""

    def __init__(self, project: str, own: tuple[MacroFile, ...], templates: Templates) -> None:
        self._project = project
        self._template_of: dict[str, Template] = {}
        self._package_of: dict[str, str] = {}
        self._declared: dict[str, Location] = {}
        for file in _builtin_files():
            self._add(file, "dbt", templates)
        for file in own:
            self._add(file, project, templates)

    def _add(self, file: MacroFile, package: str, templates: Templates) -> None:
        template, lines = templates.macros_of(file.path, file.raw)
        for name, line in lines.items():
            if self._package_of.get(name) == package:
                hint = f"the first is in {self._declared[name]}"
                raise ProjectError(f"macro {name!r} is defined twice", location=Location(file.path, line, 1), hint=hint)
            self._template_of[name] = template
            self._package_of[name] = package
            self._declared[name] = Location(file.path, line, 1)

    def __contains__(self, name: str) -> bool:
        return name in self._template_of

    def declared(self) -> Iterator[tuple[str, Location]]:
        """Unique id (`macro.<package>.<name>`) and place of each macro, by id."""
        for name in sorted(self._template_of):
            yield self.unique_id(name), self._declared[name]

    def unique_id(self, name: str) -> str:
        return f"macro.{self._package_of[name]}.{name}"

    def bind(self, scope: Scope, used: Callable[[str], None]) -> None:
        """Adds every macro to a scope, by its name and under its package, and `adapter.dispatch`.

        `used` is called with the unique id of each macro that is called.
        """
        modules: dict[int, object] = {}
        calls = {name: _MacroCall(self, name, scope, modules, used) for name in self._template_of}
        scope.update(calls)
        for package in dict.fromkeys(self._package_of.values()):
            scope[package] = {name: call for name, call in calls.items() if self._package_of[name] == package}
        scope["adapter"] = Adapter(calls)

    def template(self, name: str) -> Template:
        return self._template_of[name]


class _MacroCall:
    """A macro in one scope. Its file is run once a scope, at the first call of one of its macros."""

    def __init__(
        self, macros: Macros, name: str, scope: Scope, modules: dict[int, object], used: Callable[[str], None]
    ) -> None:
        self._macros = macros
        self._name = name
        self._scope = scope
        self._modules = modules
        self._used = used

    def __call__(self, *args: object, **kwargs: object) -> object:
        self._used(self._macros.unique_id(self._name))
        template = self._macros.template(self._name)
        if id(template) not in self._modules:
            self._modules[id(template)] = template.make_module(self._scope, shared=True)
        macro: Callable[..., object] = getattr(self._modules[id(template)], MACRO_PREFIX + self._name)
        try:
            return macro(*args, **kwargs)
        except MacroReturn as returned:
            return returned.value


class Adapter:
    """`adapter` of templates. Nothing is executed while rendering: questions to a database find nothing."""

    def __init__(self, macros: Mapping[str, _MacroCall]) -> None:
        self._macros = macros

    def dispatch(self, name: str, macro_namespace: str | None = None) -> _MacroCall:
        """The macro `spark__<name>`, else `default__<name>`, of whatever package: names are unique over all of them."""
        del macro_namespace
        for prefix in _PREFIXES:
            if prefix + name in self._macros:
                return self._macros[prefix + name]
        wanted = " or ".join(prefix + name for prefix in _PREFIXES)
        raise Fault(f"no macro {wanted} to dispatch to", r"\bdispatch\b", nearest(_PREFIXES[1] + name, self._macros))

    def get_relation(self, *_args: object, **_options: object) -> None:
        return None

    def get_columns_in_relation(self, _relation: object) -> list[object]:
        return []

    def quote(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"


@cache
def _builtin_files() -> tuple[MacroFile, ...]:
    folder = files("sqlmesh_like.render") / "builtin_macros"
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return tuple(MacroFile(BUILTIN + file.name, file.read_text(encoding="utf-8")) for file in found)
