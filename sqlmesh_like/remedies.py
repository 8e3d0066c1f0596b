"""Faults of the machine → what to do about them. Owns the texts by which a fault is recognized.

Python, Java, DuckDB and SQLite all repeat the operating system's text, so the text is compared, not a type.
"""

from __future__ import annotations

MORE_MEMORY = "give Spark more memory in profiles.yml (spark: {spark.driver.memory: 4g}), or run fewer threads"
_PERMISSION = "give the user of this process permission for it"
_REMEDIES = {
    "No space left on device": "free space on its file system",
    "database or disk is full": "free space on its file system",
    "Disk quota exceeded": "free space within the quota",
    "Read-only file system": "make its file system writable",
    "attempt to write a readonly database": _PERMISSION,
    "Permission denied": _PERMISSION,
    "Operation not permitted": _PERMISSION,
    "File name too long": "give it a shorter name",
    "File too large": "raise the limit of file sizes (ulimit -f)",
    "OutOfMemoryError": MORE_MEMORY,
    "Too many open files": "raise the limit of open files (ulimit -n)",
    "S3AFileSystem not found": "give Spark hadoop-aws and aws-java-sdk-bundle of its Hadoop version (spark.jars under"
    " `spark:`), or the pinned ones (remove `spark_jars: site` under `store:` and run `sml deps`)",
    "No FileSystem for scheme": "give Spark the connector of that store (spark.jars under `spark:` of the target)",
}


def remedy(error: object, then: str) -> str | None:
    """Return what to do about a fault of the machine before the command `then`; None for any other error.

    >>> remedy(OSError(28, "No space left on device", "/data/a.parquet"), "sml run")
    'free space on its file system, then: sml run'
    >>> remedy("java.io.IOException: Read-only file system", "sml ingest")
    'make its file system writable, then: sml ingest'
    >>> remedy("no such column", "sml run") is None
    True
    """
    text = str(error)
    known = next((todo for sign, todo in _REMEDIES.items() if sign in text), None)
    return None if known is None else f"{known}, then: {then}"
