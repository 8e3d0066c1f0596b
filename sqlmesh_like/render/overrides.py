"""What a unit test substitutes for macros, variables and the environment. Owns applying it to a template's scope."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlmesh_like.errors import nearest
from sqlmesh_like.render.jinja.template_errors import TemplateFault
from sqlmesh_like.render.macros import TemplateScope


@dataclass(frozen=True)
class Overrides:
    """Values by name: of macros (whatever their arguments, `package.name` too), of `var` and of `env_var`."""

    macros: Mapping[str, object] = field(default_factory=dict)
    vars: Mapping[str, object] = field(default_factory=dict)
    env_vars: Mapping[str, object] = field(default_factory=dict)

    def lay_over(self, scope: TemplateScope) -> None:
        """Put macros and environment variables into a scope. Raises TemplateFault for a macro that does not exist."""
        for name, value in self.macros.items():
            _lay_macro(scope, name, value)
        if self.env_vars:
            scope["env_var"] = _with(self.env_vars, scope["env_var"])


NO_OVERRIDES = Overrides()


def overrides_of(given: Mapping[str, Mapping[str, object]]) -> Overrides:
    """The overrides that `overrides:` of a unit test declares."""
    return Overrides(given.get("macros", {}), given.get("vars", {}), given.get("env_vars", {}))


def _lay_macro(scope: TemplateScope, name: str, value: object) -> None:
    package, _, inner = name.rpartition(".")
    if not package and name in scope:
        scope[name] = _always(value) if callable(scope[name]) else value
        return
    macros = scope.get(package)
    if package and isinstance(macros, Mapping) and inner in macros:
        scope[package] = {**macros, inner: _always(value)}
        return
    known = [key for key, bound in scope.items() if callable(bound)]
    known += [f"{key}.{macro}" for key, bound in scope.items() if isinstance(bound, dict) for macro in bound]
    raise TemplateFault(f"there is no macro {name!r} to override", r"\{[{%]", nearest(name, known))


def _always(value: object) -> Callable[..., object]:
    return lambda *_args, **_kwargs: value


def _with(values: Mapping[str, object], otherwise: object) -> Callable[..., object]:
    assert callable(otherwise)

    def env_var(name: str, *default: object) -> object:
        return values[name] if name in values else otherwise(name, *default)

    return env_var
