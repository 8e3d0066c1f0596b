"""A real Hive metastore for tests, from pyspark's own jars: thrift on a free port, its database (Derby) in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from tests.services.process import free_port, is_open, java, running


@contextmanager
def metastore(folder: Path) -> Iterator[str]:
    """A metastore with its data in `folder`, while the context is open; its `thrift://…`."""
    port, jars = free_port(), Path(pyspark.__file__).parent / "jars" / "*"
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder / 'metastore'};create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.async.log.enabled": "false",
        "hive.metastore.warehouse.dir": str(folder / "hive"),
    }
    options = [f"-Dderby.stream.error.file={folder / 'derby.log'}", "-Xmx256m"]
    command = [*java([jars], *options), "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)]
    for name, value in settings.items():
        command += ["--hiveconf", f"{name}={value}"]
    with running(command, folder / "metastore.log", lambda: is_open(port)):
        yield f"thrift://127.0.0.1:{port}"
