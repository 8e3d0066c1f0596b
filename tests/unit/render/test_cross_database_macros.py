"""dbt's cross-database macros on a `duckdb` target: the values of dbt-spark, or that they are not checkable."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
import sqlglot

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.cli.app import main
from sqlmesh_like.duckdb.allow_list import first_unproven
from sqlmesh_like.duckdb.dialect import duck_text
from sqlmesh_like.duckdb.duck_types import cast_item, without_zone
from sqlmesh_like.duckdb.guards import add_guards, guard_in
from sqlmesh_like.errors import JinjaError
from sqlmesh_like.render.renderer import render_inline
from tests.cross_database import MacroCase, macro_cases, macro_tables_on_duckdb
from tests.levels import count
from tests.projects import enter_project

FILES = {
    "profiles.yml": "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
    "dbt_project.yml": "name: shop\n",
}

_NEXT = "\n;;\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter_project(tmp_path, monkeypatch, FILES)
    return tmp_path


def _rendered(text: str) -> str:
    loaded = load(Invocation())
    return render_inline(loaded.project, loaded.target, text).sql


def test_duckdb_has_the_values_of_dbt_spark(project: Path) -> None:
    cases = macro_cases()[:: count(8, 1, 1)]
    texts = _rendered(_NEXT.join(case.template for case in cases)).split(_NEXT)
    with macro_tables_on_duckdb() as db:
        for case, text in zip(cases, texts, strict=True):
            assert _outcome(db, case, text) == (case.not_on_duckdb or case.values), case.call


def _outcome(db: duckdb.DuckDBPyConnection, case: MacroCase, text: str) -> object:
    """The values, or why DuckDB is not asked for them, or its refusal."""
    tree = sqlglot.parse_one(text, dialect="spark")
    if why := first_unproven(tree):
        return why
    query = duck_text(add_guards(tree).transform(without_zone))
    columns = "k, y" if case.over else "y"
    try:
        return case.outcome(db.execute(f"SELECT {cast_item('y', case.type)} FROM ({query}) AS t({columns})").fetchall())
    except duckdb.Error as error:
        return guard_in(str(error)) or "DuckDB's own"


def test_nulls_are_equal_where_the_project_says_so(project: Path) -> None:
    assert _rendered("select {{ dbt.equals('a', 'b') }}") == "select (a = b)"
    flags = "flags: {enable_truthy_nulls_equals_macro: true}\n"
    (project / "dbt_project.yml").write_text(FILES["dbt_project.yml"] + flags)
    assert _rendered("select {{ dbt.equals('a', 'b') }}") == "select ((a) <=> (b))"
    asked = (
        "{{ 1 if adapter.behavior.enable_truthy_nulls_equals_macro else 0 }}{{ 1 if adapter.behavior.other else 0 }}"
    )
    assert _rendered(f"select {asked}") == "select 10"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("dbt.date(2023, 2, 29)", "day is out of range for month"),
        ("dbt.generate_series(0)", "upper bound must be positive"),
        ("dbt.convert_datetime('20240230', '%Y%m%d')", "the date '20240230' is not of the format '%Y%m%d'"),
        ("dbt.dates_in_range('20240102', '20240101')", "dates_in_range: 20240102 is after 20240101"),
        ("dbt.partition_range('1,2,3')", "partition_range takes one date or two"),
        ("dbt.get_powers_of_two(0)", "upper bound must be positive"),
        ("dbt.dateadd('millisecond', 1, 'a')", "dateadd: unknown date part 'millisecond'"),
        ("dbt.datediff('a', 'b', 'decade')", "datediff: unknown date part 'decade'"),
        ("dbt.last_day('a', 'hour')", "last_day: unknown date part 'hour'"),
    ],
)
def test_what_dbt_refuses_is_an_error(project: Path, call: str, message: str) -> None:
    with pytest.raises(JinjaError, match=message):
        _rendered(f"select {{{{ {call} }}}}")


def test_a_spine_whose_end_is_not_after_its_start_is_an_error(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "models").mkdir()
    day = "\"cast('2024-01-01' as date)\""
    (project / "models" / "days.sql").write_text(f"{{{{ dbt.date_spine('day', {day}, {day}) }}}}")
    assert main(["show", "-s", "days"]) != 0
    assert "SEQUENCE to 0" in "".join(capsys.readouterr())


def test_an_order_of_several_columns_is_warned_of(project: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = _rendered("""select {{ dbt.listagg('x', "','", 'order by a, b') }} from t group by h""")
    assert "array_sort(collect_list(cast(x as string)))" in text
    assert "only an order by one expression" in caplog.text
    caplog.clear()
    assert "collect_list" in _rendered("""select {{ dbt.listagg('x', "','", 'order by coalesce(a, b)') }} from t""")
    assert not caplog.text


def test_intervals_between_are_asked_for(project: Path) -> None:
    days = "\"cast('2024-01-01' as date)\", \"cast('2024-01-08' as date)\", 'day'"
    assert (
        _rendered(f"select {{{{ dbt.get_intervals_between({days}) }}}}") == "select 1"
    )  # nobody answers while reading
    (project / "models").mkdir()
    (project / "models" / "asking.sql").write_text(f"select {{{{ dbt.get_intervals_between({days}) }}}} as n")
    assert main(["show", "-s", "asking", "--output", "json"]) == 0


def test_dates_of_a_range_are_lists_of_texts(project: Path) -> None:
    february = "['20240228', '20240229', '20240301']"
    assert _rendered("select {{ dbt.dates_in_range('20240228', '20240301') }}") == f"select {february}"
    assert _rendered("select {{ dbt.partition_range('20240228, 20240301') }}") == f"select {february}"
    assert _rendered("select {{ dbt.partition_range('2024-02-29', '%Y-%m-%d') }}") == "select ['20240229']"
    assert _rendered("select {{ dbt.dates_in_range('20240229', out_fmt='')[0].day }}") == "select 29"


def test_what_is_tried_is_called_within_the_sandbox(project: Path) -> None:
    assert _rendered("select {{ try_or_compiler_error('no', 'a'.ljust, 3) }}|") == "select a  |"
    assert _rendered("select {{ try_or_compiler_error('no', '{0.__class__}'.format, 1) }}|") == "select |"
    for call in ("'a'.ljust, 10 ** 10", "dbt.concat.__class__"):
        with pytest.raises(JinjaError):
            _rendered(f"select {{{{ try_or_compiler_error('no', {call}) }}}}")


def test_what_differs_from_dbt_spark_is_documented() -> None:
    text = (Path(__file__).parents[3] / "docs" / "dbt.md").read_text()
    table = text.split("Intentional differences from dbt-spark:")[1].split("Where dbt-spark and dbt-duckdb")[0]
    calls = [case.call for case in macro_cases() if case.dbt_spark or case.dbt_spark_type]
    names = {call.removeprefix("dbt.string_literal(").split("(")[0] for call in calls}
    assert names == {
        *("dbt.array_construct", "dbt.date_spine", "dbt.escape_single_quotes", "dbt.generate_series", "dbt.listagg"),
        "dbt.split_part",
    }
    assert [name for name in names if f"`{name}" not in table] == []
