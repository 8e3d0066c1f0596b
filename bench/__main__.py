"""`python -m bench [suite…]`: run suites one after the other and write their results."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pyspark

from bench.dms import Change
from bench.program import REPOSITORY
from bench.report import DEFAULT_SCALE, ORDER, write_result
from bench.result import Options, SuiteResult, Unavailable
from sqlmesh_like import __version__
from sqlmesh_like.spark.jvm.jars import locked_jars


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="suite", help=f"one of {', '.join(ORDER)}; default: all")
    parser.add_argument(
        "--scale", type=float, default=DEFAULT_SCALE, help="of TPC-H; 10,000,000 orders times it elsewhere (0.1)"
    )
    parser.add_argument("--repeat", type=int, default=3, help="repetitions, which the spread is of (3)")
    parser.add_argument("--memory", default="4g", help="of Spark's driver (4g)")
    parser.add_argument("--out", type=Path, default=Path("target/bench"), help="folder of the results (target/bench)")
    parser.add_argument("--work", type=Path, help="folder for lakes, kept afterwards; default: a temporary one")
    help_ = "of TPC-H instead of the usual ones, in per cent of the orders, e.g. newest:0.1,scattered:5"
    parser.add_argument("--changes", type=_changes, default=(), metavar="CHANGE,…", help=help_)
    asked = parser.parse_args()
    if unknown := [name for name in asked.suites if name not in ORDER]:
        parser.error(f"no such suite {', '.join(unknown)}: choose from {', '.join(ORDER)}")
    if asked.scale <= 0 or asked.repeat < 1:
        parser.error("--scale must be above 0, --repeat at least 1")
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with _work_folder(asked.work) as work:
        if there := [name for name in asked.suites or ORDER if (work / name).exists()]:
            parser.error(f"{work / there[0]} is there already: remove it, or choose another --work")
        failed = [name for name in asked.suites or ORDER if not _run(name, work / name, asked)]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def _changes(text: str) -> tuple[Change, ...]:
    try:
        return tuple(map(Change.parse, text.split(",")))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _run(suite: str, folder: Path, asked: argparse.Namespace) -> bool:
    """Run a suite, write its result and return whether it succeeded: a failure does not stop the next suites."""
    folder.mkdir(parents=True)
    print(f"{suite} …", flush=True)
    try:
        options = Options(folder, asked.scale, asked.repeat, asked.memory, asked.changes)
        result = measured(suite, options)
    except Exception:  # noqa: BLE001 - no failure may cost the hours of the other suites
        traceback.print_exc()
        return False
    write_result(asked.out, result, described(asked))
    print(f"{suite}: {len(result.figures)} figures in {asked.out}", *result.skipped, flush=True)
    return True


@contextmanager
def _work_folder(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        yield kept.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="sml-bench-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def measured(suite: str, options: Options) -> SuiteResult:
    """Run one suite; if the machine lacks something that it needs, it is skipped, and its result says why."""
    module = importlib.import_module(f"bench.{suite}")
    try:
        result: SuiteResult = module.run(options)
    except Unavailable as error:
        return SuiteResult(suite, suite, "", (), skipped=(str(error),))
    return result


def described(options: argparse.Namespace) -> dict[str, object]:
    """Return what the ratios of a run depend on: sizes, machine, versions."""
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=REPOSITORY, capture_output=True, text=True)
    hudi = next(jar.version for jar in locked_jars() if jar.artifact.startswith("hudi-"))
    return {
        "scale": options.scale,
        "repetitions": options.repeat,
        "driver": options.memory,
        "cores": os.cpu_count(),
        "memory": f"{psutil.virtual_memory().total / 1024**3:.0f} GB",
        "system": platform.system(),
        "Python": platform.python_version(),
        "Spark": pyspark.__version__,
        "Hudi": hudi,
        "sml": f"{__version__} ({commit.stdout.strip() or 'no repository'})",
        "date": datetime.now(UTC).date().isoformat(),
    }


if __name__ == "__main__":
    main()
