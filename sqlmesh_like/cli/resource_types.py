"""`--resource-type` and `--exclude-resource-type`. Owns the two options, and which nodes they leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

TYPES = ("model", "seed", "snapshot", "source", "test", "unit_test", "exposure", "analysis", "all", "default")


@dataclass(frozen=True)
class ResourceTypes:
    """Types to take, none given: all, and types to leave out."""

    only: tuple[str, ...] = ()
    but: tuple[str, ...] = ()

    def take(self, resource_type: str) -> bool:
        """
        >>> ResourceTypes(("model", "test"), ("test",)).take("test")
        False
        """
        is_wanted = not self.only or bool({"all", "default", resource_type} & set(self.only))
        return is_wanted and resource_type not in self.but


ALL_TYPES = ResourceTypes()


def resource_types(command: Callable[..., object]) -> Callable[..., object]:
    """Gives a command both options; it gets them as one `ResourceTypes` in its argument `types`."""
    kind = click.Choice(TYPES)

    @click.option(
        "--resource-type", "--resource-types", "only", multiple=True, type=kind, help="Only nodes of this type."
    )
    @click.option(
        "--exclude-resource-type", "--exclude-resource-types", "but", multiple=True, type=kind,
        help="No nodes of this type.",
    )  # fmt: skip
    @wraps(command)
    def called(only: tuple[str, ...], but: tuple[str, ...], **given: Any) -> object:
        return command(types=ResourceTypes(only, but), **given)

    return called
