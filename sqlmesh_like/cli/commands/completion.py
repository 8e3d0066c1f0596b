"""`sml completion`: scripts with which shells complete commands, flags and nodes. The scripts are click's."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from sqlmesh_like.cli.printing.writer import echo
from sqlmesh_like.errors import MachineError

COMPLETION_VARIABLE = "_SML_COMPLETE"
_FILES = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/completions/sml.fish"}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_FILES)))
def command(shell: str) -> None:
    """Print the completion script of a shell.

    For bash and zsh, put `eval "$(sml completion bash)"` (or zsh) into ~/.bashrc or ~/.zshrc. For fish:
    sml completion fish > ~/.config/fish/completions/sml.fish
    """
    made = get_completion_class(shell)
    assert made is not None
    try:
        echo(made(click.Command("sml"), {}, "sml", COMPLETION_VARIABLE).source())
    except RuntimeError as error:  # click checks the version of the installed bash
        raise MachineError(str(error), hint="bash 4.4 or newer completes; zsh and fish of any age do") from error
