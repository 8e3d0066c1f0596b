"""Flags that only dbt has. Owns which are accepted without effect, and what to do instead of the others.

Tools that call dbt, such as Airflow or Dagster, pass them; none of the first kind changes the result of a call.
Source: https://docs.getdbt.com/reference/global-configs/about-global-configs, dbt 1.10.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from sqlmesh_like.cli.dbt_variables import variable_of

_SWITCHES = (
    "anonymous-usage-stats cache-selected-only introspect log-cache-events macro-debugging partial-parse-file-diff "
    "populate-cache print send-anonymous-usage-stats static-parser use-colors-file use-experimental-parser "
    "use-fast-test-edges version-check write-json"
).split()
"""Flags that also have the form `--no-…`."""
_VALUES = (
    "log-file-max-bytes log-format-file log-level log-level-file log-path partial-parse-file-path printer-width"
).split()
_REFUSED: Mapping[str, str] = {
    "empty": "`sml compile` checks SQL without rows, `sml build -t TEST` runs it over fixtures on a duckdb target",
    "sample": "a run does work for what changed alone: leave it out",
    "favor-state": "--defer reads from --state what the target does not have; choose another target to read all of it",
    "single-threaded": "use --threads 1",
    "export-saved-queries": "publish a model: see docs/publishing.md",
}
_REFUSED_VALUES: Mapping[str, str] = {
    "event-time-start": "a run does work for what changed alone: leave it out",
    "event-time-end": "a run does work for what changed alone: leave it out",
    "record-timing-info": "run_results.json has the time of each node",
    "warn-error-options": "give the tests `severity: error`",
}


def dbt_flags() -> list[click.Option]:
    """Return all these flags; help does not list them."""
    switches = [_option([f"--{name}/--no-{name}"], "As dbt has it; without effect.") for name in _SWITCHES]
    colours = _option(["--use-colors"], "As dbt has it; without effect.", is_flag=True)
    values = [_option([f"--{name}"], "As dbt has it; without effect.", type=str) for name in _VALUES]
    refused = [
        *(_refused_option(name, instead, is_flag=True) for name, instead in _REFUSED.items()),
        *(_refused_option(name, instead, is_flag=False) for name, instead in _REFUSED_VALUES.items()),
    ]
    return [*switches, colours, *values, *refused]


def _option(names: list[str], help: str, **more: object) -> click.Option:
    return click.Option(names, help=help, hidden=True, expose_value=False, **more)  # type: ignore[arg-type]


def _refused_option(name: str, instead: str, *, is_flag: bool) -> click.Option:
    def refuse(context: click.Context, option: click.Parameter, value: object) -> None:
        if value:
            raise click.UsageError(f"{variable_of(context, option) or f'--{name}'} is dbt's alone: {instead}")

    return _option([f"--{name}"], f"dbt's; {instead}.", is_flag=is_flag, callback=refuse)
