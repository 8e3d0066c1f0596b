"""The flags that commands share. Owns their names, types and help; `context` owns their effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any

import click

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.cli.completion import complete_selectors
from sqlmesh_like.cli.dbt_flags import dbt_flags
from sqlmesh_like.cli.dbt_variables import with_variables
from sqlmesh_like.cli.printing.activity import activity, current
from sqlmesh_like.errors import NodeError
from sqlmesh_like.limits.child import run_limited, runs_limited
from sqlmesh_like.project.selection import INDIRECT

_FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)
_MULTI = frozenset(
    {
        *("-s", "--select", "-m", "--models", "--exclude", "--output-keys"),
        *("--resource-type", "--resource-types", "--exclude-resource-type", "--exclude-resource-types"),
    }
)


class LogFormat(click.Choice[str]):
    """`text` or `json`; dbt's two other forms of text are `text`."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert("text" if value in ("default", "debug") else value, param, ctx)


@dataclass(frozen=True)
class Flags(Invocation):
    """The shared flags of one call, as the user gave them: its request, and how it prints."""

    log_format: str = "text"
    quiet: bool = False
    no_color: bool = False
    debug: bool = False


def _options() -> list[click.Option]:
    return [
        click.Option(
            ["-s", "--select", "-m", "--models", "select"],
            help="Nodes to select: m, +m, tag:x …",
            multiple=True,
            metavar="WORD…",
            shell_complete=complete_selectors,
        ),
        click.Option(
            ["--exclude"],
            help="Nodes to leave out.",
            multiple=True,
            metavar="WORD…",
            shell_complete=complete_selectors,
        ),
        click.Option(["--selector"], help="A selector of selectors.yml.", metavar="NAME"),
        click.Option(
            ["--indirect-selection"],
            help="Tests that come along: with any node they read, with all of them, or none.",
            type=click.Choice(INDIRECT),
            default="eager",
        ),
        click.Option(["-t", "--target"], help="Target to use instead of the profile's.", metavar="NAME"),
        click.Option(["--profile"], help="Profile to use instead of the project's.", metavar="NAME"),
        click.Option(["--profiles-dir"], help="Folder of profiles.yml.", type=_FOLDER),
        click.Option(["--project-dir"], help="Folder of the project, or one inside it.", type=_FOLDER),
        click.Option(["--vars"], help="Variables as a YAML mapping.", default="{}", metavar="YAML"),
        click.Option(["--threads"], help="Models to run side by side.", type=click.IntRange(min=1)),
        click.Option(["-f", "--full-refresh"], help="Rebuild tables from scratch.", is_flag=True),
        click.Option(["-x", "--fail-fast/--no-fail-fast"], help="Stop at the first failure.", default=False),
        click.Option(["--state"], help="Folder of an earlier manifest.json to compare with.", type=_FOLDER),
        click.Option(
            ["--defer/--no-defer"], help="Read tables that are not here from where --state has them.", default=False
        ),
        click.Option(["--defer-state"], help="Folder that replaces --state for --defer.", type=_FOLDER),
        click.Option(
            ["--lock-timeout"],
            help="Seconds to wait for other processes that use the same tables (default: 0).",
            type=click.FloatRange(min=0),
            default=0.0,
            metavar="SECONDS",
        ),
        click.Option(["--target-path"], help="Folder of artifacts instead of the settings'.", metavar="FOLDER"),
        click.Option(
            ["--partial-parse/--no-partial-parse"], help="Use what the last call read of the project.", default=True
        ),
        click.Option(["--warn-error"], help="Warnings are errors, and tests that would warn fail.", is_flag=True),
        click.Option(["--log-format"], help="text or json.", type=LogFormat(["text", "json"]), default="text"),
        click.Option(["-q", "--quiet/--no-quiet"], help="Print results and errors only.", default=False),
        click.Option(["--no-color", "--no-use-colors"], help="Print without colours.", is_flag=True),
        click.Option(["--debug/--no-debug"], help="Show the traceback of an unexpected error.", default=False),
    ]


def global_options() -> list[click.Parameter]:
    """Return the shared flags, for use before the command; dbt's environment variables stand for them."""
    return with_variables([*_options(), *dbt_flags()])


def shared_options(command: Callable[..., object]) -> Callable[..., object]:
    """Add all shared flags to a command, which gets them as one `Flags` in its argument `flags`.

    An option of the command, given below this decorator, replaces a flag of dbt's of the same name.
    """

    @wraps(command)
    def wrapper(**kwargs: Any) -> object:
        given = {field.name: kwargs.pop(field.name) for field in fields(Flags) if field.name in kwargs}
        flags = Flags(**given)
        with activity(quiet=flags.quiet, log_format=flags.log_format):
            result = command(flags=flags, **kwargs)
            call = current()
            if flags.warn_error and not result and call is not None:
                from sqlmesh_like.app.reporter import refuse_warnings  # help needs nothing of operations

                refuse_warnings(call.warnings, NodeError)  # the work of the call is done
            return result

    # click reads options from this attribute, last one first.
    params = getattr(command, "__click_params__", [])
    own = {name for parameter in params for name in parameter.opts}
    foreign = [flag for flag in dbt_flags() if own.isdisjoint(flag.opts)]
    wrapper.__click_params__ = [*params, *reversed([*_options(), *foreign])]  # type: ignore[attr-defined]
    return wrapper


def at_release(command: Callable[..., object]) -> Callable[..., object]:
    """Add `--at` to a command that reads tables."""
    words = "A release, or latest-commit (default: the current release, if the project makes releases)."
    return click.option("--at", metavar="RELEASE", help=words)(command)


def in_environment(command: Callable[..., object]) -> Callable[..., object]:
    """Add `-e`, part of `Flags`, to a command that reads or makes tables."""
    words = "Tables of an environment instead of production's, where it has them."
    return click.option("-e", "--environment", metavar="NAME", help=words)(command)


def in_parts(command: Callable[..., object]) -> Callable[..., object]:
    """Add `--slices` and `--backfill` to a command that builds tables."""
    slices = click.option(
        "--slices",
        type=click.IntRange(min=1),
        metavar="N",
        help="Build tables in about N commits, by their first partition column; a build that ends early goes on.",
    )
    words = "Also recompute these partitions, both ends included: 2024-01..2024-03, 2024-01-31.., ..b."
    return slices(click.option("--backfill", metavar="FROM..TO", help=words)(command))


def within_limits(command: Callable[..., object]) -> Callable[..., object]:
    """Run a command that needs no lake in a child process with limits: what it reads may be a stranger's.

    In an environment it needs one.
    """

    @wraps(command)
    def wrapper(**kwargs: Any) -> object:
        is_limited = runs_limited() and kwargs.get("environment") is None
        return run_limited(lambda: command(**kwargs), is_call=True) if is_limited else command(**kwargs)

    return wrapper


def spread(arguments: Sequence[str]) -> list[str]:
    """Rewrite `-s a b` to `-s a -s b` for click: as in dbt, a selection extends to the next flag.

    >>> spread(["-s", "a", "b", "--exclude=c", "d", "-x"])
    ['-s', 'a', '-s', 'b', '--exclude=c', '--exclude', 'd', '-x']
    """
    made: list[str] = []
    current = None
    for position, argument in enumerate(arguments):
        if argument == "--":
            return [*made, *arguments[position:]]
        flag = argument.partition("=")[0]
        if argument.startswith("-"):
            current = flag if flag in _MULTI else None
            made.append(argument)
        elif current is not None and made[-1] != current:
            made += [current, argument]
        else:
            made.append(argument)
    return made
