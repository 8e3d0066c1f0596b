"""Debezium on Kafka Connect for tests: one standalone worker that reads a database into one Kafka topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import requests

from tests.services import postgres
from tests.services.kafka import broker_jars
from tests.services.mariadb import Server
from tests.services.process import free_port, java, pinned, running, unpacked


def connect_jars() -> tuple[Path, ...]:
    """The worker's jars in the user's cache. Raises MachineError where they cannot be fetched."""
    return (*pinned("connect"), *broker_jars())


def plugin(database: str) -> Path:
    """The folder of Debezium's connector for a database, unpacked in the user's cache. Raises MachineError."""
    return unpacked("debezium", database)


@contextmanager
def debezium(folder: Path, kafka: str, connector: Mapping[str, str], database: str) -> Iterator[str]:
    """A worker that runs one connector, while the context is open; the address of its REST interface."""
    port, name = free_port(), connector["name"]
    worker = {
        "bootstrap.servers": kafka,
        "listeners": f"http://127.0.0.1:{port}",
        "plugin.path": str(plugin(database)),
        "offset.storage.file.filename": str(folder / "connect.offsets"),
        "offset.flush.interval.ms": "1000",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        # Else a NULL in a column that has a default reads as the default.
        "value.converter.replace.null.with.default": "false",
    }
    files = [_properties(folder / "worker.properties", worker), _properties(folder / "connector.properties", connector)]
    main = "org.apache.kafka.connect.cli.ConnectStandalone"
    log, address = folder / "connect.log", f"http://127.0.0.1:{port}"
    command = [*java(connect_jars(), "-Xmx512m"), main, *map(str, files)]
    with running(command, log, lambda: _is_running(f"{address}/connectors/{name}/status")):
        yield address


def of_mariadb(server: Server, kafka: str, topic: str, database: str, **settings: str) -> dict[str, str]:
    """A connector that sends every table of a database to one topic; `settings` come over these (`_` for `.`)."""
    return {
        **_to_one_topic(topic),
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "database.port": str(server.port),
        "database.user": server.user,
        "database.password": "",
        "database.ssl.mode": "disable",
        "database.server.id": "4711",
        "database.include.list": database,
        "schema.history.internal.kafka.bootstrap.servers": kafka,
        "schema.history.internal.kafka.topic": "schema-history",
        "bigint.unsigned.handling.mode": "precise",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }


def of_postgres(server: postgres.Server, topic: str) -> dict[str, str]:
    """A connector that sends every table of a PostgreSQL server to one topic, by its own `pgoutput`."""
    return {
        **_to_one_topic(topic),
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.port": str(server.port),
        "database.user": server.user,
        "database.password": "",
        "database.dbname": "postgres",
        "plugin.name": "pgoutput",
    }


def _to_one_topic(topic: str) -> dict[str, str]:
    return {
        "name": "live",
        "tasks.max": "1",
        "database.hostname": "127.0.0.1",
        "topic.prefix": "live",
        "poll.interval.ms": "100",
        # Debezium leaves out truncates of its own accord.
        "skipped.operations": "none",
        "transforms": "one",
        "transforms.one.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.one.regex": "live.*",
        "transforms.one.replacement": topic,
    }


def _properties(path: Path, settings: Mapping[str, str]) -> Path:
    lines = (f"{name}={value}\n" for name, value in settings.items())
    path.write_text("".join(line.replace("\\", "\\\\") for line in lines), encoding="utf-8")
    return path


def _is_running(status: str) -> bool:
    try:
        answer = requests.get(status, timeout=30)
    except (requests.ConnectionError, requests.Timeout):
        return False
    answered = answer.json() if answer.ok else {}
    states = [answered.get("connector", {}).get("state"), *(task["state"] for task in answered.get("tasks", ()))]
    if "FAILED" in states:
        raise RuntimeError(f"the connector failed: {answered}")
    return len(states) > 1 and set(states) == {"RUNNING"}
