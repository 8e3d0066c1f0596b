"""Settings of Kafka's client for Java as those of librdkafka. Owns which of them certainly mean the same.

Options: https://kafka.apache.org/35/documentation.html#consumerconfigs and
https://github.com/confluentinc/librdkafka/blob/v2.5.0/CONFIGURATION.md
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlmesh_like.cdc.in_process.values import NotProvenError

_BROKERS = re.compile(r"[A-Za-z0-9.-]+:[0-9]{1,5}(?:,[A-Za-z0-9.-]+:[0-9]{1,5})*")
_IGNORED = {
    # Spark's own, which say how it divides, repeats and waits, or what is a failure of its own
    *("minPartitions", "failOnDataLoss", "includeHeaders"),
    # the client's, which say when it fetches how much
    *("client.id", "request.timeout.ms", "default.api.timeout.ms", "session.timeout.ms", "heartbeat.interval.ms"),
    *("max.poll.records", "max.poll.interval.ms", "fetch.min.bytes", "fetch.max.wait.ms", "fetch.max.bytes"),
    *("max.partition.fetch.bytes", "receive.buffer.bytes", "send.buffer.bytes", "connections.max.idle.ms"),
    *("metadata.max.age.ms", "retry.backoff.ms", "reconnect.backoff.ms", "reconnect.backoff.max.ms", "check.crcs"),
}
"""Options without a part in which messages are read."""
_TRUSTED = {"ssl.truststore.location": "ssl.ca.location", "ssl.truststore.certificates": "ssl.ca.pem"}
_OWN = {
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.key.password": "ssl.key.password",
}
_LOGINS = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_LOGIN = re.compile(r'\s*([\w.]+)\s+required((?:\s+[\w.]+\s*=\s*"[^"\\]*")+)\s*;\s*')
_ENTRY = re.compile(r'([\w.]+)\s*=\s*"([^"\\]*)"')


def librdkafka_settings(settings: Mapping[str, object]) -> dict[str, str]:
    """The settings for a source's `kafka:` block. Raises NotProvenError, which names an option and never its value.

    >>> librdkafka_settings({"bootstrap_servers": "a:9092", "options": {"request.timeout.ms": 5, "client.rack": "b"}})
    {'bootstrap.servers': 'a:9092', 'client.rack': 'b'}
    """
    brokers = str(settings["bootstrap_servers"]).strip()
    if not _BROKERS.fullmatch(brokers):
        raise NotProvenError("the addresses in bootstrap_servers have another form than host:port")
    options = _client_options(settings.get("options"))
    result = {"bootstrap.servers": brokers}
    if rack := options.pop("client.rack", ""):
        result["client.rack"] = rack
    protocol = options.pop("security.protocol", "PLAINTEXT")
    if protocol not in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"):
        raise _uncertain("security.protocol")
    if protocol != "PLAINTEXT":
        result["security.protocol"] = protocol
    if protocol.startswith("SASL"):
        result |= _login(options)
    if protocol.endswith("SSL"):
        result |= _encryption(options)
    if options.pop("isolation.level", "read_uncommitted") != "read_uncommitted":
        raise _uncertain("isolation.level")
    if options:
        raise _uncertain(min(options))
    return result


def _client_options(given: object) -> dict[str, str]:
    """Options that matter, by their names in the client."""
    result: dict[str, str] = {}
    for name, value in given.items() if isinstance(given, Mapping) else ():
        own = str(name).removeprefix("kafka.")
        if own in _IGNORED:
            continue
        if own in result or not isinstance(value, str):
            raise _uncertain(own)
        result[own] = value
    return result


def _login(options: dict[str, str]) -> dict[str, str]:
    mechanism = options.pop("sasl.mechanism", "GSSAPI")
    login = _LOGIN.fullmatch(options.pop("sasl.jaas.config", ""))
    if login is None or _LOGINS.get(mechanism) != login[1]:
        raise _uncertain("sasl.jaas.config")
    entries = _ENTRY.findall(login[2])
    if sorted(name for name, _ in entries) != ["password", "username"]:
        raise _uncertain("sasl.jaas.config")
    known = dict(entries)
    return {"sasl.mechanism": mechanism, "sasl.username": known["username"], "sasl.password": known["password"]}


def _encryption(options: dict[str, str]) -> dict[str, str]:
    """Certificates in PEM. Without a trust store of its own, Java trusts others than the system does."""
    checks = {"https": "https", "": "none"}
    check = checks.get(options.pop("ssl.endpoint.identification.algorithm", "https"))
    trusted = {own: options.pop(name) for name, own in _TRUSTED.items() if name in options}
    if check is None or options.pop("ssl.truststore.type", None) != "PEM" or len(trusted) != 1:
        raise _uncertain("ssl.truststore.type")
    result = {"ssl.endpoint.identification.algorithm": check, **trusted}
    own = {name: options.pop(option) for option, name in _OWN.items() if option in options}
    if own and options.pop("ssl.keystore.type", None) != "PEM":
        raise _uncertain("ssl.keystore.type")
    return {**result, **own}


def _uncertain(option: str) -> NotProvenError:
    return NotProvenError(f"the option {option} of Kafka, which only Spark's client certainly follows as it is set")
