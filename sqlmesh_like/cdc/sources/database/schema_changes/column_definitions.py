"""Columns of MariaDB and MySQL as Debezium's record of statements describes them. Owns which changes keep all values.

Of a type that has become wider the stored values stay, and so does what the lake has of them. The list is closed: of
any other change the table is read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

_WHOLE_NUMBERS = ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT")
_TEXTS = ("TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT")
_BYTES = ("TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB")
_SYNONYMS = {
    "BOOL": "TINYINT", "BOOLEAN": "TINYINT", "DEC": "DECIMAL", "FIXED": "DECIMAL", "INTEGER": "INT",
    "NUMERIC": "DECIMAL",
}  # fmt: skip


@dataclass(frozen=True)
class ColumnDefinition:
    """A column. `type`: in capitals, with what follows it (`INT UNSIGNED`); `labels`: those of an ENUM or SET."""

    name: str
    type: str
    length: int | None = None
    scale: int | None = None
    charset: str | None = None
    is_optional: bool = True
    is_numbered: bool = False
    labels: tuple[str, ...] = ()


def definitions(columns: Iterable[Mapping[str, object]]) -> dict[str, ColumnDefinition]:
    """The columns of a table, by their names in lower case."""
    return {str(each["name"]).lower(): _definition(each) for each in columns}


def _definition(column: Mapping[str, object]) -> ColumnDefinition:
    length, scale, labels = column.get("length"), column.get("scale"), column.get("enumValues")
    first, *rest = str(column.get("typeName")).upper().split() or [""]
    return ColumnDefinition(
        str(column["name"]),
        " ".join((_SYNONYMS.get(first, first), *rest)),
        length if isinstance(length, int) else None,
        scale if isinstance(scale, int) else None,
        None if column.get("charsetName") is None else str(column["charsetName"]).lower(),
        bool(column.get("optional", True)),
        bool(column.get("autoIncremented")),
        tuple(map(str, labels)) if isinstance(labels, list) else (),
    )


def keeps_values(before: ColumnDefinition, after: ColumnDefinition) -> bool:
    """Whether each value that a column can have is the same one afterwards, on the server and in the lake.

    >>> keeps_values(ColumnDefinition("n", "INT"), ColumnDefinition("n", "BIGINT"))
    True
    >>> keeps_values(ColumnDefinition("n", "DECIMAL", 10, 2), ColumnDefinition("n", "DECIMAL", 10, 1))
    False
    """
    if before.is_optional and not after.is_optional:  # NULL becomes 0 or '', unless the server is strict
        return False
    if after.is_numbered and not before.is_numbered:  # 0 becomes the next number
        return False
    if before.charset != after.charset:
        return False
    same = replace(before, is_optional=True, is_numbered=False) == replace(after, is_optional=True, is_numbered=False)
    return same or _is_wider(before, after)


def _is_wider(before: ColumnDefinition, after: ColumnDefinition) -> bool:
    former, _, former_sign = before.type.partition(" ")
    latter, _, latter_sign = after.type.partition(" ")
    if former_sign != latter_sign:
        return False
    for family in (_WHOLE_NUMBERS, _TEXTS, _BYTES):
        if former in family and latter in family:
            sizes = () if family is _WHOLE_NUMBERS else (before.length, after.length)
            # A text of a stated length has the smallest type that holds it, whatever its name says.
            return family.index(former) <= family.index(latter) and not any(sizes)
    if former == "VARCHAR" and latter in _TEXTS[1:]:
        return after.length is None
    if former != latter:
        return False
    if former in ("ENUM", "SET"):
        return bool(before.labels) and after.labels[: len(before.labels)] == before.labels
    if former == "DECIMAL":
        return before.scale == after.scale and _is_longer(before, after)
    if former == "DATETIME":
        return (before.length or 0) <= (after.length or 0) and (before.scale, after.scale) == (None, None)
    return former in ("CHAR", "VARCHAR", "VARBINARY") and _is_longer(before, after)


def _is_longer(before: ColumnDefinition, after: ColumnDefinition) -> bool:
    return before.length is not None and after.length is not None and before.length <= after.length
