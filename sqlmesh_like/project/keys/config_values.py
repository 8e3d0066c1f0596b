"""The values that settings of `config` accept. Owns checks of plain values: in-file `config()` is not YAML."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime

from sqlmesh_like.errors import nearest
from sqlmesh_like.project.keys.shape import Form, JsonSchema, Key
from sqlmesh_like.project.publishing import Publish
from sqlmesh_like.project.reading.hudi_options import reserved_option

SettingCheck = Callable[[str, object], object]
"""A key and its value → the value in its normal form. Raises ConfigFault."""
_STRING: JsonSchema = {"type": "string"}
_STRINGS: JsonSchema = {"type": "array", "items": _STRING}


class ConfigFault(Exception):
    """A wrong key or value; callers that know its location turn it into a located error."""

    def __init__(self, key: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.key = key
        self.message = message
        self.hint = hint


class UnknownSetting(ConfigFault):
    """A key without effect here. As in dbt it is accepted: callers that know its location warn about it."""

    once = False
    """Whether one warning speaks for all places of a project."""

    @property
    def kept(self) -> bool:
        """Whether the value is kept for templates that read it."""
        return True


class SettingWithoutEffect(UnknownSetting):
    """A key of dbt's that changes nothing here; the hint says what happens instead."""

    once = True

    def __init__(self, key: str, instead: str) -> None:
        super().__init__(key, f"config {key!r} has no effect here", instead)


class UnusedSetting(UnknownSetting):
    """A value that only another database supports, of a key that has an effect here: treated as if it were missing."""

    @property
    def kept(self) -> bool:
        return False


@dataclass(frozen=True)
class Setting:
    """A key of `config`: its check, the description and JSON Schema of its values, and help for users."""

    check: SettingCheck
    words: str
    schema: JsonSchema
    help: str
    example: object = None

    def key(self, default: object = None) -> Key:
        """The same setting as a key of YAML."""
        form = Form(lambda node, key: self.check(key, node.value), self.words, self.schema, is_nested=True)
        return Key(form, default, help=self.help, example=self.example)


def text_setting(help_: str, example: object) -> Setting:
    return Setting(_text, "text", _STRING, help_, example)


def texts_setting(help_: str, example: object) -> Setting:
    return Setting(_texts, "text or list of texts", {"anyOf": [_STRING, _STRINGS]}, help_, example)


def key_setting(help_: str, example: object) -> Setting:
    return Setting(_key, "text or list of texts", {"anyOf": [_STRING, _STRINGS]}, help_, example)


def partitions_setting(help_: str, example: object) -> Setting:
    return Setting(
        _partitions, "column or list of columns", {"anyOf": [_STRING, _STRINGS, {"type": "object"}]}, help_, example
    )


def boundary_setting(help_: str, example: object) -> Setting:
    return Setting(_boundary, "date, text or whole number", {"type": ["string", "integer"]}, help_, example)


def tolerance_setting(help_: str) -> Setting:
    schema: JsonSchema = {"anyOf": [{"const": "recompute"}, {"type": ["number", "string"]}]}
    return Setting(_tolerance, "`recompute` or a number", schema, help_, "1e-9")


def hooks_setting(help_: str, example: object) -> Setting:
    statement: JsonSchema = {"type": "object", "properties": {"sql": _STRING}, "required": ["sql"]}
    one = {"anyOf": [_STRING, statement]}
    return Setting(_hooks, "SQL or list of SQL", {"anyOf": [one, {"type": "array", "items": one}]}, help_, example)


def boolean_setting(help_: str, of: str = "") -> Setting:
    word = {"type": "string", "pattern": r"^\s*([tT][rR][uU][eE]|[fF][aA][lL][sS][eE])\s*$"}
    schema: JsonSchema = {"anyOf": [{"type": "boolean"}, word]}
    return Setting(lambda key, value: parse_boolean(key, value, of), "true or false", schema, help_, True)


def mapping_setting(help_: str, example: object) -> Setting:
    return Setting(_mapping, "mapping", {"type": "object"}, help_, example)


def hudi_setting(help_: str, example: object) -> Setting:
    values = {"type": ["string", "number", "boolean"]}
    schema: JsonSchema = {"type": "object", "additionalProperties": values}
    return Setting(_hudi_options, "mapping of texts, numbers and booleans", schema, help_, example)


def one_of_setting(help_: str, *allowed: str) -> Setting:
    def check(key: str, value: object) -> str:
        if value not in allowed:
            hint = nearest(value, allowed) if isinstance(value, str) else None
            raise ConfigFault(key, f"config {key!r} is {value!r}; it must be one of {', '.join(allowed)}", hint)
        return str(value)

    return Setting(check, " | ".join(f"`{word}`" for word in allowed), {"enum": list(allowed)}, help_, allowed[0])


def publish_setting(help_: str, example: object) -> Setting:
    place = {"to": {"anyOf": [_STRING, _STRINGS]}, "table": _STRING}
    entry: JsonSchema = {"type": "object", "properties": place, "additionalProperties": False}
    schema: JsonSchema = {"anyOf": [{"type": "boolean"}, _STRING, _STRINGS, entry]}
    return Setting(_publish, "true, destinations or {to, table}", schema, help_, example)


def unchecked_setting(help_: str, words: str, example: object) -> Setting:
    """A setting that is accepted without a check; `words` describe the values that it is meant for."""
    return Setting(lambda _key, value: value, words, {}, help_, example)


def setting_without_effect(words: str, example: object, instead: str, harmless: object = None) -> Setting:
    """A setting of dbt's that changes nothing here; `instead` says what happens, for which a `harmless` value asks."""

    def check(key: str, value: object) -> object:
        if value not in (harmless, {}, []):
            raise SettingWithoutEffect(key, instead)
        return value

    return Setting(check, words, {}, f"dbt's; no effect here: {instead}.", example)


def parse_boolean(key: str, value: object, of: str = "") -> bool:
    """A boolean, or the word for one in any case; `of` is for messages. Raises ConfigFault."""
    words: Mapping[object, bool] = {True: True, False: False, "true": True, "false": False}
    word = value.strip().lower() if isinstance(value, str) else value
    if not isinstance(word, str | bool) or word not in words:
        raise ConfigFault(key, f"config {key!r}{of} must be true or false, not {value!r}")
    return words[word]


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise ConfigFault(key, f"config {key!r} must be text, not {value!r}")
    return value


def _texts(key: str, value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    parts = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(part, str) for part in parts):
        raise ConfigFault(key, f"config {key!r} must be a text or a list of texts, not {value!r}")
    return tuple(parts)


def _key(key: str, value: object) -> tuple[str, ...]:
    """Columns; an empty text means none, as in dbt, whose templates often compute one."""
    return () if value == "" else _texts(key, value)


def _partitions(key: str, value: object) -> tuple[str, ...]:
    """Columns. BigQuery's mapping means the column `field` if each partition is one of its values: a date by day."""
    if not isinstance(value, Mapping):
        return _texts(key, value)
    column = value.get("field")
    is_value = value.get("data_type", "date") == "date" and value.get("granularity", "day") == "day"
    if not isinstance(column, str) or not is_value:
        hint = "give a column, or a list of them; this form is known for a date by day alone"
        raise UnusedSetting(key, f"config {key!r} of another database is ignored: the table is not partitioned", hint)
    return (column,)


def _boundary(key: str, value: object) -> str:
    """A value of a partition column as text; which type that column has is known later."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise ConfigFault(key, f"config {key!r} must be a date, a text or a whole number, not {value!r}")
    return str(value)


_FINEST, _COARSEST = 1e-15, 1e-3


def _tolerance(key: str, value: object) -> float | None:
    """A number, or the text of one, which `1e-9` is in YAML."""
    if value in (None, "recompute"):
        return None
    try:
        tolerance = float(value) if isinstance(value, str | float) else 0.0
    except ValueError:
        tolerance = 0.0
    if not _FINEST <= tolerance <= _COARSEST:
        words = f"a number from {_FINEST:g} to {_COARSEST:g}"
        raise ConfigFault(key, f"config {key!r} is {value!r}; it must be `recompute` or {words}")
    return tolerance


def _hooks(key: str, value: object) -> tuple[str, ...]:
    parts = value if isinstance(value, list | tuple) else [value]
    return _texts(key, [part.get("sql") if isinstance(part, Mapping) else part for part in parts if part is not None])


def _mapping(key: str, value: object) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigFault(key, f"config {key!r} must be a mapping of keys to values, not {value!r}")
    return {str(name): part for name, part in value.items()}


def _hudi_options(key: str, value: object) -> Mapping[str, str]:
    options = {name: _scalar(f"{key}.{name}", part) for name, part in _mapping(key, value).items()}
    if found := reserved_option(options):
        raise ConfigFault(key, f"config {key!r} has {found.name}, which is not to be set", found.hint)
    return options


def _scalar(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise ConfigFault(key, f"config {key!r} must be a text, number or boolean, not {value!r}")


def _publish(key: str, value: object) -> Publish | None:
    if isinstance(value, bool):
        return Publish() if value else None
    if not isinstance(value, Mapping):
        return Publish(_texts(key, value))
    unknown = sorted(map(str, value.keys() - {"to", "table"}))
    if unknown:
        raise ConfigFault(key, f"unknown key {unknown[0]!r} in config {key!r}", "known keys: to, table")
    table = value.get("table")
    return Publish(_texts(key, value.get("to")), None if table is None else _text(f"{key}.table", table))
