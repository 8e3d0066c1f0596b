"""Which files of a Parquet folder belong together. Owns the one pointer to them, and their replacement all at once.

On this machine the pointer is the link `current` to a folder with a file for each table; an unchanged one is a hard
link. `<table>.parquet` links there, so that it changes with the pointer too. On a store the pointer is the object
`current.json`, which names an object for each table; `<table>.parquet` is a copy, made just before.

A set is numbered. The one before the current stays for readers that have begun; older ones, and those of killed
calls, are removed when the next is made. The caller excludes other writers.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.storage import Folder

SETS, CURRENT, POINTER = "_sml_sets", "current", "current.json"
_VERSION = 1


class FileSet(Protocol):
    """A set of files that is being made: it begins as the current one."""

    def path(self, table: str) -> str | None:
        """The file of a table in the new set, None where it has none."""
        ...

    def put(self, table: str, made: Path) -> None:
        """Take a file as that of a table."""
        ...

    def show(self) -> None:
        """Let readers see this set in place of the current one."""
        ...

    def discard(self) -> None:
        """Remove what was made."""
        ...


def file_of(table: str) -> str:
    return f"{table}.parquet"


def _number(name: str) -> int:
    return int(name) if name.isdigit() else -1


@dataclass
class LocalFileSet:
    """A set on this machine. `root`: the destination's folder; `is_ours`: whether a publication made a file."""

    root: Path
    is_ours: Callable[[Path], bool]
    _folder: Path = field(init=False)

    def __post_init__(self) -> None:
        self._folder = self._create_set()
        if files := self._own_files():  # of a publication without releases: first shown as they are, by the pointer
            for path in files:
                _link(path, self._folder / path.name)
            self.show()
            self._folder = self._create_set()

    def path(self, table: str) -> str | None:
        path = self._folder / file_of(table)
        return str(path) if path.exists() else None

    def put(self, table: str, made: Path) -> None:
        # Never written in place: a file may be a hard link to that of the current set.
        os.replace(made, self._folder / file_of(table))

    def show(self) -> None:
        pointer = self.root / f".{CURRENT}.new"
        pointer.unlink(missing_ok=True)
        pointer.symlink_to(Path(SETS, self._folder.name), target_is_directory=True)
        os.replace(pointer, self.root / CURRENT)
        for path in sorted(self._folder.glob("*.parquet")):
            link = self.root / path.name
            if not link.is_symlink() and (not link.exists() or self.is_ours(link)):
                beside = self.root / f".{path.name}.link"
                beside.unlink(missing_ok=True)
                beside.symlink_to(Path(CURRENT, path.name))
                os.replace(beside, link)
        remove_former(self.root, kept=2)

    def discard(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _create_set(self) -> Path:
        """A new folder with the files of the current set."""
        current = self.root / CURRENT
        number = _number(current.readlink().name) if current.is_symlink() else 0
        folder = self.root / SETS / str(number + 1)
        shutil.rmtree(folder, ignore_errors=True)  # of a killed call: the pointer does not name it
        folder.mkdir(parents=True)
        for path in current.glob("*.parquet") if current.is_symlink() else ():
            _link(path, folder / path.name)
        return folder

    def _own_files(self) -> list[Path]:
        files = (path for path in sorted(self.root.glob("*.parquet")) if not path.is_symlink())
        return [path for path in files if path.is_file() and self.is_ours(path)]


def remove_former(root: Path, kept: int = 1) -> None:
    """Remove sets on this machine, except the newest ones up to the current one."""
    current = root / CURRENT
    if not current.is_symlink():
        return
    newest = _number(current.readlink().name)
    for path in (root / SETS).iterdir():
        if not newest - kept < _number(path.name) <= newest:
            shutil.rmtree(path, ignore_errors=True)


def _link(source: Path, to: Path) -> None:
    to.unlink(missing_ok=True)
    try:
        os.link(source, to)
    except OSError:  # the file system has no hard links
        shutil.copyfile(source, to)


@dataclass
class StoredFileSet:
    """A set on a store. `is_ours`: whether a publication made an object."""

    root: Folder
    is_ours: Callable[[str], bool]
    upload: Callable[[Path, str], None]
    _files: dict[str, str] = field(default_factory=dict)
    _former: Mapping[str, str] = field(default_factory=dict)
    _number: int = 1

    def __post_init__(self) -> None:
        names = self.root.names()
        if POINTER in names:
            self._former = read_pointer(self.root)
            self._number = 1 + max((_number(path.split("/")[1]) for path in self._former.values()), default=0)
            self._files = {**self._former}
            return
        for name in sorted(names):  # of a publication without releases, which replaces them in place
            if name.endswith(".parquet") and self.is_ours(f"{self.root.path}/{name}"):
                self._copy(name, to := f"{SETS}/0/{name}")
                self._files[name.removesuffix(".parquet")] = to

    def path(self, table: str) -> str | None:
        relative = self._files.get(table)
        return None if relative is None else f"{self.root.path}/{relative}"

    def put(self, table: str, made: Path) -> None:
        relative = f"{SETS}/{self._number}/{file_of(table)}"
        self.upload(made, f"{self.root.path}/{relative}")
        self._files[table] = relative

    def show(self) -> None:
        # Before the pointer: a call that is killed in between is repeated from the pointer, these copies included.
        for table, relative in self._files.items():
            if self._former.get(table) != relative:
                self._copy(relative, file_of(table))
        content = json.dumps({"version": _VERSION, "tables": self._files}, sort_keys=True).encode()
        with self.root.fs.open(f"{self.root.path}/{POINTER}", "wb") as target:
            target.write(content)
        self._remove_others({*self._files.values(), *self._former.values()})

    def discard(self) -> None:
        self._remove_others({*self._former.values()})

    def _copy(self, source: str, to: str) -> None:
        self.root.fs.cp_file(f"{self.root.path}/{source}", f"{self.root.path}/{to}")

    def _remove_others(self, kept: set[str]) -> None:
        start = len(self.root.path) + 1
        for path in self.root.fs.find(f"{self.root.path}/{SETS}"):
            if path[start:] not in kept:
                self.root.fs.rm(path)


def read_pointer(root: Folder) -> dict[str, str]:
    """The objects of a store's current set, relative to the folder, by table. Raises NodeError where it has none."""
    try:
        document = json.loads(root.read(POINTER))
        if int(document["version"]) > _VERSION:
            raise ValueError(f"its form is version {document['version']}")
        return {str(table): str(path) for table, path in document["tables"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        hint = "remove it and publish again: sml publish --full-refresh"
        raise NodeError(f"{POINTER} of the folder does not name its files: {error}", hint=hint) from error
