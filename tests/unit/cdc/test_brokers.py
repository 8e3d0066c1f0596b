"""A Kafka that is not there is told before Spark starts, which these tests could not import."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from sqlmesh_like.app.setup.doctor import CheckRequest, run_checks
from sqlmesh_like.cli.app import main
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """A port at which the first request is answered."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.recv(100)
                connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


@pytest.fixture
def port() -> Iterator[int]:
    """One at which a broker answers: the length of its answer, and the number of the request."""
    with answering(bytes([0, 0, 0, 10, 0, 0, 0, 1])) as port:
        yield port


@pytest.fixture
def closed() -> Iterator[int]:
    """One that is taken, so that no other process gets it, but at which nobody listens."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        yield server.getsockname()[1]


def write(root: Path, monkeypatch: pytest.MonkeyPatch, servers: str) -> None:
    files = {
        "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
        "profiles.yml": "lake: {target: a, outputs: {a: {type: spark, warehouse: w}}}\n",
        "models/s.yml": "sources:\n  - name: shop\n    ingest:\n      format: debezium\n"
        "      kafka:\n        topics: t\n"
        f"        bootstrap_servers: {servers}\n    tables:\n      - {{name: o, ingest: {{primary_key: [id]}}}}\n",
        "models/o2.sql": "select id from {{ source('shop', 'o') }}",
    }
    enter_project(root, monkeypatch, files)


@pytest.mark.parametrize("words", [["ingest"], ["ingest", "--continuous"]])
def test_no_broker_is_an_error_at_its_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown, closed: int, words: list[str]
) -> None:
    write(tmp_path, monkeypatch, f"127.0.0.1:{closed}")
    assert main(words) == 2
    message = capsys.readouterr().err
    assert (
        f"models/s.yml:7:9: no broker answers at 127.0.0.1:{closed}\n  start it, or change bootstrap_servers" in message
    )


@pytest.mark.parametrize("host", ["a..b", "a" * 70 + ".example"])
def test_a_host_that_is_no_name_is_an_error_at_its_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown, host: str
) -> None:
    write(tmp_path, monkeypatch, f"{host}:9092")
    assert main(["ingest"]) == 2
    assert f"models/s.yml:7:9: no broker answers at {host}:9092" in capsys.readouterr().err


def test_brokers_that_are_silent_are_waited_for_five_seconds_in_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    waits: list[float] = []

    def silent(_address: tuple[str, int], timeout: float) -> socket.socket:
        waits.append(timeout)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", silent)
    write(tmp_path, monkeypatch, "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3")
    assert main(["ingest"]) == 2
    assert "no broker answers at 127.0.0.1:1, 127.0.0.1:2, 127.0.0.1:3" in capsys.readouterr().err
    assert len(waits) == 3 and sum(waits) <= 5


def test_one_broker_of_several_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: int, port: int
) -> None:
    write(tmp_path, monkeypatch, f"127.0.0.1:{closed},127.0.0.1:{port}")
    (check,) = [check for check in run_checks(CheckRequest(tmp_path)) if check.name == "kafka"]
    assert check.ok and check.detail == f"127.0.0.1:{port} answers, of source shop"


def test_a_protocol_in_front_of_the_host_is_ignored_as_kafka_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: int
) -> None:
    write(tmp_path, monkeypatch, f"PLAINTEXT://127.0.0.1:{port}")
    (check,) = [check for check in run_checks(CheckRequest(tmp_path)) if check.name == "kafka"]
    assert check.ok


def test_what_answers_but_is_not_kafka_is_no_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        write(tmp_path, monkeypatch, f"127.0.0.1:{port}")
        assert main(["ingest"]) == 2
    message = capsys.readouterr().err
    assert f"models/s.yml:7:9: no broker answers at 127.0.0.1:{port}\n  what answers is not Kafka" in message


def test_a_listener_with_tls_is_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(b"not for us") as port:
        write(tmp_path, monkeypatch, f"127.0.0.1:{port}\n        options: {{kafka.security.protocol: SASL_SSL}}")
        (check,) = [check for check in run_checks(CheckRequest(tmp_path)) if check.name == "kafka"]
    assert check.ok


def test_debug_asks_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: int) -> None:
    write(tmp_path, monkeypatch, f"127.0.0.1:{closed}")
    (check,) = [check for check in run_checks(CheckRequest(tmp_path)) if check.name == "kafka"]
    assert not check.ok and f"no broker answers at 127.0.0.1:{closed}" in check.detail
