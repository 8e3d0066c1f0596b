"""Tables registered in a catalog that other engines use. Owns calling Hudi's sync tool.

After a commit the tool compares the catalog with the table: new columns and partitions are added, and nothing is
written if there are none. A metastore compares types position by position, and hidden columns follow those of a model:
it refuses most columns that an edit adds, moves or takes away. Then the table is registered anew, its files untouched.
"""

from __future__ import annotations

from collections.abc import Mapping

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.catalogs.catalog_settings import metastore_uri, sync_options
from sqlmesh_like.hudi.catalogs.registration import note_registration
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import TableName
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.sql_text import spark_identifier, spark_literal

# Of Hive's HiveAlterHandler, where `hive.metastore.disallow.incompatible.col.type.changes` is true: the default.
_REFUSED_COLUMNS = "types incompatible with the existing columns"


def sync(spark: SparkSession, target: Target, table: TableName, uri: str, partition_field: str | None) -> None:
    """Register a table's present state in the target's catalog; do nothing where the target has none.

    Raises NodeError where the catalog refuses it: the table is written, and the next commit tries again.
    """
    if target.catalog == "none":
        return
    jvm, jsc = spark.sparkContext._jvm, spark.sparkContext._jsc
    assert jvm is not None and jsc is not None
    conf = jvm.org.apache.hadoop.hive.conf.HiveConf
    hadoop = conf(jsc.hadoopConfiguration(), jvm.java.lang.Class.forName("org.apache.hadoop.hive.conf.HiveConf"))
    if address := metastore_uri(target):
        hadoop.set("hive.metastore.uris", address)
    is_hive, options = target.catalog == "hive", sync_options(target, table, uri, partition_field)

    def call_tool(options: Mapping[str, str]) -> None:
        properties = jvm.java.util.Properties()
        for name, value in options.items():
            properties.setProperty(name, value)
        tool = jvm.org.apache.hudi.hive.HiveSyncTool if is_hive else jvm.org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool
        running = tool(properties, hadoop)
        try:
            running.syncHoodieTable()
        finally:
            running.close()

    try:
        try:
            call_tool(options)
        except Py4JJavaError as error:
            if not (is_hive and _REFUSED_COLUMNS in _cause(error)):
                raise
            call_tool({**options, "hoodie.datasource.hive_sync.recreate_table_on_error": "true"})
        note_registration(Timeline(uri), target, table)
    except (Py4JError, TypeError) as error:  # Py4J treats a missing class as a package, which cannot be called
        raise NodeError(
            f"{table} is written, but the {target.catalog} catalog did not take it: {_cause(error)}",
            hint="`sml debug` checks the catalog; the next commit of the table tries again",
        ) from error


def _cause(error: Exception) -> str:
    if not isinstance(error, Py4JJavaError):
        return "its classes are not there: add their jar by `spark.jars` in the target's `spark:`"
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.getMessage() or cause.getClass().getName()).splitlines()[0]


def register(session: SparkSession, tables: Mapping[TableName, TableState]) -> None:
    """Register existing tables in the session by name, with rows and hidden columns as they are on disk."""
    for name, state in tables.items():
        if not state.exists:
            continue
        session.sql(f"CREATE DATABASE IF NOT EXISTS {spark_identifier(name.schema)}")
        form = state.format if state.kind == "files" else "hudi"
        session.sql(f"CREATE TABLE IF NOT EXISTS {name.sql()} USING {form} LOCATION {spark_literal(state.uri)}")
