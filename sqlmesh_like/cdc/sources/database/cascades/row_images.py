"""The rows that had certain values in the columns of a foreign key: in the lake, or in events it has not read.

Owns where such rows are looked for, and which values a database takes for the same: rather too many than too few, as
reading a row again that has not changed does no harm.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlmesh_like.cdc.sources.database.cascades.firing import RawValues, referenced_values
from sqlmesh_like.cdc.sources.database.cascades.foreign_keys import ForeignKey
from sqlmesh_like.cdc.sources.database.comparison.compared_part import ComparedPart
from sqlmesh_like.cdc.sources.database.comparison.dialects import LAKE, CanonicalColumn
from sqlmesh_like.cdc.sources.database.comparison.side import Key
from sqlmesh_like.cdc.sources.database.comparison.unread_log import changes_of, event_text
from sqlmesh_like.cdc.sources.database.comparison.value_kinds import Kind
from sqlmesh_like.cdc.sources.database.spool import Spool, number_of
from sqlmesh_like.sql_text import standard_literal

Texts = tuple[str, ...]
"""Canonical texts of the columns of a foreign key, none of which is NULL."""
_VALUES_OF_A_QUERY = 5_000
_CASE_BLIND = re.compile(
    r"latin1_swedish_ci|[a-z0-9]+_(general|unicode|unicode_520|0900|uca1400)(_nopad)?(_a[is])?_c[is]"
)
"""Collations for which texts of ASCII alone are the same only if their letters and digits are, but for their case.

Those of a language are not among them: to the Lithuanian ones i and y are the same.
"""
_ASCII = "[ -~]*"


class NotByKeyError(Exception):
    """Rows that a foreign key has changed cannot be told by their keys; the text says why."""


@dataclass(frozen=True)
class RowImage:
    """What is known of a row at some time: the canonical texts of its primary key, and of columns in lower case.

    `is_ahead`: the lake has an event of it that is later than what keys may have done to it.
    """

    key: Key
    values: tuple[tuple[str, str | None], ...]
    is_ahead: bool = False

    def texts(self, columns: Sequence[str]) -> Texts | None:
        """The texts of columns; None: one is NULL, so that nothing refers to them."""
        by_name = dict(self.values)
        texts = [by_name[name] for name in columns]
        return None if None in texts else tuple(str(text) for text in texts)


@dataclass(frozen=True)
class RowImages:
    """The rows of one table, as far as `columns` (in lower case).

    `window`: the segments in which keys may have acted. Where the lake has read one of them already, it no longer has
    the rows as they were before: all rows of such a segment count as having had the values.
    """

    spool: Spool
    part: ComparedPart
    columns: tuple[str, ...]
    window: frozenset[int]

    def texts_of(self, key: ForeignKey, values: RawValues) -> Texts | None:
        """The canonical texts of values of the referenced columns; None: one is NULL. Raises NotByKeyError."""
        texts = [self._event_text(name, value) for name, value in zip(key.columns, values, strict=True)]
        return None if None in texts else tuple(str(text) for text in texts)

    def having(self, key: ForeignKey, wanted: Collection[Texts]) -> Iterator[RowImage]:
        """The rows that refer, or have referred, to one of these values. Raises NotByKeyError and SmlError."""
        matches = [
            _Match(self._column(name), collation) for name, collation in zip(key.columns, key.collations, strict=True)
        ]
        normal = {tuple(match.required(text) for match, text in zip(matches, each, strict=True)) for each in wanted}
        for image in (*self._of_spool(), *self._of_lake(key, matches, normal)):
            texts = image.texts(key.columns)
            if image.is_ahead or (texts is not None and _has(texts, matches, normal)):
                yield image

    def _of_spool(self) -> Iterator[RowImage]:
        for path in sorted((self.spool.folder / "log").glob("*.gz")):
            number = number_of(path)
            is_ahead = number in self.part.read
            if is_ahead and number not in self.window:
                continue
            for change in changes_of(path, self.part.origin):
                source = change.get("source")
                is_of_log = isinstance(source, dict) and "connector" in source
                if change.get("op") == "d" and not is_of_log and not is_ahead:
                    continue  # a row that a look-up did not find: there is nothing but its key
                for row in (change.get("before"), change.get("after")):
                    if isinstance(row, dict):
                        yield self._image(row, is_ahead=is_ahead)

    def _image(self, row: Mapping[str, object], *, is_ahead: bool) -> RowImage:
        own = {name: self._event_text(name, value) for name, value in
               zip(self.columns, referenced_values(row, self.columns), strict=True)}  # fmt: skip
        return RowImage(tuple(own[name] for name in self.key_names), tuple(own.items()), is_ahead)

    def _of_lake(self, key: ForeignKey, matches: Sequence[_Match], normal: Collection[Texts]) -> Iterator[RowImage]:
        part = self.part
        if not part.lake.exists or not normal:
            return
        own = [part.columns.lake[self._index(name)] for name in self.columns]
        items = ", ".join(LAKE.text(column) for column in own)
        of_key = [part.columns.lake[self._index(name)] for name in key.columns]
        values, rows = sorted(normal), list[Sequence[object]]()
        with part.lake.side(part.columns) as lake:
            for first in range(0, len(values), _VALUES_OF_A_QUERY):
                some = values[first : first + _VALUES_OF_A_QUERY]
                conditions = (
                    match.condition(LAKE.text(column), {each[place] for each in some})
                    for place, (match, column) in enumerate(zip(matches, of_key, strict=True))
                )
                rows += lake.fetch(f"select {items} from {lake.relation} where {' and '.join(conditions)}")
        for row in rows:
            named = dict(zip(self.columns, (None if text is None else str(text) for text in row), strict=True))
            yield RowImage(tuple(named[name] for name in self.key_names), tuple(named.items()))

    @property
    def key_names(self) -> tuple[str, ...]:
        """The columns of the primary key, in lower case."""
        return tuple(self.part.columns.database[index].name.lower() for index in self.part.columns.key)

    def _index(self, name: str) -> int:
        for index, column in enumerate(self.part.columns.database):
            if column.name.lower() == name and column.kind in (Kind.WHOLE, Kind.TEXT):
                return index
        raise NotByKeyError(f"its column {name} is neither a whole number nor a text, or not in the lake")

    def _column(self, name: str) -> CanonicalColumn:
        return self.part.columns.database[self._index(name)]

    def _event_text(self, name: str, value: object) -> str | None:
        text = event_text(value, self._column(name))
        if text is None and value is not None:
            raise NotByKeyError(f"an event has the column {name} in a form that is not read here, or lacks it")
        return text


@dataclass(frozen=True)
class _Match:
    """How values of a column are compared by the database."""

    column: CanonicalColumn
    collation: str | None

    def __post_init__(self) -> None:
        if not self._is_exact and not self._is_case_blind:
            raise NotByKeyError(f"its column {self.column.name} has the collation {self.collation}")

    @property
    def _is_exact(self) -> bool:
        return self.column.kind is Kind.WHOLE or self.collation is None or self.collation.endswith("_bin")

    @property
    def _is_case_blind(self) -> bool:
        return self.collation is not None and _CASE_BLIND.fullmatch(self.collation) is not None

    def normal(self, text: str) -> str | None:
        """What values that are the same to the database have in common; None: it may be the same as any."""
        if self._is_exact:
            return text.rstrip(" ")
        return re.sub("[^a-z0-9]", "", text.lower()) if re.fullmatch(_ASCII, text) else None

    def required(self, text: str) -> str:
        """Raises NotByKeyError where it may be the same as any."""
        normal = self.normal(text)
        if normal is None:
            raise NotByKeyError(f"a value that its column {self.column.name} refers to has other signs than ASCII's")
        return normal

    def condition(self, text: str, values: Collection[str]) -> str:
        """The lake's rows that have one of these values, which are normal. `text`: SQL of the canonical text."""
        listed = ", ".join(map(standard_literal, sorted(values)))
        if self._is_exact:
            return f"rtrim({text}, ' ') in ({listed})"
        normal = f"regexp_replace(lower({text}), '[^a-z0-9]', '', 'g')"
        return f"({normal} in ({listed}) or not regexp_full_match({text}, '{_ASCII}'))"


def _has(texts: Texts, matches: Sequence[_Match], wanted: Collection[Texts]) -> bool:
    """Whether these values are perhaps, to the database, some that are wanted."""
    normal = [match.normal(text) for match, text in zip(matches, texts, strict=True)]
    if None not in normal:
        return tuple(normal) in wanted
    return any(all(own in (None, other) for own, other in zip(normal, each, strict=True)) for each in wanted)
