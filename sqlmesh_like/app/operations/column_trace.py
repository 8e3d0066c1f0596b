"""Where the columns of a model come from. Owns resolving names; `plan.lineage` traces columns. Needs no JVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.preflight import input_schemas
from sqlmesh_like.errors import UsageError, nearest
from sqlmesh_like.plan.lineage import Lineage, TracedColumn
from sqlmesh_like.render.rendered import RenderedModel


@dataclass(frozen=True)
class ColumnTrace:
    """Columns of a model with their upstream columns; `names`: `schema.table` by unique id."""

    model: RenderedModel
    columns: tuple[TracedColumn, ...]
    names: Mapping[str, str]


def trace_columns(loaded: Loaded, name: str) -> ColumnTrace:
    """Trace all columns of a model, or the one of `model.column`. Raises UsageError for an unknown name, SqlError."""
    model, column = _find(loaded, name)
    lineage = Lineage(loaded.rendered, input_schemas(loaded, [model.unique_id]))
    columns = lineage.columns(model) if column is None else (lineage.column(model, column),)
    # `schema.table` of sources, seeds and models by unique id
    names: dict[str, str] = {
        table.unique_id: str(table.table) for source in loaded.project.sources for table in source.tables
    }
    names |= {seed.unique_id: str(seed.table) for seed in loaded.rendered.seeds}
    return ColumnTrace(
        model, tuple(columns), names | {model.unique_id: str(model.table) for model in loaded.rendered.models}
    )


def _find(loaded: Loaded, name: str) -> tuple[RenderedModel, str | None]:
    """Return the model and, where `name` has one, the column. Raises UsageError with the nearest name."""
    models: dict[str, RenderedModel] = {}
    for model in loaded.rendered.models:
        for spelling in (model.unique_id, str(model.table), model.name):
            models.setdefault(spelling, model)
    if name in models:
        return models[name], None
    owner, _, column = name.rpartition(".")
    if owner in models:
        return models[owner], column
    known = [model.name for model in loaded.rendered.models]
    wanted = (owner or name).rpartition(".")[2]
    raise UsageError(f"no model {owner or name!r} in this project", hint=nearest(wanted, known) or "see `sml ls`")
