"""The site over HTTP. Owns which files are served, to whom, and the headers that the page cannot set itself."""

from __future__ import annotations

import io
import re
import socket
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from sqlmesh_like.errors import MachineError
from sqlmesh_like.regular_files import read_regular

SITE, STATIC = "index.html", "static_index.html"


class _Site(SimpleHTTPRequestHandler):
    """Serves the site and dbt's artifacts, nothing else of the target folder: logs and compiled SQL stay private."""

    shown = frozenset({"", SITE, STATIC, "manifest.json", "catalog.json", "run_results.json", "sources.json"})

    def send_head(self) -> io.BytesIO | BinaryIO | None:
        if not is_own_host(self.headers.get("Host", "")):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return None
        name = self.path.partition("?")[0].strip("/")
        if name not in self.shown:
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        try:
            content = read_regular(Path(self.directory) / (name or SITE))  # a link might lead to any file
        except OSError:
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", self.guess_type(name or SITE))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        return io.BytesIO(content)

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        # The rest of the policy is in the page; frame-ancestors is ignored there.
        self.send_header("Content-Security-Policy", "frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Referrer-Policy", "no-referrer")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: a list of the site's requests is of no use to its reader."""


HOST = re.compile(r"[\w.-]+(:\d*)?|\[[\da-fA-F:.]+\](:\d*)?")
"""The form of a Host header: of others (`a/b`, `a#b`, `a@b`) two readers may find two hosts."""


def is_own_host(host: str) -> bool:
    """Whether a Host header names this server: not so in DNS rebinding, where another name is resolved to its address.

    >>> is_own_host("localhost:8080"), is_own_host("evil.example:8080")
    (True, False)
    """
    if not HOST.fullmatch(host):
        return False
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    try:
        ip_address(name)
    except ValueError:
        return name in ("localhost", socket.gethostname().lower())
    return True


def site_server(site: Path, host: str, port: int) -> ThreadingHTTPServer:
    """Return a server of the folder of a site. Raises MachineError where the address is not free."""
    try:
        return ThreadingHTTPServer((host, port), partial(_Site, directory=str(site.parent)))
    except OSError as error:
        hint = "choose another one with --port, or --port 0 for any that is free"
        raise MachineError(f"cannot listen at {host}:{port}: {error.strerror}", hint=hint) from error
