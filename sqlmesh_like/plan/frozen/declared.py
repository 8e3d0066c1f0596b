"""The partitions that a model's config freezes. Owns the errors of a config that cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlmesh_like.analyze.spark_types.type_names import stored_type
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.errors import Location, SqlError
from sqlmesh_like.names import Schema
from sqlmesh_like.plan.checks.config_place import config_place
from sqlmesh_like.render.rendered import RenderedModel

if TYPE_CHECKING:  # what has nothing to do imports none of it
    from sqlmesh_like.analyze.query_analysis import QueryFacts
    from sqlmesh_like.delta.frozen import FrozenPartitions

KEY = "frozen_before"


def frozen_partitions(compiled: CompiledModel) -> FrozenPartitions | None:
    """The partitions that the config freezes; None if it freezes none, or where an input has no columns yet.

    Raises SqlError, at the config key or the part of the query, where they cannot be frozen.
    """
    model = compiled.model
    if model.config.frozen_before is None:
        return None
    frozen = declared_partitions(compiled.facts, compiled.facts.schema)
    if compiled.table.build is not None:
        return frozen
    blocker = compiled.classification.reasons[0]
    if blocker.rule == "INP001":
        return None
    place = Location(model.path, blocker.line, blocker.column) if blocker.line else config_place(model, KEY)
    hint = "its rows have no keys by which those of other partitions could be compared; leave frozen_before out"
    message = f"{KEY} of {model.table} needs a query that can be followed: {blocker.rule} {blocker.message}"
    raise SqlError(message, location=place, hint=hint)


def declared_partitions(facts: QueryFacts, shown: Schema | None) -> FrozenPartitions | None:
    """The partitions that the config freezes; None if it freezes none, or if the query's columns are not known.

    Raises SqlError, at the config key, for a model that has no such partitions, or a boundary of another type.
    """
    from sqlmesh_like.delta.frozen import FrozenPartitions

    model, config = facts.model, facts.model.config
    if config.frozen_before is None:
        return None
    if kind := _without_partitions(model):
        raise _fault(model, f"{kind} has no partitions that can be frozen", "leave it out")
    if not config.partition_by:
        raise _fault(model, "the table has no partitions", "set partition_by: its first column is compared with it")
    name = config.partition_by[0]
    column = next((each for each in shown or () if each.name.lower() == name.lower()), None)
    if column is None or facts.relation is None:
        return None
    frozen = FrozenPartitions(column.name, config.frozen_before, stored_type(column.type) or "")
    try:
        frozen.is_live()
    except ValueError as error:
        raise _fault(model, f"{error} (column {column.name})", "give a value of the column's type") from error
    return frozen


def _without_partitions(model: RenderedModel) -> str | None:
    if model.python is not None:
        return "a Python model"
    if model.author_strategy is not None:
        return "a model with is_incremental()"
    kind = model.config.materialized
    return None if kind in ("incremental", "table") else f"a model that is {kind}"


def _fault(model: RenderedModel, message: str, hint: str) -> SqlError:
    return SqlError(f"{KEY} of {model.table}: {message}", location=config_place(model, KEY), hint=hint)
