"""Why Spark refuses an expression. Owns the value that stands for a type where there is none."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """Why Spark's analysis refuses an expression over values of these types."""

    message: str
