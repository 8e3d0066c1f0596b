"""Java and Spark: lock file → verified jars → JDK → session. Owns processes, settings and the errors that come of them.

`jars` downloads what `jars.lock.toml` pins, `java` finds a JDK, `cds_archive` and `cds_training` make it start fast;
`session` starts Spark with `spark_settings`; `spark_errors` turns Java's exceptions into ours; `job_metrics` tells what
Spark did.
"""
