"""What `sml compile` finds in a model before anything runs, and what it must let pass; no lake and no JVM."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main

SOURCES = """
version: 2
sources:
  - name: shop
    schema: ods
    tables:
      - name: orders
        columns: [{name: id, data_type: int}, {name: buyer, data_type: int}, {name: amount, data_type: double}]
      - name: users
        columns: [{name: id, data_type: int}, {name: city, data_type: string}, {name: tags, data_type: array<string>}]
      - name: partly
        columns: [{name: id}]
"""
ORDERS, USERS, PARTLY = (f"{{{{ source('shop', '{name}') }}}}" for name in ("orders", "users", "partly"))
JOINED = f"{ORDERS} o join {USERS} u on o.buyer = u.id"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "models").mkdir()
    (tmp_path / "seeds").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "shop"\n')
    (tmp_path / "profiles.yml").write_text("lake: {target: a, outputs: {a: {type: spark, schema: dws}}}\n")
    (tmp_path / "models/s.yml").write_text(SOURCES)
    (tmp_path / "seeds/cities.csv").write_text("city,country\nBerlin,DE\n")
    (tmp_path / "models/base.sql").write_text(f"select o.id, u.city from {JOINED}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("sql", "place", "message", "hint"),
    [
        (f"select idd from {ORDERS}", "1:8", "unknown column 'idd'", "did you mean 'id'?"),
        (
            f"select\n  o.id,\n  u.citty\nfrom {JOINED}",
            "3:3",
            "unknown column 'citty' of 'u'",
            "'city'",
        ),
        (
            f"select x.id from {JOINED}",
            "1:8",
            "unknown table or alias 'x'",
            "known: o, u",
        ),
        (
            f"select buyer, amount from {ORDERS} group by buyer",
            "1:15",
            "neither in GROUP BY nor in an aggregate",
            "aggregate it",
        ),
        (
            f"select id from {ORDERS} where id in (select idx from {USERS})",
            None,
            "unknown column 'idx'",
            "did you mean 'id'?",
        ),
        (
            f"with c as (select id from {ORDERS}) select c.ix from c join {USERS} u on c.id = u.id",
            None,
            "unknown column 'ix' of 'c'",
            "known: id",
        ),
        ("select ciy from {{ ref('base') }}", "1:8", "unknown column 'ciy'", "did you mean 'city'?"),
        ("select contry from {{ ref('cities') }}", "1:8", "unknown column 'contry'", "did you mean 'country'?"),
        ("select id from ods.orders", "1:16", "table ods.orders is not a ref() or source()", "source('…', 'orders')"),
        (f"select id from {ORDERS};\nselect 1", "2:1", "a second statement starts here", ""),
        (f"delete from {ORDERS}", "1:1", "a model is one SELECT; this is DELETE", ""),
        (f"select 1 as a,\n'abc from {ORDERS}", "2:1", "this quote is never closed", ""),
        (f"select 1 /* abc from {ORDERS}", "1:10", "this comment is never closed", ""),
        (
            "{{ config(unique_key='idd') }}\n" + f"select id from {ORDERS}",
            "1:11",
            "unique_key names 'idd'",
            "did you mean 'id'?",
        ),
    ],
)
def test_an_error_has_its_place_in_the_models_own_file(
    project: Path, capsys: pytest.CaptureFixture[str], sql: str, place: str | None, message: str, hint: str
) -> None:
    (project / "models/m.sql").write_text(sql)
    assert main(["compile"]) == 2
    error = capsys.readouterr().err
    assert f"models/m.sql:{place}: " in error if place else "models/m.sql:1:" in error
    assert message in error
    assert hint in error
    assert not (project / "target").exists()


@pytest.mark.parametrize(
    "sql",
    [
        f"select id from {ORDERS} o where exists (select 1 from {USERS} u where u.id = o.buyer and amount > 1)",
        f"select t.tag, u.id from {USERS} u lateral view explode(tags) t as tag where tag > 'a'",
        f"select transform(u.tags, x -> concat(x, city)) as t from {USERS} u join {ORDERS} o on o.id = u.id",
        f"select o.id as oid, oid + 1 as next from {ORDERS} o join {USERS} u on o.id = u.id",
        f"select city, sum(amount) as t from {JOINED} group by city having t > 1 order by t",
        f"select datediff(day, now(), now()) as d, extract(year from now()) y from {JOINED}",
        f"select whatever from {PARTLY}",
        f"select p.whatever, city from {PARTLY} p join {USERS} u on p.id = u.id",
        f"select * from (select id as a from {ORDERS} union select id from {USERS}) x join {USERS} u on x.a = u.id",
        f"select named_struct('f', 1).f as f, o.* from {ORDERS} o cross join {USERS}",
        f"with few as (select * from {ORDERS}) select few.amount from few left join {USERS} u on few.buyer = u.id",
        f"select id, v.a from {ORDERS} join (values (1, 2)) as v(a, b) on v.b = id",
        "select explode(array(1, 2)) as n",
    ],
)
def test_valid_sql_passes(project: Path, capsys: pytest.CaptureFixture[str], sql: str) -> None:
    (project / "models/m.sql").write_text(sql)
    assert main(["compile"]) == 0, capsys.readouterr().err


def test_every_broken_model_is_named_at_once(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "models/x.sql").write_text("selec 1")
    (project / "models/y.sql").write_text(f"select idd from {ORDERS}")
    assert main(["compile"]) == 2
    error = capsys.readouterr().err
    assert "2 nodes cannot be run" in error and "models/x.sql:1:" in error and "models/y.sql:1:8" in error


def test_no_check_renders_what_cannot_be_bound(project: Path) -> None:
    (project / "models/m.sql").write_text(f"select idd from {ORDERS}")
    assert main(["compile", "--no-check"]) == 0
    assert (project / "target/compiled/shop/models/m.sql").exists()


def test_only_selected_models_and_what_they_read_are_checked(project: Path) -> None:
    (project / "models/m.sql").write_text(f"select idd from {ORDERS}")
    assert main(["compile", "-s", "base"]) == 0
    assert main(["run", "-s", "m"]) == 2


@pytest.mark.parametrize(
    ("sql", "place", "message"),
    [
        (f"select id,\n  , buyer from {ORDERS}", "1:10", "after a comma"),
        (f"select id,\nfrom {ORDERS}", "1:10", "after a comma"),
        (f"select\nfrom {ORDERS}", "1:1", "after SELECT"),
        (f"select coalesce(, id) as id from {ORDERS}", "1:17", "before a comma"),
        (f"select count(*) as n from {ORDERS}\ngroup by", "2:1", "after GROUP BY"),
    ],
)
def test_a_list_with_a_gap_is_invalid_sql(
    project: Path, capsys: pytest.CaptureFixture[str], sql: str, place: str, message: str
) -> None:
    (project / "models/gap.sql").write_text(sql)
    assert main(["compile", "-s", "gap"]) == 2
    assert f"models/gap.sql:{place}: invalid SQL: something is missing {message}" in capsys.readouterr().err


CONTRACTED = """models:
  - name: kept
    config: {contract: {enforced: true}}
    columns: [{name: amount, data_type: double}, {name: id, data_type: int}]
"""


@pytest.mark.parametrize(
    ("sql", "columns", "place", "expected"),
    [
        (
            "id, cast(amount as string) as amount, buyer",
            "",
            "models/kept.sql:1:46: ",
            "buyer: missing in the contract; amount: the query gives string, the contract says double",
        ),
        ("id", "", "models/kept.yml:4:41: ", "amount: missing in the query"),
        (
            "id, amount",
            "[{name: id}, {name: amount, data_type: double}]",
            "models/kept.yml:4:22: ",
            "these columns have no data_type: id",
        ),
    ],
)
def test_a_contract_that_is_enforced_is_kept(
    capsys: pytest.CaptureFixture[str], sql: str, columns: str, place: str, expected: str
) -> None:
    text = CONTRACTED if not columns else CONTRACTED.rpartition("columns:")[0] + f"columns: {columns}\n"
    Path("models/kept.yml").write_text(text)
    Path("models/kept.sql").write_text(f"select {sql} from {ORDERS}")
    assert main(["compile"]) == 2
    shown = capsys.readouterr().err
    assert place in shown and expected in shown


@pytest.mark.parametrize(
    ("sql", "column"),
    [("select 1 as amount, 2 as id", "amount"), ("select 1.5D as amount, cast(null as string) as id", "id")],
)
def test_a_contract_is_checked_where_a_query_reads_nothing(
    capsys: pytest.CaptureFixture[str], sql: str, column: str
) -> None:
    Path("models/kept.yml").write_text(CONTRACTED)
    Path("models/kept.sql").write_text(sql)
    assert main(["compile", "-s", "kept"]) == 2
    assert f"the query breaks the model's contract: {column}: the query gives " in capsys.readouterr().err


@pytest.mark.parametrize("materialized", ["table", "view"])
def test_a_contract_is_checked_on_duckdb_where_types_cannot_be_derived(
    capsys: pytest.CaptureFixture[str], materialized: str
) -> None:
    Path("models/kept.yml").write_text(CONTRACTED.replace("double", "string"))
    Path("profiles.yml").write_text("lake: {target: a, outputs: {a: {type: duckdb, schema: dws}}}\n")
    sql = "{{{{ config(materialized='{}') }}}} select amount, id from (select {} as amount, 1 as id)"
    for amount, code in (("'x'", 0), ("round(2.5BD, 1 + 0)", 1)):
        Path("models/kept.sql").write_text(sql.format(materialized, amount))
        assert main(["run", "-s", "kept"]) == code
    assert "amount: the query gives decimal(2,1), the contract says string" in capsys.readouterr().out


def test_a_table_has_its_columns_in_the_order_of_its_contract(capsys: pytest.CaptureFixture[str]) -> None:
    Path("models/kept.yml").write_text(CONTRACTED)
    config = "{{ config(materialized='table') }} "
    Path("profiles.yml").write_text("lake: {target: a, outputs: {a: {type: duckdb, schema: dws}}}\n")
    Path("fixtures/shop").mkdir(parents=True)
    Path("fixtures/shop/orders.csv").write_text("id,buyer,amount\n1,2,3.5\n")
    for sql in (f"select id, amount from {ORDERS}", f"with c as (select id, amount from {ORDERS}) select * from c"):
        Path("models/kept.sql").write_text(config + sql)
        assert main(["show", "kept", "--output", "csv"]) == 0
        assert capsys.readouterr().out.splitlines()[0] == "amount,id"


@pytest.mark.parametrize(
    ("sql", "place", "expected"),
    [
        (
            f"select o.id from {ORDERS} o\njoin {USERS} u on o.id = date '2024-01-01'",
            "2:",
            "this join compares a number",
        ),
        (
            f"select id from {ORDERS}\nunion all\nselect true from {USERS}",
            "",
            "the column 'id' is a number above and a boolean here",
        ),
    ],
)
def test_types_that_spark_cannot_bring_together_are_errors(
    capsys: pytest.CaptureFixture[str], sql: str, place: str, expected: str
) -> None:
    Path("models/met.sql").write_text(sql)
    assert main(["compile"]) == 2
    shown = capsys.readouterr().err
    assert f"models/met.sql:{place}" in shown and expected in shown


def test_types_that_spark_converts_are_warnings_each_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    config = "{{ config(materialized='view') }}\n"
    Path("models/met.sql").write_text(f"{config}select o.id from {ORDERS} o join {USERS} u on o.id = u.city")
    Path("models/above.sql").write_text("select id from {{ ref('met') }}")
    for _ in range(2):  # the second time it is known, and said as well
        assert main(["compile"]) == 0
        shown = capsys.readouterr().err
        assert shown.count("LNT001 this join compares a number with text") == 1 and "models/met.sql:2:" in shown
    assert main(["compile", "--output", "github"]) == 0
    assert capsys.readouterr().out.startswith("::warning file=models/met.sql,line=2,")


@pytest.mark.parametrize(
    ("columns", "where", "expected"),
    [
        ("id, buyer", "buyerr > 0", "unknown column 'buyerr'"),
        (
            "id",
            "id > (select max(id) from {{ this }})",
            "where is_incremental() is true the query has no column 'buyer'",
        ),
        ("id, date '2024-01-01' as buyer", "true", "the column 'buyer' is a number, and a time where"),
    ],
)
def test_both_branches_of_incremental_sql_are_bound(
    capsys: pytest.CaptureFixture[str], columns: str, where: str, expected: str
) -> None:
    branch = f"{{% if is_incremental() %}}\nselect {columns} from {ORDERS} where {where}\n{{% else %}}"
    Path("models/marked.sql").write_text(f"{branch}select id, buyer from {ORDERS}{{% endif %}}")
    assert main(["compile"]) == 2
    shown = capsys.readouterr().err
    assert expected in shown and "models/marked.sql:" in shown
