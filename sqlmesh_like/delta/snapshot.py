"""Versions of rows: what a snapshot writes, as SQL over its current query and its table so far. Owns the program.

Slowly changing dimensions of type 2, as dbt keeps them: https://docs.getdbt.com/docs/build/snapshots. Grain of the
table: one row per key and version. A version that ends is rewritten with its end, and a new one is added; nothing is
removed. A row that reappears after a deletion starts no earlier than that, so that no version is overwritten.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlmesh_like.analyze.spark_types.type_names import stored_type
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import NodeError
from sqlmesh_like.names import KEY, Column, Schema, TableName
from sqlmesh_like.project.snapshots import SnapshotConfig
from sqlmesh_like.sql_text import spark_identifier as _q

SOURCE, STORED = "_sml_snapshot_source", "_sml_snapshot_stored"
"""Relations of the program: the rows of the query, and all rows of the table with their `_sml_key`."""


_KEY_PART = "_sml_unique_key_"


def key_expression(part: str) -> exp.Expr | None:
    """A part of `unique_key` that is computed, as dbt allows; None for the name of a column and for other text.

    >>> key_expression("id || '-' || day").sql("spark"), key_expression("id"), key_expression("id as x")
    ("id || '-' || day", None, None)
    """
    if re.fullmatch(r"\w+", part) or "`" in part:  # the text itself becomes a name that is quoted so
        return None
    try:
        tree = sqlglot.parse_one(part, dialect=SPARK)
    except SqlglotError:
        return None
    columns = list(tree.find_all(exp.Column))
    is_plain = isinstance(tree, exp.Condition) and not tree.find(exp.Select)
    return tree if is_plain and columns and not any(column.table for column in columns) else None


def key_columns(part: str) -> tuple[str, ...]:
    """The columns that a part of `unique_key` reads.

    >>> key_columns("id || day"), key_columns("id")
    (('id', 'day'), ('id',))
    """
    tree = key_expression(part)
    return (part,) if tree is None else tuple(column.name for column in tree.find_all(exp.Column))


def _same(one: str, other: str, is_map: bool) -> str:
    """SQL for whether two values are equal; Spark compares no maps, but their entries.

    >>> _same("s.m", "o.m", is_map=True)
    'array_sort(map_entries(s.m)) <=> array_sort(map_entries(o.m))'
    """
    return " <=> ".join(f"array_sort(map_entries({value}))" if is_map else value for value in (one, other))


@dataclass(frozen=True)
class SnapshotProgram:
    """`first` fills a new table; `changes` yields the rows to upsert into an existing one, keyed by `_sml_key`."""

    first: str
    changes: str


def added_columns(config: SnapshotConfig) -> Schema:
    """The columns that a snapshot adds to those of its query."""
    names = config.names
    added = [
        Column(names["dbt_scd_id"], "string"),
        Column(names["dbt_updated_at"], "timestamp"),
        Column(names["dbt_valid_from"], "timestamp"),
        Column(names["dbt_valid_to"], "timestamp"),
    ]
    if config.hard_deletes == "new_record":
        added.append(Column(names["dbt_is_deleted"], "string"))
    return tuple(added)


def refuse_other_types(table: TableName, source: Schema, stored: Schema) -> None:
    """Raise NodeError where a column has another type than in the table: a cast could lose values of a version."""
    known = {column.name.lower(): column.type for column in stored}
    for column in source:
        now, then = stored_type(column.type), known.get(column.name.lower())
        if then is not None and now != then:
            hint = f"cast it to {then} in the snapshot's query, or give it another name"
            raise NodeError(f"{table}: the column {column.name!r} was {then} and is {now}", hint=hint)


def require_own_beginnings(table: TableName, versions: int, keys: int) -> None:
    """Raise NodeError where two of the versions to be written share a key (of which there are `keys`)."""
    if versions != keys:
        hint = "run again later, or with another --now: a version must have a beginning of its own"
        raise NodeError(f"{table}: two versions of a row begin at the same time", hint=hint)


def snapshot_program(config: SnapshotConfig, source: Schema, stored: Schema | None, now: str) -> SnapshotProgram:
    """The program; `source` and `stored` are the visible columns, `now` the clock as an SQL timestamp without a zone.

    Columns that the query no longer has are kept and NULL in new versions; new ones are NULL in old versions. Raises
    NodeError if the config names a column that the query does not have.
    """
    known = {column.name.lower() for column in source}
    moment = () if config.updated_at is None else (config.updated_at,)
    keys = [name for part in config.unique_key for name in key_columns(part)]
    for name in (*keys, *moment, *(config.check or ())):
        if name.lower() not in known:
            hint = f"its columns: {', '.join(column.name for column in source)}"
            raise NodeError(f"the snapshot names {name!r}, which is not a column of its query", hint=hint)
    return _Program(config, source, stored or (), f"timestamp '{now}'").program()


@dataclass(frozen=True)
class _Program:
    config: SnapshotConfig
    source: Schema
    stored: Schema
    now: str

    def program(self) -> SnapshotProgram:
        fresh = self._versions(f"{self._with_keys(SOURCE)} s", "true", self._updated_at)
        return SnapshotProgram(fresh, self._changes())

    @property
    def _keys(self) -> list[str]:
        """Columns of `_with_keys` that identify a row."""
        parts = enumerate(self.config.unique_key)
        return [f"{_KEY_PART}{number}" if key_expression(part) else part for number, part in parts]

    def _with_keys(self, relation: str) -> str:
        """The relation's rows with the parts of the key that are computed."""
        parts = [(name, key_expression(part)) for name, part in zip(self._keys, self.config.unique_key, strict=True)]
        computed = [f"{tree.sql(SPARK)} as {_q(name)}" for name, tree in parts if tree is not None]
        return f"(select {', '.join(['*', *computed])} from {relation})"

    @property
    def _columns(self) -> list[str]:
        """Columns of the rows that are written: those of the table, then new ones of the query."""
        added = {column.name.lower() for column in added_columns(self.config)}
        kept = [column.name for column in self.stored if column.name.lower() not in added]
        known = {name.lower() for name in kept}
        return [*kept, *(c.name for c in self.source if c.name.lower() not in known)]

    @property
    def _updated_at(self) -> str:
        """SQL for the time since which a row of the query has its values."""
        name = self.config.updated_at  # with `check` too, as in dbt's snapshot_check_strategy
        return f"cast(s.{_q(name)} as timestamp)" if name else self.now

    @property
    def _end(self) -> str:
        return f"cast({self.config.current} as timestamp)" if self.config.current else "cast(null as timestamp)"

    def _scd_id(self, alias: str, moment: str) -> str:
        parts = [f"coalesce(cast({alias}.{_q(name)} as string), '')" for name in self._keys]
        between = " || '|' || "
        return f"md5({between.join([*parts, f'cast({moment} as string)'])})"

    def _row_key(self, alias: str, moment: str) -> str:
        """The key of a new row: with the lengths of values, as dbt's id is the same for 'a|b', 'c' and 'a', 'b|c'."""
        texts = [f"cast({alias}.{_q(name)} as string)" for name in self._keys]
        parts = [f"coalesce(cast(length({text}) as string) || ':' || {text}, '-')" for text in texts]
        return f"md5({' || '.join([*parts, f'cast({moment} as string)'])})"

    def _versions(self, relation: str, condition: str, start: str) -> str:
        """New versions of rows of the query `s`, valid from `start`."""
        have = {column.name.lower() for column in self.source}
        items = [f"s.{_q(n)} as {_q(n)}" if n.lower() in have else self._null(n) for n in self._columns]
        items.append(self._meta_fields("s", self._updated_at, start, "False"))
        return f"select {', '.join(items)} from {relation} where {condition}"

    def _meta_fields(self, alias: str, updated: str, start: str, deleted: str) -> str:
        names = self.config.names
        pairs = [
            (self._scd_id(alias, start), names["dbt_scd_id"]),
            (updated, names["dbt_updated_at"]),
            (start, names["dbt_valid_from"]),
            (self._end, names["dbt_valid_to"]),
        ]
        if self.config.hard_deletes == "new_record":
            pairs.append((f"'{deleted}'", names["dbt_is_deleted"]))
        pairs.append((self._row_key(alias, start), KEY))
        return ", ".join(f"{value} as {_q(name)}" for value, name in pairs)

    def _changes(self) -> str:
        names = self.config.names
        valid_to = f"t.{_q(names['dbt_valid_to'])}"
        is_open = f"{valid_to} is null" + (f" or {valid_to} = {self._end}" if self.config.current else "")
        opened = f"(select t.* from {self._with_keys(STORED)} t where {is_open}) o"
        same = " and ".join(f"s.{_q(name)} <=> o.{_q(name)}" for name in self._keys)
        keys = ", ".join(f"t.{_q(name)}" for name in self._keys)
        ended = (
            f"(select {keys}, max({valid_to}) as _sml_ended from {self._with_keys(STORED)} t "
            f"where not ({is_open}) group by {keys}) c"
        )
        past = " and ".join(f"s.{_q(name)} <=> c.{_q(name)}" for name in self._keys)
        source = f"{self._with_keys(SOURCE)} s"
        absent = f"o.{_q(names['dbt_scd_id'])} is null"
        was_deleted = f"coalesce(o.{_q(names['dbt_is_deleted'])} = 'True', false)" if self._keeps_deleted else "false"
        changed = f"not ({absent}) and ({self._is_newer} or {was_deleted})"
        start = self._start(was_deleted)
        parts = [
            self._versions(
                f"{source} left join {opened} on {same} left join {ended} on {past}",
                f"({absent}) or ({changed})",
                start,
            ),
            self._close_versions(f"{opened} inner join {source} on {same} left join {ended} on {past}", changed, start),
        ]
        if self.config.hard_deletes != "ignore":
            gone = f"{opened} left anti join {source} on {same}"
            condition = f"not {was_deleted}"
            parts.append(self._close_versions(gone, condition, self.now))
            if self._keeps_deleted:
                parts.append(self._deletions(gone, condition))
        return " union all ".join(parts)

    def _start(self, was_deleted: str) -> str:
        """SQL for when a version begins that follows the ended ones `c` and the open one `o` of its key."""
        start = f"greatest({self._updated_at}, c._sml_ended)"
        if not self._keeps_deleted:
            return start
        # A row that comes back with the time that it had before was gone until this run, by all that is known.
        was_gone = f"{was_deleted} and coalesce({start} <= o.{_q(self.config.names['dbt_valid_from'])}, true)"
        return f"if({was_gone}, {self.now}, {start})"

    @property
    def _keeps_deleted(self) -> bool:
        return self.config.hard_deletes == "new_record"

    @property
    def _is_newer(self) -> str:
        """SQL for whether a row of the query differs from the open version of its key."""
        if self.config.strategy == "timestamp":
            return f"o.{_q(self.config.names['dbt_valid_from'])} < {self._updated_at}"
        stored = {column.name.lower() for column in self.stored}
        checked = self.config.check or tuple(column.name for column in self.source)
        if any(name.lower() not in stored for name in checked):
            return "true"  # as in dbt: with an added column every row is a new version
        types = {column.name.lower(): column.type or "" for column in self.source}
        pairs = [(f"s.{_q(name)}", f"o.{_q(name)}", types[name.lower()].startswith("map<")) for name in checked]
        return f"({' or '.join(f'not ({_same(*pair)})' for pair in pairs)})"

    def _close_versions(self, relation: str, condition: str, moment: str) -> str:
        """Open versions with their stored values and an end."""
        items = self._as_stored()
        names = self.config.names
        kept = [names["dbt_scd_id"], names["dbt_updated_at"], names["dbt_valid_from"]]
        items += [f"o.{_q(name)} as {_q(name)}" for name in kept]
        items.append(f"{moment} as {_q(names['dbt_valid_to'])}")
        if self._keeps_deleted:
            items.append(f"o.{_q(names['dbt_is_deleted'])} as {_q(names['dbt_is_deleted'])}")
        items.append(f"o.{_q(KEY)} as {_q(KEY)}")
        return f"select {', '.join(items)} from {relation} where {condition}"

    def _deletions(self, relation: str, condition: str) -> str:
        """Versions that record the deletion of a row."""
        added = self._meta_fields("o", self.now, self.now, "True")
        return f"select {', '.join(self._as_stored())}, {added} from {relation} where {condition}"

    def _as_stored(self) -> list[str]:
        have = {column.name.lower() for column in self.stored}
        return [f"o.{_q(n)} as {_q(n)}" if n.lower() in have else self._null(n) for n in self._columns]

    def _null(self, name: str) -> str:
        types = {column.name.lower(): column.type for column in (*self.source, *self.stored)}
        return f"cast(null as {types.get(name.lower()) or 'string'}) as {_q(name)}"
