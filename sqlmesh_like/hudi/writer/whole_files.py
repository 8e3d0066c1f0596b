"""Small files of a table on this machine, each written or removed as a whole."""

from __future__ import annotations

from pathlib import Path


def unlink(path: Path) -> None:
    """Remove a file, with the checksum file that Hadoop writes beside it."""
    path.unlink(missing_ok=True)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def replace_whole(path: Path, content: bytes) -> None:
    """Write a small file in one step, also over a former one, whose checksum by Hadoop is removed before."""
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    write_whole(path, content, path.with_name(f".{path.name}.new"))


def write_whole(path: Path, content: bytes, aside: Path) -> None:
    """Create a file atomically: readers see all of it or nothing."""
    aside.write_bytes(content)
    aside.rename(path)
