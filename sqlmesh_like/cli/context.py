"""What most commands start from: project, target, rendered models and graph. Owns loading them in this order."""

from __future__ import annotations

import datetime
import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TextIO

from sqlmesh_like.artifacts.files import json_text
from sqlmesh_like.artifacts.state import SOURCES, SavedState, read_artifact, read_state
from sqlmesh_like.cli.options import Flags
from sqlmesh_like.cli.printing.output import LogLevel, Output
from sqlmesh_like.cli.project_cache import cached_project, cached_text
from sqlmesh_like.errors import UsageError
from sqlmesh_like.plan.catalog import locations
from sqlmesh_like.plan.graph import Graph, Node, build_graph
from sqlmesh_like.plan.selector import compares, select
from sqlmesh_like.plan.state_comparison import ComparisonState
from sqlmesh_like.project.loader import find_project, load_project
from sqlmesh_like.project.nodes import ParsedProject, Target
from sqlmesh_like.project.profile import ProfileRequest, load_target
from sqlmesh_like.project.reading.values import parse_vars
from sqlmesh_like.project.selection import Selector
from sqlmesh_like.project.selectors import load_selectors
from sqlmesh_like.render.rendered import RenderedProject
from sqlmesh_like.render.renderer import EPOCH, render_project
from sqlmesh_like.render.tests import storing_failures
from sqlmesh_like.secrets import scrubbed_data


@dataclass(frozen=True)
class Loaded:
    """A project as one command sees it."""

    flags: Flags
    project: ParsedProject
    target: Target
    rendered: RenderedProject
    graph: Graph
    cache_path: Path | None = None  # where what follows from the project alone may be kept

    @property
    def target_folder(self) -> Path:
        """The absolute folder of artifacts."""
        return self.project.root / self.project.target_path

    def selected(self, *resource_types: str) -> tuple[Node, ...]:
        """The selected nodes of these types (none given: of all), every one after its inputs.

        Raises SelectionError where the selection matches nothing at all; of these types there may be none. Where a
        comparison with `--state` found nothing, a warning says so and there is nothing to do.
        """
        flags = self.flags
        chosen = select(
            self.graph,
            flags.select,
            flags.exclude,
            named=self._named(),
            past=self.past,
            indirect=flags.indirect_selection,
        )
        if not chosen:
            asked = f"--selector {flags.selector}" if flags.selector else " ".join(flags.select) or "the selection"
            message = f"warning: compared with {flags.state}, {asked} matches nothing: there is nothing to do"
            make_output(flags, sys.stderr).line(message, "warn")
        nodes = (self.graph.nodes[unique_id] for unique_id in chosen)
        return tuple(node for node in nodes if not resource_types or node.resource_type in resource_types)

    def storing_failures(self) -> Loaded:
        """With a table for the failing rows of each data test that does not say no."""
        tests = storing_failures(self.rendered.tests, self.target.schema)
        return replace(self, rendered=replace(self.rendered, tests=tests), cache_path=None)

    @property
    def is_comparing(self) -> bool:
        """Whether the selection asks what differs from `--state`: then it may hold nothing."""
        return compares((*self.flags.select, *self.flags.exclude), self._named())

    def _named(self) -> Selector | None:
        """The selector of selectors.yml that the call names, or the default one where it chooses nothing."""
        flags = self.flags
        if flags.selector is None and (flags.select or flags.exclude):
            return None
        known = load_selectors(self.project.root, self.project.vars)
        if flags.selector is None:
            return known.default
        if flags.select or flags.exclude:
            hint = "name what to take and leave out in selectors.yml, or leave --selector out"
            raise UsageError("--selector replaces --select and --exclude", hint=hint)
        return known.find(flags.selector)

    @cached_property
    def state(self) -> SavedState | None:
        """The artifacts of `--state`. Raises UsageError where they cannot be read."""
        return None if self.flags.state is None else read_state(self.flags.state)

    @cached_property
    def past(self) -> ComparisonState | None:
        """The project as `--state` knows it, compared with this one."""
        if self.state is None:
            return None
        return self.state.past(scrubbed_data(self.manifest), read_artifact(self.target_folder / SOURCES))

    def manifest_text(self) -> str:
        """The manifest as the JSON that a file has, without what each call says of itself."""
        return cached_text(self.cache_path, "manifest", lambda: json_text(self.manifest))

    @cached_property
    def manifest(self) -> Mapping[str, object]:
        """What manifest.json says of the project as it is."""
        from sqlmesh_like.artifacts.manifest import manifest

        return manifest(self.project, self.rendered, self.graph, locations(self.project, self.rendered, self.target))


def load(flags: Flags, *, now: datetime.datetime = EPOCH) -> Loaded:
    """Reads and renders the project. `now` is the clock of templates. Raises ProjectError or UsageError."""
    output = make_output(flags, sys.stderr)  # what a command prints stays fit for a pipe
    log = _log_to(output)
    root, variables = find_project(_start(flags)), parse_vars(flags.vars)

    def resolve_target(project: ParsedProject | ProfileRequest) -> Target:
        target = load_target(project, flags.profiles_dir, flags.profile, flags.target, variables)
        return target if flags.threads is None else replace(target, threads=flags.threads)

    def render(project: ParsedProject, target: Target) -> tuple[RenderedProject, Graph]:
        rendered = render_project(project, target, now=now, full_refresh=flags.full_refresh)
        return rendered, build_graph(project, rendered)

    cached = cached_project(
        root,
        flags,
        lambda: load_project(root, variables, resolve_target),
        resolve_target,
        render,
        lambda: not log.records,
    )
    for warning in cached.project.warnings:
        output.line(f"warning: {warning}", "warn")
    return Loaded(flags, cached.project, cached.target, cached.rendered, cached.graph, cached.cache_path)


def load_parsed(flags: Flags) -> ParsedProject:
    """The project's files alone: no profile, no Jinja in SQL."""
    variables = parse_vars(flags.vars)

    def resolve_target(project: ProfileRequest) -> Target:
        return load_target(project, flags.profiles_dir, flags.profile, flags.target, variables)

    return load_project(find_project(_start(flags)), variables, resolve_target)


def _start(flags: Flags) -> Path:
    return (flags.project_dir or Path.cwd()).resolve()


def load_target_of(flags: Flags) -> Target:
    """The target that these flags choose. Raises ProjectError or UsageError."""
    project = load_parsed(flags)
    return load_target(project, flags.profiles_dir, flags.profile, flags.target, parse_vars(flags.vars))


def make_output(flags: Flags, stream: TextIO | None = None, *, bar: bool = False) -> Output:
    """The printer that these flags ask for, on standard output by default.

    Colours, and a `bar` where the command has use for one, are for terminals only.
    """
    chosen = stream or sys.stdout
    is_terminal = chosen.isatty() and "NO_COLOR" not in os.environ
    has_bar = bar and chosen.isatty() and os.environ.get("TERM") != "dumb" and flags.log_format == "text"
    color = is_terminal and not flags.no_color
    return Output(flags.quiet, color, flags.log_format, chosen, has_bar=has_bar and not flags.quiet)


class _LogHandler(logging.Handler):
    """Brings what templates say by `log()` and `exceptions.warn()` to the output."""

    def __init__(self, output: Output) -> None:
        super().__init__(logging.INFO)
        self._output = output
        self.records = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.records += 1
        level: LogLevel = "warn" if record.levelno >= logging.WARNING else "info"
        self._output.line(record.getMessage(), level)


def _log_to(output: Output) -> _LogHandler:
    logger = logging.getLogger("sqlmesh_like.render")
    handler = _LogHandler(output)
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    return handler
