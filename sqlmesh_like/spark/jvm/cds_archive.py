"""A class archive that halves a session's start. Owns creating it, its path in the cache, and the options that use it.

Java reads Spark's and Hudi's 25,000 classes in half the time from an archive that a training session wrote when it
ended (JDK Enhancement Proposal 350). It is an optimisation only: a JVM that finds the archive unfit starts without it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import util
from pathlib import Path

from filelock import FileLock

from sqlmesh_like.errors import MachineError
from sqlmesh_like.own_files import require_own
from sqlmesh_like.spark.jvm.jars import cache_dir
from sqlmesh_like.spark.jvm.java import Jdk

_FIRST_VERSION = 13
_BASE, _SESSIONS, _MADE_FROM = "base.jsa", "sessions.jsa", "made_from"
_TRAINING_MINUTES = 10
# Otherwise Java prints to the terminal that an archive does not fit.
_SILENT = "-Xlog:disable"


def archive_options(jdk: Jdk, jars: Sequence[Path]) -> tuple[str, ...]:
    """Java options that use the archive of this JDK and these jars; empty where there is none."""
    folder = _folder(jdk, jars)
    if not (folder / _SESSIONS).is_file():
        return ()
    require_own(folder)
    return _SILENT, f"-XX:SharedArchiveFile={folder / _BASE}{os.pathsep}{folder / _SESSIONS}"


def can_archive(jdk: Jdk) -> bool:
    """Whether this JDK can write an archive when it exits."""
    return jdk.major >= _FIRST_VERSION


def make_archive(jdk: Jdk, jars: Sequence[Path]) -> None:
    """Create an archive in a training session: about 40 seconds, 170 MB. Safe to call from several processes at once.

    Raises MachineError where that fails; sessions then start without one.
    """
    folder = _folder(jdk, jars)
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.parent / ".lock"):
        _drop_orphans(folder.parent)
        if (folder / _SESSIONS).is_file():
            return
        (folder / _MADE_FROM).write_text("\n".join(_made_from(jdk, jars)), encoding="utf-8")
        unfinished = folder / f"{_SESSIONS}.unfinished"
        unfinished.unlink(missing_ok=True)
        (folder / _BASE).unlink(missing_ok=True)
        base = f"-XX:SharedArchiveFile={folder / _BASE}"
        _run([str(jdk.home / "bin" / "java"), "-Xshare:dump", base, _SILENT])
        _run(
            [
                sys.executable,
                "-m",
                "sqlmesh_like.spark.jvm.cds_training",
                _SILENT,
                base,
                f"-XX:ArchiveClassesAtExit={unfinished}",
            ]
        )
        if not unfinished.is_file():
            raise MachineError(f"{jdk.home} wrote no class archive")
        os.replace(unfinished, folder / _SESSIONS)


def _run(command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=60 * _TRAINING_MINUTES)
    except (OSError, subprocess.SubprocessError) as error:
        output = getattr(error, "stderr", None) or str(error)
        raise MachineError(f"no class archive was made: {output.strip().splitlines()[-1]}") from error


def _folder(jdk: Jdk, jars: Sequence[Path]) -> Path:
    training = Path(__file__).with_name("cds_training.py").read_text(encoding="utf-8")
    made_from = "\n".join([jdk.version, training, *_made_from(jdk, jars)])
    return cache_dir() / "classes" / hashlib.sha256(made_from.encode()).hexdigest()[:16]


def _made_from(jdk: Jdk, jars: Sequence[Path]) -> list[str]:
    spark = util.find_spec("pyspark")
    installed = [str(spark.origin)] if spark else []
    return [str(jdk.home), *installed, *(str(jar) for jar in jars)]


def _drop_orphans(archives: Path) -> None:
    """Remove archives whose JDK, Spark or jars are gone: each is 170 MB and fits nothing else."""
    for record in archives.glob(f"*/{_MADE_FROM}"):
        if not all(Path(line).exists() for line in record.read_text(encoding="utf-8").splitlines()):
            shutil.rmtree(record.parent)
