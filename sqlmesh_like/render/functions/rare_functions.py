"""What dbt's templates know and few ask for: packages that look into dbt itself do. Owns these names and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, SimpleNamespace

from sqlmesh_like.project.nodes import Target
from sqlmesh_like.project.profile import target_words
from sqlmesh_like.render.templates import TemplateFault

_RAISING = (
    *("raise_compiler_error", "raise_not_implemented", "raise_database_error", "raise_dependency_error"),
    *("raise_fail_fast_error", "raise_parsing_error", "raise_contract_error", "missing_config", "missing_relation"),
    *("missing_materialization", "relation_wrong_type", "column_type_missing", "raise_duplicate_resource_name"),
)


def raising_functions() -> dict[str, Callable[..., None]]:
    """`exceptions.raise_…`: each ends the template with its message, at the place of the call."""
    return {name: _raising(name) for name in _RAISING}


def _raising(name: str) -> Callable[..., None]:
    def raises(*words: object, **named: object) -> None:
        said = (word for word in (*words, *named.values()) if word is not None)
        texts = [str(word) for word in said if not isinstance(word, Mapping)]  # a mapping is the node that asks
        raise TemplateFault(", ".join(texts) or name, rf"\b{name}\b")

    return raises


@dataclass(frozen=True)
class RuntimeConfig:
    """`builtins.ref.config`, by which packages learn of the project that they are in."""

    project_name: str
    version: str | None
    credentials: Mapping[str, object]
    vars: Mapping[str, object]
    dependencies: Mapping[str, object]
    args: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def cli_vars(self) -> Mapping[str, object]:
        return self.vars


def runtime_config(
    project: str, target: Target, variables: Mapping[str, object], versions: Mapping[str, str | None]
) -> RuntimeConfig:
    """As templates of one project see it; `versions` are those of the project and its packages, by name."""
    dependencies = {name: SimpleNamespace(project_name=name, version=version) for name, version in versions.items()}
    words = MappingProxyType(target_words(target))
    return RuntimeConfig(project, versions.get(project), words, MappingProxyType(dict(variables)), dependencies)


class _Validators:
    """`validation.any[…]`: what a setting may be is checked where the setting is used."""

    def __getitem__(self, _allowed: object) -> None:
        return None

    def __call__(self, *_allowed: object) -> None:
        return None


def _checked_call(message: str, function: Callable[..., object], *args: object, **kwargs: object) -> object:
    """`try_or_compiler_error`."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        raise TemplateFault(str(message), r"\btry_or_compiler_error\b") from error


def _difference(first: Mapping[str, list[str]], second: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """`diff_of_two_dicts`: the entries of the first that the second lacks, whatever the case of letters.

    >>> _difference({"x": ["a", "B"], "y": ["c"]}, {"X": ["A"], "z": ["d"]})
    {'x': ['B'], 'y': ['c']}
    """
    lowered = {key.casefold(): {word.casefold() for word in words} for key, words in second.items()}
    left = {
        key: [word for word in words if word.casefold() not in lowered.get(key.casefold(), ())]
        for key, words in first.items()
    }
    return {key: words for key, words in left.items() if words or key.casefold() not in lowered}


RARE: Mapping[str, object] = {
    "validation": SimpleNamespace(any=_Validators()),
    "try_or_compiler_error": _checked_call,
    "diff_of_two_dicts": _difference,
    "dbt_metadata_envs": MappingProxyType({}),
}
