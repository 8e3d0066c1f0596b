"""The input of most operations: project, target, rendered models, graph. Owns loading them in this order."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.loading.linked_project import linked_warehouse_warning
from sqlmesh_like.app.loading.project_cache import cached_project, cached_text
from sqlmesh_like.app.loading.template_log import TemplateLog
from sqlmesh_like.app.reporter import LogReporter, Reporter, refuse_warnings
from sqlmesh_like.app.shared_spark import SharedSpark
from sqlmesh_like.artifacts.files import json_text
from sqlmesh_like.artifacts.state import SOURCES, SavedState, read_artifact, read_state
from sqlmesh_like.errors import ProjectError, SqlError, UsageError, as_sql_error, require_sound
from sqlmesh_like.limits.child import UnsendableError, run_limited, runs_limited
from sqlmesh_like.plan.catalog import locations
from sqlmesh_like.plan.graph import Graph, Node, build_graph
from sqlmesh_like.plan.selector import compares, exclusion_warnings, select
from sqlmesh_like.plan.state_comparison import ComparisonState
from sqlmesh_like.project.loader import find_project, load_project
from sqlmesh_like.project.nodes import ParsedProject, Target
from sqlmesh_like.project.paths import folders_below, refuse_links_out
from sqlmesh_like.project.profile import ProfileRequest, load_target
from sqlmesh_like.project.reading.values import parse_vars
from sqlmesh_like.project.selection import Selector
from sqlmesh_like.project.selectors import load_selectors
from sqlmesh_like.project.settings import load_settings
from sqlmesh_like.render.rendered import EPOCH, RenderedProject, RenderedSeed
from sqlmesh_like.run.seeds import SeedReader, SeedTable
from sqlmesh_like.secrets import scrub_data, scrub_text

if TYPE_CHECKING:  # what renders templates is loaded where one is rendered: mostly the project is cached
    from sqlmesh_like.render.renderer import Renderer

_T = TypeVar("_T")
_NO_NODES = "the project has no nodes, a model is a .sql file with one SELECT, by default in models/: nothing to do"


@dataclass(frozen=True)
class Loaded:
    """A project as one call sees it. `spark`: shared with later calls; without it each call starts its own."""

    invocation: Invocation
    project: ParsedProject
    target: Target
    rendered: RenderedProject
    graph: Graph
    cache_path: Path | None = None  # values that depend only on the project are cached beside it
    entry_path: Path | None = None  # where the project is cached, also if some nodes are rendered again by each call
    reporter: Reporter = field(default_factory=LogReporter)
    spark: SharedSpark | None = None
    now: datetime.datetime = EPOCH  # the clock of templates
    seed_reader: SeedReader = field(default_factory=SeedReader, compare=False, repr=False)

    @property
    def target_folder(self) -> Path:
        """The absolute folder of artifacts."""
        return self.project.root / self.project.target_path

    def select_nodes(self, *resource_types: str) -> tuple[Node, ...]:
        """Return the selected nodes of these types (none given: of all), each after its inputs.

        Raises SelectionError where the selection matches no node of any type; the result may still be empty. Where
        a comparison with `--state` matches nothing, or the project has no nodes, the result is empty and a warning
        says so.
        """
        call = self.invocation
        chosen = select(
            self.graph,
            call.select,
            call.exclude,
            named=self._selector(),
            past=self.past,
            indirect=call.indirect_selection,
        )
        if not self.graph.nodes:
            self.reporter.notify(f"warning: {_NO_NODES}", "warn")
        elif not chosen:
            asked = f"--selector {call.selector}" if call.selector else " ".join(call.select) or "the selection"
            message = f"warning: compared with {call.state}, {asked} matches nothing: there is nothing to do"
            self.reporter.notify(message, "warn")
        nodes = (self.graph.nodes[unique_id] for unique_id in chosen)
        return tuple(node for node in nodes if not resource_types or node.resource_type in resource_types)

    def storing_failures(self) -> Loaded:
        """Return this with a table for the failing rows of each data test that does not opt out."""
        from sqlmesh_like.render.tests import storing_failures

        tests = storing_failures(self.rendered.tests)
        return replace(self, rendered=replace(self.rendered, tests=tests), cache_path=None)

    def renderer(self, now: datetime.datetime) -> Renderer:
        """Return a renderer for templates that are rendered during a run."""
        from sqlmesh_like.render.renderer import Renderer

        return Renderer.of(self.project, self.target, now=now, full_refresh=self.invocation.full_refresh)

    def read_seed(self, seed: RenderedSeed) -> SeedTable:
        """Return a seed's rows as its file has them. Raises ProjectError with file, line and column."""
        if seed.error is not None:
            raise as_sql_error(seed.error)
        return self.seed_reader.read(seed, self.project.root)

    def read_seeds(self, wanted: Collection[str]) -> tuple[dict[str, SeedTable], dict[str, SqlError]]:
        """Return the wanted seeds' rows, and the errors of those whose files cannot be read, both by unique id."""
        tables: dict[str, SeedTable] = {}
        errors: dict[str, SqlError] = {}
        for seed in self.rendered.seeds:
            if seed.unique_id in wanted:
                try:
                    tables[seed.unique_id] = self.read_seed(seed)
                except ProjectError as error:
                    errors[seed.unique_id] = as_sql_error(error)
        return tables, errors

    @property
    def is_comparing(self) -> bool:
        """Whether the selection compares with `--state`: then it may be empty."""
        return compares((*self.invocation.select, *self.invocation.exclude), self._selector())

    def _selector(self) -> Selector | None:
        """Return the selector of selectors.yml that the call names, or the default one where it selects nothing."""
        call = self.invocation
        if call.selector is None and (call.select or call.exclude):
            return None
        known = load_selectors(self.project.root, self.project.vars)
        if call.selector is None:
            return known.default
        if call.select or call.exclude:
            hint = "name what to take and leave out in selectors.yml, or leave --selector out"
            raise UsageError("--selector replaces --select and --exclude", hint=hint)
        return known.find(call.selector)

    @cached_property
    def state(self) -> SavedState | None:
        """The artifacts of `--state`. Raises UsageError where they cannot be read."""
        return None if self.invocation.state is None else read_state(self.invocation.state)

    @cached_property
    def deferred_state(self) -> SavedState | None:
        """The artifacts of `--defer-state`, else of `--state`. Raises UsageError where they cannot be read."""
        folder = self.invocation.defer_state
        return self.state if folder is None else read_state(folder)

    @cached_property
    def past(self) -> ComparisonState | None:
        """The comparison of this project with the one in `--state`, None without `--state`."""
        if self.state is None:
            return None
        return self.state.past(scrub_data(self.manifest), read_artifact(self.target_folder / SOURCES))

    def manifest_text(self) -> str:
        """Return the manifest as JSON text, without the metadata of a call."""
        return cached_text(self.cache_path, "manifest", lambda: json_text(self.manifest))

    @cached_property
    def manifest(self) -> Mapping[str, object]:
        """The content of manifest.json for the project as it is now."""
        from sqlmesh_like.artifacts.manifest import manifest

        places = locations(self.project, self.rendered, self.target)
        return manifest(self.project, self.rendered, self.graph, self.target.schema, places)

    def graph_of_templates(self) -> Mapping[str, object]:
        """Return the value of `graph` in templates: plain data without secrets."""
        return self._plain_manifest

    @cached_property
    def _plain_manifest(self) -> Mapping[str, object]:
        plain: Mapping[str, object] = json.loads(scrub_text(self.manifest_text()))
        return plain


def load(
    invocation: Invocation,
    *,
    now: datetime.datetime | None = None,
    reporter: Reporter | None = None,
    spark: SharedSpark | None = None,
    broken: bool = False,
) -> Loaded:
    """Read and render the project. `now`: the clock of templates, by default the time of the machine.

    With `broken`, errors of templates are kept in their nodes, for a caller that runs the other nodes; without it the
    first one is raised. Raises ProjectError or UsageError.
    """
    reporter, now = reporter or LogReporter(), now or datetime.datetime.now(datetime.UTC)
    log = TemplateLog(reporter.notify)
    log.listen()
    root, variables = find_project(_start(invocation)), parse_vars(invocation.vars)
    reader, is_limited = _ProjectReader(root, variables, invocation, now, log), runs_limited()
    cached = cached_project(
        root,
        invocation,
        reader.parse,
        reader.resolve_target,
        reader.render,
        lambda: tuple(log.messages),
        reader.refresh_limited if is_limited else reader.refresh,
        reader.in_child if is_limited else None,
    )
    _refuse_target_elsewhere(cached.project, invocation)
    for message, level, _node in cached.messages:
        log.say(message, level)
    if not broken:
        require_sound(cached.rendered.errors)
    excluded = exclusion_warnings(cached.graph, invocation.exclude)
    for warning in (*cached.project.warnings, linked_warehouse_warning(root, cached.target), *excluded):
        if warning is not None:
            log.say(f"warning: {warning}", "warn")
    # dbt accepts these keys, so `--warn-error` does as well: it fails at what is reported as a warning.
    log.say_repeated(cached.project.packages_path, "info" if invocation.warn_error else "warn")
    if invocation.warn_error:
        refuse_warnings(log.warnings(), ProjectError)
    project, target = cached.project, cached.target
    if target.warehouse and "://" in target.warehouse:
        from sqlmesh_like.hudi.stores.store_client import use_store  # `--help` needs nothing of a lake

        use_store(target.warehouse, target.store)
    return Loaded(
        invocation, project, target, cached.rendered, cached.graph, cached.cache_path, cached.entry_path, reporter,
        spark, now,
    )  # fmt: skip


@dataclass(frozen=True)
class _ProjectReader:
    """How the parts of a project are read where the cache does not have them. `now`: the clock of templates."""

    root: Path
    variables: Mapping[str, object]
    invocation: Invocation
    now: datetime.datetime
    log: TemplateLog

    def parse(self) -> ParsedProject:
        project = load_project(self.root, self.variables, self.resolve_target)
        return _with_target_path(project, self.invocation)

    def resolve_target(self, project: ParsedProject | ProfileRequest) -> Target:
        call = self.invocation
        target = load_target(project, call.profiles_dir, call.profile, call.target, self.variables)
        # Tables of an environment are in no catalog: promotion tells it.
        target = target if call.threads is None else replace(target, threads=call.threads)
        return target if call.environment is None else replace(target, catalog="none")

    def render(self, project: ParsedProject, target: Target) -> tuple[RenderedProject, Graph]:
        """Render with errors of templates in their nodes. Raises ProjectError for a wrong function."""
        from sqlmesh_like.render.renderer import render_project

        full_refresh = self.invocation.full_refresh
        rendered = render_project(project, target, now=self.now, full_refresh=full_refresh, broken=True)
        if rendered.functions:
            from sqlmesh_like.plan.checks.functions import check_functions

            check_functions(rendered.functions)
        return rendered, build_graph(project, rendered)

    def refresh(
        self, project: ParsedProject, target: Target, rendered: RenderedProject, clocked: Collection[str]
    ) -> RenderedProject | None:
        """Render the nodes again that ask for the time."""
        from sqlmesh_like.render.clock_dependent import rerender_clocked
        from sqlmesh_like.render.renderer import Renderer

        renderer = Renderer.of(project, target, now=self.now, full_refresh=self.invocation.full_refresh)
        try:
            return rerender_clocked(renderer, project, rendered, clocked)
        except ProjectError:  # it fails at this time of day: when the project is read again, it is an error of its node
            return None

    def refresh_limited(
        self, project: ParsedProject, target: Target, rendered: RenderedProject, clocked: Collection[str]
    ) -> RenderedProject | None:
        try:
            return self.in_child(lambda: self.refresh(project, target, rendered, clocked))
        except UnsendableError:
            return None

    def in_child(self, work: Callable[[], _T]) -> _T:
        """What a child process returns that renders templates within limits."""
        from sqlmesh_like.render import clock_dependent, renderer  # noqa: F401 (once for the child and for this process)

        return run_limited(work, self.log.repeat)


def load_parsed(invocation: Invocation) -> ParsedProject:
    """Read only the project's files: Jinja in SQL is not rendered."""
    variables = parse_vars(invocation.vars)

    def resolve_target(project: ProfileRequest) -> Target:
        return load_target(project, invocation.profiles_dir, invocation.profile, invocation.target, variables)

    project = _with_target_path(load_project(find_project(_start(invocation)), variables, resolve_target), invocation)
    _refuse_target_elsewhere(project, invocation)
    return project


def _with_target_path(project: ParsedProject, invocation: Invocation) -> ParsedProject:
    """Return the project with the call's folder of artifacts."""
    path = invocation.target_path
    return project if path is None else replace(project, target_path=path)


def _refuse_target_elsewhere(project: ParsedProject, invocation: Invocation) -> None:
    """Raise ProjectError where the project's own folder of artifacts is a link: files elsewhere would be replaced."""
    if invocation.target_path is None:
        root = project.root
        refuse_links_out(root, folders_below(root, root, [project.target_path]), root)


def _start(invocation: Invocation) -> Path:
    return (invocation.project_dir or Path.cwd()).resolve()


def load_target_of(invocation: Invocation) -> Target:
    """Return the target that a call chooses; only settings and profiles are read. Raises ProjectError or UsageError."""
    root, variables, call = find_project(_start(invocation)), parse_vars(invocation.vars), invocation
    settings = load_settings(root, variables)
    request = ProfileRequest(root, settings.vars, settings.profile)
    return load_target(request, call.profiles_dir, call.profile, call.target, variables)
