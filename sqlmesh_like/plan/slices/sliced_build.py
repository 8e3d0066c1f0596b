"""A build in slices: what is known of it before it runs, and one slice of it.

The slices follow each other in the order of the first partition column. Each is a commit whose record says which are
left, with the frontier of the inputs and the clock of the first one: all slices are of one state. They are committed to
a table beside the model's, which takes its place once it is whole; with `build_visible` to the model's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlmesh_like.errors import UnreadableTableError
from sqlmesh_like.names import is_store
from sqlmesh_like.plan.history import History, TableState

if TYPE_CHECKING:
    from sqlmesh_like.delta.program import TablePlan  # whoever moves tables need not import what compiles them

_BESIDE = "__sml_slices"


@dataclass(frozen=True)
class SliceWish:
    """How many slices the user asks for; None: what models say. `is_strict`: an error where one cannot be built so."""

    count: int | None = None
    is_strict: bool = False


@dataclass(frozen=True)
class SlicedBuild:
    """The build of a table. `by`: a period, `partition`, or a number of slices; `state`: of the table that gets them.

    `left`: the first partition value of each slice that is still to be built; None: the run decides it. The first slice
    of all has no first value (None). `is_required`: the table must not be built as a whole instead.
    """

    column: str
    type: str
    by: str
    state: TableState
    is_in_place: bool
    is_required: bool = False
    built: int = 0
    left: tuple[str | None, ...] | None = None

    def progress(self) -> str:
        """What is built and what comes next, in words."""
        if self.left is None:
            return (
                f"in slices by {self.column}" if self.by.isdigit() else f"in slices, one a {self.by} of {self.column}"
            )
        total = self.built + len(self.left)
        if not self.left:
            return f"all slices by {self.column} are built; the table takes its place"
        return f"{self.built} of {total} slices by {self.column} are built; next from {self.left[0]} on"


@dataclass(frozen=True)
class Slice:
    """The part of a table that one commit builds or replaces.

    `left`: slices of a build that are left after it, `built` how many are built then; None and 0 for other parts. `of`:
    how many slices of about this size the table has. `is_beside`: the table is not at its place yet, so that no catalog
    is told of it.
    """

    table: TablePlan
    built: int = 0
    left: tuple[str, ...] | None = None
    of: int = 1
    is_beside: bool = False


def unfinished_build(target: TableState, history: History, *, rebuilds: bool) -> TableState | None:
    """The table that has the slices of an unfinished build of a model's table; None if there is none.

    One that is whole and has not taken its place counts, too. `rebuilds`: also that of a table that there is. Where it
    is on a store, looking for it is a request for each table, and only done for tables that may be built anew.
    """
    if target.record is not None and target.record.slices_left:
        return target
    if is_store(target.uri) and target.exists and not rebuilds:
        return None
    try:
        state = history.state(beside(target.uri))
    except UnreadableTableError:
        return TableState(beside(target.uri), "unreadable", "")
    return state if state.exists else None


def beside(uri: str) -> str:
    """Where the slices of the table at this address are until all are built."""
    return uri + _BESIDE
