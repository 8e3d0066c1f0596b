"""What templates know of the call: flags, arguments, selection, variables for artifacts. Owns which are available.

A model's text must not depend on the command that renders it, or `explain` would show a different one than `run`
builds: it always gets `run`. Hooks and operations get the actual command.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlmesh_like.project.reading.file_dependencies import record_clock
from sqlmesh_like.project.reading.values import public_env_var

_PREFIX = "DBT_ENV_CUSTOM_ENV_"


@dataclass(frozen=True)
class TemplateCall:
    """A call as templates see it; `arguments` are named as those of dbt's command line, without dashes."""

    command: str = "run"
    full_refresh: bool = False
    arguments: Mapping[str, object] = field(default_factory=dict)
    selected: tuple[str, ...] = ()

    def names(self) -> dict[str, object]:
        """The names that are in scope of templates."""
        given = {"which": self.command, "full_refresh": self.full_refresh, **self.arguments}
        always = {"EMPTY": False, "INTROSPECT": True}
        return {
            "flags": {**always, **{key.upper(): value for key, value in given.items()}},
            "invocation_args_dict": given,
            "selected_resources": list(self.selected),
            "dbt_metadata_envs": MetadataVariables(),
        }


class MetadataVariables(Mapping[str, object]):
    """`dbt_metadata_envs`: environment variables that begin with `DBT_ENV_CUSTOM_ENV_`, by the rest of their names."""

    def __getitem__(self, name: str) -> object:
        value = public_env_var(_PREFIX + name, "")
        if value == "":
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        record_clock()  # the next call may find other variables
        return iter(sorted(name.removeprefix(_PREFIX) for name in os.environ if name.startswith(_PREFIX)))

    def __str__(self) -> str:
        return str(dict(self))

    def __len__(self) -> int:
        return len(list(iter(self)))
