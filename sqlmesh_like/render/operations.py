"""Statements that are run around nodes and runs, and macros that are run alone. Owns rendering them with a lake.

These are `pre_hook`, `post_hook`, `on-run-start`, `on-run-end` and `sml run-operation`. They are rendered right before
they run, and may themselves query the lake.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sqlmesh_like.errors import UsageError, nearest
from sqlmesh_like.names import NodeId, TableName
from sqlmesh_like.project.config import HookTime, check_setting
from sqlmesh_like.project.nodes import ParsedProject, SeedFile, Target
from sqlmesh_like.project.testing.generic_tests import jinja_literal
from sqlmesh_like.render.adapter_functions import LakeQueries
from sqlmesh_like.render.context import ConfigCall, RenderTrace, build_scope
from sqlmesh_like.render.library.call import TemplateCall
from sqlmesh_like.render.library.node import Entries
from sqlmesh_like.render.macros import TemplateScope
from sqlmesh_like.render.placement import by_id
from sqlmesh_like.render.renderer import Renderer


class Operations:
    """Renders the hooks and operations of one project."""

    def __init__(
        self,
        renderer: Renderer,
        project: ParsedProject,
        target: Target,
        lake: LakeQueries,
        graph: Entries,
        call: TemplateCall,
    ) -> None:
        placed = renderer.placement.place_all()
        self._placed = by_id(placed)
        self._seeds: dict[str, SeedFile] = {seed.unique_id: seed for seed in project.seeds}
        self._seed_tables: dict[str, TableName] = {seed.unique_id: seed.table for seed in renderer.placement.seeds()}
        self._registry = renderer.placement.registry(placed)
        self._renderer = renderer.with_lake(lake, graph).of_call(call)
        self._project = project
        self._target = target

    def of_node(self, unique_id: str, moment: HookTime) -> Iterator[str]:
        """Statements of a node's hooks, rendered lazily: each after the ones before it have run.

        Raises JinjaError.
        """
        if unique_id in self._seeds:
            seed = self._seeds[unique_id]
            hooks = check_setting(moment, seed.config.get(moment) or ())
            table = self._seed_tables[unique_id]
            scope = self._renderer.placement.scope(seed, seed.config, table, self._registry, RenderTrace())
            return self._render_hooks(f"{seed.path} ({moment})", _texts(hooks), scope)
        entry = self._placed[unique_id]
        scope = self._renderer.scope_of(entry, self._registry)
        return self._render_hooks(f"{entry.file.path} ({moment})", _texts(entry.config.get(moment) or ()), scope)

    def of_run(self, end: bool, more: Mapping[str, object]) -> Iterator[str]:
        """Statements of `on-run-start`, or of `on-run-end`; `more` are additional names for their templates."""
        hooks = self._project.on_run_end if end else self._project.on_run_start
        name = "on-run-end" if end else "on-run-start"
        scope = {
            **self._scope(NodeId("operation", self._project.name, name), TableName(self._target.schema, name)),
            **more,
        }
        return self._render_hooks(f"{self._project.settings_file} ({name})", hooks, scope)

    def call(self, macro: str, arguments: Mapping[str, object]) -> str:
        """Run a macro, `name` or `package.name`, with its queries and statements, and return its text.

        Raises UsageError if there is no such macro, JinjaError, and NodeError if a statement fails.
        """
        scope = self._scope(NodeId("operation", self._project.name, macro), TableName(self._target.schema, macro))
        package, _, name = macro.rpartition(".")
        inner = scope.get(package) if package else scope
        if not isinstance(inner, Mapping) or not callable(inner.get(name)):
            known = [key for key, value in scope.items() if callable(value)]
            raise UsageError(f"there is no macro {macro!r}", hint=nearest(macro, known))
        given = ", ".join(f"{key}={jinja_literal(value)}" for key, value in arguments.items())
        return next(self._render_hooks("run-operation", [f"{{{{ {macro}({given}) }}}}"], scope))

    def _scope(self, unique_id: str, this: TableName) -> TemplateScope:
        findings = RenderTrace()
        node: Mapping[str, object] = {"unique_id": unique_id, "name": this.identifier, "resource_type": "operation"}
        config = ConfigCall({}, findings, check_setting)
        return build_scope(self._renderer.around, self._registry, node, this, config, findings)

    def _render_hooks(self, place: str, hooks: Iterable[str], scope: TemplateScope) -> Iterator[str]:
        templates = self._renderer.around.templates
        return (templates.render(place, hook, scope).compiled.strip() for hook in hooks)


def _texts(hooks: object) -> tuple[str, ...]:
    return tuple(str(hook) for hook in hooks) if isinstance(hooks, list | tuple) else ()
