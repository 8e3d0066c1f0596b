"""Writes the rendered SQL of the selected nodes and checks it. Owns what is written and checked; needs no JVM."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.artifacts.files import write_compiled
from sqlmesh_like.artifacts.manifest import write_manifest
from sqlmesh_like.errors import SqlError, require_sound
from sqlmesh_like.plan.checks.type_warning import TypeWarning
from sqlmesh_like.render.rendered import RenderedModel, RenderedProject


@dataclass(frozen=True)
class CompiledProject:
    """The selected models, tests and analyses as rendered, the number of written files, and warnings."""

    rendered: RenderedProject
    files: int
    warnings: tuple[TypeWarning, ...]

    @property
    def asking(self) -> tuple[RenderedModel, ...]:
        """Models whose templates query the lake: their SQL is final only in a run."""
        return tuple(model for model in self.rendered.models if model.asks_lake)


def compile_project(loaded: Loaded, *, checks: bool = True) -> CompiledProject:
    """Write the SQL of the selected nodes into <target-path>/compiled, and manifest.json.

    `checks`: bind names and types. Raises ProjectError with file, line and column.
    """
    chosen = frozenset(node.unique_id for node in loaded.select_nodes())
    everything = loaded.rendered
    rendered = replace(
        everything,
        models=tuple(model for model in everything.models if model.unique_id in chosen),
        tests=tuple(test for test in everything.tests if test.unique_id in chosen),
        analyses=tuple(analysis for analysis in everything.analyses if analysis.unique_id in chosen),
    )
    warnings: tuple[TypeWarning, ...] = ()
    require_sound(everything.broken_macros)
    if checks:
        # Imported here: rendering alone must not wait for the SQL parser.
        from sqlmesh_like.app.loading.preflight import check_project

        warnings = check_project(loaded, [model.unique_id for model in rendered.models])
        require_sound({analysis.unique_id: analysis.error for analysis in rendered.analyses if analysis.error})
        if warnings and loaded.invocation.warn_error:
            raise SqlError(f"{warnings[0].rule} {warnings[0].message}", location=warnings[0].location)
    else:
        require_sound(rendered.errors)
    written = write_compiled(loaded.target_folder, rendered)
    write_manifest(loaded.target_folder / "manifest.json", loaded.project, loaded.manifest_text())
    return CompiledProject(rendered, len(written), warnings)
