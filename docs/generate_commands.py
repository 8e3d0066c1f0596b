"""Writes docs/commands.md from the commands themselves: `python docs/generate_commands.py`. A test compares the two."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from sqlmesh_like.cli.app import COMMANDS, build_app
from sqlmesh_like.cli.examples import COMMAND_EXAMPLES
from sqlmesh_like.cli.options import global_options

HEAD = """# Commands

Written from the commands themselves by `python docs/generate_commands.py`.

`sml COMMAND --help` prints the same. Exit codes: 0 done; 1 a node, a test or a comparison failed; 2 a wrong call or
project; 130 and 143 stopped by Ctrl-C and SIGTERM. Lines while running go to standard output in dbt's format, warnings
before a run to standard error. `--quiet` prints results and errors only; `--log-format json` makes each log line one
JSON object: `info` with `ts`, `level`, `msg`, `invocation_id` and the `name` of dbt's event (`LogStartLine`,
`LogModelResult`, `LogSeedResult`, `LogSnapshotResult`, `LogTestResult`, `SkippingDetails`, `StatsLine`; `Note` if it
is only text); where the line is about a node `data` has its `unique_id`, `status` (`started`, then what became of it),
`strategy`, `rows` that changed, `bytes` written, `elapsed` seconds, `failures` of a test, and what dbt has:
`node_info`, `num_failures`, `execution_time`. Colours, the bar below a run and the phase of a long call are for
terminals only; `--no-color`, or `NO_COLOR` in the environment, turns colours off. Flags that only dbt has a use for,
such as `--printer-width`, are accepted without effect ([dbt.md](dbt.md)).

`eval "$(sml completion bash)"` in `~/.bashrc` completes commands, flags, nodes and selectors (zsh and fish too).
"""


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All commands that do something, in order, each with the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield (*path, name), command


def own_options(command: click.Command) -> list[click.Option]:
    """The options that not every command has."""
    shared = {option.name for option in global_options()}
    return [
        parameter
        for parameter in command.params
        if isinstance(parameter, click.Option) and parameter.name not in shared and not parameter.hidden
    ]


def page() -> str:
    """The whole page."""
    shared = [option for option in global_options() if isinstance(option, click.Option) and not option.hidden]
    parts = [HEAD, "## Flags of every command\n", _table(shared)]
    for words, command in leaves(build_app()):
        parts.append(f"## sml {' '.join([*words, *_arguments(command)])}\n")
        parts.append(f"{_sentences(command)}\n")
        if options := own_options(command):
            parts.append(_table(options))
        parts.append(f"Example: `{COMMAND_EXAMPLES[' '.join(words)]}`\n")
    assert len(parts) > len(COMMANDS)
    return "\n".join(parts)


def _sentences(command: click.Command) -> str:
    text = "\n".join(line.strip() for line in (command.help or "").strip().splitlines())
    return re.sub(r"(<[\w-]+>\S*?)(?=[:.,]?(?:\s|$))", r"`\1`", text)  # else a browser takes it for a tag


def _arguments(command: click.Command) -> list[str]:
    context = click.Context(command)
    return [parameter.make_metavar(context) for parameter in command.params if isinstance(parameter, click.Argument)]


def _table(options: list[click.Option]) -> str:
    rows = [f"| {_spelt(option)} | {(option.help or '').replace('|', chr(92) + '|')} |" for option in options]
    return "\n".join(["| option | |", "|---|---|", *rows, ""])


def _spelt(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    if isinstance(option.type, click.Choice):
        return f"{names} {' or '.join(f'`{choice}`' for choice in option.type.choices)}"
    return names if option.is_flag or option.secondary_opts else f"{names} {option.metavar or option.type.name.upper()}"


if __name__ == "__main__":
    (Path(__file__).parent / "commands.md").write_text(page(), encoding="utf-8")
