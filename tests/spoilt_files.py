"""Data files that cannot be read: what a step must not touch fails if it does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sqlmesh_like.hudi.timeline import Timeline


def poison(uri: str, keep: Callable[[str], bool]) -> int:
    """Overwrite the data files below a table with garbage, but those whose relative path `keep` accepts."""
    spoiled = [path for path in Timeline(uri).data_files if not keep(path)]
    for path in spoiled:
        file = Path(uri) / path
        file.write_bytes(b"not a parquet file".ljust(file.stat().st_size, b"!"))
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    return len(spoiled)


def poison_rows(uri: str, keep: Callable[[str], bool]) -> int:
    """Overwrite all that data files hold beside their footers, whose statistics stay; but of those `keep` accepts."""
    spoiled = [Path(uri) / path for path in Timeline(uri).data_files if not keep(path)]
    for file in spoiled:
        data = file.read_bytes()
        footer = int.from_bytes(data[-8:-4], "little") + 8
        file.write_bytes(data[:4] + b"!" * (len(data) - 4 - footer) + data[-footer:])
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    return len(spoiled)
