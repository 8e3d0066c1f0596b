"""Row images of change events as typed Spark SQL. Owns reading them out of any `Message`; knows no format, no engine.

The steps, each a set of named expressions over the ones before: `parsed_images` reads the message (every value as
text, and plain decimals with all their digits: Spark converts a JSON number to text through a double), `image_rows`
finds the rows in it (and where a value may be spelt otherwise in JSON, all values as they are written),
`image_texts` builds the before and after images from them, `row_image` types one of these.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import reduce

from sqlmesh_like.cdc.formats import time_values
from sqlmesh_like.cdc.formats.encoding import MOMENTS, Encoding
from sqlmesh_like.cdc.formats.json_text import element_texts, may_be_rewritten, member_text, written_row
from sqlmesh_like.cdc.formats.message import Message
from sqlmesh_like.cdc.formats.source_types import (
    SourceField,
    decoder,
    exact_type,
    is_count,
    number_decoder,
    quoted_name,
    sql_literal,
)
from sqlmesh_like.names import Column, Schema, storable_name

IMAGES = ("before", "after")
NO_SHAPE = "cast(array() as array<string>)"
"""Spark SQL of an empty list of names."""


@dataclass(frozen=True)
class EventShape:
    """The layout of a group of events of one table: its message and its columns.

    `clashes`: members whose column name another member has too, so that no table can hold both. `absent`: Spark SQL,
    over an event's columns, of values for columns that no event of the group has; other such columns are NULL.
    `unavailable`: texts that stand for a value which the source did not log because it had not changed.
    `ascii_names`: the columns that may be named by the rule of earlier versions (`storable_name`).
    """

    message: Message
    fields: tuple[SourceField, ...]
    clashes: tuple[str, ...] = ()
    absent: Mapping[str, str] = dataclass_field(default_factory=dict)
    unavailable: tuple[str, ...] = ()
    ascii_names: frozenset[str] = frozenset()

    @property
    def written(self) -> tuple[str, ...]:
        """Members whose values may have to be kept as they are written in JSON."""
        return tuple(field.member for field in self.fields if field.keeps_json)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Members whose values are encoded decimals or JSON numbers."""
        return tuple(field.member for field in self.fields if field.may_be_number)

    def column_of(self, member: str) -> str:
        """The name of a member's column."""
        return column_of(member, self.ascii_names)

    def absent_value(self, column: Column) -> str:
        """Spark SQL of the value of a column that no event of the group has."""
        return self.absent.get(column.name, f"cast(null as {column.type})")


def column_of(member: str, ascii_names: Collection[str]) -> str:
    """The name of a member's column: that of earlier versions if the table has a column of that name.

    >>> column_of("größe", ()), column_of("größe", {"gr__e"}), column_of("имя", {"gr__e"})
    ('größe', 'gr__e', 'имя')
    """
    former = storable_name(member, ascii_only=True)
    return former if former in ascii_names else storable_name(member)


def shape_of(
    message: Message,
    fields: Sequence[SourceField],
    known: Collection[str],
    unavailable: tuple[str, ...] = (),
    *,
    ascii_names: frozenset[str] = frozenset(),
) -> EventShape:
    """A shape with one member per column; of several, one with a `known` name is kept, else the last by name.

    >>> shape = shape_of(Message("row"), [SourceField("ID", "int"), SourceField("id", "int")], ())
    >>> [field.name for field in shape.fields], shape.clashes
    (['id'], ('ID',))
    >>> shape_of(Message("row"), [SourceField("a-b", "int"), SourceField("a_b", "int")], ()).clashes
    ('a-b',)
    """
    kept: dict[str, SourceField] = {}
    for field in sorted(fields, key=lambda field: (field.name in known, field.name)):
        kept[column_of(field.name, ascii_names).lower()] = field
    stay = {field.name for field in kept.values()}
    clashes = tuple(field.member for field in fields if field.name not in stay)
    own = tuple(field for field in fields if field.name in stay)
    return EventShape(message, own, clashes, unavailable=unavailable, ascii_names=ascii_names)


def parsed_images(shape: EventShape, *, partial: bool = False) -> dict[str, str]:
    """Spark SQL of the message's members.

    `all_texts`, `all_decimals`, `all_numbers` (NULL for all but JSON numbers), `all_present` (maps), and `lines_…` of
    lists.
    """
    texts = [(field.member, "STRING") for field in shape.fields]
    parsed = {"all_texts": _from_json(shape.message, struct_of(texts))}
    if exact := [(field.member, kind) for field in shape.fields if (kind := exact_type(field))]:
        parsed["all_decimals"] = _from_json(shape.message, struct_of(exact))
    if shape.numbers:
        parsed["all_numbers"] = _from_json(shape.message, struct_of([(member, "DOUBLE") for member in shape.numbers]))
    if shape.message.style == "overlay" or partial:
        parsed["all_present"] = _from_json(shape.message, "MAP<STRING, STRING>")
    if shape.written and shape.message.is_list:
        parsed |= {f"lines_{name}": _lines(shape, name) for name in shape.message.members}
    return parsed


def _lines(shape: EventShape, name: str) -> str:
    """Spark SQL of the rows of a list as they are written, NULL where no value of them can be spelt otherwise."""
    is_needed = _is_suspect(shape, "row")
    lines = element_texts(member_text(_within(shape.message), name))
    return f"if(exists(all_texts.{quoted_name(name)}, row -> {is_needed}), {lines}, null)"


def _within(message: Message) -> str:
    """Spark SQL of the object around a message's rows as it is written."""
    return reduce(member_text, message.path, "value")


def _is_suspect(shape: EventShape, row: str) -> str:
    """Spark SQL: whether a value of a row of texts may be spelt otherwise in JSON."""
    texts = (f"{row}.{quoted_name(member)}" for member in shape.written)
    return " or ".join(f"coalesce({may_be_rewritten(text)}, false)" for text in texts)


def struct_of(columns: Sequence[tuple[str, str]]) -> str:
    """Spark's type of a struct with these members (name, type)."""
    return f"STRUCT<{', '.join(f'{quoted_name(name)}: {kind}' for name, kind in columns)}>"


def _from_json(message: Message, row: str) -> str:
    if not message.members:
        return f"from_json(value, {sql_literal(row)})"
    return f"from_json(value, {sql_literal(within_path(message, row))})" + "".join(f".{name}" for name in message.path)


def within_path(message: Message, row: str, beside: str = "") -> str:
    """Spark's type of a message whose rows have the type `row`. `beside`: further members of the outermost object."""
    one = f"ARRAY<{row}>" if message.is_list else row
    members = ", ".join(f"{quoted_name(name)}: {one}" for name in message.members)
    for name in reversed(message.path):
        members = f"{name}: STRUCT<{members}>"
    return f"STRUCT<{members}{beside}>"


def image_maps(message: Message) -> str:
    """Spark SQL of the rows of a message, each as a map from member to text, or NULL."""
    rows = _from_json(message, "MAP<STRING, STRING>")
    if not message.members:
        return f"array({rows})"
    images = f"array({', '.join(f'{rows}.{quoted_name(name)}' for name in message.members)})"
    return f"flatten(filter({images}, rows -> rows is not null))" if message.is_list else images


def items(shape: EventShape) -> str:
    """Spark SQL that makes a line of each row of a message and numbers it in `item`, from 0."""
    if shape.message.is_list:
        return f"posexplode(all_texts.{quoted_name(shape.message.new or '')}) as (item, ignored)"
    return "0 as item"


def image_rows(shape: EventShape, *, partial: bool = False) -> dict[str, str]:
    """Spark SQL of one row.

    `new_…` and `old_…` of `texts`, `decimals`, `numbers` and `written`; `changed`, `mentioned`: names in the old and
    new part.
    """
    message = shape.message
    suffixes = [name.removeprefix("all_") for name in parsed_images(shape, partial=partial) if name.startswith("all_")]
    at = "[item]" if message.is_list else ""
    entries: dict[str, str] = {}
    for suffix in (suffix for suffix in suffixes if suffix != "present"):
        entries[f"new_{suffix}"] = f"all_{suffix}.{quoted_name(message.new)}{at}" if message.new else f"all_{suffix}"
        if message.old:
            entries[f"old_{suffix}"] = f"all_{suffix}.{quoted_name(message.old)}{at}"
    if shape.written:
        entries["new_written"] = _source_texts(shape, "new_texts", message.new)
        if message.old:
            entries["old_written"] = _source_texts(shape, "old_texts", message.old)
    if "present" in suffixes:
        entries["changed"] = f"map_keys(all_present.{quoted_name(message.old)}{at})" if message.old else NO_SHAPE
        entries["mentioned"] = f"map_keys(all_present{'.' + quoted_name(message.new) + at if message.new else ''})"
    return entries


def _source_texts(shape: EventShape, texts: str, name: str | None) -> str:
    """Spark SQL of a row's values as they are written. Where none can be spelt otherwise, these are the `texts`."""
    if shape.message.is_list:
        row = f"get({quoted_name(f'lines_{name}')}, item)"
    else:
        row = member_text(_within(shape.message), name) if name else "value"
    as_read = ", ".join(f"{sql_literal(member)}, {texts}.{quoted_name(member)}" for member in shape.written)
    schema = sql_literal(struct_of([(member, "STRING") for member in shape.written]))
    written = written_row(row, compact=shape.message.is_compact)
    values = f"if({_is_suspect(shape, texts)}, from_json({written}, {schema}), named_struct({as_read}))"
    return f"if({texts} is null, null, {values})"


def image_texts(shape: EventShape) -> dict[str, str]:
    """Spark SQL of the before and after image with values as `texts`, exact `decimals`, `numbers`, and as `written`."""
    exact = [field.member for field in shape.fields if exact_type(field)]
    entries = {"texts": _pair(shape, "texts", [field.member for field in shape.fields])}
    entries |= {"decimals": _pair(shape, "decimals", exact)} if exact else {}
    entries |= {"numbers": _pair(shape, "numbers", shape.numbers)} if shape.numbers else {}
    return entries | ({"written": _pair(shape, "written", shape.written)} if shape.written else {})


def _pair(shape: EventShape, suffix: str, members: Sequence[str]) -> str:
    new, old = f"new_{suffix}", f"old_{suffix}"
    match shape.message.style:
        case "pair":
            before, after = f"coalesce({old}, if(kind = 'delete', {new}, null))", f"if(kind = 'delete', null, {new})"
        case "row":
            before, after = f"if(kind = 'delete', {new}, null)", f"if(kind = 'delete', null, {new})"
        case "overlay":
            spelt = [(sql_literal(name), quoted_name(name)) for name in members]
            former = ", ".join(
                f"{name}, if(array_contains(changed, {name}), {old}.{column}, {new}.{column})" for name, column in spelt
            )
            overlaid = f"if(changed is null, null, named_struct({former}))"
            before, after = f"if(kind = 'delete', {new}, {overlaid})", f"if(kind = 'delete', null, {new})"
    return f"named_struct('before', {before}, 'after', {after})"


def row_image(shape: EventShape, name: str, columns: Schema) -> str:
    """Spark SQL of one row image as a struct of these columns (NULL where the event has no such image)."""
    fields = {field.name.lower(): field for field in shape.fields}
    known = ((column, _value(shape, fields.get(column.name.lower()), name)) for column in columns)
    values = (f"{sql_literal(column.name)}, {value or shape.absent_value(column)}" for column, value in known)
    return f"if(texts.{name} is null, null, named_struct({', '.join(values)}))"


def _value(shape: EventShape, field: SourceField | None, name: str) -> str | None:
    if field is None:
        return None
    text, written, exact = (f"{kind}.{name}.{quoted_name(field.member)}" for kind in ("texts", "written", "decimals"))
    value = decoder(field, written if field.keeps_json else text, exact)
    if field.may_be_number:
        value = f"if(numbers.{name}.{quoted_name(field.member)} is null, {decoder(field, text, exact)}, "
        value += f"{number_decoder(field, written, exact)})"
    return f"if({_is_unavailable(shape, text)}, null, {value})" if shape.unavailable else value


def _is_unavailable(shape: EventShape, text: str) -> str:
    return f"coalesce({text} in ({', '.join(map(sql_literal, shape.unavailable))}), false)"


def unreadable(shape: EventShape) -> str:
    """Spark SQL of a message that names the unreadable values, or NULL; uses `texts` and the typed images."""
    checks = [
        f"if({text} is not null and {name}.{column} is null{_but_available(shape, text)}, "
        f"concat('column ', {sql_literal(column)}, ': cannot read ', left({text}, 80), "
        f"{sql_literal(' as ' + field.expected)}, {advice(field, text)}), null)"
        for name in IMAGES
        for field in shape.fields
        if field.type != "string" or field.encoding is not Encoding.PLAIN or field.unit is not None
        for column, text in ((quoted_name(field.name), f"texts.{name}.{quoted_name(field.member)}"),)
    ]
    checks += [_clash(shape, name, member) for name in shape.message.members or ("",) for member in shape.clashes]
    return f"nullif(concat_ws('; ', {', '.join(checks)}), '')" if checks else "cast(null as string)"


def unwritten(shape: EventShape) -> str:
    """Spark SQL: why what is written for a value is not found in the message, or NULL; uses `texts`, `written`."""
    checks = [
        f"texts.{name}.{column} is not null and written.{name}.{column} is null"
        for name in IMAGES
        for column in map(quoted_name, shape.written)
    ]
    return f"if({' or '.join(checks)}, 'its JSON cannot be taken apart', null)" if checks else "cast(null as string)"


def has_member(message: Message, member: str) -> str:
    """Spark SQL: whether a row of an event has a value under the name `member`."""
    paths = [_path(message, name, member) for name in message.members or ("",)]
    return f"coalesce({', '.join(f'get_json_object(value, {sql_literal(path)})' for path in paths)}) is not null"


def _path(message: Message, name: str, member: str) -> str:
    parts = "".join(f"['{part}']" for part in (*message.path, name) if part)
    return f"${parts}{'[*]' if message.is_list else ''}['{member}']"


def _clash(shape: EventShape, name: str, member: str) -> str:
    """Spark SQL: why an event with this member cannot be ingested, or NULL where it does not have it."""
    # Read as a map, because a JSON path cannot name every member.
    rows = _from_json(shape.message, "MAP<STRING, STRING>") + (f".{quoted_name(name)}" if name else "")
    has_it = f"exists(map_entries({{}}), entry -> entry.key = {sql_literal(member)} and entry.value is not null)"
    is_there = f"exists({rows}, row -> {has_it.format('row')})" if shape.message.is_list else has_it.format(rows)
    return f"if({is_there}, {clash_reason(shape, member)}, null)"


def clash_reason(shape: EventShape, member: str) -> str:
    """Spark SQL of why a row with a value under the name `member`, one of the clashes, cannot be ingested."""
    return sql_literal(
        f"column {member}: another column of the row is {shape.column_of(member)} in the table, or differs in case only"
    )


def _but_available(shape: EventShape, text: str) -> str:
    return f" and not {_is_unavailable(shape, text)}" if shape.unavailable else ""


def advice(field: SourceField, text: str) -> str:
    """Spark SQL of advice on an unreadable value: numbers lack a unit, decimals in bytes a scale, dates have a time."""
    if field.encoding is Encoding.PLAIN and field.type in ("date", "timestamp"):
        has_time = f"if({time_values.has_time(text)}, {sql_literal(_HAS_TIME)}, '')" if field.type == "date" else "''"
        return has_time if field.unit else f"if({is_count(text)}, {sql_literal(_NO_UNIT)}, {has_time})"
    if field.type == "date" and field.encoding in (*MOMENTS, Encoding.ISO_TIMESTAMP, Encoding.TIMESTAMP_PARTS):
        return sql_literal(_HAS_TIME)
    if field.encoding is not Encoding.PLAIN or not field.type.startswith("decimal"):
        return "''"
    advice = sql_literal(" (base64 without a schema? set decimal.handling.mode=string at the source)")
    return f"if({text} rlike '^[A-Za-z0-9+/]+={{0,2}}$', {advice}, '')"


_HAS_TIME = ": with a time of day? declare the column as timestamp"
_NO_UNIT = ": the event does not say what the number counts; declare `unit:` for the column (days, seconds, millis,"
_NO_UNIT += " micros or nanos since 1970), or let the source send its schema"


def missing(shape: EventShape, columns: Schema, *, partial: bool, of_deletes: bool = False) -> str:
    """Spark SQL of the columns (array) whose value the after image leaves out because it had not changed.

    `partial`: an update mentions only what changed; otherwise only the format's placeholder shows it. `of_deletes`:
    also the columns for which the row of a delete has the placeholder.
    """
    members = {field.name.lower(): field.member for field in shape.fields}
    conditions: dict[str, list[str]] = {}
    for column in columns:
        member = members.get(column.name.lower())
        own = conditions.setdefault(column.name, [])
        if shape.unavailable and member is not None:
            if of_deletes:
                own.append(f"kind = 'delete' and {_is_unavailable(shape, f'texts.before.{quoted_name(member)}')}")
            own.append(_is_unavailable(shape, f"texts.after.{quoted_name(member)}"))
        if partial:
            own.append(f"kind = 'upsert' and op in ('u', 'w') and {_is_absent(member, column.name)}")
    return names_where({name: " or ".join(own) for name, own in conditions.items() if own})


def names_where(conditions: Mapping[str, str]) -> str:
    """Spark SQL of the names (array) whose condition is true."""
    checks = ", ".join(f"if({condition}, {sql_literal(name)}, null)" for name, condition in conditions.items())
    return f"filter(array({checks}), name -> name is not null)" if checks else NO_SHAPE


def _is_absent(member: str | None, column: str) -> str:
    if member is not None:
        return f"not array_contains(mentioned, {sql_literal(member)})"
    # A column that is NULL in all events of a batch has no field.
    return f"not exists(mentioned, name -> lower(name) = {sql_literal(column.lower())})"
