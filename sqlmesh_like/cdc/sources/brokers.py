"""Whether a source's Kafka is reachable. Owns checking its brokers before Spark, which retries for minutes."""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Mapping, Sequence

from sqlmesh_like.errors import MachineError
from sqlmesh_like.project.nodes import Source

_ADDRESS = re.compile(r"\s*(?:[\w.%-]*://)?\[?(.+?)\]?:(\d+)\s*")
"""Kafka's client ignores a protocol in front of the host, e.g. `PLAINTEXT://`."""
_SECONDS = 5.0
_REQUEST = struct.pack(">ihhih3s", 13, 18, 0, 1, 3, b"sml")
"""Kafka's ApiVersions, version 0, with correlation id 1; brokers answer it before a client is authenticated.

Source: https://kafka.apache.org/protocol#The_Messages_ApiVersions
"""


def check_brokers(source: Source) -> str | None:
    """Return the first broker that answers; None where a source reads no Kafka or no address is a host and port.

    Raises MachineError within five seconds where none answers. One is enough, because it names the others.
    """
    kafka = (source.ingest.kafka if source.ingest is not None else None) or {}
    addresses = bootstrap_addresses(kafka.get("bootstrap_servers", ""))
    has_others = False
    for host, port in addresses:
        try:
            with socket.create_connection((host, port), timeout=_SECONDS / len(addresses)) as connection:
                if _is_encrypted(kafka) or _may_be_kafka(connection):
                    return f"{host}:{port}"
        except (OSError, UnicodeError):  # the latter for a host that is no name, e.g. `a..b`
            continue
        has_others = True
    if not addresses:
        return None
    assert source.ingest is not None
    hint = "start it, or change bootstrap_servers"
    if has_others:
        hint = "what answers is not Kafka: change bootstrap_servers, or set kafka.security.protocol if it expects TLS"
    raise MachineError(
        f"no broker answers at {', '.join(f'{host}:{port}' for host, port in addresses)}",
        location=source.ingest.declared_at or source.declared_at,
        hint=hint,
    )


def _is_encrypted(kafka: Mapping[str, object]) -> bool:
    options = kafka.get("options")
    protocol = options.get("kafka.security.protocol") if isinstance(options, Mapping) else None
    return "SSL" in str(protocol).upper()


def _may_be_kafka(connection: socket.socket) -> bool:
    """Whether what answers is Kafka's protocol; one that is silent, or closes, is left to Spark's consumer."""
    answer = b""
    try:
        connection.sendall(_REQUEST)
        while len(answer) < 8 and (part := connection.recv(8 - len(answer))):
            answer += part
    except OSError:
        return True
    return len(answer) < 8 or answer[4:] == b"\0\0\0\1"


def bootstrap_addresses(servers: object) -> Sequence[tuple[str, int]]:
    """Hosts and ports of `bootstrap_servers`.

    >>> bootstrap_addresses("a.example:9092, [::1]:9093"), bootstrap_addresses("somewhere")
    ([('a.example', 9092), ('::1', 9093)], [])
    >>> bootstrap_addresses("PLAINTEXT://a.example:9092")
    [('a.example', 9092)]
    """
    texts = map(str, servers) if isinstance(servers, list) else str(servers).split(",")
    return [(match[1], int(match[2])) for match in map(_ADDRESS.fullmatch, texts) if match]
