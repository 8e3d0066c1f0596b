"""`/health` and `/metrics` of a watch over HTTP. Owns the server; `watch_status` owns the contents."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

from prometheus_client import CONTENT_TYPE_LATEST

from sqlmesh_like.app.monitoring.watch_status import WatchStatus
from sqlmesh_like.control_characters import escape_json
from sqlmesh_like.docs.server import HOST, is_own_host
from sqlmesh_like.errors import MachineError, UsageError
from sqlmesh_like.secrets import scrub_text


def parse_address(text: str) -> tuple[str, int]:
    """Return host and port; the default host accepts connections of this machine only. Raises UsageError.

    >>> parse_address("9100"), parse_address("0.0.0.0:9100"), parse_address("[::1]:9100")
    (('127.0.0.1', 9100), ('0.0.0.0', 9100), ('::1', 9100))
    """
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--listen {text!r} is not [HOST:]PORT", hint="e.g. --listen 9100, or --listen 0.0.0.0:9100")
    return host.strip("[]") or "127.0.0.1", int(port)


@contextmanager
def serve_status(status: WatchStatus, address: tuple[str, int] | None) -> Iterator[int | None]:
    """Serve while the context is open; yields the port, which the system chooses for 0. Raises MachineError."""
    if address is None:
        yield None
        return
    try:
        server = ThreadingHTTPServer(address, _handler(status))
    except OSError as error:
        message = f"cannot listen on {address[0]}:{address[1]}: {error.strerror or error}"
        raise MachineError(message, hint="give --listen another port") from error
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, name="status", daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


_LOCAL = (".local", ".internal", ".svc", ".lan", ".localdomain", ".localhost", ".home.arpa")
"""Ends of names that no public name server answers for."""


def is_near_host(host: str) -> bool:
    """Whether a Host header has a name of this machine or of its own network: others are used for DNS rebinding.

    >>> [is_near_host(host) for host in ("10.0.0.7:9100", "watch:9100", "watch.shop.svc.cluster.local", "evil.example")]
    [True, True, True, False]
    """
    if is_own_host(host):
        return True
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".") if HOST.fullmatch(host) else ""
    except ValueError:
        return False
    return bool(name) and ("." not in name or name.endswith(_LOCAL) or name == socket.getfqdn().lower())


def _handler(status: WatchStatus) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10  # seconds that a client may take to send its request

        def do_GET(self) -> None:
            if not is_near_host(self.headers.get("Host", "")):
                self._answer(421, "text/plain", b"this is not a name of this machine\n")
                return
            match self.path.partition("?")[0]:
                case "/health":
                    health = status.health()
                    known = {
                        "status": "ok" if health.is_healthy else "failing",
                        "problems": health.problems,
                        "started": health.started,
                        "seconds_since_sign_of_life": round(health.seconds_since_sign, 1),
                        "comparisons": {table: asdict(record) for table, record in health.comparisons.items()},
                    }
                    content = escape_json(scrub_text(json.dumps(known, ensure_ascii=False))).encode()
                    self._answer(200 if health.is_healthy else 503, "application/json", content)
                case "/metrics":
                    self._answer(200, CONTENT_TYPE_LATEST, status.text())
                case _:
                    self._answer(404, "text/plain", b"/health or /metrics\n")

        def _answer(self, code: int, kind: str, content: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:
            """Log nothing: requests do not belong in the output of a watch."""

    return Handler
