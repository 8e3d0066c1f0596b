"""A project's settings for entries that YAML declares: data tests, sources, exposures, unit tests.

Owns finding them by the folders of the file; the settings of models, seeds and snapshots are in `package_reader`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlmesh_like.project.reading.values import ValueRenderer
from sqlmesh_like.project.settings import Settings
from sqlmesh_like.project.testing.data_test_config import merge_settings


@dataclass(frozen=True)
class FolderConfig:
    """The settings of one project.

    `over`: for a package, the settings of the root project. `descriptions` renders the descriptions of entries.
    """

    settings: Settings
    values: ValueRenderer
    descriptions: ValueRenderer
    over: Settings | None = None

    def test_config(self, fqn: tuple[str, ...]) -> Mapping[str, object]:
        """The checked settings of a data test. Raises ProjectError for a wrong value."""
        above = self.over.test_config(fqn, self.values) if self.over else {}
        return merge_settings(self.settings.test_config(fqn, self.values), above)

    def is_off(self, kind: str, path: str, *names: str) -> bool:
        """Whether settings have `+enabled: false` for a source table, an exposure or a unit test of a file."""
        fqn = (self.settings.name, *self.folders(path), *names)
        return any(
            settings.is_off(kind, fqn, self.values) for settings in (self.settings, self.over) if settings is not None
        )

    def folders(self, path: str) -> tuple[str, ...]:
        """The folders of a file below the path of its kind."""
        kinds = (self.settings.model_paths, self.settings.seed_paths, self.settings.snapshot_paths)
        return folders_below(path, [base for bases in (*kinds, self.settings.test_paths) for base in bases])


def folders_below(path: str, bases: list[str]) -> tuple[str, ...]:
    for base in bases:
        if Path(path).is_relative_to(base):
            return Path(path).relative_to(base).parts[:-1]
    return ()
