"""Which tables a model or a test reads, directly or through views. Owns walking down the views; no text is read."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from sqlmesh_like.render.rendered import InputRef, RenderedModel, RenderedProject


class Reader(Protocol):
    """A node that reads others."""

    @property
    def inputs(self) -> tuple[InputRef, ...]: ...


@dataclass(frozen=True)
class TableInputs:
    """The inputs of a project's nodes. `tables`: unique ids of those that have a table."""

    rendered: RenderedProject
    tables: Container[str]

    @cached_property
    def models(self) -> dict[str, RenderedModel]:
        """The project's models by unique id."""
        return {model.unique_id: model for model in self.rendered.models}

    @cached_property
    def _views(self) -> dict[str, RenderedModel]:
        return {i: model for i, model in self.models.items() if is_view(model)}

    def of(self, reader: Reader) -> tuple[str, ...]:
        """Ids of the tables that a node reads, directly or through views."""
        unique_ids = dict.fromkeys(
            ref.unique_id
            for each in (*self.views_below(reader), reader)
            for ref in each.inputs
            if ref.unique_id in self.tables
        )
        return tuple(unique_ids)

    def of_table(self, unique_id: str) -> tuple[str, ...]:
        """Ids of the tables that a table reads: none where it is not that of a model."""
        return self.of(self.models[unique_id]) if unique_id in self.models else ()

    def views_below(self, reader: Reader) -> list[RenderedModel]:
        """Views that a node reads, directly or through views, each after its inputs."""
        by_id = self._views
        views: dict[str, RenderedModel] = {}

        def visit(reader: Reader) -> None:
            for ref in reader.inputs:
                if ref.unique_id in by_id and ref.unique_id not in views:
                    visit(by_id[ref.unique_id])
                    views[ref.unique_id] = by_id[ref.unique_id]

        visit(reader)
        return list(views.values())


def is_view(model: RenderedModel) -> bool:
    """Whether the model has no table: its query is inlined where it is read."""
    return model.config.materialized in ("view", "ephemeral")


def tables_read(inputs: tuple[InputRef, ...], views: Mapping[str, tuple[InputRef, ...]]) -> tuple[InputRef, ...]:
    """The tables that a query reads whose inputs are these. `views`: the tables that each view reads."""
    used = {ref.unique_id: ref for ref in inputs if ref.unique_id not in views}
    for ref in inputs:
        used |= {inner.unique_id: inner for inner in views.get(ref.unique_id, ())}
    return tuple(used.values())
