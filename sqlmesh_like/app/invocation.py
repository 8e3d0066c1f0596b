"""The request of a call, from any caller: project, target, selection. `loading` interprets it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlmesh_like.project.selection import Indirect


@dataclass(frozen=True)
class Invocation:
    """What one call has in common with all others. `vars` is a YAML mapping, as text.

    `lock_timeout`: seconds to wait for another process that is writing to the lake. `target_path`: a folder for
    artifacts instead of the settings', from the project's root on. `partial_parse`: what the last call read may be used
    again. `warn_error`: what the project's files would be warned of is an error, and tests that would warn fail.
    """

    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    selector: str | None = None
    indirect_selection: Indirect = "eager"
    target: str | None = None
    profile: str | None = None
    profiles_dir: Path | None = None
    project_dir: Path | None = None
    vars: str = "{}"
    threads: int | None = None
    full_refresh: bool = False
    fail_fast: bool = False
    state: Path | None = None
    defer: bool = False
    lock_timeout: float = 0.0
    target_path: str | None = None
    partial_parse: bool = True
    warn_error: bool = False

    @property
    def is_selecting(self) -> bool:
        """Whether nodes are named; else all are meant."""
        return bool(self.select or self.exclude or self.selector)


@dataclass(frozen=True)
class ResourceTypes:
    """Types to take, none given: all but analyses, as in dbt, and types to leave out."""

    only: tuple[str, ...] = ()
    but: tuple[str, ...] = ()

    def take(self, resource_type: str) -> bool:
        """
        >>> ResourceTypes(("model", "test"), ("test",)).take("test")
        False
        """
        by_default = not self.only or "default" in self.only
        is_wanted = bool({"all", resource_type} & set(self.only)) or (by_default and resource_type != "analysis")
        return is_wanted and resource_type not in self.but


ALL_TYPES = ResourceTypes()
