"""Functions of the project: what stands in a query in the place of a call, and what no function may be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlmesh_like.analyze.query_analysis import parse
from sqlmesh_like.errors import Location, ProjectError, SqlError
from sqlmesh_like.names import NodeId, TableName, python_function_of
from sqlmesh_like.plan.checks.functions import check_functions
from sqlmesh_like.project.functions.declarations import FunctionArgument, FunctionFile, PythonEntry
from sqlmesh_like.project.functions.reading import without_foreign_python
from sqlmesh_like.project.nodes import ModelConfig
from sqlmesh_like.render.functions.expression import SELECT
from sqlmesh_like.render.functions.library import FunctionBody, FunctionLibrary
from sqlmesh_like.render.functions.pieces import Piece, join_pieces
from sqlmesh_like.render.rendered import RenderedModel, SourceMap

HERE = Location("f.yml", 1, 1)


def body(name: str, sql: str, arguments: str = "a int, b string", returns: str = "int") -> FunctionBody:
    """A function with arguments such as `a int, b string = 'x'`."""
    declared = []
    for each in filter(None, arguments.split(", ")):
        (named, _, rest), default = each.partition(" = ")[0].partition(" "), each.partition(" = ")[2] or None
        declared.append(FunctionArgument(named, rest, HERE, HERE, default, HERE))
    function = FunctionFile(
        NodeId("function", "p", name), name, f"functions/{name}.sql", sql, tuple(declared), returns, HERE, HERE
    )
    text = SourceMap(sql, sql)
    return FunctionBody(function, join_pieces(text, [Piece(SELECT, 0), Piece(sql, 0, is_copied=True)]))


def written(sql: str, *bodies: FunctionBody) -> SourceMap:
    return FunctionLibrary(bodies).with_expressions(SourceMap(sql, sql), "m.sql")[0]


def check(library: FunctionLibrary) -> None:
    library.require_sound()
    check_functions(library.rendered_functions())


INC = body("inc", "a + 1", "a int", "bigint")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select inc(x) as y from t", "select cast((cast((x) as int) + 1) as bigint) as y from t"),
        ("select INC ( x -- note\n, 2)", None),
        ("select inc(inc(x))", "select cast((cast((cast((cast((x) as int) + 1) as bigint)) as int) + 1) as bigint)"),
        ("select `inc`(x)", "select cast((cast((x) as int) + 1) as bigint)"),
        ("select 'inc(x)', m.inc(x), inc, t.inc from t -- inc(x)", None),
        ("with inc(x) as (select 1) select x from inc", None),
        ("select inc(sum(x) over (order by y)) from t", None),
        ("select inc(", None),
        ("select case when inc(a /* , */) > 1 then 'f(' end", None),
    ],
)
def test_a_call_becomes_the_expression_and_nothing_else_changes(query: str, expected: str | None) -> None:
    """None: no call is in the text, it cannot be parsed, or the call has something that is checked below."""
    if expected is not None:
        assert written(query, INC).compiled == expected
    elif query == "select INC ( x -- note\n, 2)":
        with pytest.raises(SqlError, match="'inc' has 1 argument, not 2"):
            written(query, INC)
    elif "over" in query:
        assert "cast((sum(x) over (order by y)) as int)" in written(query, INC).compiled
    elif "case" in query:
        assert (
            written(query, INC).compiled == "select case when cast((cast((a) as int) + 1) as bigint) > 1 then 'f(' end"
        )
    else:
        assert written(query, INC).compiled == query


def test_comments_do_not_end_an_expression() -> None:
    noted = body("f", "a -- one\n + /* two */ 1 -- three", "a int")
    assert written("select f(x -- four\n) + 1", noted).compiled == (
        "select cast((cast((x) as int) -- one\n + /* two */ 1) as int) + 1"
    )


def test_functions_call_each_other() -> None:
    outer = body("scaled", "inc(a) * inc(2)", "a decimal(10,2)")
    assert written("select scaled(x)", INC, outer).compiled == (
        "select cast((cast((cast((cast((x) as decimal(10,2))) as int) + 1) as bigint) * "
        "cast((cast((2) as int) + 1) as bigint)) as int)"
    )


def test_an_argument_that_is_left_out_has_its_default() -> None:
    priced = body("priced", "concat(b, a)", "a int, b string = 'EUR'", "string")
    assert "concat(cast(('EUR') as string), cast((1) as int))" in written("select priced(1)", priced).compiled
    with pytest.raises(SqlError, match="'priced' has 1 to 2 arguments, not 0") as refused:
        written("select priced()", priced)
    assert refused.value.hint == "priced(a int, b string), declared at f.yml:1:1"


def test_fields_of_an_argument_are_read_from_it() -> None:
    deep = body("deep", "a.b.c + length(a.b)", "a struct<b: struct<c: int>>")
    assert "cast((s) as struct<b: struct<c: int>>).b.c" in written("select deep(s)", deep).compiled


def test_functions_of_other_databases_may_be_defined() -> None:
    divide = body("safe_divide", "a / nullif(b, 0)", "a double, b double", "double")
    assert "nullif(cast((y) as double), 0)" in written("select safe_divide(x, y)", divide).compiled


def test_positions_are_those_of_the_call_and_of_its_arguments() -> None:
    text = written("select\n  inc(idd), nope", INC)
    assert text.locate(text.compiled.index("cast")) == (2, 3)
    assert text.locate(text.compiled.index("idd")) == (2, 7)
    assert text.locate(text.compiled.index("+ 1")) == (2, 3)
    assert text.locate(text.compiled.index("nope")) == (2, 13)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("", "'f' is empty"),
        ("-- nothing", "'f' is empty"),
        ("select a", "1:1: function 'f' is not one expression"),
        ("a;", "1:2: function 'f' is not one expression"),
        ("a, b", "1:1: function 'f' is not one expression"),
        ("a as c", "1:1: function 'f' is not one expression"),
        ("a from t", "1:1: function 'f' is not one expression"),
        ("a union select 1", "1:1: function 'f' is not one expression"),
        ("distinct a", "1:1: function 'f' is not one expression"),
        ("(select 1)", "not one expression|contains a subquery"),
        ("a + (select max(x) from t)", "contains a subquery"),
        ("a in (select 1)", "contains a subquery"),
        ("sum(a)", "1:1: function 'f' contains an aggregate"),
        ("rank() over (order by a)", "contains a window"),
        ("explode(array(a))", "contains what gives several values"),
        ("a +", "'f' is not an expression: a value is missing"),
        ("upper(b", "'f' is not an expression: Expecting \\)"),
        ("a) + (b", "'f' is not an expression"),
        ("a +\n zz", "functions/f.sql:2:2: function 'f' has no argument 'zz'"),
        ("t.a", "has no argument 't'"),
        ("date_trunc(day, b)", "1:12: 'day' is not read as an argument"),
        ("date_trunc(a, b)", "1:12: 'a' is not read as an argument"),
        ("transform(array(1), a -> a + 1)", "a variable of a lambda in function 'f' has the name of an argument: a"),
        (":a", "contains a parameter|not an expression"),
        ("a + rand()", "1:5: function 'f' is not deterministic"),
        ("uuid()", "function 'f' is not deterministic"),
        ("mode(a)", "contains an aggregate"),
        ("upper(nope(a).b.c) || zz", "has no argument 'zz'"),
    ],
)
def test_what_is_not_an_expression_over_the_arguments_is_refused(sql: str, message: str) -> None:
    library = FunctionLibrary([body("f", sql)])
    with pytest.raises(ProjectError) as refused:
        check(library)
    assert refused.match(message)
    assert refused.value.location is not None and refused.value.location.path == "functions/f.sql"


@pytest.mark.parametrize(
    "sql",
    [
        "a + 1",
        "extract(year from cast(b as date)) + interval 1 day is null",
        "case when b like 'x%' then a else cast(null as int) end",
        "aggregate(transform(array(1, 2), v -> v + a), 0, (x, y) -> x + y)",
        "trim(leading 'x' from b) = struct(a as b).b",
        "date_diff(day, cast(b as date), timestamp '2024-01-01')",
        "b::date in (date '2024-01-01') and not a between 1 and 2",
        "my_udf(a)",
        "to_json(named_struct('a', a))",
    ],
)
def test_expressions_that_are_allowed(sql: str) -> None:
    library = FunctionLibrary([body("f", sql)])
    check(library)


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ([body("abs", "a")], "'abs' is a function of Spark"),
        ([body("Explode", "a")], "'Explode' is a function of Spark"),
        ([body("left", "a")], "'left' cannot be a function"),
        ([body("f", "g(a)"), body("g", "f(a, b)")], "in a cycle: f → g → f|'g' has 2 arguments, not 1"),
        ([body("f", "g(a)", "a int"), body("g", "f(a)", "a int")], "functions call each other in a cycle: f → g → f"),
        ([body("f", "f(a)", "a int")], "in a cycle: f → f"),
        ([body("f", "1", "current_date int")], "'current_date' cannot be the name of an argument"),
        ([body("f", "1", "case int")], "'case' cannot be the name of an argument"),
        ([body("f", "1", "a int = b")], "default_value 'b' is not a value"),
        ([body("f", "1", "a int = 1) + (2")], "default_value .* is not a value"),
        ([body("f", "1", "a int int")], "'int int' is not a type"),
        ([body(f"f{n}", f"f{n + 1}(a)", "a int") for n in range(80)], "in a chain|f80"),
        ([body(f"f{n}", f"f{n - 1}(a) + f{n - 1}(a)" if n else "a", "a int") for n in range(40)], "too long"),
    ],
)
def test_declarations_that_are_refused(functions: list[FunctionBody], message: str) -> None:
    library = FunctionLibrary(functions)
    with pytest.raises(ProjectError, match=message):
        check(library)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select x from inc(1)", "1:15: 'inc' is a function of one row"),
        ("select inc(x) over (order by x) from t", "'inc' is a function of one row"),
        ("select inc(x) filter (where x > 1) from t", "'inc' is a function of one row"),
        ("select inc(distinct x) from t", "this is not an argument of 'inc'"),
        ("select inc(*) from t", "this is not an argument of 'inc'"),
        ("select inc(t.*) from t", "this is not an argument of 'inc'"),
        ("select inc(a => 1)", "this is not an argument of 'inc'"),
        ("select inc(v -> v)", "this is not an argument of 'inc'"),
        ("select inc()", "'inc' has 1 argument, not 0"),
        ("select inc(x::map<string, int>)", "cannot be told apart"),
    ],
)
def test_wrong_calls_are_refused_where_they_are(query: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        written(query, INC)


def test_a_variable_of_a_lambda_does_not_capture_a_name_of_the_query() -> None:
    add = body("add", "transform(a, v -> v + b)", "a array<int>, b int", "array<int>")
    assert "v -> v + cast((w) as int)" in written("select add(xs, w) from t", add).compiled
    with pytest.raises(SqlError, match="has the name of a variable of a lambda in it: v"):
        written("select add(xs, v) from t", add)
    through = body("through", "add(a, b)", "a array<int>, b int", "array<int>")
    with pytest.raises(SqlError, match="has the name of a variable of a lambda in it: v"):
        written("select through(xs, v) from t", add, through)


@pytest.mark.parametrize(
    ("argument", "cause"),
    [
        ("rand()", "rand()"),
        ("(select max(x) from t)", "a subquery"),
        ("my_udf(x)", "my_udf(x)"),
        ("monotonically_increasing_id() + 1", "monotonically_increasing_id()"),
        ("x + 1", None),
        ("sum(x)", None),
        ("rank() over (order by x)", None),
        ("current_timestamp()", None),
        ("to_date(x)", None),
    ],
)
def test_an_argument_that_is_used_twice_has_one_value(argument: str, cause: str | None) -> None:
    twice = body("twice", "case when a > 1 then a end", "a int")
    sql = f"select twice({argument}) as y from t"
    text = written(sql, twice)
    model = RenderedModel(
        NodeId("model", "p", "m"), "m", "m.sql", sql, text.compiled, ModelConfig(), TableName("s", "m"), (), text
    )
    if cause is None:
        assert parse(model)
        return
    with pytest.raises(SqlError) as refused:
        parse(model)
    assert refused.value.message == f"{cause} may have several values here: 'twice' uses it several times"
    assert str(refused.value.location) == "m.sql:1:8"
    once = written(sql, body("twice", "a + 1", "a int"))
    assert not once.repeated


def test_a_python_function_of_a_package_is_called_only_if_the_package_is_allowed() -> None:
    declared = replace(INC.function, path="functions/inc.py", python=PythonEntry("main"), volatility="deterministic")
    (allowed,) = without_foreign_python([declared], ["shop", "p"])
    assert (
        f"cast(({allowed.call_name}(cast((x) as int))) as bigint)"
        in written("select inc(x)", FunctionBody(allowed, SourceMap("", ""))).compiled
    )
    (foreign,) = without_foreign_python([declared], ["shop"])
    with pytest.raises(SqlError, match="in Python, of the package 'p', whose code is not run") as error:
        written("select inc(x)", FunctionBody(foreign, SourceMap("", "")))
    assert "python_model_packages: [p]" in str(error.value.hint)


def test_the_name_of_a_python_function_holds_all_that_decides_its_results() -> None:
    entry = PythonEntry("main")
    declared = replace(INC.function, raw_sql="def main(a): return a", python=entry, volatility="deterministic")
    others = [
        replace(declared, raw_sql="def main(a): return 2"), replace(declared, returns="int"),
        replace(declared, python=PythonEntry("other")), replace(declared, python=PythonEntry("main", "3.11")),
        replace(declared, arguments=body("inc", "a", "a long").function.arguments), replace(declared, volatility=None),
    ]  # fmt: skip
    assert len({each.call_name for each in (declared, *others)}) == len(others) + 1
    assert python_function_of(declared.call_name) == ("inc", True)
    assert python_function_of(others[-1].call_name) == ("inc", False)
