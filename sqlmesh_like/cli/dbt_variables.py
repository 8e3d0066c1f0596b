"""Environment variables of dbt that stand for flags. Owns their names; click reads them.

Tools that call dbt set some: Dagster the format of logs and where artifacts go, Airflow's Cosmos the latter.
A flag given in the call wins over its variable. `DBT_ENGINE_…` is the newer name, and wins over `DBT_…`.
Source: https://docs.getdbt.com/reference/global-configs/environment-variable-configs, dbt 1.11.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import click

_FLAGS = frozenset(
    "debug defer defer-state fail-fast full-refresh indirect-selection log-format partial-parse profile profiles-dir "
    "project-dir quiet state target target-path warn-error "
    # refused as flags, and so as variables
    "empty event-time-end event-time-start export-saved-queries favor-state sample single-threaded "
    "warn-error-options".split()
)
"""Shared flags that have a variable; those without effect need none, and dbt has none for `threads` and `vars`."""


def variable_names(flag: str) -> list[str]:
    """Return the variables of a flag, the one that wins first.

    >>> variable_names("target-path")
    ['DBT_ENGINE_TARGET_PATH', 'DBT_TARGET_PATH']
    """
    suffix = flag.upper().replace("-", "_")
    return [f"DBT_ENGINE_{suffix}", f"DBT_{suffix}"]


def variable(flag: str) -> str | None:
    """Return the value that the environment has for a flag; an empty one counts as none, as in dbt."""
    return next((value for name in variable_names(flag) if (value := os.environ.get(name))), None)


def with_variables(options: Iterable[click.Option]) -> list[click.Parameter]:
    """Let each option that has variables read them. Only flags before the command: after it they are defaults."""
    taken: list[click.Parameter] = []
    for option in options:
        flag = next((name for spelling in option.opts if (name := spelling.removeprefix("--")) in _FLAGS), None)
        option.envvar = None if flag is None else variable_names(flag)
        taken.append(option)
    return taken


def variable_of(context: click.Context | None, option: click.Parameter | None) -> str | None:
    """Return the variable that an option's value comes from, None where the call itself gives it."""
    if context is None or option is None or option.name is None:
        return None
    if context.get_parameter_source(option.name) is not click.core.ParameterSource.ENVIRONMENT:
        return None
    return next((name for name in option.envvar or () if os.environ.get(name)), None)
