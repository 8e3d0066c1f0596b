"""`sml docs generate` and `sml docs serve`: the documentation site. Owns the commands; starts no JVM."""

from __future__ import annotations

import webbrowser

import click

from sqlmesh_like.app.operations.docs_content import write_site
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, shared_options, within_limits
from sqlmesh_like.cli.printing.activity import show_phase
from sqlmesh_like.docs.server import SITE, site_server
from sqlmesh_like.errors import UsageError


@click.group("docs")
def command() -> None:
    """Write the documentation site, or serve it."""


@command.command("generate")
@within_limits
@click.option("--no-compile", is_flag=True, help="Leave out strategies, delta programs and column lineage.")
@click.option(
    "--empty-catalog", is_flag=True, help="Do not read the lake: catalog.json is empty, no commits are shown."
)
@click.option("--static", is_flag=True, help="Also write the site as static_index.html, as dbt does.")
@shared_options
def generate(flags: Flags, no_compile: bool, empty_catalog: bool, static: bool) -> int:
    """Write one HTML file that needs nothing else, manifest.json and catalog.json. Starts no JVM.

    The file is <target-path>/index.html: models, columns, tests, SQL, delta programs, strategies with their reasons,
    the graph with column lineage, commits and the last run. It works from disk and makes no requests.
    As in dbt, a selection limits only catalog.json. A model that cannot be compiled is shown without its plan; there is
    a warning, and the exit code is 1.
    """
    loaded, output = open_project(flags), make_output(flags)
    site = write_site(loaded, compiles=not no_compile, asks_lake=not empty_catalog, static=static)
    for warning in site.warnings:
        output.line(f"warning: {warning}", "warn")
    for name in site.files:
        output.line(f"Wrote {loaded.project.target_path}/{name} ({site.size / 1000:,.0f} kB)")
    return 1 if site.is_incomplete else 0


@command.command("serve")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, help="Port; 0 takes any free one.")
@click.option("--host", default="127.0.0.1", help="Address to listen on; by default only this machine.")
@click.option("--browser/--no-browser", default=True, help="Open the site in a browser.")
@shared_options
def serve(flags: Flags, port: int, host: str, browser: bool) -> None:
    """Serve the site that `sml docs generate` wrote, until stopped with Ctrl-C."""
    loaded, output = open_project(flags), make_output(flags)
    site = loaded.target_folder / SITE
    if not site.is_file():
        raise UsageError(f"there is no {loaded.project.target_path}/{SITE}", hint="run `sml docs generate` first")
    with site_server(site, host, port) as server:
        address = f"http://{server.server_name if host == '0.0.0.0' else host}:{server.server_port}"
        show_phase("serving the site")
        try:
            output.line(f"Serving the site at {address}; Ctrl-C stops it")
            if browser:
                webbrowser.open(address)
            server.serve_forever()
        except KeyboardInterrupt:
            output.line("Stopped")
