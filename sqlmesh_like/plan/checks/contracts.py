"""Whether a query fulfils the contract of its model. Owns comparing names and types; `analyze` owns the order.

Source: https://docs.getdbt.com/docs/mesh/govern/model-contracts. Types are compared in Spark's spelling; a type that is
not known before Spark has run is checked by the run.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlmesh_like.analyze.spark_types.type_names import normalize
from sqlmesh_like.errors import Location, SqlError
from sqlmesh_like.names import Column, Schema
from sqlmesh_like.plan.checks.comparison_types import type_family
from sqlmesh_like.render.rendered import RenderedModel

_HINT = "names, types and number of columns must be those of the contract: change the query, or the YAML"
_ANY_DECIMAL = ("decimal", "numeric", "dec")
_BY_OTHERS = {"bool": "boolean", "integer": "int", "int64": "bigint", "float64": "double", "datetime": "timestamp"}


def refuse_incomplete(model: RenderedModel) -> None:
    """Raise SqlError for a contract that lacks columns or their types, and for one of an ephemeral model."""
    if not model.has_contract:
        return
    if model.config.materialized == "ephemeral":
        raise _error(model, "a model that is ephemeral can have no contract", "materialize it as a view or table")
    if not model.declared:
        raise _error(model, "its contract is enforced, but its YAML declares no columns", "list them, with data_type")
    if untyped := [column.name for column in model.declared if not column.type]:
        message = f"its contract is enforced, but these columns have no data_type: {', '.join(untyped)}"
        place = model.column_places.get(untyped[0].lower())
        raise _error(model, message, "declare the type of each column", place)


def refuse_breach(model: RenderedModel, shown: Schema | None, written: Mapping[str, Location] | None = None) -> None:
    """Raise SqlError with all differences, at the first one's declaration.

    `shown`: columns of the query; None: not known. `written`: where the query has a column, by lower-case name.
    """
    if not model.has_contract or shown is None:
        return
    promised = {column.name.lower(): column.type or "" for column in model.declared}
    types = {column.name.lower(): column.type for column in shown}
    differences = {name: "missing in the contract" for name in types if name not in promised}
    differences |= {name: "missing in the query" for name in promised if name not in types}
    for name, type_ in types.items():
        if name in promised and type_ is not None and not is_kept(promised[name], type_):
            differences[name] = f"the query gives {normalize(type_)}, the contract says {promised[name]}"
    if differences:
        places = [model.column_places.get(name) or (written or {}).get(name) for name in differences]
        contract = model.config_places.get("contract", Location(model.path, 1, 1))
        texts = [f"{name}: {text}" for name, text in differences.items()]
        texts[1:] = [f"{text} ({place})" if place else text for text, place in zip(texts[1:], places[1:], strict=True)]
        message = f"the query breaks the model's contract: {'; '.join(texts)}"
        raise SqlError(message, location=places[0] or contract, hint=_HINT)


def refuse_unlike(model: RenderedModel, derived: Schema | None, computed: Schema) -> None:
    """Raise SqlError as `refuse_breach` does, for a query that DuckDB computed.

    Its type of a column counts where Spark's could not be `derived`, and then only whether it is text, a number, a time
    or a boolean: how wide its numbers are is DuckDB's own.
    """
    known = {column.name.lower(): column.type for column in derived or ()}
    promised = {column.name.lower(): normalize(_spark_name(column.type or "")) for column in model.declared}

    def derived_type(column: Column) -> str | None:
        name = column.name.lower()
        if known.get(name) is not None:
            return known[name]
        families = {type_family(column.type), type_family(promised.get(name))}
        return column.type if len(families - {None}) == 2 else None

    refuse_breach(model, tuple(Column(column.name, derived_type(column)) for column in computed))


def is_kept(promised: str, type_: str) -> bool:
    """Whether a column of type `type_` fulfils a contract that declares it as `promised`.

    >>> is_kept("numeric", "decimal(12,2)"), is_kept("decimal(10,2)", "decimal(12,2)"), is_kept("varchar(3)", "string")
    (True, False, True)
    """
    wanted = promised.strip().lower()
    if wanted in _ANY_DECIMAL:
        return type_.lower().startswith("decimal")
    return normalize(_spark_name(wanted)) == normalize(type_)


def _spark_name(promised: str) -> str:
    wanted = promised.strip().lower()
    return _BY_OTHERS.get(wanted, wanted)


def _error(model: RenderedModel, message: str, hint: str, location: Location | None = None) -> SqlError:
    contract = model.config_places.get("contract", Location(model.path, 1, 1))
    return SqlError(message, location=location or contract, hint=hint)
