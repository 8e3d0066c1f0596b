"""The command `sml`. Owns the list of commands, exit codes, and how errors are reported to the user.

Commands are imported when they are called: `sml --help` uses only the table below and starts immediately.
"""

from __future__ import annotations

import gc
import importlib
import os
import re
import sys
import traceback
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from sqlmesh_like import __version__, stop_signals
from sqlmesh_like.cli.dbt_variables import variable, variable_of
from sqlmesh_like.cli.examples import COMMAND_EXAMPLES
from sqlmesh_like.cli.help import GroupedContext, command_groups
from sqlmesh_like.cli.options import global_options, spread
from sqlmesh_like.cli.printing.json_log import json_line
from sqlmesh_like.cli.printing.source_excerpt import with_source
from sqlmesh_like.cli.printing.writer import echo, echo_styled, plain_streams, style_text
from sqlmesh_like.control_characters import escape_lines
from sqlmesh_like.errors import SmlError, nearest
from sqlmesh_like.fault_points import check_variable
from sqlmesh_like.remedies import remedy
from sqlmesh_like.secrets import scrubbing

COMMANDS = {
    "init": "Make a new project that runs as it is.",
    "debug": "Check project, profile, JDK, jars, warehouse and catalog.",
    "deps": "Fetch packages and the pinned jars.",
    "package": "Make one archive that runs on a cluster.",
    "parse": "Read the project and write manifest.json.",
    "import-check": "Report what becomes of a dbt project here.",
    "compile": "Render every model's SQL into the target folder.",
    "lint": "Report likely mistakes in the models.",
    "ls": "List the nodes of the project.",
    "explain": "Show the plan: strategy, reasons, pending change.",
    "plan": "Show what a run in an environment would make.",
    "ingest": "Ingest the pending events.",
    "seed": "Load the seeds.",
    "run": "Update the models.",
    "snapshot": "Keep the versions of rows.",
    "test": "Run data tests and unit tests.",
    "build": "Seeds, models and tests in the order of the graph.",
    "publish": "Send tables to the databases that people query.",
    "watch": "Ingestion and models in one process, until stopped.",
    "retry": "Run again what failed in the last call.",
    "diff": "Show what changed since --state, or rows of an environment.",
    "show": "Print the rows of a model.",
    "sql": "Print the rows of a SELECT over all tables.",
    "changes": "Print what changed in a table since a commit.",
    "verify": "Compare tables, or a sample of their keys, with a recompute.",
    "freshness": "Report stale sources.",
    "source": "source freshness: the same under dbt's name.",
    "history": "Show a table's commits.",
    "ddl": "Print the DDL of an external table for Hive or Athena.",
    "maintain": "Compact tables and remove history that nothing needs.",
    "locks": "List who holds which tables, since when.",
    "unlock": "End locks of a table on an object store.",
    "release": "See, keep and return to commits that belong together.",
    "env": "List and drop environments.",
    "promote": "Make an environment production.",
    "savepoint": "Keep a table's commit to return to.",
    "rollback": "Bring a table back to an earlier commit.",
    "repair": "Make a broken table right again.",
    "forget": "Erase rows of a source from the lake, and prove it.",
    "docs": "Write the documentation site, or serve it.",
    "report": "Write a page with charts of the tables.",
    "lineage": "Show where columns come from.",
    "schema": "Print the JSON Schema of the project's YAML for editors.",
    "lsp": "Answer an editor: completion, definitions, what is wrong.",
    "completion": "Print the completion script for bash, zsh or fish.",
    "run-operation": "Call a macro.",
    "clean": "Remove what earlier commands wrote into the project.",
}


_BELOW = (
    "generate",
    "serve",
    "freshness",
    "create",
    "list",
    "delete",
    "drop",
    "show",
    "diff",
    "rollback",
    "hold",
    "unhold",
)
"""Subcommands, which get the flags before the command as well."""


class LazyGroup(click.Group):
    """Imports a command's module `cli.commands.<name>` when it is called, and returns its attribute `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        name = {"list": "ls"}.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"sqlmesh_like.cli.commands.{name.replace('-', '_')}")
        command = module.command
        assert isinstance(command, click.Command)
        _with_help(command, name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in (*COMMANDS, "list") and not args[0].startswith("-"):
            hint = nearest(args[0], COMMANDS) or f"known commands: {', '.join(COMMANDS)}"
            raise click.UsageError(f"no such command {args[0]!r}: {hint}", ctx)
        name, command, rest = super().resolve_command(ctx, args)
        return name, command, spread(rest)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return commands with their help from the table: pressing Tab imports no command's module."""
        items = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands before the options: they are what users look for."""
        for heading, rows in command_groups(COMMANDS):
            with formatter.section(heading):
                formatter.write_dl(rows)
        click.Command.format_options(self, ctx, formatter)


def _with_help(command: click.Command, words: str) -> None:
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            _with_help(below, f"{words} {name}")
    else:
        command.epilog = f"Example: {COMMAND_EXAMPLES[words]}"
        command.context_class = GroupedContext


def _pass_on(**given: object) -> None:
    """Make flags before the command the defaults of the same flags after it."""
    context = click.get_current_context()
    chosen = {
        name: value
        for name, value in given.items()
        if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
    }
    context.default_map = {name: {**chosen, **dict.fromkeys(_BELOW, chosen)} for name in [*COMMANDS, "list"]}


def build_app() -> click.Group:
    """Return the group of all commands."""
    version = click.version_option(__version__, "--version", prog_name="sml")
    group = LazyGroup(
        name="sml",
        callback=_pass_on,
        params=global_options(),
        help="Write a SELECT; its Hudi table stays exactly equal to it, at a cost that follows the change.",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    app = version(group)
    assert isinstance(app, click.Group)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `sml` and return its exit code: 0 success, 1 a node or comparison failed, 2 an invalid call or project, 130
    and 143 stopped by Ctrl-C and SIGTERM."""
    _open_streams()
    # Most objects live to the end of a call: at the default threshold of 700, collections take a third of the time.
    gc.set_threshold(50_000, 20, 20)
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        text = "stopping after this commit … (again: at once)"
        at_signal = json_line("warn", text) if _is_json(words) else text
        with scrubbing(), plain_streams(), stop_signals.handle_signals(f"{at_signal}\n"):
            code = _run_command(words)
            return stop_signals.exit_code() or code
    except KeyboardInterrupt:  # after the end of the call
        return stop_signals.note_interrupt()


def _open_streams() -> None:
    """Discard what is written to a stream that the caller closed (`sml ls >&-`): Python has None in its place.

    The number of a closed stream would be given to the next file that is opened, which child processes then write to.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 (until the process ends)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 (until the process ends)


def _run_command(words: list[str]) -> int:
    try:
        check_variable()
        result: object = build_app().main(words, prog_name="sml", standalone_mode=False)
    except click.ClickException as error:
        _print_click_error(error, words)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _print_error("interrupted", words)
        return stop_signals.note_interrupt()
    except SmlError as error:
        _print_error(str(error) if _is_json(words) else with_source(error, _project_folder(words)), words)
        return error.exit_code
    except (RecursionError, MemoryError) as error:
        if "--debug" in words:
            return _print_unexpected(error, words)
        what = "something is nested too deep" if isinstance(error, RecursionError) else "there is not enough memory"
        _print_error(f"{what}\n  add --debug to see where it comes from", words)
        return 2
    except BrokenPipeError:  # the reader of our output, such as `head`, has closed it
        sys.stderr.close()
        return 0
    except OSError as error:
        hint = remedy(error, "the same command again")
        if hint is None or "--debug" in words:
            return _print_unexpected(error, words)
        _print_error(f"{error.filename or 'the output'}: {error.strerror}\n  {hint}", words)
        return 1
    except Exception as error:  # noqa: BLE001 (a last resort: tracebacks are only for --debug)
        return _print_unexpected(error, words)
    return result if isinstance(result, int) and not isinstance(result, bool) else 0


def _print_click_error(error: click.ClickException, words: Sequence[str]) -> None:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return
    if isinstance(error, click.BadParameter) and (name := variable_of(error.ctx, error.param)):
        error.param_hint = repr(name)
    # A line with the nearest of the values that an option takes; click names them all.
    given = re.match(r"'(.*?)' is not one of ", error.message) if isinstance(error, click.BadParameter) else None
    kind = error.param.type if isinstance(error, click.BadParameter) and error.param else None
    hint = nearest(given[1], map(str, kind.choices)) if given and isinstance(kind, click.Choice) else None
    near = f"\n  {hint}" if hint else ""
    path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "sml"
    _print_error(f"{error.format_message()}{near}\n  see: {path} --help", words)


def _print_unexpected(error: Exception, words: Sequence[str]) -> int:
    if "--debug" in words:
        echo("".join(traceback.format_exception(error)).rstrip(), err=True)
        return 1
    first_line = (str(error).strip().splitlines() or [""])[0]
    _print_error(f"unexpected {type(error).__name__}: {first_line}\n  add --debug to see where it comes from", words)
    return 1


def _is_json(words: Sequence[str]) -> bool:
    formats = _values(words, "--log-format") or [variable("log-format") or "text"]
    return "json" in (*formats, *_values(words, "--output"))


def _project_folder(words: Sequence[str]) -> Path:
    """Return the folder in which the call looks for its project."""
    given = _values(words, "--project-dir") or [variable("project-dir") or ""]
    return Path(given[-1])


def _values(words: Sequence[str], flag: str) -> list[str]:
    """Return the values of a flag, before click has read the words.

    >>> _values(["show", "json", "--output=csv", "--output", "json"], "--output")
    ['csv', 'json']
    """
    attached = [word.partition("=")[2] for word in words if word.startswith(f"{flag}=")]
    return attached + [after for word, after in pairwise(words) if word == flag]


def _print_error(message: str, words: Sequence[str]) -> None:
    if _is_json(words):
        echo(json_line("error", message, "MainEncounteredError"), err=True)
        return
    label = "error:" if "--no-color" in words else style_text("error:", "red", bold=True)
    echo_styled(f"{label} {escape_lines(message)}", err=True)
