"""A proxy before a server of HTTP on loopback: it counts requests, delays them, and can make the first ones wait."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Proxy:
    """What has passed: method and path of each request.

    `copies`: paths of the files that a store was asked to copy; `passed`: of all other requests the path, and the bytes
    in them and in their answers. `together`: how many listings of timelines wait for one another.
    """

    port: int
    requests: list[tuple[str, str]] = field(default_factory=list)
    copies: list[str] = field(default_factory=list)
    passed: list[tuple[str, int]] = field(default_factory=list)
    delay: float = 0.0
    together: threading.Barrier | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def listings(self) -> list[str]:
        """Of timelines."""
        return [path for method, path in self.requests if method == "GET" and is_listing(path)]


def is_listing(path: str) -> bool:
    """Whether a request is for the names on a timeline."""
    return "list-type=" in path and "timeline" in path


@contextmanager
def proxy_of(port: int) -> Iterator[Proxy]:
    """A proxy of the server at this port, while the context is open."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            proxy.requests.append((self.command, self.path))
            if "x-amz-copy-source" in self.headers:
                proxy.copies.append(self.path)
            time.sleep(proxy.delay)
            if proxy.together is not None and is_listing(self.path):
                proxy.together.wait()
            with closing(http.client.HTTPConnection("127.0.0.1", port)) as server:
                server.request(self.command, self.path, body, dict(self.headers.items()))
                answer = server.getresponse()
                content = answer.read()
                if "x-amz-copy-source" not in self.headers:
                    proxy.passed.append((self.path, len(body) + len(content)))
                self.send_response_only(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                        self.send_header(name, value)
                length = answer.getheader("content-length") if self.command == "HEAD" else None
                self.send_header("content-length", length or str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = forward

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.daemon_threads = True
        proxy = Proxy(httpd.server_port)
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            httpd.shutdown()
            thread.join()
