"""The SQL of canonical texts in each dialect: all in which the two sides of a comparison differ.

Owns the expressions; `value_kinds` says what they are texts of. What MariaDB, MySQL, PostgreSQL and DuckDB write alike
(`concat_ws`, `coalesce`, `char_length`, `left`, `md5`, `%`) is in `side`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from sqlmesh_like.cdc.formats.source_types import decimal_parts
from sqlmesh_like.cdc.sources.database.comparison.local_times import local_of_moment, moment_of_local
from sqlmesh_like.cdc.sources.database.comparison.value_kinds import Kind, moment_text
from sqlmesh_like.project.nodes import DatabaseKind
from sqlmesh_like.sql_text import spark_identifier, standard_identifier, standard_literal


@dataclass(frozen=True)
class CanonicalColumn:
    """A column of one side. `lake`: its type in the lake; `declared`: in the database, in lower case.

    `zone`: the zone of its local times, which the lake has in UTC.
    """

    name: str
    kind: Kind
    lake: str
    declared: str = ""
    zone: str | None = None


class Dialect(ABC):
    """How one engine writes what is compared. `settings`: statements of a connection on which the texts depend."""

    settings: tuple[str, ...] = ()
    columns = ""
    """Query of a table's columns: names and types, with `{schema}` and `{table}` as literals."""

    def name(self, name: str) -> str:
        """An identifier."""
        return standard_identifier(name)

    @abstractmethod
    def text(self, column: CanonicalColumn) -> str:
        """The canonical text of a column; NULL is NULL."""

    @abstractmethod
    def hash(self, text: str) -> str:
        """The first 60 bits of a text's MD5, of its bytes in UTF-8, as a number."""

    @abstractmethod
    def bytes_literal(self, digits: str) -> str:
        """A literal of bytes, given in hexadecimal."""

    def with_length(self, text: str) -> str:
        """A text after its number of characters; NULL is NULL."""
        return f"char_length({text}) || ':' || {text}"

    def text_literal(self, text: str) -> str:
        """A literal of a text."""
        return standard_literal(text)

    def literal(self, column: CanonicalColumn, text: str) -> str | None:
        """The literal of the value that has this canonical text; None: only its text can be looked up."""
        match column.kind:
            case Kind.WHOLE:
                is_boolean = column.lake == "boolean" and not column.declared.startswith("bit")
                return None if is_boolean else text
            case Kind.DECIMAL:
                return text
            case Kind.DATE:
                return self.text_literal(text)
            case Kind.MOMENT if column.zone is not None:
                local = local_of_moment(text, column.zone)
                return None if local is None else self.text_literal(local)
            case Kind.MOMENT:
                moment = moment_text(text)
                return None if moment == text else self.text_literal(moment)
            case Kind.BYTES:
                return self.bytes_literal(text)
            case Kind.TEXT:
                return self.text_literal(text)
        return None


class MySql(Dialect):
    """MariaDB and MySQL."""

    settings = ("set session time_zone = '+00:00', sql_auto_is_null = 0, sql_mode = ''", "set names utf8mb4")
    columns = (
        "select column_name, column_type from information_schema.columns"
        " where table_schema = {schema} and table_name = {table} order by ordinal_position"
    )

    def name(self, name: str) -> str:
        return spark_identifier(name)

    def text(self, column: CanonicalColumn) -> str:
        value = self.name(column.name)
        match column.kind:
            case Kind.WHOLE:
                return f"cast({value} + 0 as char)"  # a text may be filled with zeros, bits are bytes
            case Kind.DECIMAL:
                return f"cast(cast({value} as {column.lake}) as char)"
            case Kind.DIGITS:
                return _without_zeros(f"cast({value} as char)", "trim(trailing '.' from trim(trailing '0' from {0}))")
            case Kind.FLOAT:  # as WKB has it after five bytes; the texts of floats are rounded to six digits
                return f"lower(hex(reverse(substr(st_aswkb(point({value} * 1e0, 0)), 6, 8))))"
            case Kind.TEXT:
                return f"convert({value} using utf8mb4)"
            case Kind.DATE:
                return f"nullif(cast({value} as char), '0000-00-00')"
            case Kind.MOMENT:
                micros = f"timestampdiff(microsecond, '1970-01-01', {value})"
                return f"cast({micros if column.zone is None else moment_of_local(micros, column.zone, 'div')} as char)"
            case Kind.CLOCK:
                time = f"cast(cast({value} as time(6)) as char)"
                return _without_zeros(time, "trim(trailing '.' from trim(trailing '0' from {0}))")
            case Kind.BYTES:
                return f"lower(hex({value}))"

    def hash(self, text: str) -> str:
        return f"cast(conv(left(md5({text}), 15), 16, 10) as unsigned)"

    def bytes_literal(self, digits: str) -> str:
        return f"x'{digits}'"

    def with_length(self, text: str) -> str:
        return f"concat(char_length({text}), ':', {text})"

    def text_literal(self, text: str) -> str:
        return f"_utf8mb4 x'{text.encode().hex()}'"  # whatever a backslash means there


class PostgreSql(Dialect):
    settings = ("set timezone = 'UTC'", "set datestyle = 'ISO'", "set standard_conforming_strings = on")
    columns = (
        "select a.attname, case when t.typtype = 'e' then 'enum' else format_type(a.atttypid, a.atttypmod) end"
        " from pg_attribute a join pg_type t on t.oid = a.atttypid join pg_class c on c.oid = a.attrelid"
        " join pg_namespace n on n.oid = c.relnamespace"
        " where n.nspname = {schema} and c.relname = {table} and a.attnum > 0 and not a.attisdropped order by a.attnum"
    )

    def text(self, column: CanonicalColumn) -> str:
        value = self.name(column.name)
        match column.kind:
            case Kind.WHOLE:
                return f"cast(cast({value} as integer) as text)" if column.declared == "boolean" else f"{value}::text"
            case Kind.DECIMAL:
                parts = decimal_parts(column.lake)
                return f"cast(cast({value} as numeric({parts[0]}, {parts[1]})) as text)" if parts else f"{value}::text"
            case Kind.FLOAT:
                return f"encode(float8send({value}::float8), 'hex')"
            case Kind.TEXT if column.declared.startswith("character("):  # a cast would drop the spaces at its end
                return f"case when {value} is not null then concat({value}) end"
            case Kind.MOMENT:
                micros = f"cast(extract(epoch from {value}) * 1000000 as bigint)"
                moment = micros if column.zone is None else moment_of_local(micros, column.zone, "/")
                return f"case when isfinite({value}) then ({moment})::text else {value}::text end"
            case Kind.CLOCK:
                return _without_zeros(f"to_char({value}, 'HH24:MI:SS.US')")
            case Kind.DIGITS:
                return _without_zeros(f"{value}::text")
            case Kind.BYTES:
                return f"encode({value}, 'hex')"
        return f"{value}::text"

    def hash(self, text: str) -> str:
        return f"('x' || left(md5(convert_to({text}, 'UTF8')), 15))::bit(60)::bigint"

    def bytes_literal(self, digits: str) -> str:
        return f"'\\x{digits}'::bytea"


class DuckDb(Dialect):
    """The lake, whose columns have the types that it calls them by."""

    def text(self, column: CanonicalColumn) -> str:
        value = self.name(column.name)
        match column.kind:
            case Kind.WHOLE if column.lake == "boolean":
                return f"CAST(CAST({value} AS INTEGER) AS VARCHAR)"
            case Kind.FLOAT:
                return f"lower(hex(CAST(CAST(CAST({value} AS DOUBLE) AS BIT) AS BLOB)))"
            case Kind.MOMENT:
                return f"CAST(epoch_us({value}) AS VARCHAR)"
            case Kind.BYTES:
                return f"lower(hex({value}))"
            case Kind.CLOCK | Kind.DIGITS:
                return _without_zeros(value)
        return f"CAST({value} AS VARCHAR)"

    def hash(self, text: str) -> str:
        return f"CAST('0x' || left(md5({text}), 15) AS BIGINT)"

    def bytes_literal(self, digits: str) -> str:
        return f"unhex('{digits}')"


def _without_zeros(text: str, trimmed: str = "rtrim(rtrim({0}, '0'), '.')") -> str:
    """A number without the zeros at the end of its fraction: how many there are is not the same everywhere."""
    return f"case when {text} like '%.%' then {trimmed.format(text)} else {text} end"


DATABASES: dict[DatabaseKind, Dialect] = {"mysql": MySql(), "postgresql": PostgreSql()}
LAKE = DuckDb()
