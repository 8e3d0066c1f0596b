"""Where a change event keeps its rows, whatever the format. Owns that description; `row_images` reads rows by it.

Three styles cover all formats. *pair*: one member holds the row before, another the row after. *overlay*: one member
holds the newest row, another only the former values of what changed. *row*: the message holds one row, whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from sqlmesh_like.cdc.formats.source_types import SourceField, sql_literal

NO_KEY = "cast(null as array<string>)"
NO_MEMBERS = "cast(null as string)"
Style = Literal["pair", "overlay", "row"]
EVENT_KINDS = ("upsert", "delete", "truncate", "skip", "tombstone", "bad")
"""Kinds of event; only the first three change a table."""
CHANGES = ("upsert", "delete")
"""Kinds of event that carry rows."""
CORRUPT = "_corrupt"
"""Member of an envelope's schema that is set where the text is not a JSON object of that schema."""

READS_AGAIN, BEGINS, ENDS = "sml_reads_again", "begins", "ends"
"""Member of a truncate event where the source reads all rows of the table again, and its values: before and after them.

Where it is true (by earlier versions), their end is not said.
"""


@dataclass(frozen=True)
class Message:
    """One layout of messages. `path`: the objects around the rows; `new`, `old`: the members that hold the rows.

    A *row* message without `new` is the row itself, less the members in `ignored`. `is_list`: both members are lists
    of rows, paired by index. `fields` reads the columns from a message's schema. `marks_unavailable`: a placeholder
    (`unavailable_values`) may replace a value that was not logged. `is_compact`: nested values are not documents of
    the source but encoded ones, which the tool writes without blanks. `counts_days`: a number in a
    column of dates is one of days without a schema, too, in every setting of the tool. `metadata`: a pattern of
    members beside the row's columns, which are columns only if the table declares them. `is_whole`: the row before has
    all columns. `only_key`: Spark SQL over a message's text (`value`): whether of a deleted row it may have the key
    alone.
    """

    style: Style
    path: tuple[str, ...] = ()
    new: str | None = None
    old: str | None = None
    is_list: bool = False
    ignored: frozenset[str] = frozenset()
    fields: Callable[[str], tuple[SourceField, ...]] | None = None
    marks_unavailable: bool = False
    is_compact: bool = False
    counts_days: bool = False
    metadata: str | None = None
    is_whole: bool = True
    only_key: str = "false"

    @property
    def tells_partition(self) -> str:
        """Spark SQL over an event: whether it says in which partition its row was before.

        One row alone does not, even if deleted.
        """
        return f"not (kind = 'delete' and {self.only_key})" if self.style != "row" and self.is_whole else "false"

    @property
    def members(self) -> tuple[str, ...]:
        """The members that hold rows, the newest first."""
        return tuple(name for name in (self.new, self.old) if name)


@dataclass(frozen=True)
class MessageDialect:
    """One way of writing change events.

    `envelope` gives Spark SQL, in order, over a message's text (`value`) and what the log says of its table
    (`log_database`, `log_table`, `log_schema`); each expression may use the ones before it. The result must have `kind`
    (see `EVENT_KINDS`), `reason` (of a bad one), `op` (c, u, d, r, t; w: c or u), `database`, `source_schema`,
    `source_table`, `schema_text` (NULL where nothing is stated) and `message` (a key of
    `format_registry.MESSAGE_STYLES`). `key`: Spark SQL of the names of the primary key's columns (NULL: unknown) over
    `value` and the record's own key (`log_key`). `members`: Spark SQL of the names in the rows of an event, over its
    envelope, one a line (NULL: unknown). `value`: Spark SQL of the text that is read as the message, over a line.
    """

    envelope: Callable[[str], Mapping[str, str]]
    key: str = NO_KEY
    members: str = NO_MEMBERS
    value: str = "value"


def parsed_message(line: str, schema: str) -> str:
    """Spark SQL of a message's text as a struct; a text that is not a JSON object of the schema is in `CORRUPT`.

    Formats ask for that before any other member, which may be there or not.
    """
    options = f"map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', {sql_literal(CORRUPT)})"
    return f"from_json({line}, {sql_literal(schema)}, {options})"


def names_in(text: str, ignored: str) -> str:
    """Spark SQL of the member names of a JSON object, except those that match `ignored`; NULL for other texts."""
    return f"filter(json_object_keys({text}), name -> not name rlike {sql_literal(ignored)})"


def is_tombstone(line: str) -> str:
    """Spark SQL: whether a line is the message without a value that follows a delete (`null` in consumers' files)."""
    return f"coalesce(trim({line}), '') in ('', 'null')"


def has_no_value(line: str) -> str:
    """Spark SQL: whether a message has no value. An empty line of a file is none."""
    return f"({line} is null or trim({line}) = 'null')"


def key_as_row(member: str) -> str:
    """Spark SQL of a message's text: of one without a value, the row of its key, with a JSON `member` that says so."""
    row = "coalesce(get_json_object(log_key, '$.payload'), log_key)"
    has_key = f"left(ltrim({row}), 1) = '{{' and size(json_object_keys({row})) > 0"
    return f"if({has_no_value('value')} and {has_key}, concat('{{{member},', substr(ltrim({row}), 2)), value)"


def op_of(value: str, ops: Mapping[str, tuple[str, str]]) -> str:
    """Spark SQL of an event's `op`. `ops`: (kind, op) by the operation that the format writes in `value`."""
    return f"case {value} {whens({name: op for name, (_, op) in ops.items()})} end"


def kind_of(line: str, value: str, ops: Mapping[str, tuple[str, str]]) -> str:
    """Spark SQL of an event's `kind`, for formats that name the operation in `value`; uses `reason`."""
    return (
        f"case when {is_tombstone(line)} then 'tombstone' when reason is not null then 'bad' "
        f"else case {value} {whens({name: kind for name, (kind, _) in ops.items()})} else 'skip' end end"
    )


def whens(values: Mapping[str, str]) -> str:
    """Spark SQL of the branches of a CASE that maps texts to texts."""
    return " ".join(f"when {sql_literal(name)} then {sql_literal(value)}" for name, value in values.items())
