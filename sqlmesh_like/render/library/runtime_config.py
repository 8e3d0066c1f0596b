"""What packages read of the whole project by `builtins.ref.config`. Owns which parts of dbt's own object exist."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from types import SimpleNamespace

from sqlmesh_like.project.nodes import ParsedProject, Target
from sqlmesh_like.project.profile import target_words


class RuntimeConfig:
    """What packages read of the whole project by `builtins.ref.config`, where dbt has its own object.

    Every value is a copy: no template sees what another one changes.
    """

    __slots__ = ("_credentials", "_vars", "_versions", "profile_name", "project_name", "target_name", "threads")

    def __init__(self, project: ParsedProject, target: Target) -> None:
        self.project_name, self.profile_name = project.name, target.profile
        self.target_name, self.threads = target.name, target.threads
        self._versions = dict(project.versions)
        self._vars = project.vars
        self._credentials = target_words(target)

    @property
    def credentials(self) -> Mapping[str, object]:
        """The values of `target`, which hold no secret."""
        return copy.deepcopy(dict(self._credentials))

    @property
    def version(self) -> str | None:
        return self._versions.get(self.project_name)

    @property
    def dependencies(self) -> dict[str, SimpleNamespace]:
        """The project itself and its packages, by name."""
        return {name: SimpleNamespace(project_name=name, version=version) for name, version in self._versions.items()}

    def load_dependencies(self) -> dict[str, SimpleNamespace]:
        return self.dependencies

    @property
    def vars(self) -> Mapping[str, object]:
        return copy.deepcopy(dict(self._vars))

    cli_vars = vars

    @property
    def args(self) -> dict[str, object]:
        return {}
