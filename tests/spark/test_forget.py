"""`sml forget` after ingestion, runs, snapshots and tests by Spark: no file keeps the row, and all goes on."""

from __future__ import annotations

import signal
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cdc.schema.ods_layout import HASHED_KEYS, TEXT_KEYS, OdsLayout
from sqlmesh_like.cdc.schema.record_key import record_keys
from sqlmesh_like.cli.app import main
from sqlmesh_like.hudi.timeline import Timeline
from tests.faults.calls import finished, start
from tests.spark.demo_lake import DemoLake
from tests.spark.ingest_lake import event, table

NAME, CODE = "Ada Lovelace-Byron", "P:0017|Ada"
FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "clinic"\nprofile = "lake"\n',
    "profiles.yml": """
lake:
  target: local
  outputs:
    local: {type: spark, warehouse: warehouse, schema: dws, publish: {bi: {duckdb: serving/bi.duckdb}}}
""",
    "models/sources.yml": """
sources:
  - name: clinic
    schema: ods
    ingest: {format: debezium, files: {path: "landing/*.jsonl"}}
    tables:
      - name: person
        ingest: {database: db, primary_key: [code], order_by: [at],
                 partition_by: {column: born, format: yyyy, as: year}}
        columns: [{name: born, data_type: date}, {name: at, data_type: bigint}]
      - name: visit
        ingest: {database: db, primary_key: [person, n], table_type: mor}
""",
    "models/named.sql": "select v.person, v.n, p.name from {{ source('clinic', 'visit') }} v"
    " join {{ source('clinic', 'person') }} p on v.person = p.code\n",
    "models/cities.sql": "{{ config(publish={'to': ['bi']}) }} select city, count(*) as n, collect_set(name) as names"
    " from {{ source('clinic', 'person') }} group by city\n",
    "models/log.sql": "{{ config(materialized='incremental', incremental_strategy='append') }}"
    " select code, name, at from {{ source('clinic', 'person') }}"
    " {% if is_incremental() %} where at > (select max(at) from {{ this }}) {% endif %}\n",
    "models/merged.sql": "{{ config(table_type='mor') }} select code, name from {{ source('clinic', 'person') }}\n",
    "models/by_name.sql": "{{ config(partition_by='name') }} select name, code from {{ source('clinic', 'person') }}\n",
    "models/tests.yml": """
models:
  - name: named
    columns: [{name: name, tests: [unique]}]
""",
    "snapshots/s.yml": """
snapshots:
  - name: person_history
    relation: source('clinic', 'person')
    config: {unique_key: code, strategy: check, check_cols: [name, city], schema: history}
""",
}
MODELS = ("named", "cities", "log", "merged", "by_name")


def person(code: str, name: str, city: str, at: int) -> dict[str, object]:
    return {"code": code, "name": name, "city": city, "born": 4000, "at": at}


def land(root: Path, number: int, *lines: str) -> None:
    (root / "landing").mkdir(exist_ok=True)
    (root / "landing" / f"{number:04d}.jsonl").write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def clinic(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DemoLake:
    """Persons with visits and a history, after two rounds of ingestion, run, snapshot and tests."""
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    lake = DemoLake.at(tmp_path, spark, monkeypatch)
    land(
        tmp_path, 1,
        event("c", person(CODE, NAME, "Turin", 1), table="person"),
        event("c", person("P:0018|Grace", "Grace Hopper", "Turin", 2), table="person"),
        *(event("c", {"person": code, "n": n, "note": "x"}, table="visit")
          for code in (CODE, "P:0018|Grace") for n in (1, 2)),
    )  # fmt: skip
    lake.sml("ingest")
    lake.sml("run")
    lake.sml("snapshot")
    land(
        tmp_path, 2,
        event("u", person(CODE, NAME, "Paris", 3), person(CODE, NAME, "Turin", 1), table="person"),
        event("u", person("P:0018|Grace", "Grace Hopper", "Oslo", 4), table="person"),
        event("u", {**person(CODE, NAME, "Paris", 5), "born": "never"}, table="person"),
    )  # fmt: skip
    lake.sml("ingest")
    lake.sml("run")
    lake.sml("snapshot")
    assert main(["test", "--store-failures", "--project-dir", str(tmp_path)]) == 1
    return lake


def test_a_person_leaves_every_file(clinic: DemoLake, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--project-dir", str(clinic.root), "--text", NAME, "--yes"]
    code = main(["forget", "clinic.visit", f"{CODE.replace('|', '%7C')}|1", f"{CODE.replace('|', '%7C')}|2", *words])
    printed = capsys.readouterr()
    assert code == 1 and "ods/person" in printed.out, printed  # the person is still there
    assert "2 rows deleted in ods.visit" in printed.out and "ods/visit/" not in printed.out
    code = main(["forget", "clinic.person", CODE, *words])
    printed = capsys.readouterr()
    assert code == 0, printed.out + printed.err
    assert "dws.by_name, dws.log: built anew" in printed.out
    assert [row[:2] for row in clinic.rows("visit", "ods")] == [("P:0018|Grace", 1), ("P:0018|Grace", 2)]
    assert [row[:3] for row in clinic.rows("person", "ods")] == [("P:0018|Grace", "Grace Hopper", "Oslo")]
    assert clinic.rows("cities") == [("Oslo", 1, ["Grace Hopper"])]
    assert [row[0] for row in clinic.rows("merged")] == ["P:0018|Grace"]
    assert {row[0] for row in clinic.rows("log")} == {"P:0018|Grace"}
    assert len(clinic.rows("person_history", "history")) == 2
    clinic.sml("verify")
    land(clinic.root, 3, event("u", person("P:0018|Grace", "Grace B. Hopper", "Oslo", 6), table="person"))
    clinic.sml("ingest")
    clinic.sml("run")
    clinic.sml("snapshot")
    said = capsys.readouterr().out
    assert "HIS" not in said, said
    assert clinic.rows("cities") == [("Oslo", 1, ["Grace B. Hopper"])]
    assert len(clinic.rows("person_history", "history")) == 3
    assert Timeline(clinic.uri("cities")).frontier


@pytest.mark.release
def test_killed_before_a_model_is_rebuilt_the_same_command_ends_it(clinic: DemoLake) -> None:
    """The model with a partition named after the person is set aside, and not there, when the command dies."""
    words = ("clinic.person", CODE, "--text", NAME, "--yes")
    code, output = finished(start(clinic.root, "forget", *words, fault="erasure.set_aside"))
    assert code == -signal.SIGKILL, output
    assert not Timeline(clinic.uri("by_name")).exists
    assert main(["forget", *words, "--project-dir", str(clinic.root)]) == 1  # visits still have the code
    assert [row[:2] for row in clinic.rows("by_name")] == [("Grace Hopper", "P:0018|Grace")]
    assert not list(Path(clinic.uri("by_name")).parent.glob("by_name__sml_broken_*"))


@pytest.mark.parametrize("spelling", [HASHED_KEYS, TEXT_KEYS])
def test_a_key_is_spelt_as_in_the_table_also_where_its_row_is_gone(spark: SparkSession, spelling: int) -> None:
    values: dict[str, tuple[str, object]] = {
        "a": ("int", -7), "b": ("string", 'é|b:c,d%"'), "c": ("date", date(2024, 5, 1)),
        "d": ("decimal(9,2)", Decimal("1.50")), "e": ("timestamp", datetime(2024, 5, 1, 12, 0, 0, 500_000)),
        "f": ("boolean", True), "g": ("decimal(9,2)", Decimal("100.00")), "h": ("binary", b"\x00a"),
    }  # fmt: skip
    declared = table(primary_key=tuple(values), columns={name: kind for name, (kind, _) in values.items()})
    assert declared.ingest is not None
    layout = OdsLayout(declared, declared.ingest, declared.columns, spelling)
    schema = ", ".join(f"{name}: {kind}" for name, (kind, _) in values.items())
    frame = spark.createDataFrame([(tuple(value for _, value in values.values()),)], f"row struct<{schema}>")
    [stored] = frame.selectExpr(layout.record_key("row")).first() or ()
    assert stored == record_keys(list(values), [value for _, value in values.values()])[spelling == HASHED_KEYS]
