"""JSON as Spark reads it: whole messages by a schema, single members by a path. Owns what of JSON is certain.

Spark's reader takes more than JSON (quotes of other kinds, text behind the message) and gives parts of what it cannot
read. Here a text is JSON in full, and each value is of the type that is wanted, or the batch is Spark's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache

from sqlmesh_like.analyze.spark_types.java_numbers import double_text
from sqlmesh_like.cdc.in_process.parser import parsed_type
from sqlmesh_like.cdc.in_process.syntax import Call, Expression, Literal, Type
from sqlmesh_like.cdc.in_process.values import (
    INTEGER_BOUNDS,
    NotProvenError,
    Rewritten,
    Row,
    Value,
    certain,
    text_in_full,
    text_of,
)

_KEPT = 20_000
"""Messages that are read once: a message is read several times in a row, by different schemas."""


class Fraction(float):
    """A JSON number with a fraction or an exponent, and how it is written."""

    text: str


def json_reader(text: Callable[[list[Value]], Value], trees: Sequence[Expression]) -> Callable[[list[Value]], Value]:
    """`from_json` of a schema and, if given, the member for the texts that it cannot read."""
    if not isinstance(trees[0], Literal):
        raise NotProvenError("from_json by a schema that is not a literal")
    schema = parsed_type(trees[0].value)
    options = _options(trees[1]) if len(trees) > 1 else {}
    corrupt = options.get("columnNameOfCorruptRecord", "_corrupt_record")

    def read(row: list[Value]) -> Value:
        message = text_in_full(text(row))
        if message is None or not message.strip(" \t\r\n"):
            return None
        try:
            value = json_value(message)
        except NotProvenError:
            # Spark may keep members from before the break: they are only there for who does not ask for this one first.
            if corrupt not in _names(schema) or not _is_malformed(message):
                raise
            value = _NOTHING
        faults: list[str] = []
        result = None if value is None else _convert(value, schema, faults)
        if schema.name != "struct":
            if faults:
                raise NotProvenError(faults[0])
            return result
        if value is not None and not faults:
            return result
        # What no struct is made of, as a text that is not JSON: all members are NULL, and so are those that do not fit.
        values = [None] * len(schema.members) if result is None else list(result)
        place = next((place for place, (name, _) in enumerate(schema.members) if name == corrupt), None)
        if place is not None:
            values[place] = message
        return Row.of(_names(schema), values)

    return read


def _options(tree: Expression) -> dict[str, str]:
    if not isinstance(tree, Call) or tree.name != "map":
        raise NotProvenError("options of from_json that are not a map")
    words = [str(each.value) if isinstance(each, Literal) else "" for each in tree.arguments]
    return dict(zip(words[::2], words[1::2], strict=True))


@lru_cache(maxsize=1024)
def _names(schema: Type) -> tuple[str, ...]:
    return tuple(name for name, _ in schema.members)


def _pairs(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise NotProvenError("a member of a JSON object that is there twice")
    return result


def _fraction(text: str) -> Fraction:
    value = Fraction(text)
    value.text = text
    return value


def _integer(text: str) -> int:
    if text == "-0":
        raise NotProvenError("the number -0 in JSON")
    return int(text)


def _no_number(text: str) -> None:
    raise NotProvenError(f"{text} in JSON")


JSON_READER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_float=_fraction, parse_int=_integer, parse_constant=_no_number
)


def json_value(text: str) -> Value:
    """The value of a JSON text. Raises NotProvenError for a text that is not JSON in full."""
    return _parse_json(certain(text))  # before the cache, for which a text whose digits are not known equals any other


@lru_cache(maxsize=_KEPT)
def _parse_json(text: str) -> Value:
    try:
        value = _with_schema(text) if text.startswith(_SCHEMA) else JSON_READER.decode(text)
        if "\\u" in text:  # a half of a character, which no text can hold
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise NotProvenError("a text that is not JSON") from None
    return value


_SCHEMA, _PAYLOAD = '{"schema":', ',"payload":'


class Shared(dict[str, Value]):
    """An object that many messages have in common, with its text."""

    text: str | None


def _with_schema(text: str) -> Value:
    """A message of two members: the schema, which others begin with as well and is read once, and the payload."""
    end = text.find(_PAYLOAD)
    if end < 0:
        return JSON_READER.decode(text)
    try:
        schema = _schema(text[:end] + "}")
        payload, after = JSON_READER.raw_decode(text, end + len(_PAYLOAD))
    except ValueError:
        return JSON_READER.decode(text)
    return {"schema": schema, "payload": payload} if text[after:].strip(" \t\r\n") == "}" else JSON_READER.decode(text)


@lru_cache(maxsize=1000)
def _schema(text: str) -> Value:
    message = JSON_READER.decode(text)
    if len(message) != 1:
        raise ValueError
    value = message["schema"]
    if not isinstance(value, dict):
        return value
    shared = Shared(value)
    shared.text = _nested_text(value)
    return shared


def forget_json() -> None:
    """Free the messages that are kept."""
    _parse_json.cache_clear()
    _schema.cache_clear()
    get_json_object.cache_clear()


_NOTHING = ""
"""A value that is not an object, as which a malformed text is read."""
_OTHER_JSON = re.compile(r"'|NaN|INF|Infinity|\\u[dD]")
"""Signs of what only Spark takes for JSON, and of halves of characters."""


def _is_malformed(text: str) -> bool:
    """Whether Spark, too, reads no object from the text: it begins otherwise, or is broken before the object ends."""
    start = text.lstrip(" \t\r\n")
    if not start.startswith("{"):
        return start[:1].isascii() and start[:1].isprintable() and not start.startswith(("[", "null"))
    if _OTHER_JSON.search(text):
        return False
    try:
        json.JSONDecoder(parse_int=len, parse_float=len).raw_decode(start)
    except json.JSONDecodeError:
        return True
    except RecursionError:
        pass
    return False


_WORDS = ("NaN", "+INF", "+Infinity", "Infinity", "-INF", "-Infinity")
"""Texts that Spark reads as numbers."""


def _convert(value: Value, schema: Type, faults: list[str]) -> Value:
    """The value in a type. What does not fit is NULL and added to the faults, as Spark keeps parts of a message."""
    if value is None:
        return None
    match schema.name:
        case "string":
            return json_text(value)
        case "int" | "bigint" if (
            type(value) is int and -INTEGER_BOUNDS[schema.name] <= value < INTEGER_BOUNDS[schema.name]
        ):
            return value
        case "boolean" if type(value) is bool:
            return value
        case "double" if type(value) in (int, Fraction) and abs(float(value)) != float("inf"):
            return float(value)
        case "decimal" if type(value) in (int, Fraction, str):
            return _decimal(value, schema.digits, faults)
        case "struct" if isinstance(value, dict):
            return Row.of(_names(schema), [_convert(value.get(name), kind, faults) for name, kind in schema.members])
        case "array" if isinstance(value, list):
            return [_whole(each, schema.members[0][1]) for each in value]
        case "map" if isinstance(value, dict) and schema.members[0][1].name == "string":
            return {name: _whole(each, schema.members[1][1]) for name, each in value.items()}
        case "double" if value in _WORDS or isinstance(value, int | Fraction):
            raise NotProvenError("a JSON value as double")
        case "int" | "bigint" | "boolean" | "double" | "decimal" | "struct" | "array" | "map":
            faults.append(f"a JSON {type(value).__name__} as {schema.name}")
            return None
    raise NotProvenError(f"JSON as {schema.name}")


def _whole(value: Value, schema: Type) -> Value:
    """The value of a list or a map, of which Spark does not always keep parts."""
    faults: list[str] = []
    result = _convert(value, schema, faults)
    if faults:
        raise NotProvenError(faults[0])
    return result


_PLAIN_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_ANY_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""What Java reads as a decimal, in digits of ASCII."""


def _decimal(value: Value, digits: tuple[int, ...], faults: list[str]) -> Decimal | None:
    text = value.text if type(value) is Fraction else str(value)
    if _PLAIN_NUMBER.fullmatch(text):
        return exact_decimal(Decimal(text), digits)
    if _ANY_NUMBER.fullmatch(text) or not text.isascii():
        raise NotProvenError("a JSON value that is not a plain decimal")
    faults.append("a JSON text as decimal")
    return None


def exact_decimal(value: Decimal, digits: tuple[int, ...]) -> Decimal:
    """A number in a type (digits, of these after the point). Raises NotProvenError where it does not fit as it is."""
    precision, scale = digits
    sign, own, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise NotProvenError("a decimal that is not a number")
    number, shift = int("".join(map(str, own))), exponent + scale
    number, rest = (number * 10**shift, 0) if shift >= 0 else divmod(number, 10**-shift)
    if rest or number >= 10**precision:
        raise NotProvenError("a number that does not fit into its decimal")
    return Decimal((sign if number else 0, tuple(map(int, str(number))), -scale))


_CONTROL = re.compile(r"(?<!\\)(?:\\\\)*\\u")
"""An escape for a character that has no shorter one: its digits are not those of Java."""


def json_text(value: Value) -> str | None:
    """A JSON value as the text that Spark makes of it."""
    match value:
        case Fraction():
            return double_text(value) or Rewritten(value.text)
        case Shared():
            return value.text
        case dict() | list():
            return _nested_text(value)
    text: str | None = text_of(value)
    return text


def _nested_text(value: Value) -> str:
    fractions = list(_fractions(value))
    text = _java_json(value) if fractions else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if _CONTROL.search(text):
        raise NotProvenError("a control character in nested JSON")
    return text if all(map(double_text, fractions)) else Rewritten(text)


def _fractions(value: Value) -> Iterator[Fraction]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _fractions(each)
    elif type(value) is Fraction:
        yield value


def _java_json(value: Value) -> str:
    """JSON whose numbers with a fraction are Java's."""
    match value:
        case dict():
            members = (f"{json.dumps(name, ensure_ascii=False)}:{_java_json(each)}" for name, each in value.items())
            return f"{{{','.join(members)}}}"
        case list():
            return f"[{','.join(map(_java_json, value))}]"
        case Fraction():
            return double_text(value) or value.text
    return json.dumps(value, ensure_ascii=False)


_STEP = re.compile(r"\.([A-Za-z_][A-Za-z_0-9-]*)|\['([^'\\]*)'\]")


@lru_cache(maxsize=256)
def _steps(path: str) -> tuple[str, ...]:
    steps, at = [], 1
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise NotProvenError(f"the path {path}")
        steps.append(match[1] or match[2])
        at = match.end()
    return tuple(steps)


@lru_cache(maxsize=1000)
def get_json_object(text: str | None, path: str) -> str | None:
    """The member at a path of names; NULL where there is none."""
    if text is None or not text.strip(" \t\r\n"):
        return None
    value = json_value(text)
    for name in _steps(path):
        if isinstance(value, list):
            raise NotProvenError("a path through a list")
        value = value.get(name) if isinstance(value, dict) else None
    return json_text(value)


def json_object_keys(text: str | None) -> list[str] | None:
    """The names in an object; NULL for other JSON."""
    value = None if text is None else json_value(str(text))
    return list(value) if isinstance(value, dict) else None


def json_writer(value: Callable[[list[Value]], Value], trees: Sequence[Expression]) -> Callable[[list[Value]], Value]:
    """`to_json` of a list or a struct of texts, with options, if given."""
    options = _options(trees[0]) if trees else {}
    if not options.keys() <= {"ignoreNullFields"}:
        raise NotProvenError("options of to_json")
    has_nulls = options.get("ignoreNullFields") == "false"

    def written(row: list[Value]) -> str | None:
        own = value(row)
        if own is None:
            return None
        if not isinstance(own, list | Row) or any(type(each) is not str for each in own if each is not None):
            raise NotProvenError("to_json of other values")
        if isinstance(own, list):
            return _nested_text(list(own))
        members = zip(own.names, own, strict=True)
        return _nested_text({name: each for name, each in members if has_nulls or each is not None})

    return written
