"""Connections to DuckDB. Owns what they may access: no other module opens one.

Untrusted text (a model in a pull request, a fixture, a unit test) runs in a `sandbox`: no files, no other
database, no Python variables, no extensions, bounded memory, and a configuration that no statement can change.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from threading import Timer
from typing import Protocol, TypeVar
from uuid import uuid4

import duckdb

from sqlmesh_like.errors import NodeError
from sqlmesh_like.sql_text import standard_literal

_PLAIN: dict[str, str] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    # In DuckDB 2.0.0, of two equal subqueries without rows one keeps the statistics of the other: a sum of 1 was
    # compared with 0 as if it were 0 (`tests/unit/duckdb/test_connections.py`).
    "disabled_optimizers": "common_subplan",
}
Key = TypeVar("Key", contravariant=True)
_MEMORY = "1GB"
SECONDS = 60.0
"""Time limit of an untrusted query, in seconds: ample for the handwritten rows that it reads."""
ANSWERS = ["SET GLOBAL TimeZone = 'UTC'", "SET GLOBAL ieee_floating_point_ops = false"]
"""What a sandbox begins with: its zone, and no infinity for x / 0, which is NULL in Spark without ANSI."""


class _Instances(Protocol[Key]):
    """Instances by what they are made of, and by process."""

    def __call__(self, key: Key, process: int, /) -> duckdb.DuckDBPyConnection: ...

    def cache_clear(self) -> None: ...


def sandbox(threads: int = 1, memory_limit: str = _MEMORY) -> duckdb.DuckDBPyConnection:
    """A database in memory for untrusted text."""
    return _connect_locked({"threads": str(threads), "memory_limit": memory_limit, "temp_directory": ""}, ())


class Workspace:
    """An empty database of its own in an instance that the process keeps, gone when it is closed.

    To start an instance takes ten times as long as to add a database to it. What runs in it says `schema.table`, and
    finds its own; settings are locked and the same for all; the memory is the instance's.
    """

    def __init__(self, instance: duckdb.DuckDBPyConnection) -> None:
        self._instance, self._name = instance, f"workspace_{uuid4().hex}"
        self.connection = instance.cursor()
        self.connection.execute(f"ATTACH ':memory:' AS {self._name}; USE {self._name}")

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """Another connection to this database."""
        cursor = self._instance.cursor()
        cursor.execute(f"USE {self._name}")
        return cursor

    def close(self) -> None:
        self.connection.close()
        with suppress(duckdb.Error):
            self._instance.cursor().execute(f"DETACH {self._name}")


@contextmanager
def workspace(threads: int = 1) -> Iterator[duckdb.DuckDBPyConnection]:
    """An empty sandbox that is gone afterwards."""
    space = _workspace_in(_instance, threads)
    try:
        yield space.connection
    finally:
        space.close()


def _workspace_in(instance_of: _Instances[Key], key: Key) -> Workspace:
    try:
        return Workspace(instance_of(key, os.getpid()))
    except duckdb.Error:  # after an internal error an instance refuses all that follows
        instance_of.cache_clear()
        return Workspace(instance_of(key, os.getpid()))


@cache
def _instance(threads: int, process: int) -> duckdb.DuckDBPyConnection:  # noqa: ARG001
    """By process: one that was forked can neither use its parent's instance nor end it."""
    return sandbox(threads)


def reader(files: Sequence[str]) -> Workspace:
    """A database in memory for a user's query over these files and no others.

    What an instance may read is settled when it is locked, so only readers of the very same files share one: the data
    tests of one table.
    """
    from sqlmesh_like.hudi.storage import range_files

    if range_files() is not None:  # what they read of stores is what they were opened with
        return Workspace(_connect_locked({"threads": "1"}, files))
    return _workspace_in(_reading_instance, tuple(files))


@lru_cache(maxsize=4)
def _reading_instance(files: tuple[str, ...], process: int) -> duckdb.DuckDBPyConnection:  # noqa: ARG001
    """It reads each file anew for each query, as an instance of its own would."""
    return _connect_locked({"threads": "1", "enable_external_file_cache": "false"}, files)


def _connect_locked(config: dict[str, str], files: Sequence[str]) -> duckdb.DuckDBPyConnection:
    db = duckdb.connect(":memory:", config={**_PLAIN, **config})
    db.execute("; ".join(ANSWERS))
    if files:
        _show_stores(db)
        listed = ", ".join(standard_literal(str(file)) for file in files)
        db.execute(f"SET allowed_paths = [{listed}]")
    db.execute("SET enable_external_access = false; SET lock_configuration = true")
    return db


def file_worker(
    memory_limit: str | None = None, scratch: str | None = None, *, keeps_order: bool = True
) -> duckdb.DuckDBPyConnection:
    """A database in memory that reads and writes files, for our own SQL only, which contains no text of a user."""
    config = {"memory_limit": memory_limit, "temp_directory": scratch}
    db = duckdb.connect(":memory:", config={**_PLAIN, **{name: v for name, v in config.items() if v is not None}})
    _show_stores(db)
    db.execute(f"SET GLOBAL TimeZone = 'UTC'; SET preserve_insertion_order = {str(keeps_order).lower()}")
    db.execute("SET lock_configuration = true")
    return db


@contextmanager
def failing_reads(what: str) -> Iterator[None]:
    """Raise NodeError where DuckDB cannot read the files of a table, e.g. because another process cleaned them."""
    try:
        yield
    except duckdb.Error as error:
        raise NodeError(f"{what} cannot be read: {error}", hint="run the same command again") from error


def _show_stores(db: duckdb.DuckDBPyConnection) -> None:
    """Let a database read files of stores, where a warehouse of this process is on one."""
    from sqlmesh_like.hudi.storage import range_files  # a sandbox reads no files, and imports nothing that does

    if (files := range_files()) is not None:
        db.register_filesystem(files)


def database(path: str) -> duckdb.DuckDBPyConnection:
    """The database in a file, for our own SQL."""
    db = duckdb.connect(path, config=dict(_PLAIN))
    db.execute("SET GLOBAL TimeZone = 'UTC'; SET lock_configuration = true")
    return db


@contextmanager
def time_limit(db: duckdb.DuckDBPyConnection, seconds: float = SECONDS) -> Iterator[None]:
    """Interrupt what runs on a connection after so many seconds and raise NodeError."""
    timer = Timer(seconds, db.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    except duckdb.InterruptException:
        hint = "a target of type spark has no such limit"
        raise NodeError(f"DuckDB: this takes longer than {seconds:g} s", hint=hint) from None
    finally:
        timer.cancel()
        timer.join()  # a thread that is still running when Python exits would crash the process
