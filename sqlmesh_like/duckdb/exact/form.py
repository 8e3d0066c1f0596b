"""A form that DuckDB is trusted with. Owns the record, of which `form_registry` has the list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

SYNTAX = "part of the syntax of every query, which the list has as such"


@dataclass(frozen=True)
class Form:
    """What is known of a form, or function, for two uses.

    `proof` has a node and the types in its SELECT: it returns Spark's type, has rewritten the node where DuckDB needs
    it in other words, and raises Unproven. Without one, the form is in no query that must be exact: its values are
    compared with Spark's, but not over all values of a type. `is_listed`: DuckDB may compute it where types are not
    known as well, with the guards of `allow_list`; `why` tells why it may not where there is a proof.
    """

    proof: Callable[..., str] | None = None
    is_listed: bool = True
    why: str = ""
