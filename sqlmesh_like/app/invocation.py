"""The request of a call, from any caller: project, target, selection. `loading` interprets it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from sqlmesh_like.project.selection import Indirect


def _may_use_cache() -> bool:
    return os.environ.get("DBT_PARTIAL_PARSE", "true").lower() not in ("0", "false", "f", "no")


@dataclass(frozen=True)
class Invocation:
    """The options that all calls have in common. `vars` is a YAML mapping, as text.

    `lock_timeout`: seconds to wait for other processes that use the same tables. `target_path`: a folder for
    artifacts that overrides the settings', relative to the project's root. `partial_parse`: the project may be read
    from the cache, by default unless `DBT_PARTIAL_PARSE=false` is set, as in dbt. `warn_error`: warnings about the
    project's files are errors, and tests that would warn fail. `defer_state`: a folder that replaces
    `state` for `defer`. `environment`: the one whose tables are read and made instead of production's.
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
    defer_state: Path | None = None
    lock_timeout: float = 0.0
    target_path: str | None = None
    partial_parse: bool = field(default_factory=_may_use_cache)
    warn_error: bool = False
    environment: str | None = None

    @property
    def is_selecting(self) -> bool:
        """Whether nodes are selected explicitly; else all are."""
        return bool(self.select or self.exclude or self.selector)


@dataclass(frozen=True)
class ResourceTypes:
    """Types to include (none given: all except analyses, as in dbt) and types to exclude."""

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
