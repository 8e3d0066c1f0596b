"""Shared fixtures: one Spark session for the whole suite, and no way to start one for tests that must not need it."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlmesh_like.duckdb import duck_connection
from sqlmesh_like.limits import child
from tests.levels import IS_DEEP, IS_RELEASE, TESTS, is_fast, level_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Where the auditors' packages are installed, jsonschema would build 39 parsers of IRIs, which no schema here has.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
pytest_plugins = ["tests.faults.counted", "tests.suite_times"]


def pytest_addoption(parser: pytest.Parser) -> None:
    help_ = "run the tests of these rows of docs/checklist.md"
    parser.addoption("--checklist", type=int, action="append", metavar="ROW", help=help_)


def pytest_configure(config: pytest.Config) -> None:
    """Take the JVM away where only tests that must do without it were asked for, and tell of failures at once."""
    config.pluginmanager.register(_Failures(config), "failures")
    asked_for = [(config.invocation_params.dir / arg.split("::")[0]).resolve() for arg in config.args]
    # Calls of a test in its own process read projects there: it looks at what they do, and goes on without limits, as
    # do the browsers that it starts. `tests/security` calls processes that have them.
    child.is_on = False
    if not (IS_RELEASE or IS_DEEP):
        # A step over a handful of rows is optimized longer than it computes: a fifth of the time of random queries.
        duck_connection.ANSWERS.append("PRAGMA disable_optimizer")
    os.environ.setdefault("DBT_PARTIAL_PARSE", "false")  # projects of tests have no place in the user's cache
    if all(is_fast(path) for path in asked_for):
        _block_jvm()


class _Failures:
    """Writes what fails and why when it fails: a suite that is cut off never reaches its report."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal and not hasattr(self._config, "workerinput"):
            crash = getattr(report.longrepr, "reprcrash", None)
            reason = str(crash.message).splitlines()[0] if crash else str(report.longrepr).splitlines()[-1]
            terminal.write_line(f"\nFAILED {report.nodeid} ({report.when}): {reason[:300]}")


def _block_jvm() -> None:
    """Modules that refuse to be imported hide the real ones, here and in every process the tests start."""
    blocked = str(TESTS / "no_jvm")
    sys.path.insert(0, blocked)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [blocked, os.environ.get("PYTHONPATH")]))
    folders = os.environ.get("PATH", "").split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(folder for folder in folders if not shutil.which("java", path=folder))
    os.environ.pop("JAVA_HOME", None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if level_of(item) is None:
            raise pytest.UsageError(f"{item.nodeid} has no level: add its folder to tests/levels.py")
    if asked_for := set(config.getoption("--checklist") or ()):
        kept = [item for item in items if asked_for & {row for m in item.iter_markers("checklist") for row in m.args}]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None]:
    """What is collected lives to the end: to look through it again and again is a sixth of the tests' time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()
        gc.set_threshold(50_000, 20, 20)  # as `sml` has it


def pytest_unconfigure() -> None:
    gc.unfreeze()  # else DuckDB prints its objects as leaks


@pytest.fixture(autouse=True)
def _process_limits_stay() -> Iterator[None]:
    """What a later test starts inherits what this one sets: a browser without memory only says that it crashed."""
    if sys.platform == "win32":
        yield
        return
    import resource

    names = ("DATA", "CPU", "NOFILE", "FSIZE", "AS")
    kinds = [getattr(resource, f"RLIMIT_{name}") for name in names]
    before = [resource.getrlimit(kind) for kind in kinds]
    yield
    assert [resource.getrlimit(kind) for kind in kinds] == before, "this test limits its process to its end"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The suite's Spark session: two cores, two shuffle partitions. Tests keep apart by `warehouse`."""
    from pyspark import SparkContext

    from sqlmesh_like.errors import MachineError
    from sqlmesh_like.project.nodes import Target
    from sqlmesh_like.spark.jvm.jars import ensure_jars, locked_jars
    from sqlmesh_like.spark.jvm.session import start_session
    from tests.services.cluster import MASTER_VARIABLE
    from tests.services.process import DEMAND_VARIABLE

    if SparkContext._gateway is not None:
        # A test before this one started a JVM in this process. It would stay: without Kafka's jars, and after some
        # hundred tests without room for compiled code.
        SparkContext._gateway.shutdown()
        SparkContext._gateway = SparkContext._jvm = None
    folder = tmp_path_factory.mktemp("spark")
    # On a handful of rows planning and compiling cost more than computing: each query is new here, so generated code is
    # compiled and thrown away (a third of the suite's time), and replanning or optimizing compilation never pay off.
    # Without the latter Java reserves so little room for code that a suite of this length fills it, and is interpreted
    # from then on. Generated code is what processes of their own run, and all tests of `make test-all`.
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m -XX:+UseParallelGC",
    }
    if not (IS_RELEASE or IS_DEEP):
        settings |= {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    master = os.environ.get(MASTER_VARIABLE, "local[2]")
    target = Target("test", "test", "spark", warehouse=str(folder / "warehouse"), master=master, spark=settings)
    try:
        ensure_jars(locked_jars("kafka"))
        with_kafka = True
    except MachineError:
        if os.environ.get(DEMAND_VARIABLE):
            raise
        with_kafka = False  # the tests that need it say so
    session = start_session(target, "tests", log_file=folder / "spark.log", with_kafka=with_kafka)
    yield session
    session.stop()


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """A base path of tables that only this test sees."""
    folder = tmp_path / "warehouse"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real broker, one for a worker: tests keep apart by their topics."""
    from tests.services.kafka import broker, broker_jars
    from tests.services.wanted import need

    need(broker_jars)
    with broker(tmp_path_factory.mktemp("kafka")) as address:
        yield address
