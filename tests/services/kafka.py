"""A real Kafka broker for tests: one JVM in KRaft mode on a free port, its jars fetched like the project's own."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import tomllib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlmesh_like.engine.jars import Jar, ensure_jars
from sqlmesh_like.engine.java import find_jdk

_LOCK = Path(__file__).parent / "kafka.lock.toml"
_START_SECONDS = 120


def broker_jars() -> tuple[Path, ...]:
    """The broker's jars in the user's cache. Raises MachineError where they cannot be fetched."""
    found = tomllib.loads(_LOCK.read_text(encoding="utf-8"))["jar"]
    return ensure_jars(tuple(Jar(**entry) for entry in found))


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """A broker with its data in `folder`, while the context is open; its `host:port`."""
    port, control = _free_port(), _free_port()
    java = [str(find_jdk().home / "bin" / "java"), "-Xmx384m", "-cp", os.pathsep.join(map(str, broker_jars()))]
    settings = folder / "server.properties"
    settings.write_text(_settings(folder, port, control), encoding="utf-8")
    identity = _identity()
    storage = [*java, "kafka.tools.StorageTool", "format", "-t", identity, "-c", str(settings)]
    with (folder / "broker.log").open("wb") as log:
        subprocess.run(storage, check=True, stdout=log, stderr=log, timeout=_START_SECONDS)
        process = subprocess.Popen([*java, "kafka.Kafka", str(settings)], stdout=log, stderr=log)
        try:
            _wait_for(port, process)
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=60)


def _settings(folder: Path, port: int, control: int) -> str:
    return f"""
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{control}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={folder / "data"}
num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


def _identity() -> str:
    """A cluster's id as Kafka spells it: 16 bytes in URL-safe base64 without padding, no dash first."""
    import base64

    return base64.urlsafe_b64encode(uuid.UUID(int=0x1234567890ABCDEF1234567890ABCDEF).bytes).decode().rstrip("=")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    limit = time.monotonic() + _START_SECONDS
    while time.monotonic() < limit:
        if process.poll() is not None:
            raise RuntimeError(f"the broker ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError("the broker does not answer")
