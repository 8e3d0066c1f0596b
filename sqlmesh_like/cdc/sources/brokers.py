"""Whether a source's Kafka is reachable. Owns checking its brokers before Spark, which retries for minutes."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence

from sqlmesh_like.errors import MachineError
from sqlmesh_like.project.nodes import Source

_ADDRESS = re.compile(r"\s*\[?(.+?)\]?:(\d+)\s*")
_SECONDS = 5.0


def check_brokers(source: Source) -> str | None:
    """Return the first broker that answers; None where a source reads no Kafka or no address is a host and port.

    Raises MachineError within five seconds where none answers. One is enough, because it names the others.
    """
    kafka = source.ingest.kafka if source.ingest is not None else None
    addresses = bootstrap_addresses("" if kafka is None else kafka["bootstrap_servers"])
    for host, port in addresses:
        try:
            socket.create_connection((host, port), timeout=_SECONDS / len(addresses)).close()
        except OSError:
            continue
        return f"{host}:{port}"
    if not addresses:
        return None
    assert source.ingest is not None
    raise MachineError(
        f"no broker answers at {', '.join(f'{host}:{port}' for host, port in addresses)}",
        location=source.ingest.declared_at or source.declared_at,
        hint="start it, or change bootstrap_servers",
    )


def bootstrap_addresses(servers: object) -> Sequence[tuple[str, int]]:
    """Hosts and ports of `bootstrap_servers`.

    >>> bootstrap_addresses("a.example:9092, [::1]:9093"), bootstrap_addresses("somewhere")
    ([('a.example', 9092), ('::1', 9093)], [])
    """
    texts = map(str, servers) if isinstance(servers, list) else str(servers).split(",")
    return [(match[1], int(match[2])) for match in map(_ADDRESS.fullmatch, texts) if match]
