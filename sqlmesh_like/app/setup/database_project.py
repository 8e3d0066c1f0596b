"""A new project for the tables of a database. Owns its files: the source, one staging model a table, the profile."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlmesh_like.cdc.sources.database.column_types import spark_type
from sqlmesh_like.cdc.sources.database.connector_settings import whole_tables
from sqlmesh_like.cdc.sources.database.server import (
    PASSWORD_VARIABLE,
    Table,
    connect,
    tables_of,
    unreadable_columns,
    versioned_tables,
)
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import UsageError
from sqlmesh_like.names import storable_name
from sqlmesh_like.project.keys.database_keys import read_address
from sqlmesh_like.project.nodes import DatabaseSettings
from sqlmesh_like.secrets import learn
from sqlmesh_like.sql_text import spark_identifier

_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PROFILE = """{name}:
  target: local
  outputs:
    local: {{type: spark, schema: dws, warehouse: warehouse, threads: 2}}
"""
_SETTINGS = """[tool.sqlmesh_like]
name = "{name}"
profile = "{name}"
flags = {{strict_undefined = true}}
"""
_README = """# {name}

The tables of {address}, kept in a lake.

    export {variable}=…        # if the user has a password; it is stored nowhere
    sml debug                  # can the database be read?
    sml ingest                 # its tables into Hudi tables, then what has changed since
    sml build                  # one model a table, in models/staging
    sml watch                  # both, as changes arrive

`models/ods/{source}.yml` declares the tables: remove those that you do not want before the first `sml ingest`.
"""


def database_at(url: str, password: str | None) -> DatabaseSettings:
    """The database of an address. Raises UsageError where it is none."""
    settings = read_address(url)
    if settings is None:
        raise UsageError(
            "--from is not the address of a database", hint="write mysql://user@host:port/database, or postgresql://…"
        )
    learn(settings.password)
    return settings if password is None else replace(settings, password=password)


def files_of(name: str, settings: DatabaseSettings) -> Iterator[tuple[str, str]]:
    """Path and text of each file of a project for a database. Raises SmlError where it does not answer or has none."""
    with connect(settings) as db:
        unreadable = unreadable_columns(db, settings)
        left_out = {table: f"Debezium does not know the type of {each}" for table, each in unreadable.items()}
        left_out |= dict.fromkeys(sorted(versioned_tables(db, settings)), "it is system-versioned")
        tables = whole_tables(
            table for table in tables_of(db, settings, with_columns=True) if table.name not in left_out
        )
    if not tables:
        raise UsageError(f"{settings.address} has no tables that this user can see")
    source = storable_name(settings.database, ascii_only=True).lower()
    names = _names(tables)
    yield "pyproject.toml", _SETTINGS.format(name=name)
    yield "profiles.yml", _PROFILE.format(name=name)
    values = {"name": name, "address": settings.address, "variable": PASSWORD_VARIABLE, "source": source}
    yield "README.md", _README.format(**values)
    notes = (f"{table} is not read: {why}" for table, why in left_out.items())
    declared = [*_source(source, settings, tables, names), *(f"      # {' '.join(line.split())}." for line in notes)]
    yield f"models/ods/{source}.yml", "\n".join(declared) + "\n"
    for table, own in zip(tables, names, strict=True):
        columns = [storable_name(column.name) for column in table.columns]
        listed = ",\n".join(f"    {_column(each)}" for each in columns)
        about = f"-- {_without_jinja(' '.join(table.comment.split()))}\n" if table.comment else ""
        query = f"{about}select\n{listed}\nfrom {{{{ source('{source}', '{own}') }}}}\n"
        yield f"models/staging/stg_{own}.sql", query


def _names(tables: Sequence[Table]) -> list[str]:
    """A name for each table: its own, with its schema in front where two would have the same."""
    short = [storable_name(table.name, ascii_only=True).lower() for table in tables]
    often = Counter(short)
    names = [
        storable_name(f"{table.schema}_{name}", ascii_only=True).lower() if often[name] > 1 and table.schema else name
        for table, name in zip(tables, short, strict=True)
    ]
    again = Counter(names)
    return [name if again[name] == 1 else f"{name}_{number}" for number, name in enumerate(names, 1)]


def _source(source: str, settings: DatabaseSettings, tables: Sequence[Table], names: Sequence[str]) -> Iterator[str]:
    yield f"# The tables of {settings.address}. Its password: the environment variable {PASSWORD_VARIABLE}."
    yield from ("version: 2", "sources:", f"  - name: {source}", "    schema: ods", "    ingest:")
    yield f"      database: {{url: {_text(settings.address)}}}"
    yield "    tables:"
    for table, name in zip(tables, names, strict=True):
        yield f"      - name: {name}"
        if table.comment:
            yield f"        description: {_text(table.comment)}"
        if not table.key:
            yield "        # No primary key: updates and deletes are dead letters. Name columns that identify a row."
        key = ", ".join(map(_text, table.key))
        pattern = _text(re.escape(str(table)) if not _PLAIN.fullmatch(str(table)) else str(table))
        yield f"        ingest: {{database: {_text(settings.database)}, table: {pattern}, primary_key: [{key}]}}"
        yield "        columns:"
        for column in table.columns:
            kind = spark_type(column.type)
            entry = [f"name: {_text(column.name)}", *([f"data_type: {_text(kind)}"] if kind else [])]
            entry += [f"description: {_text(column.comment)}"] if column.comment else []
            yield f"          - {{{', '.join(entry)}}}"


def _column(name: str) -> str:
    is_plain = _PLAIN.fullmatch(name) and name.upper() not in SPARK.tokenizer_class.KEYWORDS
    return name if is_plain else spark_identifier(name)


def _text(text: str) -> str:
    """A text of YAML."""
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS
    return text if is_plain else _without_jinja(json.dumps(text, ensure_ascii=False))


def _without_jinja(text: str) -> str:
    return re.sub(r"\{(?=[{%#])", "{ ", text)


_YAML_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
