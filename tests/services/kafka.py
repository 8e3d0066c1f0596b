"""A real Kafka broker for tests: one JVM in KRaft mode on a free port, its jars fetched like the project's own."""

from __future__ import annotations

import base64
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.services.process import START_SECONDS, free_port, is_open, java, pinned, running


def broker_jars() -> tuple[Path, ...]:
    """The broker's jars in the user's cache. Raises MachineError where they cannot be fetched."""
    return pinned("kafka")


@contextmanager
def broker(folder: Path, password: str | None = None) -> Iterator[str]:
    """A broker with its data in `folder`, while the context is open; its `host:port`. `password`: of its user `sml`."""
    port, control = free_port(), free_port()
    command = java(broker_jars(), "-Xmx384m")
    settings, log = folder / "server.properties", folder / "broker.log"
    settings.write_text(_settings(folder, port, control) + _login(password), encoding="utf-8")
    storage = [*command, "kafka.tools.StorageTool", "format", "-t", _identity(), "-c", str(settings)]
    with log.open("wb") as out:
        subprocess.run(storage, check=True, stdout=out, stderr=out, timeout=START_SECONDS)
    with running([*command, "kafka.Kafka", str(settings)], log, lambda: is_open(port)):
        yield f"127.0.0.1:{port}"


def _settings(folder: Path, port: int, control: int) -> str:
    return f"""\
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


def _login(password: str | None) -> str:
    """Settings of a broker that wants a password of its clients and of itself; the last one of a name counts."""
    if password is None:
        return ""
    login = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="sml" password="{password}"'
    return f"""\
listener.security.protocol.map=PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.plaintext.plain.sasl.jaas.config={login} user_sml="{password}";
"""


def _identity() -> str:
    """A cluster's id as Kafka spells it: 16 bytes in URL-safe base64 without padding, no dash first."""
    return base64.urlsafe_b64encode(uuid.UUID(int=0x1234567890ABCDEF1234567890ABCDEF).bytes).decode().rstrip("=")


def create_topics(address: str, partitions: Mapping[str, int]) -> None:
    """Topics with these numbers of partitions."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    for created in admin.create_topics([NewTopic(*each, 1) for each in partitions.items()]).values():
        created.result()


def produce(
    address: str,
    *messages: tuple[str, int, str | bytes | None],
    transaction: bool | None = None,
    login: Mapping[str, str] | None = None,
) -> None:
    """Messages (topic, partition, value) in this order; in a `transaction`, which is committed or aborted."""
    identity = {} if transaction is None else {"transactional.id": uuid.uuid4().hex}
    producer = Producer({"bootstrap.servers": address, "log_level": 0, "linger.ms": 0, **identity, **(login or {})})
    if transaction is not None:
        producer.init_transactions()
        producer.begin_transaction()
    for topic, partition, value in messages:
        producer.produce(topic, value, key="k", partition=partition)
    assert producer.flush(START_SECONDS) == 0
    if transaction is not None:
        (producer.commit_transaction if transaction else producer.abort_transaction)()
