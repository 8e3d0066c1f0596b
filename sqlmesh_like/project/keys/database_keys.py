"""The keys of `database:` in an `ingest:` block, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast
from urllib.parse import unquote, urlsplit

from sqlmesh_like.project.keys.shape import Key, Shape
from sqlmesh_like.project.keys.value_types import (
    count,
    duration,
    entry,
    percent,
    plain_mapping,
    seconds_of,
    text,
    texts,
)
from sqlmesh_like.project.nodes import ComparisonSchedule, DatabaseKind, DatabaseSettings
from sqlmesh_like.project.reading.patterns import PatternError, compile_pattern
from sqlmesh_like.project.reading.yaml_node import YamlNode
from sqlmesh_like.secrets import learn

VERIFY = Shape("verify", {
    "every": Key(duration, is_required=True, help="Time between two comparisons of a table.", example="24 hours"),
    "share": Key(percent, 100, help="Per cent of the rows that are compared, as `sml verify --share`.", example=1),
    "max_rows_per_second": Key(count(), help="The database is read no faster. Default: as fast as it gives.",
                               example=20000),
})  # fmt: skip
DATABASE = Shape("database", {
    "url": Key(text, is_required=True, help="`mysql://user@host:port/database` (MariaDB too), or `postgresql://…`.",
               example="mysql://sml@localhost:3306/shop"),
    "password": Key(text, help="Default: the environment variable `SML_DATABASE_PASSWORD`.",
                    example="{{ env_var('DBT_ENV_SECRET_SHOP') }}"),
    "tables": Key(texts, help="Tables to read: names, or regular expressions of whole names; in PostgreSQL also "
                  "`schema.table`. Default: those declared; with `discover`, all.", example=["orders", r"user_\d+"]),
    "keep_days": Key(count(), 7, help="Days that events stay in the warehouse after they are in the tables, so that a "
                     "table can catch up.", example=2),
    "verify": Key(entry(VERIFY), help="`sml watch` compares the lake with the database so often.",
                  example={"every": "24 hours", "share": 1}),
    "rows_per_query": Key(count(), 2_000_000, help="Rows of a table that are read by one query: a table with more is "
                          "read in ranges of its primary key, and after a kill the first load goes on with the range "
                          "that it was at.", example=500_000),
    "options": Key(plain_mapping, help="Settings of Debezium's connector.",
                   example={"database.ssl.mode": "required"}),
})  # fmt: skip
_PORTS: Mapping[DatabaseKind, int] = {"mysql": 3306, "postgresql": 5432}
_KINDS: Mapping[str, DatabaseKind] = {"mysql": "mysql", "mariadb": "mysql", "postgresql": "postgresql"}


def parse_database(ingest: YamlNode) -> DatabaseSettings | None:
    """The `database:` of an `ingest:` block. Raises ProjectError where it is wrong."""
    node = ingest.get("database")
    if node is None:
        return None
    DATABASE.check(node)
    values = DATABASE.read(node)
    settings = read_address(str(values["url"]))
    if settings is None:
        raise node.children["url"].error(
            "url is not the address of a database", "write it as mysql://user@host:port/database, or postgresql://…"
        )
    tables = values["tables"]
    for pattern in cast(list[str], tables or []):
        try:
            compile_pattern(pattern)
        except PatternError as error:
            raise node.children["tables"].error(f"{pattern!r} is not a regular expression: {error}") from error
    options = cast(Mapping[str, object], values["options"] or {})
    password = cast(str | None, values["password"]) or settings.password
    learn(password)
    return DatabaseSettings(
        **{name: getattr(settings, name) for name in ("kind", "host", "port", "user", "database")},
        password=password,
        tables=None if tables is None else tuple(cast(list[str], tables)),
        keep_days=cast(int, values["keep_days"]),
        rows_per_query=cast(int, values["rows_per_query"]),
        options={key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()},
        declared_at=node.children["url"].location,
        verify=_schedule(node.get("verify")),
    )


def _schedule(node: YamlNode | None) -> ComparisonSchedule | None:
    if node is None:
        return None
    values = VERIFY.read(node)
    every = seconds_of(str(values["every"]))
    if not every:
        raise node.children["every"].error("every must be more than zero", "write it as: 24 hours")
    share, most = cast(float, values["share"]), cast(int | None, values["max_rows_per_second"])
    return ComparisonSchedule(every, share / 100, most)


def read_address(url: str) -> DatabaseSettings | None:
    """The database of an address; None where it is none.

    >>> read_address("mysql://me@db.example/shop")
    DatabaseSettings(kind='mysql', host='db.example', port=3306, user='me', database='shop')
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    kind, database = _KINDS.get(parts.scheme.partition("+")[0]), unquote(parts.path.strip("/"))
    if kind is None or not parts.hostname or not database or "/" in database:
        return None
    user = unquote(parts.username or {"mysql": "root", "postgresql": "postgres"}[kind])
    password = None if parts.password is None else unquote(parts.password)
    return DatabaseSettings(kind, parts.hostname, port or _PORTS[kind], user, database, password)
