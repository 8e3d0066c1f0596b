"""Inferred types and refusals against Spark's own analysis: every function of the table, operators and casts."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import pytest
import sqlglot
from pyspark.sql import SparkSession

from sqlmesh_like.analyze.expressions.expression_types import ExpressionTypes
from sqlmesh_like.analyze.functions.catalogue import all_functions
from sqlmesh_like.analyze.spark_types.refusal import Refusal
from sqlmesh_like.dialects import SPARK
from tests.unit.analyze.test_types import AGGREGATES, CASES, KNOWN

pytestmark = pytest.mark.release

COLUMNS = {
    "ti": "tinyint", "i": "int", "l": "bigint", "d": "decimal(10,2)", "w": "decimal(38,10)", "fl": "float",
    "f": "double", "s": "string", "b": "boolean", "dt": "date", "ts": "timestamp", "tn": "timestamp_ntz",
    "bin": "binary", "arr": "array<int>", "ars": "array<string>", "m": "map<string,int>",
    "st": "struct<a:int,c:string>", "iv": "interval day to second", "ym": "interval year to month",
}  # fmt: skip
_GIVEN = {"any": "i", "number": "i", "integer": "i", "time": "ts", "interval": "iv", "array": "arr", "map": "m",
          "struct": "st", "T": "i", "U": "i", "A": "arr", "M": "m"}  # fmt: skip
"""A column for each class of types."""
FOLDED = {
    "from_json", "to_number", "try_to_number", "schema_of_json", "schema_of_csv", "approx_count_distinct", "ntile",
    "sentences", "nth_value", "first", "last", "first_value", "last_value", "any_value", "rand", "randn", "random",
    "to_char", "to_varchar", "exists", "forall", "filter", "array_sort", "row_number", "rank", "dense_rank",
    "percent_rank", "cume_dist", "xpath", "width_bucket",
}  # fmt: skip
"""Functions with arguments that must be constants, lambdas or windows."""
SIGNS = ("+", "-", "*", "/", "%", "div", "=", "<=>", "<", "&", "||", "and")


class Oracle:
    """Types that Spark's analyzer gives to expressions over one table; None where it refuses them."""

    def __init__(self, spark: SparkSession) -> None:
        items = ", ".join(f"cast(null as {type_}) as {name}" for name, type_ in COLUMNS.items())
        spark.sql(f"select {items}").createOrReplaceTempView("typed")
        state = spark._jsparkSession.sessionState()
        self._parser, self._analyzer = state.sqlParser(), state.analyzer()
        self.types: dict[str, str | None] = {}

    def ask(self, expressions: Sequence[str]) -> None:
        """Ask for many at once. The analysis is not checked, so that one refusal does not hide the others."""
        text = ", ".join(f"{expression} as r{number}" for number, expression in enumerate(expressions))
        try:
            plan = self._analyzer.execute(self._parser.parsePlan(f"select {text} from typed"))
            nodes = plan.expressions()
            if nodes.length() != len(expressions):
                raise ValueError("another plan than a projection or an aggregate")
            for number, expression in enumerate(expressions):
                node = nodes.apply(number)
                self.types[expression] = node.dataType().catalogString() if node.resolved() else None
        except Exception:  # noqa: BLE001 - a rule that raises refuses one of them
            if len(expressions) == 1:
                self.types[expressions[0]] = None
                return
            half = len(expressions) // 2
            self.ask(expressions[:half])
            self.ask(expressions[half:])
            return


def calls() -> Iterator[str]:
    """Each function of the table with each type at each of its parameters."""
    for function in all_functions():
        name, signature = function.name, function.signature
        if signature is None or name in FOLDED:
            continue
        given = [_given(part.removeprefix("=").split("|")[0]) for part in signature.parameters]
        yield f"{name}({', '.join(given[: signature.required])})"
        for position in range(len(given)):
            for column in COLUMNS:
                used = max(signature.required, position + 1)
                yield f"{name}({', '.join([*given[:position], column, *given[position + 1 :]][:used])})"


def _given(type_: str) -> str:
    """A column of a type, or of a class of types."""
    known = (name for name, own in COLUMNS.items() if own == type_)
    return _GIVEN.get(type_) or next(known, f"cast(null as {type_})")


def operators() -> Iterator[str]:
    for left, right in product(COLUMNS, COLUMNS):
        yield from (f"{left} {sign} {right}" for sign in SIGNS)
        yield from (f"coalesce({left}, {right})", f"{left} in ({right})", f"cast({left} as {COLUMNS[right]})")
    for column in COLUMNS:
        yield from (f"-{column}", f"not {column}", f"sum({column})", f"avg({column})", f"round({column}, 1)")
        yield from (f"ceil({column})", f"floor({column}, 1)", f"extract(second from {column})", f"{column} + 1")
        yield from (f"{column} * 1.5", f"{column} + '1'", f"extract(year from {column})", f"{column} + interval 1 day")


def test_types_and_refusals_are_those_of_sparks_analysis(spark: SparkSession) -> None:
    oracle = Oracle(spark)
    expressions = list(dict.fromkeys([*calls(), *operators()]))
    for start in range(0, len(expressions), 100):
        oracle.ask(expressions[start : start + 100])
    wrong, refused = [], []
    for expression, spark_type in oracle.types.items():
        types = ExpressionTypes(lambda column: COLUMNS.get(column.name.lower()))
        tree = sqlglot.parse_one(expression, dialect=SPARK)
        refusals = [node for node in tree.walk() if isinstance(types.outcome(node), Refusal)]
        if spark_type is not None and refusals:
            refused.append(expression)
        elif spark_type is not None and types.of(tree) not in (None, spark_type):
            wrong.append((expression, types.of(tree), spark_type))
    assert not wrong
    assert not refused


_RANKS = ("row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile(3)", "count(*)")
_OF_VALUES = (
    "lag({0})", "lag({0}, 2, {1})", "lead({0})", "lead({0}, 1, {0})", "first_value({0})", "last({0})", "any_value({0})",
    "nth_value({0}, 2)", "sum({0})", "avg({0})", "min({0})", "max({0})", "count({0})", "count({0}, {1})",
    "collect_list({0})", "collect_set({0})", "stddev({0})", "var_pop({0})", "bool_or({0})", "max_by({0}, {1})",
    "sum(if({0} is null, 1, 0))", "bit_or({0})", "mode({0})", "median({0})",
)  # fmt: skip
_FRAMES = (
    "partition by i", "partition by s order by ts, l", "order by d", "partition by dt order by i rows 2 preceding",
    "order by l range between 1 preceding and current row",
    "order by i rows between current row and unbounded following",
)  # fmt: skip


def windows() -> Iterator[str]:
    yield from (f"{rank} over ({frame})" for rank, frame in product(_RANKS, _FRAMES[1:3]))
    dice = random.Random("38 G")
    for form, column in product(_OF_VALUES, COLUMNS):
        call, frame = form.format(column, dice.choice(list(COLUMNS))), dice.choice(_FRAMES)
        yield f"{call} over ({_FRAMES[1] if form.startswith(('lag', 'lead')) else frame})"


def test_each_window_function_has_the_type_that_spark_gives_it(spark: SparkSession) -> None:
    oracle, expressions = Oracle(spark), list(windows())
    for start in range(0, len(expressions), 50):
        oracle.ask(expressions[start : start + 50])
    types = ExpressionTypes(lambda column: COLUMNS.get(column.name.lower()))
    inferred = {text: types.of(sqlglot.parse_one(text, dialect=SPARK)) for text, given in oracle.types.items() if given}
    assert len(inferred) > 250
    assert {text: type_ for text, type_ in inferred.items() if type_ != oracle.types[text]} == {}


@pytest.mark.parametrize("cases", [CASES, AGGREGATES], ids=["values", "aggregates"])
def test_the_types_of_the_unit_tests_are_sparks(spark: SparkSession, cases: Mapping[str, str | None]) -> None:
    table = ", ".join(f"cast(null as {type_}) as {name}" for name, type_ in KNOWN.items() if type_)
    asked = {sql: type_ for sql, type_ in cases.items() if type_ is not None}
    items = ", ".join(f"{sql} as r{number}" for number, sql in enumerate(asked))
    row = spark.sql(f"select {items} from (select {table})").schema
    assert {sql: field.dataType.simpleString() for sql, field in zip(asked, row, strict=True)} == asked
