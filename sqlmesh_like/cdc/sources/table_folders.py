"""Database and table of a file by its folders. Owns that rule for all logs of files.

Tools write `database/table/file`; AWS DMS puts folders of dates below (`DatePartitionEnabled`), others folders of
partitions (`dt=2024-05-01`) or folders above. So a declared table is looked for in a path, and only a path without one
is named by position.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from itertools import pairwise

from sqlmesh_like.cdc.sources.source_check import fixed_part

FolderNames = tuple[str | None, str | None]
"""Database and table."""

_PARTITION_FOLDER = re.compile(r"[^=]+=.*|\d\d|\d{4}|\d{6}|\d{8}|\d{10}|\d{2,4}(?:[-_]\d{2,4}){1,3}")
"""A date as DMS writes it (`DatePartitionSequence`, with any `DatePartitionDelimiter`), or a partition of Hive's."""


def folder_names(glob: str, file: str, is_declared: Callable[[str | None, str | None], bool]) -> FolderNames:
    """Database and table of the path of one file: those of a declared table, else those at the usual place.

    >>> wanted = lambda database, table: (database, table) == ("shop", "user")
    >>> folder_names("/landing/*/*/*.parquet", "file:/landing/shop/user/LOAD1.parquet", wanted)
    ('shop', 'user')
    >>> folder_names("/landing/shop/*/*/*/*/*.parquet", "file:/landing/shop/user/2024/05/01/1.parquet", wanted)
    ('shop', 'user')
    >>> folder_names("/landing/*/*/*/*.parquet", "file:/landing/eu/shop/user/1.parquet", wanted)
    ('shop', 'user')
    """
    possible = possible_names(glob, file)
    return next((names for names in possible if is_declared(*names)), possible[0])


def possible_names(glob: str, file: str) -> list[FolderNames]:
    """All names that a path may state, the likeliest first: that of a table which no declaration names.

    Usual is the first pair of folders below the glob's fixed part, or the pair that contains the file where the glob
    fixes these too; folders of dates and partitions that contain the file come after the table's.

    >>> possible_names("/landing/*/*.json", "file:/landing/shop/1.json")
    [('landing', 'shop')]
    >>> possible_names("/landing/*/*/*/*.json", "file:/landing/eu/shop/user/1.json")
    [('eu', 'shop'), ('shop', 'user')]
    """
    base = fixed_part(glob).rstrip("/").rpartition("://")[2]
    folders, (_, _, inside) = file.split("/")[:-1], file.partition(f"{base}/")
    below = inside.split("/")[:-1]
    usual = (below[0], below[1]) if len(below) > 1 else _last_two(folders)
    end = len(folders)
    while end and _PARTITION_FOLDER.fullmatch(folders[end - 1]):
        end -= 1
    named = folders[:end]
    first = [usual] if len(named) == len(folders) else [_last_two(named), usual]
    return list(dict.fromkeys((*first, *pairwise(below))))


def _last_two(folders: list[str]) -> FolderNames:
    return (folders[-2] if len(folders) > 1 else None, folders[-1] if folders else None)


def also_possible(glob: str, files: Iterable[str], names: Collection[FolderNames]) -> set[FolderNames]:
    """All names that may be meant by those of these files which were given one of `names`."""
    possible = (possible_names(glob, file) for file in files)
    return {each for options in possible if options[0] in names for each in options}
