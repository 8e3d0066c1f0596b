"""Functions and operators of Spark SQL by name. Each gives Spark's value, or raises NotProvenError."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from sqlmesh_like.cdc.in_process.list_functions import LIST_FUNCTIONS
from sqlmesh_like.cdc.in_process.moments import MOMENT_FUNCTIONS
from sqlmesh_like.cdc.in_process.operators import OPERATORS
from sqlmesh_like.cdc.in_process.strict import Function
from sqlmesh_like.cdc.in_process.text_functions import TEXT_FUNCTIONS

FUNCTIONS: Mapping[str, Function] = {
    **OPERATORS,
    **TEXT_FUNCTIONS,
    **LIST_FUNCTIONS,
    **MOMENT_FUNCTIONS,
    "current_timestamp": lambda: datetime.now(UTC),
}
