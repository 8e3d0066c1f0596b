"""`sml docs generate` and `sml docs serve`: the documentation site. Owns the commands; starts no JVM."""

from __future__ import annotations

import io
import socket
import webbrowser
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import click

from sqlmesh_like.app.operations.docs_content import catalog_of, lake_tables, site_content
from sqlmesh_like.artifacts.catalog import write_catalog
from sqlmesh_like.artifacts.files import write_compiled, write_text
from sqlmesh_like.artifacts.manifest import write_manifest
from sqlmesh_like.cli.context import load, make_output
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.activity import show_phase
from sqlmesh_like.docs.content import content
from sqlmesh_like.docs.libraries import site_libraries
from sqlmesh_like.docs.site import site_page
from sqlmesh_like.errors import MachineError, UsageError

SITE, STATIC = "index.html", "static_index.html"
_NO_LIBRARIES = (
    "this installation has no libraries to draw with, so the site lists its graph: "
    "install the package where npm and its registry are in reach, or run `make site-libraries` in its repository"
)


@click.group("docs")
def command() -> None:
    """Write the documentation site, or serve it."""


@command.command("generate")
@click.option("--no-compile", is_flag=True, help="Leave out strategies, delta programs and column lineage.")
@click.option("--empty-catalog", is_flag=True, help="Ask no lake: catalog.json is empty, the site knows no commits.")
@click.option("--static", is_flag=True, help="Write the site as static_index.html too, the name that dbt gives it.")
@shared_options
def generate(flags: Flags, no_compile: bool, empty_catalog: bool, static: bool) -> int:
    """Write one HTML file that needs nothing else, manifest.json and catalog.json. Starts no JVM.

    The file is <target-path>/index.html: models, columns, tests, SQL, delta programs, strategies with their reasons,
    the graph with column lineage, commits and the last run. It works from disk and asks nobody for anything.
    As in dbt a selection limits catalog.json alone. A model that cannot be compiled is there without its plan, with a
    warning, and the exit code is 1.
    """
    loaded = load(flags)
    output, folder = make_output(flags), loaded.target_folder
    show_phase("reading the tables' history")
    places, tables = (None, {}) if empty_catalog else lake_tables(loaded)
    for facts in tables.values():
        if facts.problem:
            output.line(f"warning: {facts.problem}", "warn")
    columns = catalog_of(loaded, tables)
    show_phase("compiling the models")
    site_data = site_content(loaded, tables, places, compiles=not no_compile)
    for error in site_data.errors.values():
        output.line(f"warning: {error.location}: {error.message}: the site has no plan of this model", "warn")
    libraries = site_libraries()
    if not libraries:
        output.line(f"warning: {_NO_LIBRARIES}", "warn")
    html = site_page(content(site_data), libraries)
    write_compiled(folder, loaded.rendered)
    write_manifest(folder / "manifest.json", loaded.project, loaded.manifest_text())
    write_catalog(folder / "catalog.json", columns)
    for name in (SITE, STATIC) if static else (SITE,):
        write_text(folder / name, html)
        output.line(f"Wrote {loaded.project.target_path}/{name} ({len(html.encode()) / 1000:,.0f} kB)")
    return 1 if site_data.errors else 0


@command.command("serve")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, help="Port; 0 takes any free one.")
@click.option("--host", default="127.0.0.1", help="Address to listen at; by default this machine alone.")
@click.option("--browser/--no-browser", default=True, help="Open the site in a browser.")
@shared_options
def serve(flags: Flags, port: int, host: str, browser: bool) -> None:
    """Serve the site that `sml docs generate` wrote, until stopped with Ctrl-C."""
    loaded, output = load(flags), make_output(flags)
    site = loaded.target_folder / SITE
    if not site.is_file():
        raise UsageError(f"there is no {loaded.project.target_path}/{SITE}", hint="run `sml docs generate` first")
    with _server(site, host, port) as server:
        address = f"http://{server.server_name if host == '0.0.0.0' else host}:{server.server_port}"
        show_phase("serving the site")
        try:
            output.line(f"Serving the site at {address}; Ctrl-C stops it")
            if browser:
                webbrowser.open(address)
            server.serve_forever()
        except KeyboardInterrupt:
            output.line("Stopped")


class _Site(SimpleHTTPRequestHandler):
    """Shows the site and dbt's artifacts, nothing else of the target folder: logs and compiled SQL stay private."""

    shown = frozenset({"", SITE, STATIC, "manifest.json", "catalog.json", "run_results.json", "sources.json"})

    def send_head(self) -> io.BytesIO | BinaryIO | None:
        if not is_own_host(self.headers.get("Host", "")):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return None
        name = self.path.partition("?")[0].strip("/")
        if name not in self.shown:
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        self.path = f"/{name or SITE}"
        return super().send_head()

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        # The page forbids itself the rest; this it cannot say of itself.
        self.send_header("Content-Security-Policy", "frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Referrer-Policy", "no-referrer")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: who looks at a site does not want its requests listed."""


def is_own_host(host: str) -> bool:
    """Whether a request names this server. A page elsewhere, whose name was made to lead here, names another.

    >>> is_own_host("localhost:8080"), is_own_host("evil.example:8080")
    (True, False)
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    try:
        ip_address(name)
    except ValueError:
        return name in ("localhost", socket.gethostname().lower())
    return True


def _server(site: Path, host: str, port: int) -> ThreadingHTTPServer:
    try:
        return ThreadingHTTPServer((host, port), partial(_Site, directory=str(site.parent)))
    except OSError as error:
        hint = "choose another one with --port, or --port 0 for any that is free"
        raise MachineError(f"cannot listen at {host}:{port}: {error.strerror}", hint=hint) from error
