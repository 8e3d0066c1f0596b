"""What becomes of a lake's releases by the tables of a run, or of a promotion. Owns whether they may be seen."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from sqlmesh_like.app.lakes.lake_tables import LakeTables
from sqlmesh_like.errors import UsageError
from sqlmesh_like.names import NodeId
from sqlmesh_like.releases.release import Release, Releases, Tables, created_now
from sqlmesh_like.releases.wholeness import TablesOfRun, pending_tests, whole_tables


@dataclass
class ReleaseEdit:
    """What becomes of a lake's releases by these tables, of which these tests passed; `mode`: the project's `release`.

    It may be called again where another run was faster: its tables are then those of before. Afterwards `is_made` says
    whether there is a release of them, and `reason` why not. Raises NotWholeError.
    """

    lake: LakeTables
    command: str
    mode: str | None
    run: TablesOfRun
    passed: Collection[str]
    is_made: bool = False
    reason: str = ""

    def __call__(self, releases: Releases) -> Releases:
        current = releases.newest.tables if releases.newest is not None else {}
        self.is_made, self.reason = False, ""
        if self.mode != "manual" and self._is_ready(tables := self._whole(current), current):
            if tables == current:
                return releases
            self.is_made = True
            after = releases.with_release(tables, self.command, created_now())
            return after if releases.candidate is None else self._with_waiting(after, releases.candidate)
        waiting = releases.candidate.tables if releases.candidate is not None else current
        tables = self._whole(waiting)
        return releases if tables == waiting else releases.with_candidate(tables, self.command, created_now())

    def _with_waiting(self, after: Releases, candidate: Release) -> Releases:
        """Keep what waits beside a release that this run has made of other tables."""
        with suppress(UsageError):  # where it is not whole any more
            waiting = self._whole(candidate.tables)
            if after.newest is not None and waiting != after.newest.tables:
                return after.with_candidate(waiting, candidate.command, candidate.created_at)
        return after

    def _whole(self, base: Tables) -> Tables:
        return whole_tables(self.lake.catalog, self.lake.reads.of_table, self.run, base)

    def _is_ready(self, tables: Tables, current: Tables) -> bool:
        """Whether the tables may be seen: with `tested`, the data tests of all that are new or changed have passed."""
        if self.mode == "always":
            return True
        changed = [each for each in tables if tables[each] != current.get(each) and NodeId.parse(each).kind != "source"]
        rendered = self.lake.loaded.rendered
        tests = {test.unique_id: self.lake.reads.of(test) for test in rendered.tests}
        names_left = frozenset(pending_tests(changed, tests, self.passed))
        waiting = [test for test in rendered.tests if test.unique_id in names_left]
        if waiting:
            names = ", ".join(test.name for test in islice(waiting, 3))
            more = ", …" if len(waiting) > 3 else ""
            what = f"{pluralize(len(waiting), 'data test')} of its tables did not run: {names}{more}"
            self.reason = f"{what}\n  `sml build` runs them; `sml release create` makes it without"
        return not waiting


def pluralize(number: int, noun: str) -> str:
    """Return a number of things in words."""
    return f"{number} {noun}{'s' * (number != 1)}"
