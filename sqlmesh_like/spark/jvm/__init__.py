"""Java and Spark: lock file → verified jars → JDK → session. Owns processes, settings and their errors.

`jars` downloads the jars that `jars.lock.toml` pins, `java` finds a JDK, `cds_archive` and `cds_training` speed up its
start; `session` starts Spark with `spark_settings`; `spark_errors` turns Java's exceptions into this project's errors;
`job_metrics` reports what Spark did.
"""
