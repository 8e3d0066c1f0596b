"""A real HDFS for tests: a NameNode and two DataNodes in one JVM, on a free port of loopback.

With one DataNode most files take half a second: its report to the NameNode comes later than the client, who waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlmesh_like.hudi.stores.hdfs_client import HdfsClient
from sqlmesh_like.hudi.stores.store_client import require_library
from sqlmesh_like.project.reading.store_settings import StoreSettings
from tests.services.process import free_port, java, pinned, running
from tests.services.wanted import need

_STARTED = b"Started MiniDFSCluster"
LOG4J = """log4j.rootLogger=INFO,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%p %c{1}: %m%n
"""


@dataclass(frozen=True)
class HdfsServer:
    """Where a NameNode listens. Every bucket is its root: one test at a time uses it."""

    port: int

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def client(self) -> HdfsClient:
        return HdfsClient(self.authority, {})

    def make_bucket(self, name: str) -> None:
        """Remove what earlier tests have left."""
        assert name
        listed = self.client.list_with_delimiter()
        for path in [*listed["common_prefixes"], *(each["path"] for each in listed["objects"])]:
            self.client.delete_folder(path)

    def uri(self, bucket: str) -> str:
        assert bucket
        return f"hdfs://{self.authority}"

    def settings(self) -> StoreSettings:
        return StoreSettings()

    def output(self) -> Mapping[str, object]:
        """What an output of `profiles.yml` says of the store."""
        return {}


@contextmanager
def hdfs(folder: Path) -> Iterator[HdfsServer]:
    """An HDFS with its data in `folder`, while the context is open."""
    need(lambda: require_library("hdfs://tests"), lambda: pinned("hdfs"))
    server, log = HdfsServer(free_port()), folder / "hdfs.log"
    (folder / "conf").mkdir()
    (folder / "conf" / "log4j.properties").write_text(LOG4J, encoding="utf-8")
    command = java((folder / "conf", *pinned("hdfs")), "-Xmx512m", f"-Dtest.build.data={folder / 'data'}")
    options = ("-format", "-nnport", str(server.port), "-datanodes", "2")
    command += ["org.apache.hadoop.test.MiniDFSClusterManager", *options]
    with running(command, log, lambda: _STARTED in log.read_bytes()):
        yield server
