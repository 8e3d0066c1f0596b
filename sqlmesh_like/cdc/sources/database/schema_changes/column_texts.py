"""The definition of a column in a statement of MariaDB or MySQL. Owns reading it, and which defaults events state."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlmesh_like.cdc.sources.database.schema_changes.statement_tokens import NAME, VALUE

_TYPES = (
    "BIGINT|BINARY|BIT|BLOB|BOOL|BOOLEAN|CHAR|DATE|DATETIME|DEC|DECIMAL|DOUBLE|ENUM|FIXED|FLOAT|GEOMETRY|INET4|INET6"
    "|INT|INTEGER|JSON|LINESTRING|LONGBLOB|LONGTEXT|MEDIUMBLOB|MEDIUMINT|MEDIUMTEXT|NUMERIC|POINT|POLYGON|REAL|SET"
    "|SMALLINT|TEXT|TIME|TIMESTAMP|TINYBLOB|TINYINT|TINYTEXT|UUID|VARBINARY|VARCHAR|YEAR"
)
_COLUMN = re.compile(rf"(?P<name>{NAME}) (?P<type>{_TYPES})\b(?: PRECISION)?(?: \((?P<size>[^()]*)\))?", re.I)
_NOW = r"(?:CURRENT_TIMESTAMP|NOW|LOCALTIME|LOCALTIMESTAMP)(?: \(\d*\))?"
_ATTRIBUTE = re.compile(
    rf" (?:(?P<default>DEFAULT (?P<value>'[^']*'|[-+]? ?\d[\d.]*|NULL|TRUE|FALSE))|(?P<computed>DEFAULT {_NOW})"
    rf"|ON UPDATE {_NOW}|(?P<required>NOT NULL)|(?P<nullable>NULL)|(?P<numbered>AUTO_INCREMENT)"
    r"|UNSIGNED|SIGNED|ZEROFILL"
    rf"|(?:CHARACTER SET|CHARSET|COLLATE)(?: =)? {VALUE}|COMMENT (?:= )?{VALUE}|FIRST|AFTER {NAME}|UNIQUE(?: KEY)?"
    r"|CHECK \([^()]*\))(?= |$)",
    re.I,
)
_WHOLE = re.compile(r"(?:TINY|SMALL|MEDIUM|BIG)?INT|INTEGER", re.I)
_DAY = r"[1-9]\d{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"


@dataclass(frozen=True)
class ColumnText:
    """A column as a statement defines it. `default`: as it is written, `NULL` in capitals.

    `has_clock`: its default is the time of the statement.
    """

    name: str
    type: str
    size: str
    default: str | None
    has_clock: bool
    is_required: bool
    is_nullable: bool
    is_numbered: bool

    @property
    def plain_default(self) -> str | None:
        """The value that the column has by default; None for NULL."""
        return None if self.default == "NULL" else self.default

    @property
    def is_timestamp(self) -> bool:
        return self.type == "TIMESTAMP"


def column_text(text: str) -> ColumnText | None:
    """Read a definition. None: one that has more than is known here, such as an expression or a generated value.

    >>> column_text("n INT NOT NULL DEFAULT - 4 AFTER id")
    ColumnText(name='n', type='INT', size='', default='-4', has_clock=False, is_required=True, is_nullable=False, \
is_numbered=False)
    >>> column_text("n INT AS (id * 2)")
    """
    head = _COLUMN.match(text)
    if head is None:
        return None
    at, attributes = head.end(), dict[str, str]()
    while at < len(text):
        matched = _ATTRIBUTE.match(text, at)
        if matched is None:
            return None
        attributes |= {name: value for name, value in matched.groupdict().items() if value is not None}
        at = matched.end()
    default = attributes.get("value", "").replace("- ", "-").replace("+ ", "")
    return ColumnText(
        head["name"].strip('`"'),
        head["type"].upper(),
        (head["size"] or "").replace(" ", ""),
        ("NULL" if default.upper() == "NULL" else default) if default else None,
        "computed" in attributes,
        "required" in attributes,
        "nullable" in attributes,
        "numbered" in attributes,
    )


def states_default(column: ColumnText) -> bool:
    """Whether events state the default of a new column exactly as old rows have it on the server.

    >>> states_default(column_text("n DECIMAL (9 , 2) DEFAULT 1.50")), states_default(column_text("n INT DEFAULT 1.5"))
    (True, False)
    """
    value = column.default or ""
    text = value[1:-1] if value.startswith("'") else None
    if _WHOLE.fullmatch(column.type):
        return re.fullmatch(r"-?\d+", value) is not None
    if column.type == "DECIMAL":
        scale = int(column.size.partition(",")[2] or 0)
        return re.fullmatch(rf"-?\d+(?:\.\d{{1,{scale}}})?" if scale else r"-?\d+", value) is not None
    if text is None:
        return False
    if column.type in ("CHAR", "VARCHAR"):
        return "?" not in text and not text.endswith(" ")
    if column.type == "DATE":
        return re.fullmatch(_DAY, text) is not None
    digits = int(column.size or 0)
    fraction = rf"(?:\.\d{{1,{digits}}})?" if digits else ""
    return column.type == "DATETIME" and re.fullmatch(rf"{_DAY} \d\d:\d\d:\d\d{fraction}", text) is not None
