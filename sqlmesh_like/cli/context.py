"""What most commands start from: project, target, rendered models and graph. Owns loading them in this order."""

from __future__ import annotations

import datetime
import logging
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from sqlmesh_like.cli.options import Flags
from sqlmesh_like.cli.output import Level, Output
from sqlmesh_like.errors import UsageError
from sqlmesh_like.plan.graph import Graph, Node, build_graph
from sqlmesh_like.plan.selector import select
from sqlmesh_like.project.loader import find_project, load_project
from sqlmesh_like.project.profile import load_target
from sqlmesh_like.project.spec import ParsedProject, Target
from sqlmesh_like.project.values import parse_vars
from sqlmesh_like.render.rendered import RenderedProject
from sqlmesh_like.render.renderer import EPOCH, render_project


@dataclass(frozen=True)
class Loaded:
    """A project as one command sees it."""

    flags: Flags
    project: ParsedProject
    target: Target
    rendered: RenderedProject
    graph: Graph

    @property
    def target_folder(self) -> Path:
        """The absolute folder of artifacts."""
        return self.project.root / self.project.target_path

    def selected(self, *resource_types: str) -> tuple[Node, ...]:
        """The selected nodes of these types (none given: of all), every one after its inputs.

        Raises SelectionError where the selection matches nothing at all; of these types there may be none.
        """
        chosen = select(self.graph, self.flags.select, self.flags.exclude)
        nodes = (self.graph.nodes[unique_id] for unique_id in chosen)
        return tuple(node for node in nodes if not resource_types or node.resource_type in resource_types)


def load(flags: Flags, *, now: datetime.datetime = EPOCH) -> Loaded:
    """Reads and renders the project. `now` is the clock of templates. Raises ProjectError or UsageError."""
    _refuse_unsupported(flags)
    output = make_output(flags, sys.stderr)  # what a command prints stays fit for a pipe
    _log_to(output)
    project = load_parsed(flags)
    for warning in project.warnings:
        output.line(f"warning: {warning}", "warn")
    target = load_target(project, flags.profiles_dir, flags.profile, flags.target, parse_vars(flags.vars))
    target = target if flags.threads is None else replace(target, threads=flags.threads)
    rendered = render_project(project, target, now=now, full_refresh=flags.full_refresh)
    return Loaded(flags, project, target, rendered, build_graph(project, rendered))


def load_parsed(flags: Flags) -> ParsedProject:
    """The project's files alone: no profile, no Jinja in SQL."""
    start = (flags.project_dir or Path.cwd()).resolve()
    return load_project(find_project(start), parse_vars(flags.vars))


def make_output(flags: Flags, stream: TextIO | None = None) -> Output:
    """The printer that these flags ask for, on standard output unless told otherwise; colours on a terminal only."""
    chosen = stream or sys.stdout
    is_terminal = chosen.isatty() and "NO_COLOR" not in os.environ
    return Output(flags.quiet, is_terminal and not flags.no_color, flags.log_format, chosen)


def _refuse_unsupported(flags: Flags) -> None:
    """A flag that is silently without effect would be worse than one that is refused."""
    given = {"--selector": flags.selector, "--state": flags.state, "--defer": flags.defer}
    for name, value in given.items():
        if value:
            raise UsageError(f"{name} is not supported yet", hint="choose nodes by --select and --exclude")


class _LogHandler(logging.Handler):
    """Brings what templates say by `log()` and `exceptions.warn()` to the output."""

    def __init__(self, output: Output) -> None:
        super().__init__(logging.INFO)
        self._output = output

    def emit(self, record: logging.LogRecord) -> None:
        level: Level = "warn" if record.levelno >= logging.WARNING else "info"
        self._output.line(record.getMessage(), level)


def _log_to(output: Output) -> None:
    logger = logging.getLogger("sqlmesh_like.render")
    logger.handlers = [_LogHandler(output)]
    logger.setLevel(logging.INFO)
    logger.propagate = False
