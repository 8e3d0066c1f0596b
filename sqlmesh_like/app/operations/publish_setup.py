"""Publishing behind an operation. Owns opening the destinations that the configs of models mean."""

from __future__ import annotations

from collections.abc import Collection

from sqlmesh_like.app.lakes.lake import HudiLake
from sqlmesh_like.app.loading.destinations import destinations
from sqlmesh_like.errors import MachineError
from sqlmesh_like.project.publishing import Destination
from sqlmesh_like.publish.publisher import LakePublisher
from sqlmesh_like.publish.store import Store


def publisher_of(lake: HudiLake, selected: Collection[str], *, afresh: bool = False) -> LakePublisher | None:
    """Publishes the selected models; None where none of them is published.

    Raises ProjectError with the model's file for a destination that the target does not have.
    """
    loaded = lake.loaded
    chosen = {
        model.unique_id: destinations(model, loaded)
        for model in loaded.rendered.models
        if model.unique_id in selected and model.config.publish is not None
    }
    if not chosen:
        return None
    staging = f"{loaded.target.warehouse.rstrip('/')}/_sml/publish"
    return LakePublisher(lake.catalog, lake.engine, chosen, open_store, staging, afresh)


def open_store(destination: Destination) -> Store:
    """The store of a destination. Raises ProjectError or MachineError where it cannot be reached as it is declared."""
    match destination.kind:
        case "duckdb":
            from sqlmesh_like.publish.duckdb_file import DuckDBStore  # a run that publishes nothing need not wait

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
