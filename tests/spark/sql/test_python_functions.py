"""Functions of the project in Python: what Spark's workers compute by them, how tables follow, and what errors say."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.errors import Location, NodeError
from sqlmesh_like.names import NodeId
from sqlmesh_like.project.functions.declarations import FunctionArgument, FunctionFile, PythonEntry
from sqlmesh_like.spark.jvm.spark_errors import failing
from sqlmesh_like.spark.program.scalar_functions import register_functions
from tests.spark.lake import Lake

HERE = Location("f.yml", 1, 1)
SCORE = """from decimal import Decimal

FACTOR = Decimal(2)


def main(amount, name):
    if amount is None:
        return None
    if name == "bad":
        raise ValueError("a bad name")
    return int(amount * FACTOR) + len(name or "")
"""
DECLARED = (
    "arguments: [{name: amount, data_type: 'decimal(12,2)'}, {name: name, data_type: string}],"
    " returns: {data_type: int}, config: {volatility: deterministic, entry_point: main}"
)


def of_type(name: str, returns: str, source: str) -> FunctionFile:
    return FunctionFile(
        NodeId("function", "p", name), name, f"functions/{name}.py", source,
        (FunctionArgument("x", "int", HERE, HERE),), returns, HERE, HERE, "deterministic", python=PythonEntry("f"),
    )  # fmt: skip


VALUES = {
    "int": ("x + 1", 8), "bigint": ("x << 40", 7 << 40), "double": ("x", 7.0), "string": ("str(x)", "7"),
    "boolean": ("x > 1", True), "date": ("__import__('datetime').date(2024, 1, x)", date(2024, 1, 7)),
    "decimal(10,2)": ("__import__('decimal').Decimal(x) / 4", Decimal("1.75")),
    "binary": ("bytes([x])", bytearray(b"\7")),
}  # fmt: skip


@pytest.mark.release
def test_workers_compute_values_of_the_declared_types(spark: SparkSession) -> None:
    """Only Spark shows how values come to its workers and back."""
    session = spark.newSession()
    made = [
        of_type(f"f{n}", type_, f"def f(x):\n    return None if x is None else {expression}\n")
        for n, (type_, (expression, _)) in enumerate(VALUES.items())
    ]
    wrong = of_type("wrong", "int", "def f(x):\n    return str(x)\n")
    register_functions(session, [*made, wrong])
    calls = ", ".join(f"{each.call_name}(x) as {each.name}" for each in made)
    rows = [tuple(row) for row in session.sql(f"select {calls} from values (7), (null) as t(x)").collect()]
    assert rows == [tuple(value for _, value in VALUES.values()), (None,) * len(VALUES)]
    with pytest.raises(NodeError, match=r"^functions/wrong\.py: f returned str '1', not a value of int"), failing("x"):
        session.sql(f"select {wrong.call_name}(1)").collect()


@pytest.mark.release
def test_models_follow_their_inputs_and_the_text_of_a_function(lake: Lake) -> None:
    orders = lake.source("orders", "id int, amount decimal(10,2), name string")
    lake.function("score", DECLARED, SCORE)
    lake.function("guess", DECLARED.replace("volatility: deterministic, ", ""), SCORE)
    lake.model("scores", "select id, {{ function('score') }}(amount, name) as s from @orders")
    lake.model(
        "totals", "select name, sum(score(amount, name)) as s from @orders where score(amount, 'a') > 1 group by 1"
    )
    lake.model("guessed", "select id, guess(amount, name) as s from @orders")
    orders.upsert((1, Decimal("2.50"), "ann"), (2, None, None), (3, Decimal("9.00"), None))
    lake.run_well()
    assert lake.rows("scores") == [(1, 8), (2, None), (3, 18)]
    orders.upsert((2, Decimal("1.00"), "ann"))
    assert lake.run_well() == {"scores": "row_based", "totals": "aggregate_merge", "guessed": "full_refresh"}
    assert lake.rows("totals") == [("ann", 13), (None, 18)]
    assert "FUN001" in lake.rules("guessed")
    lake.assert_maintained()
    lake.function("score", DECLARED, SCORE.replace("Decimal(2)", "Decimal(3)"))
    lake.run_well()
    assert lake.rows("scores") == [(1, 10), (2, 6), (3, 27)]
    lake.assert_maintained()
    orders.upsert((4, Decimal("1.00"), "bad"))
    assert lake.run("scores")["scores"].message.startswith("functions/score.py:10: ValueError: a bad name")
