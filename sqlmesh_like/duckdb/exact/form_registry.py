"""The one list of forms and functions that DuckDB is trusted with, and for what: all that is known of each is a record.

`query` asks it for proofs, `allow_list` for what may be computed without types. Aggregates are those of the catalogue
of functions; the syntax of a query around them (FROM, GROUP BY …) is in `query` and `allow_list` themselves.
"""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.duckdb.exact import (
    aggregates,
    arrays,
    casts,
    conditions,
    json_paths,
    lambdas,
    numbers,
    quantiles,
    structs,
    texts,
    times,
    windows,
)
from sqlmesh_like.duckdb.exact.aggregates import CHOOSES_ANY
from sqlmesh_like.duckdb.exact.form import SYNTAX, Form
from sqlmesh_like.duckdb.exact.list_forms import LIST_FORMS
from sqlmesh_like.duckdb.exact.unproven import Unproven
from sqlmesh_like.duckdb.exact.values import Types

_BY_VALUES: tuple[type[exp.Expr], ...] = (
    exp.ILike, exp.Grouping, exp.GroupingId, *CHOOSES_ANY, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Lag, exp.Lead,
    exp.Ntile, exp.PercentRank, exp.CumeDist,
    exp.TimeStrToTime, exp.Explode, exp.Posexplode, exp.Array,
    exp.CurrentDate, exp.CurrentTimestamp, exp.Pow, exp.AtTimeZone,
    exp.FromTimeZone, exp.SplitPart, exp.Right, exp.RegexpExtract,
    *LIST_FORMS,
)  # fmt: skip
"""Compared with Spark over values of each type, with guards on those that differ; no proof says more of their types.

Of windows, `windows` has the proofs, each of a function with its frame as a whole.
"""

_NAMED = {
    "timestamp_micros": times.timestamp_micros, "arrays_overlap": arrays.overlaps, "forall": lambdas.every_element,
    "pmod": numbers.positive_remainder,
}  # fmt: skip


def _named(node: exp.Anonymous, types: Types) -> str:
    """A function of Spark that sqlglot has no class for."""
    if (proof := _NAMED.get(node.name.lower())) is None:
        raise Unproven(f"function {node.name.upper()}")
    return proof(node, types)


FORMS: dict[type[exp.Expr], Form] = {
    **conditions.FORMS,
    **casts.FORMS,
    **texts.FORMS,
    **times.FORMS,
    **numbers.FORMS,
    **aggregates.FORMS,
    **windows.FORMS,
    **dict.fromkeys(_BY_VALUES, Form()),
    **structs.FORMS,
    **arrays.FORMS,
    **lambdas.FORMS,
    **json_paths.FORMS,
    **quantiles.FORMS,
    exp.Anonymous: Form(_named, is_listed=False, why=SYNTAX),
}


def listed_forms() -> tuple[type[exp.Expr], ...]:
    """Forms that DuckDB may compute where types are not known."""
    return tuple(kind for kind, form in FORMS.items() if form.is_listed)
