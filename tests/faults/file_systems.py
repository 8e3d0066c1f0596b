"""File systems that are full or read-only, for tests that run as root on Linux; elsewhere these tests are skipped."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[Path]:
    """A file system of its own at `place`, in memory."""
    place.mkdir(parents=True, exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place))
    try:
        yield place
    finally:
        _unmount(place)


@contextmanager
def full(disk: Path, free: int) -> Iterator[None]:
    """A small disk with only so many bytes left, in whole pages."""
    filler, left = disk / "filler", os.statvfs(disk)
    filler.write_bytes(bytes(max(0, left.f_bavail * left.f_frsize - free)))
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """An existing folder to which also root cannot write."""
    _mount("--bind", str(folder), str(folder))
    try:
        _mount("-o", "remount,bind,ro", str(folder))
        yield
    finally:
        _unmount(folder)


def contents(folder: Path) -> dict[str, bytes]:
    """The files below a folder by their paths; locks and their holders excepted, which each call has."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.parent.name != "_sml")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _mount(*arguments: str) -> None:
    try:
        subprocess.run(["mount", *arguments], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no file system can be mounted here: {getattr(error, 'stderr', '') or error}")


def _unmount(place: Path) -> None:
    subprocess.run(["umount", "--lazy", str(place)], check=True)
