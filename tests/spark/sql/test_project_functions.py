"""What a function of the project computes in Spark: its expression over arguments that have been cast before."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sqlmesh_like.render.functions.library import FunctionBody, FunctionLibrary
from sqlmesh_like.render.rendered import SourceMap
from tests.unit.render.test_functions import body

VALUES = """select * from values
  (1, '2024-02-29', 12.345bd, array(1, null)), (null, 'x', null, null), (-7, '  ', 99999999.995bd, array()),
  (2147483647, '1e3', -0.005bd, array(3)) as t(a, b, d, xs)"""
FUNCTIONS = (
    ("cents", "round(d * 100)", "d decimal(6,2)", "bigint"),
    ("label", "case when n > 1 then concat(s, n) else s || n end", "n tinyint, s string = 'none'", "string"),
    ("shifted", "transform(xs, x -> x + by)", "xs array<bigint>, by double", "array<decimal(10,1)>"),
    ("until", "datediff(coalesce(day, date '2024-01-01'), date '2023-12-31')", "day date", "smallint"),
    ("both", "struct(cents(d) as c, label(n) as l)", "d decimal(6,2), n int", "struct<c: int, l: string>"),
)
CALLS = (
    "cents(d)", "cents(a)", "label(a, b)", "label(b)", "shifted(xs, a)", "until(b)", "until(null)", "both(d, a)",
    "both(d, a).l", "cents(cents(d))", "label(cents(d) + until(b), concat(b, b))",
)  # fmt: skip


def _bound(library: dict[str, FunctionBody], text: str, values: list[str]) -> str:
    """A call as a query of its own: the arguments are cast first, then the expression is computed from them."""
    function = library[text].function
    given = values + [one.default or "null" for one in function.arguments[len(values) :]]
    pairs = zip(given, function.arguments, strict=True)
    columns = ", ".join(f"cast({value} as {argument.type}) as {argument.name}" for value, argument in pairs)
    return f"select cast(({function.raw_sql}) as {function.returns}) as y from (select {columns} from t)"


def test_a_call_is_the_expression_over_cast_arguments(spark: SparkSession) -> None:
    spark.sql(VALUES).createOrReplaceTempView("t")
    bodies = [body(*each) for each in FUNCTIONS]
    by_name, library = {each.function.name: each for each in bodies}, FunctionLibrary(bodies)
    plain = [("cents", ["d"]), ("cents", ["a"]), ("label", ["a", "b"]), ("label", ["b"]), ("shifted", ["xs", "a"]),
             ("until", ["b"]), ("until", ["null"])]  # fmt: skip
    for name, values in plain:
        sql = f"select {name}({', '.join(values)}) as y from t"
        called = spark.sql(library.with_expressions(SourceMap(sql, sql), "m.sql")[0].compiled)
        reference = spark.sql(_bound(by_name, name, values))
        assert called.schema == reference.schema and called.collect() == reference.collect(), sql
    everything = f"select {', '.join(f'{call} as c{n}' for n, call in enumerate(CALLS))} from t where a = 1"
    (row,) = spark.sql(library.with_expressions(SourceMap(everything, everything), "m.sql")[0].compiled).collect()
    assert (row.c0, row.c2, row.c3, row.c6, row.c9) == (1235, "2024-02-291", None, 1, 123500)
    assert row.c7.asDict() == {"c": 1235, "l": "none1"} and row.c8 == "none1"
