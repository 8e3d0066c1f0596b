"""Samples of tables compared with their recompute while `sml watch` runs. Owns which table is next, and when.

Between two rounds, so that no commit, swap or cleaning comes in between: one table at a time, in turn. After a sample
that took t seconds at a share of p per cent, the next one is due t * (100 / p - 1) seconds later. A table that differs
is compared by the same keys, in its turn, until these are right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

from sqlmesh_like import stop_signals
from sqlmesh_like.app.lakes.lake import HudiLake, clock
from sqlmesh_like.app.operations.verification.table_verification import Verification, new_sample, verify_table
from sqlmesh_like.app.reporter import Notify
from sqlmesh_like.run.plain_values import plain
from sqlmesh_like.run.ports import Sample

_ROWS = 3
"""Differing rows that a message has."""


@dataclass
class WatchVerification:
    """Compares samples of the selected models for `share` per cent of the time.

    `on_verified` is called with each result and, of a table that differs, what to tell about it.
    """

    lake: HudiLake
    selected: Sequence[str]
    share: float
    notify: Notify
    on_verified: Callable[[Verification, str | None], None]
    _turn: int = 0
    _due: float = 0.0
    _different: dict[str, Sample] = field(default_factory=dict)

    def __call__(self) -> None:
        """Compare the next table if it is due."""
        if not self.share or monotonic() < self._due or stop_signals.is_wished():
            return
        started = monotonic()
        if (unique_id := self._next()) is not None:
            self._verify(unique_id)
        self._due = monotonic() + (monotonic() - started) * (100 / self.share - 1)

    def _next(self) -> str | None:
        tables = [unique_id for unique_id in self.selected if unique_id in self.lake.catalog.places]
        self._turn += 1
        return tables[self._turn % len(tables)] if tables else None

    def _verify(self, unique_id: str) -> None:
        planner = self.lake.planner(clock(None))
        sample = self._different.get(unique_id) or new_sample()
        result = verify_table(planner.rendered.model(unique_id), planner, self.lake.engine, _ROWS, sample)
        problem = difference_text(result, sample) if result.status == "fail" else None
        if problem is not None and unique_id not in self._different:
            # The sample of the keys that were compared; by its seed alone, keys that came since could take their place.
            keys = result.difference.keys if result.difference is not None else None
            self._different[unique_id] = replace(sample, up_to=keys.up_to if keys is not None else None)
            self.notify(f"{result.model.table}: {problem}", "error")
        elif result.status == "pass" and unique_id in self._different:
            del self._different[unique_id]
            self.notify(f"{result.model.table}: the rows that differed equal the query again")
        self.on_verified(result, problem)


def difference_text(result: Verification, sample: Sample) -> str:
    """What a sample has shown of a table that differs, and what to do. It has values of keys, but no whole rows."""
    difference = result.difference
    assert difference is not None
    name, keys = result.model.name, difference.keys
    columns = keys.columns if keys is not None else ()
    shown = [", ".join(f"{column}={plain(row[column])!r}" for column in columns) for _, row in difference.rows]
    is_whole_row = any(len(columns) == len(row) for _, row in difference.rows)
    such = "" if is_whole_row or not columns else f" ({'; '.join(dict.fromkeys(shown))})"
    compared = "the table" if keys is None or keys.is_all else f"{keys.count} keys"
    return (
        f"{difference.total} rows of {compared} differ from the query{such};"
        f" to see them: sml verify {name} --sample --keys {sample.keys} --seed {sample.seed};"
        f" to rebuild the table: sml repair {name}"
    )
