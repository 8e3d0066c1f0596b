"""CSV text → records whose fields know their position. Owns quoting and line ends, not what a field means."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlmesh_like.errors import Location, ProjectError

_LINE_END = re.compile(r"\r\n|\n|\r")
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')


@dataclass(frozen=True)
class CsvField:
    """One field; `offset` is that of its first character (the quote, if it is quoted)."""

    text: str
    offset: int
    quoted: bool = False

    @property
    def is_null(self) -> bool:
        return not self.text and not self.quoted


@dataclass(frozen=True)
class CsvFile:
    """A file of the project as text. Quoting is that of RFC 4180."""

    path: str
    text: str
    delimiter: str = ","

    def records(self) -> Iterator[list[CsvField]]:
        """Records in order, blank lines left out. Raises ProjectError for a quote that does not match."""
        return (record for record in self.lines() if len(record) > 1 or not record[0].is_null)

    def lines(self) -> Iterator[list[CsvField]]:
        """Like `records`, with a blank line as a record of one empty field."""
        offset = 0
        while offset < len(self.text):
            record, offset = self._record(offset)
            yield record

    def error(self, message: str, offset: int, hint: str | None = None) -> ProjectError:
        return ProjectError(message, location=self.locate(offset), hint=hint)

    def locate(self, offset: int) -> Location:
        """
        >>> CsvFile("a.csv", "id\\n7,x").locate(5).column
        3
        """
        before = _LINE_END.split(self.text[:offset])
        return Location(self.path, len(before), len(before[-1]) + 1)

    def _record(self, offset: int) -> tuple[list[CsvField], int]:
        """The record at an offset, and where the next one starts."""
        fields: list[CsvField] = []
        while True:
            field, offset = self._field(offset)
            fields.append(field)
            if not self.text.startswith(self.delimiter, offset):
                end = _LINE_END.match(self.text, offset)
                return fields, end.end() if end else offset
            offset += len(self.delimiter)

    def _field(self, offset: int) -> tuple[CsvField, int]:
        if self.text.startswith('"', offset):
            return self._quoted_field(offset)
        match = re.compile(rf"[^\r\n{re.escape(self.delimiter)}]*").match(self.text, offset)
        assert match is not None
        return CsvField(match[0], offset), match.end()

    def _quoted_field(self, offset: int) -> tuple[CsvField, int]:
        match = _QUOTED.match(self.text, offset)
        if match is None:
            raise self.error("this quote is never closed", offset, 'close it; a quote inside a field is written ""')
        end = match.end()
        follows = self.text.startswith(self.delimiter, end) or end == len(self.text) or _LINE_END.match(self.text, end)
        if not follows:
            hint = 'quote the whole field; a quote inside it is written ""'
            raise self.error("text follows the closing quote of a field", end, hint)
        return CsvField(match[1].replace('""', '"'), offset, quoted=True), end
