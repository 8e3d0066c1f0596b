"""Functions of the project in Python, known to a session of Spark. Owns under which names, and how workers get them."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from sqlmesh_like.analyze.expressions.types import normalize
from sqlmesh_like.project.functions.declarations import FunctionFile
from sqlmesh_like.spark.program import python_scalar


def register_functions(session: SparkSession, functions: Iterable[FunctionFile]) -> None:
    """Let queries of a session call the functions in Python; none of their code is run."""
    for function in functions:
        if function.python is None or function.unsupported is not None:
            continue
        # Executors of a cluster need not have this package.
        cloudpickle.register_pickle_by_value(python_scalar)  # type: ignore[no-untyped-call]
        returns = normalize(function.returns)
        python = function.python
        call = python_scalar.PythonScalar(
            function.raw_sql, function.path, python.entry_point, returns, python.runtime_version
        )
        made = udf(call, returns)
        is_decided = function.volatility == "deterministic"
        session.udf.register(function.call_name, made if is_decided else made.asNondeterministic())
