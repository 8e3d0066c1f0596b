"""What a dbt project does besides building models, on real Hudi: hooks, operations, questions to the lake."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cli.app import main
from tests.spark.demo_lake import share

Shown = pytest.CaptureFixture[str]
FILES = {
    "dbt_project.yml": """
name: shop
on-run-start: ["create table if not exists hook_log (said string) using parquet location '{{ target.warehouse }}/log'",
               "select 1 as a, 2 as a from range(3)"]
on-run-end: ["insert into hook_log values ('end {% for r in results %}{{ r.node.name }}={{ r.status }} {% endfor %}')"]
""",
    "profiles.yml": "lake: {target: a, outputs: {a: {type: spark, warehouse: warehouse, schema: dws}}}\n",
    "seeds/orders.csv": "id,product,amount\n1,tea,5.00\n2,tea,7.50\n3,milk,1.25\n",
    "macros/ops.sql": """
{% macro products() %}
  {%- set found = run_query('select distinct product from ' ~ ref('orders') ~ ' order by 1') -%}
  {{ return(found.columns[0].values() if execute else []) }}
{% endmacro %}
{% macro drop(name) %}{% do adapter.drop_relation(api.Relation.create(schema='dws', identifier=name)) %}{% endmacro %}
{% macro note(text) %}
  {% do run_query("insert into hook_log values ('" ~ text ~ " " ~ products() | join('+') ~ "')") %}
  {{ return(text | upper) }}
{% endmacro %}
""",
    "models/wide.sql": """
{{ config(materialized='table', pre_hook="insert into hook_log values ('before {{ this.name }}')",
          post_hook=["insert into hook_log select concat('after ', count(*)) from {{ this }}"]) }}
select
{% for p in products() %}sum(if(product = '{{ p }}', amount, 0)) as {{ p }}{{ ', ' if not loop.last }}{% endfor %}
from {{ ref('orders') }}
""",
}


@pytest.fixture(autouse=True)
def project(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    share(spark, monkeypatch)
    return tmp_path


def put(files: Mapping[str, str]) -> None:
    for path, text in files.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")


def called(capsys: Shown, *words: str) -> str:
    code = main([*words])
    shown = capsys.readouterr()
    assert code == 0, shown.out + shown.err
    return shown.out


@pytest.mark.release
def test_hooks_and_operations_run_around_the_work_and_ask_the_lake(spark: SparkSession, capsys: Shown) -> None:
    put(FILES)
    spark.sql("drop table if exists hook_log")
    called(capsys, "build")

    def said() -> list[str]:
        spark.catalog.refreshTable("hook_log")  # written by sessions of other calls
        return [row[0] for row in spark.sql("select said from hook_log order by said").collect()]

    assert said() == ["after 1", "before wide", "end orders=success wide=success "]
    assert json.loads(called(capsys, "show", "wide", "--output", "json")) == [{"milk": "1.25", "tea": "12.50"}]
    called(capsys, "seed")  # there is nothing to do: no hook of a node, but those of the run
    assert said()[2:] == ["end orders=no-op ", "end orders=success wide=success "]
    assert called(capsys, "run-operation", "note", "--args", "{text: op}").startswith("OP\n")
    assert "op milk+tea" in said()
    config = "{{ config(pre_hook='insert into nowhere values (1)', materialized='table') }}"
    put({"models/bad.sql": f"{config} select 1 as a"})
    assert main(["run", "-s", "bad"]) == 1
    assert "pre_hook failed" in capsys.readouterr().out
    spark.sql("drop table hook_log")
    spark.sql("create schema if not exists dws")
    spark.sql("create table dws.scratch using parquet as select 1 as a")
    put({"models/bad.sql": "{% do adapter.drop_relation(ref('orders')) %}{{ config(materialized='table') }}select 1 a"})
    for _ in range(2):  # one that is not there is no error
        called(capsys, "run-operation", "drop", "--args", "{name: scratch}")
        assert not spark.catalog.tableExists("dws.scratch")
    assert main(["run-operation", "drop", "--args", "{name: orders}"]) != 0
    assert "dws.orders is a table of this project, it is not dropped" in capsys.readouterr().err
    assert main(["run", "-s", "bad"]) == 1
    assert "adapter.drop_relation drops nothing here" in capsys.readouterr().out
    assert len(json.loads(called(capsys, "show", "orders", "--output", "json"))) == 3


SNAPSHOTS = {
    "dbt_project.yml": "name: shop\nmodels: {+materialized: incremental}\n",
    "profiles.yml": FILES["profiles.yml"],
    "seeds/orders.csv": "id,product,amount,written\n1,tea,5.00,2024-01-01\n2,tea,7.50,2024-01-01\n"
    "3,milk,1.25,2024-01-01\n",
    "snapshots/s.yml": """
snapshots:
  - name: kept
    relation: ref('orders')
    config: {unique_key: id, strategy: check, check_cols: [product, amount], hard_deletes: new_record}
    columns: [{name: dbt_scd_id, data_tests: [unique, not_null]}]
""",
    "snapshots/timed.sql": """{% snapshot timed %}
{{ config(unique_key="id || '-' || product", strategy='timestamp', updated_at='written', target_schema='history') }}
select id, amount, written, product from {{ ref('orders') }} where product = 'tea'
{% endsnapshot %}
""",
    "models/valid.sql": """select product, count(*) as n, sum(amount) as total from {{ ref('kept') }}
where dbt_valid_to is null and dbt_is_deleted = 'False' group by product""",
}
LATER = "id,product,amount,written\n1,tea,6.00,2024-01-02\n2,tea,7.50,2024-01-01\n4,milk,2.00,2024-01-02\n"


def shown(capsys: Shown, sql: str) -> list[list[object]]:
    return [list(row.values()) for row in json.loads(called(capsys, "show", "--output", "json", "--inline", sql))]


def test_snapshots_keep_the_versions_of_rows_and_are_followed(capsys: Shown) -> None:
    put(SNAPSHOTS)
    assert "OK created snapshot dws.kept" in called(capsys, "build", "--now", "2024-02-01T00:00:00Z")
    put({"seeds/orders.csv": LATER})
    second = called(capsys, "build", "--now", "2024-02-02T00:00:00Z")
    assert "SNAPSHOT 5" in second and "SNAPSHOT 2" in second  # one changed, one new, one gone: 2 + 1 + 2
    assert "[aggregate_merge 2 rows" in second  # the versions that ended and began are a change like any other
    versions = "select id, amount, day(dbt_valid_from) as f, day(dbt_valid_to) as t, dbt_is_deleted as d"
    assert shown(capsys, versions + " from {{ ref('kept') }} order by 1, 3, 4 nulls last") == [
        [1, "5.00", 1, 2, "False"], [1, "6.00", 2, None, "False"], [2, "7.50", 1, None, "False"],
        [3, "1.25", 1, 2, "False"], [3, "1.25", 2, None, "True"], [4, "2.00", 2, None, "False"],
    ]  # fmt: skip
    assert shown(capsys, "select id, amount, month(dbt_valid_to) as t from {{ ref('timed') }} order by 1, 2") == [
        [1, "5.00", 1], [1, "6.00", None], [2, "7.50", None],
    ]  # fmt: skip
    assert shown(capsys, "select * from {{ ref('valid') }} order by 1") == [["milk", 1, "2.00"], ["tea", 2, "13.50"]]
    assert Path("warehouse/history/timed/.hoodie").is_dir()
    assert "NO-OP=2" in called(capsys, "snapshot", "--now", "2024-02-03T00:00:00Z")
    header, *lines = LATER.splitlines()
    put({"seeds/orders.csv": "\n".join([f"{header},note", *(f"{line},x" for line in lines)])})
    called(capsys, "build", "-s", "orders", "kept", "--now", "2024-02-03T00:00:00Z")
    # No checked column changed, so there is no new version: the column comes without one, as in dbt.
    assert shown(capsys, "select count(*) as n, count(note) as m from {{ ref('kept') }}") == [[6, 0]]
    put({"seeds/orders.csv": LATER + "4,milk,3.00,2024-01-02\n"})
    assert main(["build", "-s", "orders", "kept"]) == 1
    assert "repeats: up to 2 rows share one" in capsys.readouterr().out


MAPS = """{% snapshot maps %}
{{ config(unique_key='id', strategy='check', check_cols=['m']) }}
select id, if(turned, map('y', b, 'x', a), map('x', a, 'y', b)) as m from {{ ref('t') }}
{% endsnapshot %}
"""


@pytest.mark.release
def test_a_map_is_another_version_where_its_entries_are_others(capsys: Shown) -> None:
    files = {name: SNAPSHOTS[name] for name in ("dbt_project.yml", "profiles.yml")}
    counts = []
    for day, row in enumerate(("1,1,2,false", "1,1,2,true", "1,1,3,true"), start=1):
        put({**files, "snapshots/maps.sql": MAPS, "seeds/t.csv": f"id,a,b,turned\n{row}\n"})
        counts.append(called(capsys, "build", "--now", f"2024-02-0{day}T00:00:00Z").partition("SNAPSHOT ")[2][:1])
    assert counts == ["1", "0", "2"]


TYPED = {
    "dbt_project.yml": "name: shop\n",
    "profiles.yml": "lake: {target: auto, outputs: {auto: {type: spark, warehouse: auto}, "
    "spark: {type: spark, warehouse: spark, delta_engine: spark}}}\n",
    "seeds/seeds.yml": "seeds: [{name: rows, config: {column_types: {id: bigint, price: 'decimal(12,3)', at: timestamp,"
    " day: date, yes: boolean, name: string}}}]",
    "snapshots/kept.sql": """{% snapshot kept %}
{{ config(unique_key=['id', 'at', 'name'], strategy='check', check_cols='all', hard_deletes='new_record') }}
select * from {{ ref('rows') }}{% endsnapshot %}""",
}
MOMENTS = ("2024-01-01 00:00:00", "2024-01-01 00:00:00.12", "0001-01-01 01:00:00.000001", "9999-12-31 23:59:59")


@pytest.mark.release
def test_versions_have_the_same_ids_and_keys_whoever_takes_them(spark: SparkSession, capsys: Shown) -> None:
    put(TYPED)
    dice = random.Random(29)
    for today in range(1, 5):
        present = [
            (id_, at, dice.choice(["ü", "a|b", "'"])) for id_ in (-1, 2**62) for at in MOMENTS if dice.random() < 0.7
        ]
        lines = [
            f"{id_},{dice.choice(['1.5', '-0.001', ''])},{at},{dice.choice(['2024-02-29', '0001-01-01', ''])},"
            f"{dice.choice(['true', 'false', ''])},{name}"
            for id_, at, name in present
        ]
        put({"seeds/rows.csv": "\n".join(["id,price,at,day,yes,name", *lines])})
        stored = []
        for target in ("auto", "spark"):
            called(capsys, "build", "-t", target, "--now", f"2024-03-0{today}T00:00:00.{today}Z")
            results = json.loads(Path("target/run_results.json").read_text())["results"]
            engines = {each["unique_id"].split(".")[0]: each["adapter_response"].get("engine") for each in results}
            assert engines["snapshot"] == ("duckdb" if target == "auto" else "spark")
            frame = spark.read.format("hudi").load(str(next(Path(target).resolve().rglob("kept"))))
            names = [name for name in frame.columns if not name.startswith("_hoodie")]
            rows = frame.selectExpr(*(f"cast(`{name}` as string) as `{name}`" for name in names)).collect()
            stored.append((names, sorted(tuple(str(value) for value in row) for row in rows)))
        assert stored[0] == stored[1], today
        assert len(stored[0][1]) >= len(lines) > 0


PYTHON = {
    "dbt_project.yml": "name: shop\n",
    "profiles.yml": FILES["profiles.yml"],
    "seeds/orders.csv": FILES["seeds/orders.csv"],
    "models/cheap.sql": "select id, product from {{ ref('orders') }} where amount < 6",
    "models/scored.py": """
from pyspark.sql.functions import udf

def doubled(number):
    return 2 * number

def model(dbt, session):
    dbt.config(tags=["py"], rate=10)
    assert not dbt.is_incremental and dbt.this.name == "scored"
    assert [row[0] for row in session.sql("select 1").collect()] == [1]
    twice = udf(doubled, "int")
    return dbt.ref("cheap").withColumn("n", twice("id") + dbt.config.get("rate"))
""",
    "models/total.sql": "{{ config(materialized='table') }}select sum(n) as n from {{ ref('scored') }}",
    "models/here.py": "def model(dbt, session):\n    return inner(dbt.ref('scored'))\n\n"
    "def inner(df):\n    return {}['nope']\n",
    "models/there.py": "from pyspark.sql.functions import udf\n\n@udf('int')\ndef f(n):\n    return 1 // (n - n)\n\n"
    "def model(dbt, session):\n    return dbt.ref('scored').withColumn('m', f('n'))\n",
    "models/over.sql": "{{ config(materialized='table') }}select * from {{ ref('there') }}",
    "models/none.py": "def model(dbt, session):\n    return dbt.ref('scored').count()\n",
}


def test_python_models_are_tables_and_fail_at_lines_of_their_own(capsys: Shown) -> None:
    put(PYTHON)
    assert main(["build"]) == 1
    text = capsys.readouterr().out
    assert "OK created python table model dws.scored" in text and "Traceback" not in text
    assert "here: models/here.py:5: KeyError: 'nope'" in text
    assert "there: models/there.py:5: ZeroDivisionError" in text
    assert "none: models/none.py:1:1: the function returned a int, not a Spark or pandas DataFrame" in text
    results = json.loads(Path("target/run_results.json").read_text())["results"]
    statuses = {result["unique_id"].split(".")[2]: result["status"] for result in results}
    assert {name for name, status in statuses.items() if status == "error"} == {"here", "there", "none"}
    assert statuses["over"] == "skipped" and main(["show", "there"]) == 1
    assert "the table dws.there" in capsys.readouterr().err
    assert shown(capsys, "select id, n from {{ ref('scored') }} order by id") == [[1, 12], [3, 16]]
    assert shown(capsys, "select n from {{ ref('total') }}") == [[28]]
    put({"seeds/orders.csv": FILES["seeds/orders.csv"] + "4,salt,2.00\n"})
    called(capsys, "build", "-s", "orders", "scored", "total")
    assert shown(capsys, "select n from {{ ref('total') }}") == [[46]]
    assert "NO-OP=1" in called(capsys, "run", "-s", "scored")


# The shape of dbt-labs/jaffle_shop_duckdb, which runs unedited: seeds, staging views, two marts, its kinds of tests.
CAFE = {
    "dbt_project.yml": """
name: 'cafe'
config-version: 2
version: '0.1'
profile: 'cafe'
model-paths: ["models"]
require-dbt-version: [">=1.0.0", "<2.0.0"]
seeds: {+docs: {node_color: '#cd7f32'}}
models:
  cafe:
    materialized: table
    staging:
      materialized: view
      +docs: {node_color: silver}
""",
    "profiles.yml": "cafe: {target: lake, outputs: {lake: {type: spark, warehouse: warehouse, schema: main, "
    "threads: 2}, check: {type: duckdb, schema: main}}}\n",
    "seeds/raw_guests.csv": "id,first_name,last_name\n1,Ada,L.\n2,Ben,M.\n3,Cy,N.\n",
    "seeds/raw_bills.csv": "id,user_id,order_date,status\n1,1,2018-01-01,returned\n2,3,2018-01-02,completed\n"
    "3,1,2018-02-10,placed\n",
    "seeds/raw_coins.csv": "id,order_id,payment_method,amount\n1,1,card,1000\n2,1,coupon,333\n"
    "3,2,card,2000\n4,3,cash,7\n",
    "models/docs.md": "{% docs state %}What became of it.{% enddocs %}",
    "models/staging/stg_guests.sql": "with source as (\n  {#- seeds stand for a source -#}\n"
    "  select * from {{ ref('raw_guests') }}\n)\nselect id as guest_id, first_name, last_name from source",
    "models/staging/stg_bills.sql": "select id as bill_id, user_id as guest_id, order_date, status "
    "from {{ ref('raw_bills') }}",
    "models/staging/stg_coins.sql": "select id as coin_id, order_id as bill_id, payment_method,\n"
    "  -- in cents\n  amount / 100 as amount\nfrom {{ ref('raw_coins') }}",
    "models/bills.sql": """{% set methods = ['card', 'coupon', 'cash'] %}
with paid as (
  select bill_id,
    {% for method in methods -%}
    sum(case when payment_method = '{{ method }}' then amount else 0 end) as {{ method }}_amount,
    {% endfor -%}
    sum(amount) as total_amount
  from {{ ref('stg_coins') }} group by bill_id
),
final as (
  select b.bill_id, b.guest_id, b.order_date, b.status,
    {% for method in methods -%} paid.{{ method }}_amount, {% endfor -%}
    paid.total_amount as amount
  from {{ ref('stg_bills') }} b left join paid on b.bill_id = paid.bill_id
)
select * from final""",
    "models/guests.sql": """
with bills as (select * from {{ ref('stg_bills') }}),
visits as (
  select guest_id, min(order_date) as first_visit, max(order_date) as last_visit, count(bill_id) as visits
  from bills group by guest_id
),
spent as (
  select bills.guest_id, sum(amount) as total from {{ ref('stg_coins') }} coins
  left join bills on coins.bill_id = bills.bill_id group by bills.guest_id
)
select g.guest_id, g.first_name, v.first_visit, v.last_visit, v.visits, spent.total as lifetime_value
from {{ ref('stg_guests') }} g
left join visits v on g.guest_id = v.guest_id
left join spent on g.guest_id = spent.guest_id""",
    "models/schema.yml": """
version: 2
models:
  - name: guests
    columns:
      - {name: guest_id, description: key, tests: [unique, not_null]}
      - {name: total_spent, description: a column that the query does not have}
  - name: bills
    columns:
      - {name: bill_id, tests: [unique, not_null]}
      - {name: guest_id, tests: [not_null, relationships: {to: ref('guests'), field: guest_id}]}
      - name: status
        description: '{{ doc("state") }}'
        tests: [{accepted_values: {values: [placed, completed, returned]}}]
      - {name: card_amount, tests: [not_null]}
""",
}


def test_a_public_project_seeds_runs_and_tests_green_and_duckdb_says_the_same(capsys: Shown) -> None:
    put(CAFE)
    assert "Done. PASS=16 WARN=0 ERROR=0 SKIP=0 NO-OP=0 TOTAL=16" in called(capsys, "build")
    for model, key in (("bills", "bill_id"), ("guests", "guest_id")):
        sql = f"select * from {{{{ ref('{model}') }}}} order by {key}"
        ours = called(capsys, "show", "--output", "json", "--inline", sql)
        assert ours == called(capsys, "show", "-t", "check", "--output", "json", "--inline", sql)
    assert json.loads(ours)[0] == {
        "guest_id": 1, "first_name": "Ada", "first_visit": "2018-01-01", "last_visit": "2018-02-10", "visits": 2,
        "lifetime_value": 13.4,
    }  # fmt: skip


def test_failures_are_stored_where_asked_for_and_go_when_they_are_fixed(capsys: Shown) -> None:
    entry = "{not_null: {config: {alias: no_product}}}"
    put({**SNAPSHOTS, "seeds/orders.csv": "id,product\n1,tea\n2,\n3,\n"})
    for path in ("snapshots/s.yml", "snapshots/timed.sql", "models/valid.sql"):
        Path(path).unlink(missing_ok=True)
    put({"seeds/s.yml": f"seeds: [{{name: orders, columns: [{{name: product, data_tests: [{entry}]}}]}}]"})
    assert main(["build", "--store-failures"]) == 1
    assert "the rows: sml show dws_dbt_test__audit.no_product" in capsys.readouterr().out
    kept = ("show", "dws_dbt_test__audit.no_product", "--output", "json")
    assert sorted(row["id"] for row in json.loads(called(capsys, *kept))) == [2, 3]
    put({"seeds/orders.csv": "id,product\n1,tea\n2,milk\n"})
    called(capsys, "build", "--store-failures")
    assert json.loads(called(capsys, *kept)) == []


UNITS = {
    "dbt_project.yml": "name: shop\nmodels: {+materialized: incremental}\n",
    "profiles.yml": FILES["profiles.yml"],
    "models/base.yml": "sources: [{name: ods, tables: [{name: t, columns: [{name: id, data_type: int}, "
    "{name: k, data_type: string}, {name: v, data_type: 'decimal(10,2)'}, {name: at, data_type: timestamp}]}]}]\n",
    "models/summed.sql": "select k, sum(v) as total, max(at) as last from {{ source('ods', 't') }} group by k",
    "models/ranked.sql": "{{ config(partition_by='k') }} select k, id, row_number() over (partition by k order by v) "
    "as n from {{ source('ods', 't') }}",
    "models/sounds.sql": "select id, soundex(k) as s from {{ source('ods', 't') }}",
    "models/units.yml": """
unit_tests:
  - name: sum_follows
    model: summed
    given: &given
      - input: source('ods', 't')
        rows:
          - {id: 1, k: a, v: 5.00, at: "2024-01-01 10:00:00"}
          - {id: 2, k: a, v: 7.00, at: "2024-01-02 10:00:00"}
          - {id: 3, k: b, v: 1.50, at: "2024-01-01 12:00:00"}
    changes: &changes
      - {input: "source('ods', 't')", key: [id], upsert: [{id: 1, k: b}], delete: [{id: 2}]}
    expect: {rows: [{k: b, total: 6.50, last: "2024-01-01 12:00:00"}]}
  - {name: rank_follows, model: ranked, given: *given, changes: *changes,
     expect: {rows: [{k: b, id: 3, n: 1}, {k: b, id: 1, n: 2}]}}
  - {name: sounds_alike, model: sounds, given: [{input: "source('ods', 't')", rows: [{id: 1, k: Robert}]}],
     expect: {rows: [{id: 1, s: R163}]}}
  - {name: wrong, model: sounds, given: [{input: "source('ods', 't')", rows: [{id: 1, k: Robert}]}],
     expect: {rows: [{id: 1, s: R164}]}}
""",
}


def test_unit_tests_run_on_spark_those_that_duckdb_is_not_trusted_with_too(capsys: Shown) -> None:
    put(UNITS)
    assert main(["test", "--engine", "spark"]) == 1
    message = capsys.readouterr().out
    assert "Done. PASS=3 WARN=0 ERROR=1 SKIP=0 NO-OP=0 TOTAL=4" in message, message
    assert "R164 → R163" in message
    assert not Path("warehouse").exists()
    assert main(["test"]) == 1
    message = capsys.readouterr().out
    assert "PASS=2" in message and "not checkable here: function SOUNDEX" in message
