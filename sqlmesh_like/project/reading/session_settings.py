"""Settings of a Spark session that change what SQL means. Owns those that are fixed, and which others have no effect.

Types, plans and DuckDB's SQL are proven for Spark's defaults. A setting `spark.sql.…` that is not known to be about
speed, files or the catalog may change values: Spark computes all rows then, and a model follows changes only where the
setting concerns functions alone. Source: "Configuration" and "Performance Tuning" of Spark 3.5, and `SQLConf`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

FIXED: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",
    # Spark would replace `${env:…}` by variables of the environment and of Java, even in a model's literal or a default
    # that an event states.
    "spark.sql.variable.substitute": "false",
    # A CTE wins over one of its name further out, as everywhere in SQL; the default refuses such a query, and views are
    # inlined with their own CTEs.
    "spark.sql.legacy.ctePrecedencePolicy": "CORRECTED",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    # Otherwise NULLs inside arrays fail.
    "spark.hadoop.parquet.avro.write-old-list-structure": "false",
    # The default, INT96, is read back as nanoseconds, which only cover the years 1677 to 2262. Change logs, exports and
    # staged rows of a commit are Parquet files that other readers than Spark read, too.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Hudi writes days and microseconds of the proleptic calendar; the default refuses dates before 1582, which are
    # common in databases (0001-01-01 for "none").
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInWrite": "CORRECTED",
}
"""They determine the meaning of a model's rows (time zone, ANSI mode), or Hudi requires them."""
EXTENSIONS = "spark.sql.extensions"
"""A target may name further ones than Hudi's, which bring functions of their own."""
HUDI_EXTENSION = "org.apache.spark.sql.hudi.HoodieSparkSessionExtension"
_WITHOUT_EFFECT = r"""spark\.sql\.(
    shuffle\.partitions | adaptive\..+ | autoBroadcastJoinThreshold | broadcastTimeout | cbo\..+ | statistics\..+
    | join\.preferSortMergeJoin | crossJoin\.enabled | codegen\..+ | inMemoryColumnarStorage\..+ | windowExec\..+
    | sortMergeJoinExec\..+ | cartesianProductExec\..+ | objectHashAggregate\..+
    | execution\.(topKSortFallbackThreshold | useObjectHashAggregateExec | arrow\.maxRecordsPerBatch)
    | optimizer\.(dynamicPartitionPruning | runtime)\..+ | optimizer\.(maxIterations | inSetConversionThreshold)
    | files\.(maxPartitionBytes | openCostInBytes | minPartitionNum | maxPartitionNum | maxRecordsPerFile)
    | sources\.(parallelPartitionDiscovery\..+ | bucketing\..+ | partitionOverwriteMode | commitProtocolClass)
    | parquet\.(filterPushdown(\..+)? | enableVectorizedReader | enableNestedColumnVectorizedReader
        | columnarReaderBatchSize | compression\.codec | output\.committer\.class)
    | hive\.(metastore.* | filesourcePartitionFileCacheSize | manageFilesourcePartitions | convertMetastoreParquet)
    | catalog\..+ | defaultCatalog | globalTempDatabase | warehouse\.dir
    | storeAssignmentPolicy | legacy\.allowNonEmptyLocationInCTAS
    | streaming\..+ | thriftServer\..+ | queryExecutionListeners | ui\..+ | debug\..+ | redaction\..+
    | event\.truncate\.length | maxPlanStringLength | maxMetadataStringLength
    )"""
"""Names (verbose pattern): about speed, files, logs or the catalog; or about statements that no model is."""
_OF_FUNCTIONS = frozenset({"spark.sql.legacy.timeParserPolicy", "spark.sql.mapKeyDedupPolicy", EXTENSIONS})
"""They change the results of functions, or add some, and neither types nor how rows are joined and grouped."""

LOCALE_OPTIONS = ("-Duser.language=en", "-Duser.country=US")
"""Of driver and executors: in Turkish, Lithuanian and Azeri, Java's `upper` and `lower` give other letters."""
LOCALE_HINT = "remove it: in another locale `upper` and `lower` give other letters than in tables so far"
_LOCALE = {"language": "en", "country": "US", "region": "US"}
_LOCALE_OPTION = re.compile(
    r"-Duser\.(?P<part>language|country|region|variant|script|extensions)(?:\.(?:format|display))?=(?P<value>[^\s'\"]*)"
)
_HAS_JAVA_OPTIONS = re.compile(r"spark\.(driver|executor)\.(extra|default)JavaOptions")


def value_settings(spark: Mapping[str, str]) -> dict[str, str]:
    """The settings of a target with which Spark's values may be others than by default.

    >>> value_settings({"spark.sql.shuffle.partitions": "64", "spark.executor.cores": "2"})
    {}
    >>> value_settings({"spark.sql.caseSensitive": "true", "spark.sql.files.ignoreCorruptFiles": "true"})
    {'spark.sql.caseSensitive': 'true', 'spark.sql.files.ignoreCorruptFiles': 'true'}
    >>> value_settings({EXTENSIONS: HUDI_EXTENSION}), value_settings({EXTENSIONS: "com.example.More"})
    ({}, {'spark.sql.extensions': 'com.example.More'})
    """
    return {
        name: value
        for name, value in spark.items()
        if name.startswith("spark.sql.") and name not in FIXED and not re.fullmatch(_WITHOUT_EFFECT, name, re.VERBOSE)
        if (name, value) != (EXTENSIONS, HUDI_EXTENSION)
    }


def setting_not_followed(settings: Mapping[str, str]) -> str | None:
    """The first of these settings with which no plan is proven; None: changes are followed.

    >>> setting_not_followed({"spark.sql.legacy.timeParserPolicy": "LEGACY", "spark.sql.caseSensitive": "true"})
    'spark.sql.caseSensitive'
    """
    return next((name for name in settings if name not in _OF_FUNCTIONS), None)


def foreign_locale(spark: Mapping[str, str]) -> tuple[str, str] | None:
    """The first setting of a target with a Java option for another locale than en-US, and that option.

    >>> foreign_locale({"spark.driver.extraJavaOptions": "-Xss8m -Duser.language=tr"})
    ('spark.driver.extraJavaOptions', '-Duser.language=tr')
    >>> foreign_locale({"spark.executor.extraJavaOptions": "'-Duser.country=US' -Duser.timezone=UTC"})
    """
    for name, value in spark.items():
        options = _LOCALE_OPTION.finditer(value) if _HAS_JAVA_OPTIONS.fullmatch(name) else ()
        if found := next((each for each in options if each["value"] != _LOCALE.get(each["part"])), None):
            return name, found[0]
    return None


def changed_setting(spark: Mapping[str, str], fixed: Mapping[str, str] = FIXED) -> str | None:
    """The first setting of a target that would change a fixed one.

    >>> changed_setting({"spark.sql.ansi.enabled": "true"})
    'spark.sql.ansi.enabled'
    """
    return next((name for name, value in spark.items() if name in fixed and value != fixed[name]), None)
