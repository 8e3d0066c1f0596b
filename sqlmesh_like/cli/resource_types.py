"""`--resource-type` and `--exclude-resource-type`. Owns the options; `ResourceTypes` applies them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from sqlmesh_like.app.invocation import ResourceTypes
from sqlmesh_like.cli.dbt_variables import variable_names

TYPES = (
    *(
        "model",
        "seed",
        "snapshot",
        "source",
        "test",
        "unit_test",
        "exposure",
        "semantic_model",
        "metric",
        "saved_query",
    ),
    *("analysis", "all", "default"),
)


def resource_types(command: Callable[..., object]) -> Callable[..., object]:
    """Add both options to a command, which gets them as one `ResourceTypes` in its argument `types`."""
    kind = click.Choice(TYPES)

    @click.option(
        "--resource-type", "--resource-types", "only", multiple=True, type=kind,
        help="Only nodes of this type.", envvar=variable_names("resource-types"),
    )  # fmt: skip
    @click.option(
        "--exclude-resource-type", "--exclude-resource-types", "but", multiple=True, type=kind,
        help="No nodes of this type.", envvar=variable_names("exclude-resource-types"),
    )  # fmt: skip
    @wraps(command)
    def wrapper(only: tuple[str, ...], but: tuple[str, ...], **given: Any) -> object:
        return command(types=ResourceTypes(only, but), **given)

    return wrapper
