"""Queries as DuckDB's SQL, where every value is Spark's to the last digit: what others use of the package `exact`."""

from __future__ import annotations

from sqlmesh_like.duckdb.exact.query import ExactQuery, Relations, exact
from sqlmesh_like.duckdb.exact.unproven import Unproven

__all__ = ["SETUP", "ExactQuery", "Relations", "Unproven", "exact"]

SETUP = (
    "CREATE MACRO _sml_unscaled(x) AS CAST(replace(CAST(x AS VARCHAR), '.', '') AS HUGEINT)",
    # Half up, away from zero. For a divisor of at least `bound`, Spark's own rounding to 38 digits could matter.
    "CREATE MACRO _sml_quotient(a, b, factor, bound) AS CASE WHEN abs(b) < bound THEN sign(a) * sign(b) *"
    " ((abs(a) * factor * 2 + abs(b)) // (2 * abs(b))) ELSE CAST('too large: ' || CAST(b AS VARCHAR) AS HUGEINT) END",
    # As Spark's Percentile does, of sorted doubles; NULL if there are none.
    "CREATE MACRO _sml_percentile(sorted, q) AS list_extract(list_transform([sorted], LAMBDA l : list_extract("
    "list_transform([CAST(len(l) - 1 AS DOUBLE) * q], LAMBDA p : CASE WHEN floor(p) = ceil(p)"
    " OR l[CAST(floor(p) AS BIGINT) + 1] = l[CAST(ceil(p) AS BIGINT) + 1] THEN l[CAST(floor(p) AS BIGINT) + 1]"
    " ELSE (ceil(p) - p) * l[CAST(floor(p) AS BIGINT) + 1] + (p - floor(p)) * l[CAST(ceil(p) AS BIGINT) + 1] END), 1)),"
    " 1)",
    "CREATE MACRO _sml_percentile_disc(sorted, q) AS"
    " list_extract(sorted, greatest(CAST(ceil(CAST(len(sorted) AS DOUBLE) * q) AS BIGINT), 1))",
)
"""Statements to run on a connection before it runs such SQL."""
