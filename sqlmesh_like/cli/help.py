"""The layout of help. Owns the groups of commands, and the separation of common flags from a command's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import click

from sqlmesh_like.cli.options import global_options

GROUPS = {
    "Begin": ("init", "debug", "deps", "package", "import-check", "completion", "schema", "lsp"),
    "Look at the project": ("parse", "compile", "lint", "ls", "explain", "plan", "diff", "lineage"),
    "Bring tables up to date": ("ingest", "seed", "run", "snapshot", "test", "build", "watch", "retry", "publish"),
    "Look at the tables": ("show", "sql", "changes", "verify", "freshness", "source", "history", "docs", "report"),
    "Keep house": (
        *(
            "maintain",
            "locks",
            "unlock",
            "release",
            "env",
            "promote",
            "savepoint",
            "rollback",
            "repair",
            "forget",
            "clean",
            "run-operation",
            "ddl",
        ),
    ),
}
"""Headings of `sml --help` and the commands below each; other commands are listed below `Others`."""


def command_groups(commands: Mapping[str, str]) -> Iterable[tuple[str, list[tuple[str, str]]]]:
    """Yield headings, each with its commands and their help."""
    grouped = {name for names in GROUPS.values() for name in names}
    others = [name for name in commands if name not in grouped]
    for heading, names in (*GROUPS.items(), ("Others", others)):
        if rows := [(name, commands[name]) for name in names if name in commands]:
            yield heading, rows


class _GroupedFormatter(click.HelpFormatter):
    """Writes the flags that all commands share below a separate heading."""

    shared: frozenset[str] = frozenset()

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        listed = tuple(rows)
        own = [row for row in listed if row[0] not in self.shared]
        shared = [row for row in listed if row[0] in self.shared]
        super().write_dl(own, col_max, col_spacing)
        if shared:
            self.dedent()
            self.write_paragraph()
            self.write_heading("Options of every command")
            self.indent()
            super().write_dl(shared, col_max, col_spacing)


class GroupedContext(click.Context):
    """The context of a command whose help uses `_GroupedFormatter`."""

    def make_formatter(self) -> click.HelpFormatter:
        formatter = _GroupedFormatter(width=self.terminal_width, max_width=self.max_content_width)
        records = (option.get_help_record(self) for option in global_options())
        formatter.shared = frozenset(record[0] for record in records if record is not None)
        return formatter
