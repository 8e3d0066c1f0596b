"""Jinja inside YAML values. Owns `var` and `env_var`, shared with model templates; models are rendered by `render`."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import yaml
from jinja2 import StrictUndefined, TemplateError, Undefined, UndefinedError, pass_context
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from sqlmesh_like import secrets
from sqlmesh_like.errors import JinjaError, ProjectError, SmlError, UsageError, nearest
from sqlmesh_like.limits.record import note_place
from sqlmesh_like.project.reading.bounds import BoundedSandbox, TemplateLimit, enforce_limits
from sqlmesh_like.project.reading.file_dependencies import record_variable
from sqlmesh_like.project.reading.yaml_node import YamlNode, parse_yaml

SECRET_PREFIX = secrets.ENVIRONMENT_PREFIX
_NOTHING = object()
_WHOLE = re.compile(r"\s*\{\{-?((?:(?!\}\}|\{\{).)*?)-?\}\}\s*", re.DOTALL)


class MissingValue(JinjaError):
    """A `var` or `env_var` that is not set; `pattern` finds the call in the template."""

    def __init__(self, message: str, pattern: str, hint: str | None) -> None:
        super().__init__(message, hint=hint)
        self.pattern = pattern


class ProjectVars:
    """`var()` of templates: `var(name)`, `var(name, default)` and `var.has_var(name)`.

    As in dbt, Jinja in a text is rendered by `render` when the variable is read, so that a `ref` in it is the caller's.
    While `is_parsing`, a variable that is not set is None: the template may turn out to be that of a disabled node.
    """

    __slots__ = ("_asked", "_is_parsing", "_render", "_values")

    def __init__(
        self,
        values: Mapping[str, object],
        render: Callable[[str, str], str],
        is_parsing: Callable[[], bool] = lambda: False,
    ) -> None:
        self._values = values  # private: a template that reached it could change variables of all others
        self._render = render
        self._is_parsing = is_parsing
        self._asked: list[str] = []

    def __call__(self, name: str, default: object = _NOTHING) -> object:
        if name in self._values:
            value = self._values[name]
            # A template may change the value it gets.
            return self._render_var(name, value) if has_jinja(value) else copy.deepcopy(value)
        if default is not _NOTHING:
            return default
        if self._is_parsing():
            return None
        hint = nearest(name, self._values) or f"set it under vars: in the settings, or by --vars '{name}: …'"
        raise MissingValue(f"var {name!r} is not set", _call("var", name), hint)

    def has_var(self, name: str) -> bool:
        return name in self._values

    def _render_var(self, name: str, value: object) -> str:
        if name in self._asked:
            raise MissingValue(f"var {name!r} asks for itself", _call("var", name), None)
        self._asked.append(name)
        try:
            return self._render(name, str(value))
        except JinjaError as error:
            message = error.message if isinstance(error, MissingValue) else f"var {name!r}: {error.message}"
            raise MissingValue(message, _call("var", name), error.hint) from error
        finally:
            self._asked.remove(name)


def has_jinja(value: object) -> bool:
    """Whether a value is a text with Jinja in it."""
    return isinstance(value, str) and any(opening in value for opening in ("{{", "{%", "{#"))


def env_var(name: str, default: object = _NOTHING) -> object:
    """The environment variable; raises MissingValue if it is neither set nor has a default."""
    record_variable(name)
    if name in os.environ:
        if name.startswith(SECRET_PREFIX):
            secrets.learn(os.environ[name])
        return os.environ[name]
    if default is not _NOTHING:
        return default
    raise MissingValue(f"environment variable {name!r} is not set", _call("env_var", name), f"export {name}=…")


def public_env_var(name: str, default: object = _NOTHING) -> object:
    """`env_var` where its value would reach compiled SQL or an artifact: secrets are refused."""
    if name.startswith(SECRET_PREFIX):
        message = f"secret environment variable {name!r} is not available here"
        hint = "secrets are available in profiles.yml and in a source's ingest: block only"
        raise MissingValue(message, _call("env_var", name), hint)
    return env_var(name, default)


def holds_secret(text: str) -> bool:
    """Whether a text contains the value of a secret environment variable and so must stay out of artifacts."""
    secrets = (value for name, value in os.environ.items() if name.startswith(SECRET_PREFIX) and value)
    return any(secret in text for secret in secrets)


def _call(function: str, name: str) -> str:
    return rf"\b{function}\s*\(\s*['\"]{re.escape(name)}"


@pass_context
def repeatable_random(context: Context, values: Sequence[object]) -> object:
    """The filter `random`, which chooses the same item of the same values each time that one node is rendered.

    Otherwise a model would change from one rendering to the next without an edit.
    """
    if not values:
        return context.environment.undefined("No random item, sequence was empty.")
    node = context.get("model")
    seed = repr((node.get("unique_id") if isinstance(node, Mapping) else "", [str(value) for value in values]))
    return values[int(hashlib.sha256(seed.encode(errors="surrogatepass")).hexdigest(), 16) % len(values)]


def parse_vars(text: str) -> dict[str, object]:
    """The value of `--vars`: a YAML or JSON mapping. Raises UsageError for anything else.

    >>> parse_vars("{start: 2024-01, n: 3}")
    {'start': '2024-01', 'n': 3}
    """
    try:
        data = parse_yaml(text, "--vars").value
    except ProjectError as error:
        shown = f"--vars is not valid YAML: {text[:200]!r}"
        raise UsageError(shown, hint=f"{error.message}; write --vars '{{name: value}}'") from error
    if not isinstance(data, dict):
        raise UsageError(f"--vars must be a mapping, not {text[:200]!r}", hint="write --vars '{name: value}'")
    return {str(key): value for key, value in data.items()}


@dataclass(frozen=True)
class YamlWords:
    """What templates in YAML can read: variables, and the target, None if it is not known yet."""

    vars: Mapping[str, object]
    target: Mapping[str, object] | None = None
    of_package: bool = False  # files of a package cannot read secrets

    def values(self, doc: Callable[..., str] | None = None, *, secrets: bool = False) -> ValueRenderer:
        """Renders values. With `doc`, texts under a key `description` are rendered as `descriptions` does."""
        described = None if doc is None else self.descriptions(doc)
        return ValueRenderer(
            self.vars, secrets=secrets and not self.of_package, functions=self._target, described=described
        )

    def descriptions(self, doc: Callable[..., str]) -> ValueRenderer:
        """Renders descriptions, where as in dbt `doc` is known too, and a name that is not prints nothing."""
        known = {**self._target, "doc": doc}
        return ValueRenderer(self.vars, secrets=False, functions=known, undefined=Undefined, is_typed=False)

    @property
    def _target(self) -> Mapping[str, object]:
        return {} if self.target is None else {"target": self.target}


class _ValueSandbox(BoundedSandbox, ImmutableSandboxedEnvironment):
    """The sandbox for values in YAML, whose templates cannot change anything."""


class ValueRenderer:
    """Renders the strings of a YAML value that hold Jinja. A value that is one `{{ … }}` keeps its native type.

    Without `is_typed` it is a text as well. With `secrets`, templates may read secret variables, and no message repeats
    their results.
    """

    def __init__(
        self,
        variables: Mapping[str, object],
        *,
        secrets: bool,
        functions: Mapping[str, object] | None = None,
        undefined: type[Undefined] = StrictUndefined,
        described: ValueRenderer | None = None,
        is_typed: bool = True,
    ) -> None:
        self._is_private = secrets
        self._is_typed = is_typed
        self._described = described or self
        self._environment = _ValueSandbox(undefined=undefined)
        self._environment.filters.update(_FILTERS)
        self._environment.globals.clear()
        self._environment.globals["var"] = ProjectVars(variables, lambda _name, text: self._template(text).render())
        self._environment.globals["env_var"] = env_var if secrets else public_env_var
        self._environment.globals.update(functions or {})
        # A setting of a folder is rendered for each node below it.
        self._expression = cache(lambda text: self._environment.compile_expression(text, undefined_to_none=False))
        self._template = cache(lambda text: self._environment.from_string(text))

    def render(self, node: YamlNode, skip: frozenset[str] = frozenset()) -> YamlNode:
        """The node with all its strings rendered, except children under the keys of `skip`."""
        if isinstance(node.value, str):
            # As in dbt each text goes through Jinja, which drops the newline at the end of a YAML block.
            value = self._text(node) if has_jinja(node.value) else node.value.removesuffix("\n")
            return YamlNode(value, node.location, node.key_location, is_private=self._is_private or node.is_private)
        renderers = {"description": self._described}
        children = {
            key: child if key in skip else renderers.get(key, self).render(child, skip) for key, child in node.items()
        }
        elements = tuple(self.render(element, skip) for element in node.elements)
        value = node.value
        if isinstance(value, dict):
            value = {key: child.value for key, child in children.items()}
        elif isinstance(value, list):
            value = [element.value for element in elements]
        is_private = self._is_private or node.is_private
        return YamlNode(value, node.location, node.key_location, children, elements, is_private)

    def _text(self, node: YamlNode) -> object:
        text = str(node.value)
        note_place(node.location)
        try:
            with enforce_limits():
                return self._render_text(text)
        except UndefinedError as error:
            hint = f"{', '.join(self._environment.globals)} are known here"
            raise JinjaError(self._safe_message(str(error.message), text), location=node.location, hint=hint) from error
        except TemplateError as error:
            message = self._safe_message(str(error.message), text)
            raise JinjaError(f"invalid Jinja: {message}", location=node.location) from error
        except JinjaError as error:
            raise JinjaError(error.message, location=node.location, hint=error.hint) from error
        except TemplateLimit as error:
            raise JinjaError(f"this template is not rendered: {error.reason}", location=node.location) from None
        except (RecursionError, MemoryError) as error:
            raise JinjaError("this template is nested too deep", location=node.location) from error
        except SmlError:
            raise
        except Exception as error:  # whatever a template's code raises is the template's error
            what = "this template" if self._is_private else repr(text)
            message = f"cannot evaluate {what}: {self._safe_message(str(error), text)}"
            raise JinjaError(message, location=node.location) from error

    def _render_text(self, text: str) -> object:
        whole = _WHOLE.fullmatch(text)
        if whole and self._is_typed:
            value: object = self._expression(whole[1])()
            if isinstance(value, _Unread):
                return value.read()
            return str(value) if isinstance(value, Undefined) else value
        return self._template(text).render()

    def _safe_message(self, message: str, template: str) -> str:
        """Jinja's message, unless it quotes a value that may be secret, which words of the template are not."""
        quoted = (match[1] or match[2] for match in re.finditer(r"'([^']*)'|\"([^\"]*)\"", message))
        is_harmless = all(words in template or words.endswith(" object") for words in quoted)
        return message if is_harmless or not self._is_private else "a value that it needs is wrong or not there"


class _Unread(str):
    """The result of a filter such as `as_bool`: a text that is converted only if it is the result of a whole template.

    As in dbt, a filter within an expression changes nothing: `target.type == 'x' | as_bool` compares two texts.
    """

    reader: Callable[[object], object]

    @classmethod
    def of(cls, text: str, reader: Callable[[object], object]) -> _Unread:
        made = cls(text)
        made.reader = reader
        return made

    def read(self) -> object:
        return self.reader(str(self))


def _unread(read: Callable[[object], object]) -> Callable[[object], object]:
    """A filter that marks a text for conversion by `read`; other values are converted at once."""
    return lambda value: _Unread.of(value, read) if isinstance(value, str) else read(value)


def _as_bool(value: object) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    word = str(value).strip().lower()
    if word not in words:
        raise ValueError(f"{value!r} is not a boolean")
    return words[word]


def _as_number(value: object) -> int | float:
    text = str(value)
    return int(text) if re.fullmatch(r"\s*[+-]?\d+\s*", text) else float(text)


def _as_native(value: object) -> object:
    return value_of_yaml(value) if isinstance(value, str) else value


class MalformedYaml(ValueError):
    """A text is not valid YAML; text that exceeds a limit is another error."""


def value_of_yaml(text: str) -> object:
    """YAML text as plain values. Raises ValueError: MalformedYaml if the text is not valid YAML."""
    try:
        return parse_yaml(text, "YAML").value if text.strip() else None
    except ProjectError as error:
        kind = MalformedYaml if isinstance(error.__cause__, yaml.YAMLError) else ValueError
        raise kind(error.message) from error


_FILTERS: Mapping[str, Callable[..., object]] = {
    "as_bool": _unread(_as_bool),
    "as_number": _unread(_as_number),
    "as_native": _unread(_as_native),
    "as_text": str,
    "is_list": lambda value: isinstance(value, list),
    "tojson": json.dumps,
    "random": repeatable_random,
}


def texts_of(value: object) -> tuple[str, ...]:
    """A text or a list of them, as YAML has either; none where nothing is given.

    >>> texts_of("a"), texts_of(["a", 1]), texts_of(None)
    (('a',), ('a', '1'), ())
    """
    return tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),) if value else ()
