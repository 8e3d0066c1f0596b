"""Tables in a real Hive metastore: a Spark that knows their names alone sees rows, partitions, new columns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.errors import NodeError
from sqlmesh_like.fault_points import FAULT_VARIABLE
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.reading.released_view import hive_table
from sqlmesh_like.hudi.recovery.table_swap import take_place
from sqlmesh_like.hudi.time_travel import state_at
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import TableName
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.spark.jvm.jars import ensure_jars
from sqlmesh_like.spark.tables.catalog_sync import sync
from sqlmesh_like.spark.tables.hudi_table import HudiTable, write
from tests.services.metastore import metastore
from tests.spark.ingest_lake import BY_MONTH, Lake, event, table
from tests.spark.lake import Lake as ModelLake

READER = """
import json, sys
from pyspark.sql import SparkSession
from sqlmesh_like.project.reading.session_settings import EXTENSIONS, FIXED, HUDI_EXTENSION

uri, jars, questions = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
builder = SparkSession.builder.master("local[1]").config("spark.jars", jars).config("spark.ui.enabled", "false")
own = {"spark.sql.catalogImplementation": "hive", "spark.hadoop.hive.metastore.uris": uri}
for name, value in {**FIXED, EXTENSIONS: HUDI_EXTENSION, **own}.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
print("ANSWERS " + json.dumps([[[str(v) for v in row] for row in spark.sql(q).collect()] for q in questions]))
"""


@pytest.fixture(scope="module")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with metastore(tmp_path_factory.mktemp("hive")) as uri:
        yield uri


def asked(uri: str, *questions: str) -> list[Any]:
    """What Spark SQL answers in a process of its own, which has the metastore and nothing else."""
    jars = ",".join(map(str, ensure_jars()))
    command = [sys.executable, "-c", READER, uri, jars, json.dumps(questions)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, env={**os.environ})
    lines = [line for line in process.stdout.splitlines() if line.startswith("ANSWERS ")]
    assert lines, process.stderr[-3000:]
    return json.loads(lines[0].removeprefix("ANSWERS "))  # type: ignore[no-any-return]


class HiveLake(Lake):
    """A lake whose target has a Hive metastore."""

    hive = ""

    def declared(self) -> Any:
        project, target, source = super().declared()
        return project, of_hive(target, self.hive), source


def of_hive(target: Target, uri: str) -> Target:
    return replace(target, catalog="hive", options={"catalog": {"hive": {"uri": uri}}})


@pytest.mark.release
@pytest.mark.checklist(28, 52, 53, 54, 69)
def test_tables_partitions_and_new_columns_are_seen(spark: SparkSession, tmp_path: Path, hive: str) -> None:
    shop = HiveLake(spark, tmp_path, (table("flat", columns={"id": "int"}), table("parted", partition_by=BY_MONTH,
        columns={"create_time": "timestamp"}, table_type="mor")))  # fmt: skip
    shop.hive = hive
    first = {"id": 1, "create_time": "2024-01-05 00:00:00"}
    shop.ingest(event("c", {"id": 1}, table="flat"), event("c", first, table="parted"))
    later = {"id": 2, "create_time": "2024-02-05 10:00:00", "age": 7}
    # Hive's limit of a column's name is 767, and its letters are free.
    named = {"姓名": "張", "größe": 1, "n" * 700: "long"}
    report = shop.ingest(event("c", {"id": 2, "note": "new", **named}, table="flat"), event("c", later, table="parted"))
    assert not report.failed
    models = ModelLake(spark, tmp_path / "models")
    profile = (tmp_path / "models" / "profiles.yml").read_text()
    named = profile.replace("schema: dws", f"schema: dws, catalog: {{hive: {{uri: '{hive}'}}}}")
    (tmp_path / "models" / "profiles.yml").write_text(named)
    people = models.source("people", "id int, ym string", partition="ym")
    people.write((1, "a"), (2, "b"))
    models.model("folk", "{{ config(partition_by='ym') }} select id, ym from @people")
    models.run_well()
    folk, commits = tmp_path / "models/warehouse/dws/folk", []
    for row in ((3, "a"), (4, "c")):  # into a partition that the metastore knows, and into another one
        people.write((1, "a"), (2, "b"), row)
        models.run_well()
        commits.append(next(Timeline(str(folk)).newest_first()))
    # This process does not name Spark's stages in its files.
    assert [all("-0-0_" in write.path for write in each.writes) for each in commits] == [True, False], commits
    answers = asked(
        hive,
        "select id, note from ods.flat order by id",
        f"select `姓名`, `größe`, {'n' * 700} from ods.flat where id = 2",
        "select id, cast(create_time as string), age from ods.parted order by id",
        "show partitions ods.parted",
        "select id from ods.parted where year_month = '202402'",
        "select id, ym from dws.folk order by id",
        "select id from dws.folk where ym = 'c'",
    )
    answers[3].sort()
    assert answers == [
        [["1", "None"], ["2", "new"]],
        [["張", "1", "long"]],
        [["1", "2024-01-05 00:00:00", "None"], ["2", "2024-02-05 10:00:00", "7"]],
        [["year_month=202401"], ["year_month=202402"]],
        [["2"]],
        [["1", "a"], ["2", "b"], ["3", "a"], ["4", "c"]],
        [["4"]],
    ]


@pytest.mark.release
def test_tables_of_an_environment_are_registered_once_they_are_promoted(tmp_path: Path, hive: str) -> None:
    output = {"type": "spark", "master": "local[1]", "schema": "envs", "warehouse": "warehouse",
              "catalog": {"hive": {"uri": hive}}}  # fmt: skip
    model = "{{ config(partition_by='ym') }} select id, ym from {{ ref('people') }} where id < 2"
    for path, text in {
        "pyproject.toml": '[tool.sqlmesh_like]\nname = "p"\nprofile = "p"\n',
        "profiles.yml": json.dumps({"p": {"target": "t", "outputs": {"t": output}}}),
        "seeds/people.csv": "id,ym\n1,a\n2,b\n",
        "models/folk.sql": model,
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)

    def sml(*words: str) -> None:
        command = [sys.executable, "-m", "sqlmesh_like", *words, "--project-dir", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    sml("build")
    (tmp_path / "models/folk.sql").write_text(model.removesuffix(" where id < 2"))
    (tmp_path / "models/more.sql").write_text("select id from {{ ref('folk') }}")
    sml("run", "-e", "dev")
    questions = ("show tables in envs", "show partitions envs.folk", "select id from envs.folk order by id")
    tables, partitions, rows = asked(hive, *questions)
    assert sorted(name for _, name, _ in tables) == ["folk", "people"]
    assert len(partitions) == 1 and rows == [["1"]], "readers see production's table"
    sml("promote", "dev")
    tables, partitions, rows = asked(hive, *questions)
    assert sorted(name for _, name, _ in tables) == ["folk", "more", "people"]
    assert len(partitions) == 2 and rows == [["1"], ["2"]]
    # In the place where `ym` was there is now a column of another type, which a metastore refuses as a change.
    (tmp_path / "models/folk.sql").write_text(model.split(" where ")[0].replace("id, ym", "id, id * 2 as twice, ym"))
    sml("run", "-s", "folk")
    columns, partitions, rows = asked(hive, "describe envs.folk", questions[1], "select id, twice from envs.folk")
    assert [name for name, *_ in columns if not name.startswith(("_", "#"))] == ["id", "twice", "ym"]
    assert len(partitions) == 2 and sorted(rows) == [["1", "2"], ["2", "4"]]


@pytest.mark.release
def test_a_table_built_beside_a_registered_one_is_registered_as_a_whole(
    spark: SparkSession, tmp_path: Path, hive: str
) -> None:
    target, name, uri = of_hive(Target("p", "t", "spark"), hive), TableName("moved", "t"), str(tmp_path / "t")

    def insert(place: str, partition: str) -> None:
        frame = spark.createDataFrame([("1", partition)], "k string, p string")
        write(frame, HudiTable(place, "t", ("k",), "p"), "bulk_insert", {})

    insert(f"{uri}__sml_slices", "y")
    insert(uri, "x")
    sync(spark, target, name, uri, "p")
    insert(f"{uri}__sml_slices", "z")  # slices before and after the commit that is registered
    question = "show partitions moved.t"
    assert asked(hive, question) == [[["p=x"]]]
    take_place(f"{uri}__sml_slices", uri)
    sync(spark, target, name, uri, "p")
    partitions, rows = asked(hive, question, "select k from moved.t where p = 'y'")
    assert (sorted(partitions), rows) == ([["p=y"], ["p=z"]], [["1"]])


@pytest.mark.release
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_tables_built_in_slices_are_registered_at_their_place(tmp_path: Path, hive: str, table_type: str) -> None:
    output = {"type": "spark", "master": "local[1]", "schema": table_type, "warehouse": "warehouse",
              "catalog": {"hive": {"uri": hive}}}  # fmt: skip
    config = f"{{{{ config(partition_by='ym', table_type='{table_type}', build_by='partition') }}}}"
    for path, text in {
        "pyproject.toml": '[tool.sqlmesh_like]\nname = "p"\nprofile = "p"\n',
        "profiles.yml": json.dumps({"p": {"target": "t", "outputs": {"t": output}}}),
        "seeds/people.csv": "id,ym\n1,a\n2,b\n3,c\n",
        "models/folk.sql": f"{config} select id, ym from {{{{ ref('people') }}}}",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)

    def sml(*words: str, fault: str = "") -> int:
        command = [sys.executable, "-m", "sqlmesh_like", *words, "--project-dir", str(tmp_path)]
        environment = {**os.environ, FAULT_VARIABLE: fault} if fault else {**os.environ}
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, env=environment)
        assert done.returncode == (-9 if fault else 0), done.stdout + done.stderr
        return done.returncode

    sml("seed")
    sml("run", fault="slices.committed:2")
    tables = f"show tables in {table_type}"
    assert [name for _, name, _ in asked(hive, tables)[0]] == ["people"]
    sml("run")
    (tmp_path / "seeds/people.csv").write_text("id,ym\n1,a\n2,b\n4,d\n")
    for rebuilds in (False, True):
        if rebuilds:
            sml("seed")
            sml("run", "--full-refresh")
        names, partitions, rows = asked(
            hive, tables, f"show partitions {table_type}.folk", f"select id, ym from {table_type}.folk order by id"
        )
        assert [name for _, name, _ in names] == [
            "folk",
            *(["folk_ro", "folk_rt"] if table_type == "mor" else []),
            "people",
        ]
        last = ["4", "d"] if rebuilds else ["3", "c"]
        assert rows == [["1", "a"], ["2", "b"], last]
        assert len(partitions) == 3, partitions
    files = [path.name for path in (tmp_path / f"warehouse/{table_type}/folk").rglob("*") if path.is_file()]
    assert sum(name.endswith(".parquet") for name in files) == 3 and not any(".log." in name for name in files)


@pytest.mark.release
def test_hive_s_input_format_reads_a_table_as_of_a_commit(spark: SparkSession, tmp_path: Path, hive: str) -> None:
    table = ModelLake(spark, tmp_path).source("t", "id int, v string, p string", partition="p")
    first = table.upsert((1, "a", "01"), (2, "b", "y"))
    table.upsert((1, "z", "01"), (3, "c", "y"), delete=[(2, "b", "y")])
    statements = hive_table(TableName("past", "t"), state_at(LakeHistory().state(table.uri), first))
    # Spark then reads by the table's input format, as Hive does, instead of by its own reader of Parquet.
    by_format = "set spark.sql.hive.convertMetastoreParquet=false"
    question = "select id, v, p from past.t order by id"
    answers = asked(hive, "create database past", by_format, *statements, question)
    assert answers[-1] == [["1", "a", "01"], ["2", "b", "y"]]
    assert asked(hive, by_format, question) == [answers[1], [["1", "z", "01"], ["3", "c", "y"]]]


@pytest.mark.checklist(52)
@pytest.mark.release
def test_a_metastore_that_does_not_answer_is_told_and_the_table_stands(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    frame = spark.createDataFrame([("1", 1)], "k string, n int")
    write(frame, HudiTable(uri, "t", ("k",)), "upsert", {})
    options = {"catalog": {"hive": {"uri": "thrift://127.0.0.1:9"}}}
    target = Target("p", "t", "spark", catalog="hive", options=options)
    with pytest.raises(NodeError, match=r"ods\.t is written, but the hive catalog did not take it"):
        sync(spark, target, TableName("ods", "t"), uri, None)
    assert spark.read.format("hudi").load(uri).count() == 1


def test_glue_without_its_jar_says_so(spark: SparkSession) -> None:
    with pytest.raises(NodeError, match="its classes are not there"):
        sync(spark, Target("p", "t", "spark", catalog="glue"), TableName("ods", "t"), "x", None)
