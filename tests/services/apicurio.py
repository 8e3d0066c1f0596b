"""A real schema registry for tests: Apicurio's application in a JVM of its own, with nothing on disk.

Confluent's is not in Maven's central repository; this one speaks its interface, and Debezium's documentation uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from sqlmesh_like.spark.jvm.java import find_jdk
from tests.services.process import free_port, running, unpacked


def application() -> Path:
    """The folder of the application, unpacked in the user's cache. Raises MachineError where it cannot be fetched."""
    return unpacked("apicurio", "app")


@contextmanager
def apicurio(folder: Path) -> Iterator[str]:
    """A registry while the context is open; the address of its native interface."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    (runner,) = application().glob("*-runner.jar")
    options = ["-Xmx384m", "-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={port}"]
    command = [str(find_jdk().home / "bin" / "java"), *options, "-jar", str(runner)]
    with running(command, folder / "apicurio.log", lambda: _answers(f"{ccompat(address)}/subjects")):
        yield address


def ccompat(address: str) -> str:
    """The address of the interface that is Confluent's."""
    return f"{address}/apis/ccompat/v7"


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=5).ok
    except (requests.ConnectionError, requests.Timeout):
        return False
