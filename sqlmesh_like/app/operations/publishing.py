"""Publishes tables of models to their destinations, in a run or outside of one. Owns opening the destinations."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

from sqlmesh_like.app.lakes.lake import HudiLake
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.lakes.lake_tables import require_lake
from sqlmesh_like.app.lakes.release_lake import reading_lake
from sqlmesh_like.app.lakes.table_locks import publication_locks
from sqlmesh_like.app.loading.destinations import destinations
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.errors import MachineError, SelectionError, SmlError
from sqlmesh_like.project.publishing import Destination
from sqlmesh_like.publish.publisher import LakePublisher, SentTables
from sqlmesh_like.publish.store import Store
from sqlmesh_like.render.rendered import RenderedModel
from sqlmesh_like.run.ports import Publisher, PublishResult


@dataclass(frozen=True)
class Publication:
    """One table sent to all of its destinations. `error`: why one failed; those that were written before stay so."""

    model: RenderedModel
    sent: tuple[PublishResult, ...]
    seconds: float
    error: str | None = None


class PublishListener(Protocol):
    """Receives each table before and after it is published."""

    def started(self, number: int, total: int, model: RenderedModel) -> None: ...

    def ended(self, number: int, total: int, result: Publication) -> None: ...


def publish_tables(loaded: Loaded, listener: PublishListener, at: str | None = None) -> tuple[Publication, ...]:
    """Update the destinations of the selected models; a full refresh replaces their rows.

    `at`: the release that is sent, see `reading_lake`. Raises SelectionError where no selected model is published.
    """
    selected = [node.unique_id for node in loaded.select_nodes("model", "snapshot")]
    require_lake(loaded)
    lake = reading_lake(loaded, at)
    publisher = publisher_of(lake, selected, afresh=loaded.invocation.full_refresh)
    if publisher is None:
        hint = "set config(publish=true) in a model, or +publish: true in the project's settings"
        raise SelectionError("no selected model is published", hint=hint)
    models = [model for model in loaded.rendered.models if model.unique_id in publisher.chosen]
    results: list[Publication] = []
    with lake_lock(loaded, "publish", publication_locks(lake, publisher)):
        try:
            sender: Publisher = publisher
            if loaded.project.release is not None:  # its tables belong together at the destinations, too
                loaded.reporter.phase(f"publishing {len(models)} tables")
                sender = SentTables(publisher.publish_together(models))
            for number, model in enumerate(models, 1):
                loaded.reporter.phase(f"publishing {number} of {len(models)}, {model.table}")
                listener.started(number, len(models), model)
                results.append(_publish(model, sender))
                listener.ended(number, len(models), results[-1])
        finally:
            publisher.close()
            lake.engine.stop()
    return tuple(results)


def _publish(model: RenderedModel, publisher: Publisher) -> Publication:
    started = perf_counter()
    try:
        sent = publisher.publish(model)
    except SmlError as error:
        return Publication(model, (), perf_counter() - started, str(error))
    return Publication(model, sent, perf_counter() - started)


def publisher_of(lake: HudiLake, selected: Collection[str], *, afresh: bool = False) -> LakePublisher | None:
    """Return a publisher of the selected models, None where none of them is published.

    Raises ProjectError with the model's file for a destination that the target does not have.
    """
    loaded = lake.loaded
    chosen: dict[str, tuple[Destination, ...]] = {
        model.unique_id: destinations(model, loaded)
        for model in loaded.rendered.models
        if model.unique_id in selected and model.config.publish is not None
    }
    if not chosen:
        return None
    staging = f"{loaded.target.warehouse.rstrip('/')}/_sml/publish"
    return LakePublisher(lake.catalog, lake.engine, chosen, open_store, staging, afresh)


def open_store(destination: Destination) -> Store:
    """Return the store of a destination. Raises ProjectError or MachineError where it cannot be opened as declared."""
    match destination.kind:
        case "duckdb":
            from sqlmesh_like.publish.duckdb_file import DuckDBStore  # a run that publishes nothing need not import it

            return DuckDBStore(destination)
        case "parquet":
            from sqlmesh_like.publish.parquet_file import ParquetStore

            return ParquetStore(destination)
        case "url":
            try:
                from sqlmesh_like.publish.database import DatabaseStore
            except ImportError:
                hint = "pip install 'sqlmesh_like[publish]', and the driver of your database"
                message = f"publish destination {destination.name!r} needs SQLAlchemy"
                raise MachineError(message, hint=hint) from None
            return DatabaseStore(destination)
