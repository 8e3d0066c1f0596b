"""`sml lsp`: the language server that editors start. Owns the command."""

from __future__ import annotations

import click

from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.cli.context import TerminalReporter
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.errors import MachineError


@click.command("lsp")
@shared_options
def command(flags: Flags) -> None:
    """Serve an editor over standard input and output by the Language Server Protocol until the editor ends.

    Completes refs, sources, columns, macros and config keys, goes to definitions, shows columns and strategy on
    hover, and marks the errors of `compile` in files as they are saved. Needs pip install 'sqlmesh_like[lsp]'.
    """
    try:
        from sqlmesh_like.cli.language_server.server import serve_editor
    except ImportError as error:
        hint = "pip install 'sqlmesh_like[lsp]'"
        raise MachineError("the language server's library, pygls, is not installed", hint=hint) from error
    serve_editor(lambda: load(flags, reporter=TerminalReporter(flags), broken=True))
