"""Events that make foreign keys act. Owns finding them in segments of the spool; needs no database."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sqlmesh_like.cdc.sources.database.cascades.foreign_keys import ForeignKey

RawValues = tuple[object, ...]
"""Values of referenced columns, as events have them."""
_MISSING = "a column that the event does not have", None
"""Its name was another one then: no value that is known stands for it."""
_OPERATIONS = (b'"op":"d"', b'"op":"u"', b'"op": "d"', b'"op": "u"')


@dataclass
class Fired:
    """What happened to the values that a key refers to. `has_updates`: some may have become others."""

    values: set[RawValues] = field(default_factory=set)
    has_updates: bool = False


def fired_keys(
    segments: Iterable[Path], keys: Sequence[ForeignKey], last: str = ""
) -> tuple[Mapping[ForeignKey, Fired], str]:
    """The keys that events of these segments make act, in the order of the log, and which delete ends them, if any.

    Debezium makes a delete and an insert, at one position, of an update that changes a primary key. `last`: the delete
    that ended the segments before.
    """
    fired: dict[ForeignKey, Fired] = {}
    parents: dict[str, list[ForeignKey]] = {}
    for key in keys:
        parents.setdefault(key.parent.lower(), []).append(key)
    marks = [json.dumps(name).encode() for name in parents if name.isascii()]
    may_be_any = len(marks) < len(parents)
    for path in segments:
        with gzip.open(path, "rb") as lines:
            for line in lines:
                if not last and not any(operation in line for operation in _OPERATIONS):
                    continue
                if not may_be_any and not any(mark in line.lower() for mark in marks):  # a schema takes long to read
                    last = ""
                    continue
                last = _note(line, parents, fired, last)
    return fired, last


def _note(line: bytes, parents: Mapping[str, Sequence[ForeignKey]], fired: dict[ForeignKey, Fired], last: str) -> str:
    """Note what a line makes act. Returns the row that it deletes, if so."""
    message = json.loads(line.partition(b"\t")[0])
    change = message.get("payload", message)
    source = change.get("source") or {}
    keys = parents.get(str(source.get("table")).lower(), ())
    operation, before, after = change.get("op"), change.get("before"), change.get("after")
    row = f"{source.get('table')}:{source.get('file')}:{source.get('pos')}:{source.get('row')}"
    if operation == "c" and row == last:
        for key in keys:
            fired.setdefault(key, Fired()).has_updates = True
    if operation not in ("d", "u") or not isinstance(before, dict):
        return ""
    for key in keys:
        values = referenced_values(before, key.referenced)
        if operation == "d" or (isinstance(after, dict) and values != referenced_values(after, key.referenced)):
            noted = fired.setdefault(key, Fired())
            noted.values.add(values)
            noted.has_updates = noted.has_updates or operation == "u"
    return row if operation == "d" and keys else ""


def referenced_values(row: Mapping[str, object], columns: Sequence[str]) -> RawValues:
    """The values of columns, which are given in lower case.

    >>> referenced_values({"Id": 7, "n": None}, ("n", "id"))
    (None, 7)
    >>> referenced_values({"id": 7}, ("renamed",)) == (None,)
    False
    """
    by_name = {name.lower(): value for name, value in row.items()}
    return tuple(by_name.get(name, _MISSING) for name in columns)
