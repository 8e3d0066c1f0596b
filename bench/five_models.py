"""Five models maintained by `sml` and, on the same Hudi tables, by dbt-core with dbt-spark's session method.

The dbt models are typical of its users: `merge` by a unique key, and a watermark on `updated_at` that finds the changed
orders, or the groups that they belong to. Such a model does not see a deleted order, nor the group that an order left.
So rows that differ from a recompute of the SELECT are counted beside the times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from bench import shop_data
from bench.dbt_run import dbt_run
from bench.dms import Change
from bench.environment import python_of
from bench.lake import Call, Lake, dms_source
from bench.result import WHOLE, Options, SuiteResult, Timings
from bench.spark import spark_session
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.spark.jvm.cds_archive import archive_options
from sqlmesh_like.spark.jvm.jars import ensure_jars
from sqlmesh_like.spark.jvm.java import find_jdk
from sqlmesh_like.spark.jvm.spark_settings import Machine, spark_settings

SHARE = 0.001
DBT = "dbt-spark-1.11.0"
_HUDI = {
    # The layout of our own tables, and the fastest that was measured: no index lookup, no metadata table to maintain.
    "type": "cow", "hoodie.metadata.enable": "false", "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1", "hoodie.bucket.index.hash.field": "{key}",
    "hoodie.parquet.bloom.filter.enabled": "false", "hoodie.parquet.compression.codec": "zstd",
}  # fmt: skip


@dataclass(frozen=True)
class Model:
    """A model's SELECT over @orders, @users and @products, its unique key, and the changed part of `@orders`."""

    select: str
    key: str
    changed: str


def _row_model(select: str) -> Model:
    return Model(select, "id", "where o.updated_at > (select max(updated_at) from {{ this }})")


def _group_model(key: str) -> Model:
    select = (
        f"select o.{key}, count(*) as n, sum(o.amount) as total, max(o.amount) as most, max(o.updated_at) as updated_at"
        f" from @orders as o @changed group by o.{key}"
    )
    newer = "(select max(updated_at) from {{ this }})"
    return Model(select, key, f"where o.{key} in (select {key} from @orders where updated_at > {newer})")


MODELS = {
    "paid_orders": _row_model(
        "select o.id, o.user_id, o.amount * 2 as doubled, o.ordered_on, o.updated_at from @orders as o @changed"
        " @and o.status = 'paid'"
    ),
    "order_facts": _row_model(
        "select o.id, o.amount, o.ordered_on, u.city, p.kind, o.updated_at from @orders as o"
        " join @users as u on o.user_id = u.id join @products as p on o.product_id = p.id @changed"
    ),
    "by_device": _group_model("device_id"),
    "by_day": _group_model("ordered_on"),
    "by_user": _group_model("user_id"),
}


def run(options: Options) -> SuiteResult:
    python = python_of(DBT, Path(__file__).parent / "dbt")
    lake, shop = Lake(options.folder / "lake"), shop_data.database(options.folder / "lake")
    write_ours(lake, options.memory)
    theirs = write_dbt(options, lake, python)
    shop.load(shop_data.queries(options.orders))
    lake.sml("ingest")
    timings, wrong = Timings(), dict.fromkeys(MODELS, 0)
    _add(timings, "first build", theirs.run(), lake.sml("run"), wrong)
    for number in range(1, options.repeat + 1):
        shop.change(shop_data.statements(Change(SHARE, "scattered"), number), number)
        lake.sml("ingest")
        kept, ours = theirs.run(), lake.sml("run")
        with spark_session(options.folder, options.memory) as spark:
            wrong = {name: wrong_rows(spark, lake, name, theirs.uri(name)) for name in MODELS}
            our_wrong = {name: wrong_rows(spark, lake, name, f"{lake.root}/warehouse/dws/{name}") for name in MODELS}
        assert not any(our_wrong.values()), our_wrong
        _add(timings, "0.1% scattered, incremental", kept, ours, wrong)
    # After a rebuild dbt's tables are correct: this is its time for the same rows.
    rebuilt = [theirs.run("--full-refresh") for _ in range(options.repeat)]
    followed = [figure for figure in timings.figures() if figure.group.startswith("0.1%")]
    for number, call in enumerate(rebuilt):
        for figure in followed:
            other = call.seconds if figure.name == WHOLE else call.nodes[figure.name].seconds
            timings.add("0.1% scattered, dbt --full-refresh", figure.name, other=other, ours=figure.ours[number])
    return SuiteResult(
        "five_models",
        f"Five models over {options.orders:,} orders, 0.1% scattered changes with deletes",
        "dbt-core 1.11.16 with dbt-spark 1.11.0 (session) ÷ sml",
        timings.figures(),
        {"wrong rows of dbt after the last change": wrong, "wrong rows of sml": 0},
    )


def _add(timings: Timings, group: str, theirs: Call, ours: Call, wrong: Mapping[str, int]) -> None:
    for name in MODELS:
        other, node = theirs.nodes[name], ours.nodes[name]
        timings.add(group, name, other=other.seconds, ours=node.seconds, **node.facts, wrong_rows_of_dbt=wrong[name])
    timings.add(group, WHOLE, other=theirs.seconds, ours=ours.seconds, peak_bytes_dbt=theirs.peak_bytes,
                peak_bytes_sml=ours.peak_bytes, wrong_rows_of_dbt=sum(wrong.values()))  # fmt: skip


def write_ours(lake: Lake, memory: str) -> None:
    lake.write_settings("shop", memory)
    ingest: dict[str, dict[str, object]] = {name: {"primary_key": list(key)} for name, key in shop_data.KEYS.items()}
    ingest["orders"]["partition_by"] = shop_data.PARTITION
    lake.write_yaml("models/sources.yml", dms_source("shop", ingest))
    for name, model in MODELS.items():
        lake.write(f"models/{name}.sql", _filled(model.select, "{{ source('shop', '%s') }}"))


def _filled(select: str, table: str, changed: str = "") -> str:
    """Return the query with its tables in the form `table`, and with the condition that makes it incremental."""
    filled = select.replace("@changed", changed).replace("@and", "and" if changed else "where")
    for name in shop_data.KEYS:
        filled = filled.replace(f"@{name}", table % name)
    return filled


@dataclass(frozen=True)
class DbtProject:
    """The same models as a dbt project. `settings` is a folder with Spark's configuration."""

    lake: Lake
    python: Path
    settings: Path

    def run(self, *arguments: str) -> Call:
        environment = {
            "JAVA_HOME": str(find_jdk().home),
            "SPARK_HOME": str(Path(pyspark.__file__).parent),  # the same jars, which are in Java's class archive
            "SPARK_CONF_DIR": str(self.settings),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        return dbt_run(self.python, self.lake, *arguments, environment=environment)

    def uri(self, model: str) -> str:
        """Return the address of a table: in the Hive catalog that dbt uses, a schema is a folder `<name>.db`."""
        return f"{self.lake.root}/warehouse/dws.db/{model}"


def write_dbt(options: Options, ours: Lake, python: Path) -> DbtProject:
    project = Lake(options.folder / "dbt")
    hook = [f"create database if not exists ods location '{project.root}/ods'"]
    hook += [
        f"create table if not exists ods.{t} using hudi location '{ours.root}/warehouse/ods/{t}'"
        for t in shop_data.KEYS
    ]
    project.write_yaml("dbt_project.yml", {"name": "shop", "version": "1.0", "profile": "lake", "on-run-start": hook})
    output = {"type": "spark", "method": "session", "schema": "dws", "host": "NA", "threads": 1}
    project.write_yaml("profiles.yml", {"lake": {"target": "local", "outputs": {"local": output}}})
    for name, model in MODELS.items():
        options_of = {key: value.format(key=model.key) for key, value in _HUDI.items()}
        config = (
            f"materialized='incremental', incremental_strategy='merge', file_format='hudi', unique_key='{model.key}'"
        )
        changed = "{% if is_incremental() %} " + _filled(model.changed, "ods.%s") + " {% else %} where true {% endif %}"
        body = _filled(model.select, "ods.%s", changed)
        project.write(f"models/{name}.sql", f"{{{{ config({config}, options={options_of!r}) }}}}\n{body}\n")
    return DbtProject(project, python, _write_spark_settings(project, options.memory))


def _write_spark_settings(project: Lake, memory: str) -> Path:
    """Write the settings of our own session to a file that any Spark reads, with the catalog that dbt needs."""
    jdk, jars = find_jdk(), ensure_jars()
    target = Target(
        "bench", "dbt", "spark", warehouse=f"{project.root}/warehouse", spark={"spark.driver.memory": memory}
    )
    settings = spark_settings(target, Machine(jdk, jars, project.root / "spark.log", archive_options(jdk, jars)))
    settings["spark.sql.catalogImplementation"] = "hive"
    del settings["spark.pyspark.python"]
    project.write("conf/spark-defaults.conf", "".join(f"{name} {value}\n" for name, value in settings.items()))
    return project.root / "conf"


def wrong_rows(spark: SparkSession, lake: Lake, name: str, uri: str) -> int:
    """Return the number of rows of a table that its SELECT does not return, plus the number of missing rows."""
    for table in shop_data.KEYS:
        spark.read.format("hudi").load(f"{lake.root}/warehouse/ods/{table}").createOrReplaceTempView(f"ods_{table}")
    expected = spark.sql(_filled(MODELS[name].select, "ods_%s"))
    stored = spark.read.format("hudi").load(uri).select(*expected.columns)
    return stored.exceptAll(expected).count() + expected.exceptAll(stored).count()
