"""Rows of a query as templates see them. Owns agate's interface, through which dbt returns results, and its values.

As in dbt a float is a Decimal, a nested value is JSON text, and of two columns of one name the second ends in `_2`.
What would write a file is refused; what prints is logged as by `log(…, info=True)`. `values_distinct()` keeps the order
of rows, where agate's differs from run to run.
"""

from __future__ import annotations

import csv
import io
import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import chain, count
from typing import Generic, NoReturn, TypeVar

from sqlmesh_like.render.jinja.template_errors import TemplateFault
from sqlmesh_like.render.results.printed_table import printed_table

_log = logging.getLogger("sqlmesh_like.render")
_Value = TypeVar("_Value")
_Key = str | Sequence[str] | Callable[["ResultRow"], object]


class MappedSequence(Generic[_Value]):
    """Values by position, by slice and, if they have names, by name, whatever its case. Iteration yields values.

    In templates a name is an attribute too, unless it is that of a method.
    """

    __slots__ = ("_keys", "_positions", "_values")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, values: Iterable[_Value], keys: Sequence[str] | None = None, positions: Mapping[str, int] | None = None
    ) -> None:
        self._values = tuple(values)
        self._keys = None if keys is None else tuple(keys)
        self._positions = positions_of(self._keys or ()) if positions is None else positions

    def __getitem__(self, key: object) -> object:
        if isinstance(key, int | slice):
            return self._values[key]
        try:
            return self._values[self._positions[str(key).lower()]]
        except KeyError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[_Value]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, value: object) -> bool:
        return value in self._values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MappedSequence | Sequence) and self._values == tuple(other)

    def __str__(self) -> str:
        shown = ", ".join(map(repr, self._values[:5])) + (", ..." if len(self) > 5 else "")
        return f"<agate.{type(self).__name__.removeprefix('Result')}: ({shown})>"

    __repr__ = __str__

    def keys(self) -> tuple[str, ...] | None:
        return self._keys

    def values(self) -> tuple[_Value, ...]:
        return self._values

    def items(self) -> tuple[tuple[str, _Value], ...]:
        if self._keys is None:
            raise TypeError("these values have no names")
        return tuple(zip(self._keys, self._values, strict=True))

    def get(self, key: str, default: object = None) -> object:
        return self[key] if str(key).lower() in self._positions else default

    def dict(self) -> OrderedDict[str, _Value]:
        return OrderedDict(self.items())


class ResultRow(MappedSequence[object]):
    """One row, by the names of its columns."""

    __slots__ = ()


class ResultColumn(MappedSequence[object]):
    """One column: its values in the order of the rows."""

    __slots__ = ("data_type", "index", "name")

    def __init__(self, index: int, name: str, values: Iterable[object]) -> None:
        super().__init__(values)
        self.index, self.name, self.data_type = index, name, type_name(self._values)

    def values_distinct(self) -> tuple[object, ...]:
        return tuple(dict.fromkeys(self._values))

    def values_without_nulls(self) -> tuple[object, ...]:
        return tuple(value for value in self._values if value is not None)

    def values_sorted(self) -> list[object]:
        return sorted(self._values, key=_nulls_last)

    def values_without_nulls_sorted(self) -> list[object]:
        return sorted(self.values_without_nulls(), key=_nulls_last)


class TableSet(MappedSequence["ResultTable"]):
    """Tables of rows that share a value, by that value as text."""

    __slots__ = ()


class ResultTable:
    """What `run_query` returns. Methods that return a table leave this one unchanged."""

    def __init__(self, names: Sequence[str] = (), rows: Iterable[Iterable[object]] = ()) -> None:
        self.column_names = _without_repetition(names)
        positions = positions_of(self.column_names)
        values = [tuple(map(plain_value, row)) for row in rows]
        self.rows = MappedSequence([ResultRow(row, self.column_names, positions) for row in values])
        self.columns = MappedSequence(
            [ResultColumn(n, name, (row[n] for row in values)) for n, name in enumerate(self.column_names)],
            self.column_names,
        )
        self.column_types = tuple(column.data_type for column in self.columns)

    def __iter__(self) -> Iterator[ResultRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        return printed_table(("column", "data_type"), zip(self.column_names, self.column_types, strict=True), None)

    def select(self, key: str | Sequence[str]) -> ResultTable:
        """These columns, in this order."""
        names = [key] if isinstance(key, str) else list(key)
        return ResultTable(names, [[row[name] for name in names] for row in self.rows])

    def exclude(self, key: str | Sequence[str]) -> ResultTable:
        left_out = {key} if isinstance(key, str) else set(key)
        return self.select([name for name in self.column_names if name not in left_out])

    def rename(self, column_names: Mapping[str, str] | Sequence[str] = ()) -> ResultTable:
        if isinstance(column_names, Mapping):
            names: Sequence[str] = [column_names.get(name, name) for name in self.column_names]
        else:
            names = column_names or self.column_names
        return ResultTable(names, self.rows)

    def limit(self, start_or_stop: int | None = None, stop: int | None = None, step: int | None = None) -> ResultTable:
        part = slice(start_or_stop, stop, step) if stop or step else slice(start_or_stop)
        return self._of(self.rows.values()[part])

    def where(self, test: Callable[[ResultRow], object]) -> ResultTable:
        return self._of([row for row in self.rows if test(row)])

    def find(self, test: Callable[[ResultRow], object]) -> ResultRow | None:
        return next((row for row in self.rows if test(row)), None)

    def order_by(self, key: _Key, reverse: bool = False) -> ResultTable:
        """Sorted rows, NULLs last."""

        def rank(row: ResultRow) -> object:
            value = _value_of(row, key)
            return tuple(map(_nulls_last, value)) if isinstance(value, tuple) else _nulls_last(value)

        return self._of(sorted(self.rows, key=rank, reverse=reverse))  # type: ignore[arg-type]

    def distinct(self, key: _Key | None = None) -> ResultTable:
        """The first row of each value of the key, by default of the whole row."""
        first: dict[object, ResultRow] = {}
        for row in self.rows:
            first.setdefault(row.values() if key is None else _value_of(row, key), row)
        return self._of(first.values())

    def group_by(self, key: str | Callable[[ResultRow], object]) -> TableSet:
        groups: dict[object, list[ResultRow]] = {}
        for row in self.rows:
            groups.setdefault(_value_of(row, key), []).append(row)
        return TableSet(map(self._of, groups.values()), [str(value) for value in groups])

    def print_table(
        self,
        max_rows: int | None = 20,
        max_columns: int | None = 6,
        output: object = None,
        max_column_width: int | None = 20,
        locale: object = None,
        max_precision: int | None = 3,
    ) -> None:
        """Log the table in Markdown, cut to these sizes."""
        del output, locale
        rows = (row.values() for row in self.rows)
        _log.info(
            "%s",
            printed_table(
                self.column_names, rows, self.column_types, max_rows, max_columns, max_column_width, max_precision
            ),
        )

    def print_structure(self, output: object = None, max_rows: object = None) -> None:
        del output, max_rows
        _log.info("%s", str(self))

    def print_csv(self) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.column_names, *self.rows])
        _log.info("%s", text.getvalue().rstrip())

    def print_json(self) -> None:
        _log.info("%s", json.dumps([row.dict() for row in self.rows], default=str))

    def to_csv(self, *_args: object, **_options: object) -> NoReturn:
        raise _no_file("to_csv", "print_csv")

    def to_json(self, *_args: object, **_options: object) -> NoReturn:
        raise _no_file("to_json", "print_json")

    def _of(self, rows: Iterable[ResultRow]) -> ResultTable:
        return ResultTable(self.column_names, rows)


def positions_of(names: Sequence[str]) -> dict[str, int]:
    """Positions by name in lower case; if two names differ only in case, the first one's."""
    positions: dict[str, int] = {}
    for position, name in enumerate(names):
        positions.setdefault(name.lower(), position)
    return positions


def plain_value(value: object) -> object:
    """A value as dbt passes it to templates.

    >>> plain_value(2.50), plain_value([1, 2]), plain_value("1"), plain_value(True), plain_value(None)
    (Decimal('2.5'), '[1, 2]', '1', True, None)
    """
    if isinstance(value, bytearray):
        value = bytes(value)
    match value:
        case None | str() | int() | Decimal() | date():  # a bool is an int, a datetime a date
            return value
        case float():
            return Decimal(repr(value))
        case dict():
            return json.dumps(value, default=str)
        case list() | tuple():
            as_dict = getattr(value, "asDict", None)  # a struct of Spark
            return json.dumps(as_dict(recursive=True) if as_dict else value, default=str)
    return str(value)


def type_name(values: Iterable[object]) -> str:
    """agate's name of a column's type.

    >>> type_name([1, None]), type_name([1, Decimal("2.5")]), type_name(["1"]), type_name([])
    ('Integer', 'Number', 'Text', 'Integer')
    """
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int}:
        return "Integer"
    if kinds <= {int, Decimal}:
        return "Number"
    return {bool: "Boolean", date: "Date", datetime: "DateTime"}.get(min(kinds, key=str), "Text")


def _without_repetition(names: Sequence[str]) -> tuple[str, ...]:
    """Distinct names: dbt numbers repeated ones, then agate those that are still taken.

    >>> _without_repetition(["a", "a_2", "a"])
    ('a', 'a_2', 'a_2_2')
    """
    seen: dict[str, int] = {}
    unique: dict[str, None] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        numbered = name if seen[name] == 1 else f"{name}_{seen[name]}"
        candidates = chain([numbered], (f"{numbered}_{number}" for number in count(2)))
        unique[next(text for text in candidates if text not in unique)] = None
    return tuple(unique)


def _nulls_last(value: object) -> tuple[bool, object]:
    return (value is None, value)


def _value_of(row: ResultRow, key: _Key) -> object:
    if callable(key):
        return key(row)
    return row[key] if isinstance(key, str) else tuple(row[name] for name in key)


def _no_file(method: str, instead: str) -> TemplateFault:
    return TemplateFault(
        f"{method} would write a file, which a template may not", rf"\b{method}\b", f"{instead}() says it"
    )
