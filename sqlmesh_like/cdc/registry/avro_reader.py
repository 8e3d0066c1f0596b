"""Messages in Avro as JSON, in this process: bytes mean what they mean to Java's decoder, by which Spark reads them.

fastavro, which writes the messages of the tests, takes more than Java does: numbers with bytes to spare, an index from
the end, a boolean of 2. To find that by writing again what it has read takes several times as long as reading.
Encoding: https://avro.apache.org/docs/1.11.1/specification/#binary-encoding, and `BinaryDecoder` of Avro 1.11 in Java.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlmesh_like.cdc.in_process.values import Float32, NotProvenError, number_text
from sqlmesh_like.cdc.registry.json_texts import json_base64, json_string
from sqlmesh_like.cdc.registry.message_schema import InvalidTextError, MessageSchema, UndecodableError
from sqlmesh_like.cdc.registry.wire_header import END

_MOST_ITEMS = 4_194_304
"""Of a list: as many as Java takes where it is set as `docs/deploy.md` says."""
_SCALAR = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s,:\[\]{}"]+')
_UNKNOWN_CHARACTER = "\N{REPLACEMENT CHARACTER}"


@dataclass(slots=True)
class _Source:
    """The bytes of a message, and how far they are read. `is_invalid`: some of the texts so far were not UTF-8."""

    data: bytes
    at: int = 0
    is_invalid: bool = False


_Reader = Callable[[_Source], str]
"""Reads a value, and gives its JSON. Raises IndexError or struct.error where the bytes end before."""


class AvroReader:
    """Reads the messages of a schema. Raises NotProvenError for a schema of which only Spark certainly reads them."""

    def __init__(self, schema: MessageSchema) -> None:
        block = json.loads(schema.block)
        if _UNKNOWN_CHARACTER in json.dumps(block, ensure_ascii=False):
            raise NotProvenError("a schema with a replacement character")
        self._read = _reader(json.loads(schema.avro)["type"], block)

    def text(self, body: bytes) -> str:
        """A message as JSON.

        Raises UndecodableError, InvalidTextError, or NotProvenError where Spark may read something else.
        """
        source = _Source(body)
        try:
            text = self._read(source)
        except (IndexError, struct.error) as error:
            raise UndecodableError from error
        if source.at < len(body):
            if body.startswith(END, source.at):
                raise NotProvenError("a message with the mark that Spark's end with")
            raise UndecodableError
        if source.is_invalid:
            if _UNKNOWN_CHARACTER.encode() in body:
                raise NotProvenError("a message with a replacement character and bytes that are not UTF-8")
            raise InvalidTextError
        return text


def _number(source: _Source, most_bytes: int, bits: int) -> int:
    """A number whose bytes have seven bits each, the least significant first; the sign is the last bit."""
    data, at = source.data, source.at
    byte = data[at]
    value = byte & 0x7F
    shift = 7
    while byte > 0x7F:
        if shift == 7 * most_bytes:
            raise UndecodableError
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift += 7
    source.at = at + 1
    value &= (1 << bits) - 1  # as in Java, where further bits are lost
    return (value >> 1) ^ -(value & 1)


def _int(source: _Source) -> int:
    return _number(source, 5, 32)


def _long(source: _Source) -> int:
    return _number(source, 10, 64)


def _bytes(source: _Source, size: int) -> bytes:
    end = source.at + size
    if size < 0 or end > len(source.data):
        raise UndecodableError
    data = source.data[source.at : end]
    source.at = end
    return data


def _string(source: _Source) -> str:
    data = _bytes(source, _long(source))
    try:
        return json_string(data.decode())
    except UnicodeDecodeError:
        source.is_invalid = True
        return '""'


def _boolean(source: _Source) -> str:
    source.at += 1
    return "true" if source.data[source.at - 1] == 1 else "false"


def _float(source: _Source) -> float:
    (value,) = struct.unpack_from("<f", source.data, source.at)
    source.at += 4
    return float(value)


def _double(source: _Source) -> str:
    (value,) = struct.unpack_from("<d", source.data, source.at)
    source.at += 8
    return number_text(value)


_PLAIN: Mapping[str, _Reader] = {
    "null": lambda _: "null",
    "boolean": _boolean,
    "int": lambda source: str(_int(source)),
    "long": lambda source: str(_long(source)),
    "float": lambda source: number_text(Float32(_float(source))),
    "double": _double,
    "bytes": lambda source: json_base64(_bytes(source, _long(source))),
    "string": _string,
}


def _reader(read: Any, block: Mapping[str, Any]) -> _Reader:
    """What reads the values of a type. `read`: its Avro; `block`: the same type in Connect's terms."""
    match read:
        case str():
            return _PLAIN[read]
        case list():
            return _union(read, block)
        case {"type": "record", "fields": list(fields)}:
            return _record(fields, block)
        case {"type": "array", "items": items}:
            return _list(items, block)
        case {"type": "map", "values": values}:
            return _map(_reader(values, block["values"]))
        case {"type": "enum", "symbols": list(symbols)}:
            return _one_of([_constant(json_string(symbol)) for symbol in symbols])
        case {"type": "fixed", "size": int(size)}:
            return lambda source: json_base64(_bytes(source, size))
        case _:
            raise NotProvenError(f"a type in Avro: {str(read)[:100]}")


def _constant(text: str) -> _Reader:
    return lambda _: text


def _one_of(readers: Sequence[_Reader]) -> _Reader:
    """The value that the reader of an index, which comes first, gives."""

    def chosen(source: _Source) -> str:
        index = _int(source)
        if not 0 <= index < len(readers):
            raise UndecodableError
        return readers[index](source)

    return chosen


def _union(read: Sequence[Any], block: Mapping[str, Any]) -> _Reader:
    # Of two numbers, Spark's is the wider: one of 32 bits becomes one of 64 before it is written.
    is_wider = "float" in read and "double" in read
    wide: _Reader = lambda source: number_text(_float(source))  # noqa: E731
    return _one_of([wide if is_wider and branch == "float" else _reader(branch, block) for branch in read])


def _record(fields: Sequence[Mapping[str, Any]], block: Mapping[str, Any]) -> _Reader:
    own = [(json_string(each["field"]), _reader(field["type"], each))
           for field, each in zip(fields, block["fields"], strict=True)]  # fmt: skip
    members = [(f"{',' if place else ''}{name}:", read) for place, (name, read) in enumerate(own)]
    return lambda source: "{" + "".join([name + read(source) for name, read in members]) + "}"


def _list(items: Any, block: Mapping[str, Any]) -> _Reader:
    if not _has_bytes(items):
        raise NotProvenError("a list of values that take no bytes")
    item = _entry(items, block) if block["type"] == "map" else _reader(items, block["items"])
    return lambda source: f"[{','.join(_items(source, item))}]"


def _map(value: _Reader) -> _Reader:
    def read(source: _Source) -> str:
        members = _items(source, lambda source: f"{_string(source)}:{value(source)}")
        if len(members) > 1:
            raise NotProvenError("a map of several keys, which are in Java's order")
        return "{" + ",".join(members) + "}"

    return read


def _items(source: _Source, item: _Reader) -> list[str]:
    """The items of a list or map, which come in blocks; the last is empty."""
    items: list[str] = []
    while count := _long(source):
        if count < 0:
            count = -count
            _long(source)  # its size in bytes
        if count > len(source.data) - source.at:
            raise UndecodableError  # each takes a byte
        if len(items) + count > _MOST_ITEMS:
            raise NotProvenError(f"a list of more than {_MOST_ITEMS:,} values")
        items += [item(source) for _ in range(count)]
    return items


def _entry(items: Mapping[str, Any], block: Mapping[str, Any]) -> _Reader:
    """An entry of a map as a pair; one that holds more than plain values stays an object, as in `wire_format`."""
    (first, key), (second, value) = (
        (field["name"], _reader(field["type"], block[part]))
        for field, part in zip(items["fields"], ("keys", "values"), strict=True)
    )

    def read(source: _Source) -> str:
        pair = key(source), value(source)
        if all(map(_SCALAR.fullmatch, pair)):
            return f"[{pair[0]},{pair[1]}]"
        return f'{{"{first}":{pair[0]},"{second}":{pair[1]}}}'

    return read


def _has_bytes(read: Any) -> bool:
    """Whether each value of a type takes a byte: otherwise a list may claim any number of values."""
    match read:
        case {"type": "record", "fields": list(fields)}:
            return any(_has_bytes(field["type"]) for field in fields)
        case {"type": "fixed", "size": size}:
            return bool(size)
        case _:
            return True
