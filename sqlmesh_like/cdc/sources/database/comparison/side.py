"""One side of a comparison, asked by SQL. Owns the queries that both sides share: sums of chunks, hashes, values.

A span is a range of the first column of the key, as its index has it; a bucket is a part of the keys by their hash.
Both divide all rows there are: no row is in two of them, or in none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from sqlmesh_like.cdc.sources.database.comparison.dialects import CanonicalColumn, Dialect

Fetch = Callable[[str], Sequence[Sequence[object]]]
"""Runs a query and returns its rows."""
Key = tuple[str | None, ...]
"""The canonical texts of a row's key."""
Values = tuple[str | None, ...]
"""The canonical texts of a row's columns; long ones are shortened, with a hash of the whole."""
LONGEST = 200
_NULL = "N"  # no text of a number begins so, and other texts begin with their length


@dataclass(frozen=True)
class Span:
    """A range of the key's first column: after the one canonical text, up to the other; None: no bound."""

    after: str | None = None
    upto: str | None = None


@dataclass(frozen=True)
class Sum:
    """The number of some rows, and the sum of their hashes."""

    rows: int = 0
    hashes: int = 0


@dataclass(frozen=True)
class Side:
    """The rows of a table as one side has them. `relation`: what stands after FROM; `key`: indexes of `columns`.

    `hashed`: a relation with the columns of `HASHED` that stands for the rows where their hashes suffice.
    """

    dialect: Dialect
    relation: str
    columns: tuple[CanonicalColumn, ...]
    key: tuple[int, ...]
    fetch: Fetch
    hashed: str | None = None

    def sum(self, span: Span) -> Sum:
        """The sum of a span."""
        ((rows, hashes),) = self.fetch(
            f"select count(*), sum({self._row_hash}) from {self._from} where {self._in(span)}"
        )
        return Sum(_int(rows), _int(hashes))

    def sums(self, span: Span, buckets: int) -> dict[int, Sum]:
        """The sums of a span's buckets, by their numbers; empty ones are left out."""
        bucket = self._bucket(buckets)
        items = f"{bucket}, count(*), sum({self._row_hash})"
        query = f"select {items} from {self._from} where {self._in(span)} group by {bucket}"
        return {_int(number): Sum(_int(rows), _int(hashes)) for number, rows, hashes in self.fetch(query)}

    def hashes(self, span: Span, buckets: int, wanted: Collection[int]) -> dict[Key, list[int]]:
        """The hashes of the rows in these buckets of a span, by key."""
        keys = ", ".join(self._key_texts)
        within = f"{self._bucket(buckets)} in ({', '.join(map(str, sorted(wanted)))})"
        query = f"select {self._row_hash}, {keys} from {self._from} where {self._in(span)} and {within}"
        by_key: dict[Key, list[int]] = {}
        for row_hash, *key in self.fetch(query):
            by_key.setdefault(_texts(key), []).append(_int(row_hash))
        return {key: sorted(hashes) for key, hashes in by_key.items()}

    def values(self, keys: Iterable[Key]) -> dict[Key, list[Values]]:
        """The values of the rows that have these keys."""
        wanted = list(keys)
        if not wanted:
            return {}
        items = ", ".join(map(self._short_text, self.columns))
        query = f"select {', '.join(self._texts_of_key())}, {items} from {self.relation} where {self.have(wanted)}"
        by_key: dict[Key, list[Values]] = {}
        for row in self.fetch(query):
            key, row_values = _texts(row[: len(self.key)]), _texts(row[len(self.key) :])
            if key in set(wanted):  # a collation may find more
                by_key.setdefault(key, []).append(row_values)
        return {key: sorted(rows, key=repr) for key, rows in by_key.items()}

    def have(self, keys: Sequence[Key]) -> str:
        """The condition of rows that have one of these keys; a collation may find more."""
        if len(self.key) == 1:
            column = self.columns[self.key[0]]
            literals = [None if text is None else self.dialect.literal(column, text) for (text,) in keys]
            if None not in literals:
                return f"{self.dialect.name(column.name)} in ({', '.join(map(str, literals))})"
        return " or ".join(f"({self._is(key)})" for key in keys)

    def bounds(self, rows: int) -> list[str]:
        """Every `rows`th value of the key's first column, in order: canonical texts, none twice. For the lake."""
        first = self.columns[self.key[0]]
        name = self.dialect.name(first.name)
        numbered = (
            f"select {name}, row_number() over (order by {name}) as n from {self.relation} where {name} is not null"
        )
        query = (
            f"select distinct {self.dialect.text(first)}, {name} from ({numbered}) as r where n % {rows} = 0 order by 2"
        )
        return list(dict.fromkeys(str(text) for text, _ in self.fetch(query)))

    def hashed_rows(self) -> str:
        """A query of all rows' hashes: what `hashed` has to be."""
        first = self.dialect.name(self.columns[self.key[0]].name)
        keys = (f"{text} as k{number}" for number, text in enumerate(self._texts_of_key()))
        return (
            f"select {first} as first_of_key, {self._hash_of_key()} as key_hash, {self._hash_of_row()} as row_hash,"
            f" {', '.join(keys)} from {self.relation}"
        )

    @property
    def _from(self) -> str:
        return self.hashed or self.relation

    @property
    def _row_hash(self) -> str:
        return "row_hash" if self.hashed else self._hash_of_row()

    @property
    def _key_texts(self) -> list[str]:
        return [f"k{number}" for number in range(len(self.key))] if self.hashed else self._texts_of_key()

    def _bucket(self, buckets: int) -> str:
        return f"{'key_hash' if self.hashed else self._hash_of_key()} % {buckets}"

    def _in(self, span: Span) -> str:
        first = self.columns[self.key[0]]
        name = "first_of_key" if self.hashed else self.dialect.name(first.name)
        conditions = []
        if span.after is not None:
            conditions.append(f"{name} > {self.dialect.literal(first, span.after)}")
        if span.upto is not None:
            last = f"{name} <= {self.dialect.literal(first, span.upto)}"
            conditions.append(f"({last} or {name} is null)" if span.after is None else last)
        return " and ".join(conditions) or "1 = 1"

    def _texts_of_key(self) -> list[str]:
        return [self.dialect.text(self.columns[index]) for index in self.key]

    def _hash_of_key(self) -> str:
        return self.dialect.hash(self._key_text([self.columns[index] for index in self.key]))

    def _hash_of_row(self) -> str:
        # An engine whose texts have a longest length gives NULL beyond it, which must not look like no row.
        return f"coalesce({self.dialect.hash(self._key_text(self.columns))}, -1)"

    def _key_text(self, columns: Sequence[CanonicalColumn]) -> str:
        """One text of several values, from which each could be read again."""
        return f"concat_ws(',', {', '.join(map(self._part, columns))})"

    def _part(self, column: CanonicalColumn) -> str:
        text = self.dialect.text(column)
        if column.lake == "string":
            text = self.dialect.with_length(text)
        return f"coalesce({text}, '{_NULL}')"

    def _short_text(self, column: CanonicalColumn) -> str:
        text = self.dialect.text(column)
        if column.lake not in ("string", "binary"):  # short, and that of a local time is a long expression
            return text
        rest = f"'... (', char_length({text}), ' characters, hash ', {self.dialect.hash(text)}, ')'"
        long = f"concat(left({text}, {LONGEST}), {rest})"
        return f"case when char_length({text}) > {LONGEST} then {long} else {text} end"

    def _is(self, key: Key) -> str:
        return " and ".join(self._equals(self.columns[i], text) for i, text in zip(self.key, key, strict=True))

    def _equals(self, column: CanonicalColumn, text: str | None) -> str:
        if text is None:
            return f"{self.dialect.name(column.name)} is null"
        literal = self.dialect.literal(column, text)
        if literal is None:
            return f"{self.dialect.text(column)} = {self.dialect.text_literal(text)}"
        return f"{self.dialect.name(column.name)} = {literal}"


def values_of(side: Side, keys: Sequence[Key]) -> dict[Key, list[Values]]:
    """`Side.values` of any number of keys."""
    by_key: dict[Key, list[Values]] = {}
    for first in range(0, len(keys), _KEYS_OF_A_QUERY):
        by_key |= side.values(keys[first : first + _KEYS_OF_A_QUERY])
    return by_key


_KEYS_OF_A_QUERY = 50


def _int(value: object) -> int:
    return 0 if value is None else int(str(value))


def _texts(row: Sequence[object]) -> tuple[str | None, ...]:
    return tuple(None if value is None else str(value) for value in row)
