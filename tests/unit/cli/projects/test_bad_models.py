"""`sml run` over a model that cannot run: refused at its place, before Spark starts, with nothing changed.

Each case is checked where the columns of its inputs are known, and where they are not.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main

COLUMNS = """
        columns: [{name: id, data_type: int}, {name: buyer, data_type: int}, {name: amount, data_type: double}]
      - name: users
        columns: [{name: id, data_type: int}, {name: city, data_type: string}]
"""
NO_COLUMNS = """
      - name: users
"""
ORDERS, USERS = "{{ source('shop', 'orders') }}", "{{ source('shop', 'users') }}"
JOINED = f"{ORDERS} o\njoin {USERS} u on o.buyer = u.id"
STRICT = "{{ config(refresh='strict') }}\n"

ANYWHERE = {
    f"select id\nfrom {ORDERS}\nwher id = 1": ("3:1", "unexpected `wher`", "did you mean WHERE?"),
    f"selct id from {ORDERS}": ("1:1", "unexpected `selct`", "did you mean SELECT?"),
    f"select id\nfrom {ORDERS}\nwhere": ("3:1", "a condition is missing after WHERE", ""),
    f"select id from {ORDERS} where id in ()": ("1:53", "the list of IN is empty", ""),
    f"select case when id > 1 then 1 as x\nfrom {ORDERS}": ("1:32", "`END` is missing before `as`", ""),
    f"select id from {ORDERS}\nlimit 'a'": ("2:7", "LIMIT must be a whole number", ""),
    "select ${day} as d": ("1:8", "${day} is a parameter", "var('…')"),
    f"insert into {ORDERS} select 1": ("1:1", "a model is one SELECT; this is INSERT", ""),
    f"update {ORDERS} set id = 1": ("1:1", "this is UPDATE", ""),
    f"delete from {ORDERS}": ("1:1", "this is DELETE", ""),
    f"merge into {ORDERS} using {USERS} on true when matched then delete": ("1:1", "this is MERGE", ""),
    f"drop table {ORDERS}": ("1:1", "this is DROP", ""),
    "vacuum t": ("1:1", "this is VACUUM", ""),
    f"select id from {ORDERS};\nselect 2 as x": ("2:1", "a second statement starts here", ""),
    f"select id from {ORDERS};\ndrop table x": ("2:1", "a second statement starts here", ""),
    "select id from ods.orderz": ("1:16", "the table ods.orderz is not a ref() or source()", "declare a source"),
    "select id from {{ ref('n') }}": ("1:19", "no model or seed is named 'n'", "known: m"),
    "select id from {{ source('shop', 'order') }}": ("1:19", "has no table 'order'", "did you mean 'orders'?"),
    f"select id from {ORDERS}\nwhere sum(amount) > 1": ("2:7", "an aggregate is not allowed in WHERE", "HAVING"),
    f"select o.id from {ORDERS} o\njoin {USERS} u on max(u.id) = o.id": ("2:", "is not allowed in ON", ""),
    f"select sum(amount) as s from {ORDERS} group by sum(amount)": ("1:", "is not allowed in GROUP BY", ""),
    f"select sum(max(amount)) as s from {ORDERS}": ("1:12", "cannot be nested in another one", "subquery"),
    f"select id from {ORDERS} where row_number() over (order by id) = 1": ("1:", "is not allowed in WHERE", "QUALIFY"),
    f"select row_number() over (partition by id) as n from {ORDERS}": ("1:8", "has no order", "ORDER BY"),
    f"select rank() as n from {ORDERS}": ("1:8", "RANK() needs a window", "OVER"),
    f"select id from {ORDERS} order by 5": ("1:", "ORDER BY position 5", "it has 1 columns"),
    f"select id,\n  summ(amount) as x from {ORDERS} group by id": (
        "2:3",
        "unknown function 'summ'",
        "did you mean 'sum'?",
    ),
    "select qqxyzzyqq() as x": ("1:8", "unknown function 'qqxyzzyqq'", "Spark's own"),
    f"select id + 1 from {ORDERS} limit 1": ("1:8", "the column 'id + 1' has no name", "add an alias"),
    f"select (select max(id) from {USERS})": ("1:", "has no name", "add an alias"),
    f"select id,\n  substring(id) as s from {ORDERS}": (
        "2:3",
        "substring takes 2 or 3 arguments, not 1",
        "Spark refuses",
    ),
    f"select explode(array(id), 2) as s from {ORDERS}": ("1:8", "explode takes 1 argument, not 2", "Spark refuses"),
    f"select id, id from {ORDERS} limit 1": ("1:12", "two columns are named 'id'", "another alias"),
    f"select id as {'x' * 768} from {ORDERS}": ("1:8", "a name of 768 characters: xxxxxxxxxxxxxxxxxxxx…", "up to 767"),
    f"select id::bigint as a, 'b::c' as b, 1L as d from {ORDERS}": ("1:10", "Spark 3.5 does not read `::`", "cast(…"),
    f"select id as `my id` from {ORDERS}": ("1:8", "a table cannot have a column named 'my id'", "give it an alias"),
    f"select id as _sml_x from {ORDERS} tablesample (1 rows)": (
        "1:8",
        "a table cannot have a column named '_sml_x'",
        "an alias",
    ),
    f"select distinct on (id) id from {ORDERS}": ("1:", "DISTINCT ON is not Spark SQL", "QUALIFY"),
    f"{STRICT}select id,\n  rand() as r from {ORDERS}": ("3:3", "FUN002 RAND() is not deterministic", "refresh: auto"),
    f"{STRICT}select id from {ORDERS} where uuid() > 'a' limit 3": ("2:", "FUN002 UUID() is not", "refresh: auto"),
}
WHERE_KNOWN = {
    f"select x.id from {JOINED}": ("1:8", "unknown table or alias 'x'", "known: o, u"),
    f"select idd from {ORDERS}": ("1:8", "unknown column 'idd'", "did you mean 'id'?"),
    f"select o.idd from {JOINED}": ("1:8", "unknown column 'idd' of 'o'", "did you mean 'id'?"),
    f"select id from {JOINED}": ("1:8", "the column 'id' is ambiguous", "write o.id or u.id"),
    f"select orders.id from {ORDERS} join {ORDERS} on true": (
        "1:8",
        "the column 'id' is ambiguous",
        "two items of FROM have one name: give each an alias of its own",
    ),
    f"select id from {JOINED} limit 3": ("1:8", "the column 'id' is ambiguous", "write o.id or u.id"),
    f"select amount from {ORDERS} o join {USERS} u\nusing (idd)": ("2:8", "unknown column 'idd'", "did you mean 'id'?"),
    f"select rand() as r,\nsum(r) over (partition by id) as s from {ORDERS}": (
        "2:5",
        "the alias 'r' of the same SELECT cannot be used within a window function",
        "compute it in a CTE",
    ),
    f"select city, amount from {JOINED} group by city": ("1:14", "neither in GROUP BY nor in an aggregate", ""),
}
VALID = (
    f"select o.id, u.city from {JOINED} where o.amount > (select max(id) from {USERS})",
    f"select buyer, sum(amount) as s from {ORDERS} group by 1 having sum(amount) > 1 order by 2",
    f"select id, sum(sum(amount)) over (order by id) as s from {ORDERS} group by id",
    f"select id from {ORDERS} qualify row_number() over (partition by buyer order by id) = 1",
    f"select lag(id) ignore nulls over (partition by buyer order by id) as p from {ORDERS}",
    f"select buyer, first(sum(id)) respect nulls over (order by buyer) as f from {ORDERS} group by buyer",
    f"select id as limit from {ORDERS} order by id, limit",
    f"select rank() over w as r from {ORDERS} window w as (partition by buyer order by id)",
    f"select first_value(id) over (partition by buyer) as f from {ORDERS} limit 0",
    f"select id, amount from {ORDERS} join {USERS} using (id) limit 5",
    f"select amount as id from {JOINED} order by id limit 5",
    f"select o.id from {JOINED} where exists (select 1 from {USERS} where id = 3) limit 5",
    f"select amount from {ORDERS} o left semi join {USERS} u on o.buyer = u.id where id > 1",
    f"select 1 as x from {ORDERS} join {ORDERS} on true",
    f"select bit_get(id, 1) as b, LUHN_CHECK('1') as l, percentile_cont(0.5) within group (order by id) as p "
    f"from {ORDERS} group by 1, 2",
    f"select stack(2, id, buyer) as x, named_struct('a', id).a as y from {ORDERS}",
    f"select o.id from {ORDERS} o where exists (select 1 from (select id from {USERS} u where u.id = o.buyer) s)",
    f"select o.id, (select max(i) from (select u.id as i from {USERS} u where u.id < o.id) s) as m from {ORDERS} o",
    f"select o.id, (select max(i) from (select id as i from {USERS} u where u.id < o.id union all select 1) s) m "
    f"from {ORDERS} o",
    f"select percentile_cont(0.25) within group (order by id desc) as p from {ORDERS}",
    f"select buyer, percentile_disc(0.5) within group (order by id) filter (where id > 1) p from {ORDERS} group by 1",
    f"select to_char(amount, '99.99') as t from {ORDERS} group by amount",
    "with first(a, b, c) as (select 1, 2, 3) select trim(both 'x' from a) as t, substr(a from 2) as u from first",
    f"select if(id in (1, 2), day(now()), 3) as d, sum(id) filter (where id > 1) as s from {ORDERS} group by 1",
    f"select t.n from {ORDERS} lateral view posexplode(sequence(1, id)) t as p, n",
)


def write(root: Path, sql: str, columns: str) -> None:
    (root / "models").mkdir()
    (root / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "shop"\n')
    (root / "profiles.yml").write_text("lake: {target: a, outputs: {a: {type: spark, schema: dws, warehouse: w}}}\n")
    (root / "models/s.yml").write_text(
        f"sources:\n  - name: shop\n    schema: ods\n    tables:\n      - name: orders{columns}"
    )
    (root / "models/m.sql").write_text(sql)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)
    return tmp_path


def refused(root: Path, text: str, expected: tuple[str, str, str]) -> None:
    place, message, hint = expected
    assert f"models/m.sql:{place}" in text
    assert message in text and hint in text
    assert "Traceback" not in text and "sqlglot" not in text
    assert sorted(path.name for path in root.iterdir()) == ["models", "profiles.yml", "pyproject.toml"]


@pytest.mark.parametrize("columns", [COLUMNS, NO_COLUMNS], ids=["known", "unknown"])
@pytest.mark.parametrize("sql", ANYWHERE)
def test_a_model_that_cannot_run_is_refused_at_its_place(
    root: Path, capsys: pytest.CaptureFixture[str], sql: str, columns: str
) -> None:
    write(root, sql, columns)
    assert main(["run"]) == 2
    refused(root, capsys.readouterr().err, ANYWHERE[sql])


@pytest.mark.parametrize("sql", WHERE_KNOWN)
def test_names_are_resolved_where_columns_are_known(root: Path, capsys: pytest.CaptureFixture[str], sql: str) -> None:
    write(root, sql, COLUMNS)
    assert main(["run"]) == 2
    refused(root, capsys.readouterr().err, WHERE_KNOWN[sql])


@pytest.mark.parametrize("columns", [COLUMNS, NO_COLUMNS], ids=["known", "unknown"])
@pytest.mark.parametrize("sql", VALID)
def test_what_spark_takes_passes(root: Path, capsys: pytest.CaptureFixture[str], sql: str, columns: str) -> None:
    write(root, sql, columns)
    assert main(["compile"]) == 0, capsys.readouterr().err


def test_chance_that_comes_with_a_view_is_told_too(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(root, f"{STRICT}select * from {{{{ ref('v') }}}}", COLUMNS)
    view = f"{{{{ config(materialized='view') }}}}\nselect id, rand() as r from {ORDERS}"
    (root / "models/v.sql").write_text(view)
    assert main(["run"]) == 2
    assert "models/m.sql: FUN002 RAND() is not deterministic" in capsys.readouterr().err


@pytest.mark.parametrize("setting", ["catalog: hive", "spark: {spark.sql.extensions: com.example.More}"])
def test_functions_that_only_the_cluster_knows_pass(root: Path, setting: str) -> None:
    write(root, f"select my_udf(id) as x from {ORDERS}", COLUMNS)
    profiles = root / "profiles.yml"
    assert main(["compile"]) == 2
    profiles.write_text(profiles.read_text().replace("warehouse: w", f"warehouse: w, {setting}"))
    assert main(["compile"]) == 0


def test_a_name_that_the_metastore_cannot_have_is_told(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(root, f"{{{{ config(alias='größe') }}}} select id from {ORDERS}", COLUMNS)
    assert main(["compile"]) == 0
    profiles = root / "profiles.yml"
    profiles.write_text(profiles.read_text().replace("warehouse: w", "warehouse: w, catalog: hive"))
    assert main(["compile"]) == 2
    output = capsys.readouterr().err
    assert "Hive's metastore cannot have a table" in output and "größe" in output and "another alias" in output


def test_strict_alone_forbids_chance(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(root, f"select id, rand() as r from {ORDERS}", COLUMNS)
    assert main(["compile"]) == 0, capsys.readouterr().err
