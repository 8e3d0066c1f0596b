"""A real YARN for tests: a ResourceManager and a NodeManager, each a JVM of its own, on free ports of loopback.

Containers are processes of this user on this machine; what they write is in the NodeManager's `logs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from tests.services.hdfs import LOG4J
from tests.services.process import free_port, java, pinned, running
from tests.services.wanted import need

_DAEMONS = {
    "resourcemanager.ResourceManager": b"Transitioned to active state",
    "nodemanager.NodeManager": b"Registered with ResourceManager",
}
_PORTS = {
    "yarn.resourcemanager": (
        "address",
        "scheduler.address",
        "resource-tracker.address",
        "admin.address",
        "webapp.address",
    ),
    "yarn.nodemanager": ("address", "localizer.address", "webapp.address"),
}
_OF_PYSPARK = ("activation", "istack-commons-runtime", "jakarta.xml.bind-api", "jaxb-runtime")
"""What Java had until 8, and Hadoop 3.3 still asks for."""


@dataclass(frozen=True)
class YarnCluster:
    """`conf`: what HADOOP_CONF_DIR is to name. `logs`: a folder for each application, one below for each container."""

    conf: Path
    logs: Path

    def driver_output(self) -> str:
        """What the driver of the newest application has written in cluster mode, errors included."""
        newest = max(self.logs.glob("application_*"))
        return (min(newest.glob("container_*")) / "stdout").read_text(encoding="utf-8", errors="replace")


@contextmanager
def yarn(folder: Path, *, memory_mb: int = 5120) -> Iterator[YarnCluster]:
    """A YARN that keeps its files in `folder`, while the context is open."""
    import pyspark

    need(lambda: pinned("hdfs"), lambda: pinned("yarn"))
    conf, logs = folder / "conf", folder / "logs"
    conf.mkdir()
    (conf / "log4j.properties").write_text(LOG4J, encoding="utf-8")
    settings = _settings(folder, logs, memory_mb)
    for name in ("core-site.xml", "yarn-site.xml", "capacity-scheduler.xml"):
        (conf / name).write_text(settings, encoding="utf-8")
    spark_jars = Path(pyspark.__file__).parent / "jars"
    of_pyspark = [path for name in _OF_PYSPARK for path in spark_jars.glob(f"{name}-*.jar")]
    jars = (conf, *pinned("hdfs"), *pinned("yarn"), *of_pyspark)
    with ExitStack() as stack:
        for daemon, sign in _DAEMONS.items():
            log = folder / f"{daemon}.log"
            options = ("-Xmx512m", "-Djava.net.preferIPv4Stack=true", "--add-opens=java.base/java.lang=ALL-UNNAMED")
            command = [*java(jars, *options), f"org.apache.hadoop.yarn.server.{daemon}"]
            stack.enter_context(running(command, log, lambda log=log, sign=sign: sign in log.read_bytes()))
        yield YarnCluster(conf, logs)


def _settings(folder: Path, logs: Path, memory_mb: int) -> str:
    """One file of settings for Hadoop, YARN and its scheduler."""
    settings = {
        "fs.defaultFS": "file:///",
        "hadoop.tmp.dir": str(folder / "tmp"),
        "yarn.resourcemanager.hostname": "127.0.0.1",
        "yarn.nodemanager.hostname": "127.0.0.1",
        "yarn.nodemanager.local-dirs": str(folder / "local"),
        "yarn.nodemanager.log-dirs": str(logs),
        "yarn.nodemanager.delete.debug-delay-sec": "3600",  # else logs go with their application
        "yarn.nodemanager.resource.memory-mb": str(memory_mb),
        "yarn.nodemanager.resource.cpu-vcores": "4",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.9",
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
        "yarn.scheduler.capacity.root.queues": "default",
        "yarn.scheduler.capacity.root.default.capacity": "100",
        **{f"{daemon}.{name}": f"127.0.0.1:{free_port()}" for daemon, names in _PORTS.items() for name in names},
    }
    lines = (
        f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in settings.items()
    )
    return f"<configuration>{''.join(lines)}</configuration>"
