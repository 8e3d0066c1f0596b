"""Functions of dbt that need neither lake nor node: JSON, YAML, sets, hashes. Owns defaults for invalid values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import yaml
from jinja2 import pass_context
from jinja2.runtime import Context
from jinja2.sandbox import SandboxedEnvironment

from sqlmesh_like.project.reading.values import MalformedYaml, value_of_yaml
from sqlmesh_like.render.jinja.template_errors import TemplateFault


def _from_json(text: Any, default: object = None) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return default


def _to_json(value: object, default: object = None, sort_keys: bool = False) -> object:
    try:
        return json.dumps(
            value, sort_keys=sort_keys, default=lambda one: dict(one) if isinstance(one, Mapping) else str(one)
        )
    except ValueError:
        return default


def _from_yaml(text: Any, default: object = None) -> object:
    try:
        return value_of_yaml(text)
    except MalformedYaml:
        return default


def _to_yaml(value: object, default: object = None, sort_keys: bool = False) -> object:
    try:
        return yaml.safe_dump(value, sort_keys=sort_keys)
    except (ValueError, yaml.YAMLError):
        return default


def _set(values: Any, default: object = None) -> object:
    try:
        return set(values)
    except TypeError:
        return default


def _zip(*values: Any, default: object = None) -> object:
    try:
        return zip(*values)  # noqa: B905 (as dbt: the shortest one ends it)
    except TypeError:
        return default


def _md5(text: object) -> str:
    return hashlib.md5(str(text).encode(), usedforsecurity=False).hexdigest()


def _diff(first: Mapping[str, Iterable[str]], second: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Values of the first that the second lacks, whatever the case; a key of both without such values is left out."""
    known = {key.casefold(): {value.casefold() for value in values} for key, values in second.items()}
    left = {
        key: [value for value in values if value.casefold() not in known.get(key.casefold(), ())]
        for key, values in first.items()
    }
    return {key: values for key, values in left.items() if values or key.casefold() not in known}


@pass_context
def _try_or_compiler_error(
    context: Context, message: object, function: object, *args: object, **named: object
) -> object:
    """Call a function as the template itself would, within the sandbox."""
    sandbox = context.environment
    assert isinstance(sandbox, SandboxedEnvironment)
    try:
        return sandbox.call(context, function, *args, **named)
    except Exception as error:
        raise TemplateFault(str(message), r"\btry_or_compiler_error\b") from error


class _Validation:
    """`validation` of templates, which accepts any value: `sml` checks settings itself."""

    def any(self, *_kinds: object) -> Callable[[object], None]:
        return lambda _value: None


FUNCTIONS: Mapping[str, object] = {
    "fromjson": _from_json,
    "tojson": _to_json,
    "fromyaml": _from_yaml,
    "toyaml": _to_yaml,
    "set": _set,
    "zip": _zip,
    "set_strict": set,
    "zip_strict": zip,
    "local_md5": _md5,
    "diff_of_two_dicts": _diff,
    "try_or_compiler_error": _try_or_compiler_error,
    "validation": _Validation(),
}
