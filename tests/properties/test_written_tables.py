"""Tables that `hudi.writer` writes follow random batches: their rows, the logs of their commits, their file slices.

Naive rules, patched into the writer, are caught by the same check.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlmesh_like.hudi.change_log import logs_between
from sqlmesh_like.hudi.writer import file_merge, upsert
from sqlmesh_like.hudi.writer.file_merge import GroupMerge, MergedFile
from sqlmesh_like.names import IS_DELETED, SEQUENCE
from tests.levels import count, sample
from tests.properties.cases import examples
from tests.written_table import Row, Signed, WrittenTable

CASES = count(6, 25, 300)
KEYS = ("a", "b", "c", "d", "é", "😀", "", "a|b")
COLUMNS = {"p": "string", "o": "long", "v": "long", "x": "double", "t": "string"}
PLACE, ORDER = 1, 2
"""Where partition and order stand in a row."""
Batch = Sequence[tuple[Row, bool]]
"""Rows (grain: key and partition) and whether each is to be deleted."""


@dataclass(frozen=True)
class Case:
    partition: str | None
    buckets: int
    ordering: tuple[str, ...]
    batches: Sequence[Batch]
    overwrites: Sequence[bool] = ()  # whether the rows of a batch replace all of the table


@st.composite
def written(draw: st.DrawFn, orderings: Sequence[tuple[str, ...]] = ((), ("o",))) -> Case:
    partition = draw(st.sampled_from((None, "p")))
    ordering = draw(st.sampled_from(orderings))
    values = (
        st.sampled_from((None, 0, -1, 2**60)), st.sampled_from((None, 0.5, -0.0, 1e300)),
        st.sampled_from((None, "", "ü", "x" * 50)),
    )  # fmt: skip
    action = st.tuples(
        st.sampled_from(KEYS), st.sampled_from("xyz" if partition else "x"), st.integers(0, 3), *values, st.booleans()
    )
    batch = st.lists(action, max_size=6, unique_by=lambda row: row[:2])
    batches = draw(st.lists(batch, min_size=2, max_size=4))
    split = [[(tuple(row[:-1]), bool(row[-1])) for row in rows] for rows in batches]
    has_overwrites = draw(st.integers(0, 3)) == 0  # few: the logs of the others are looked at from end to end
    overwrites = [has_overwrites and draw(st.booleans()) for _ in split]
    return Case(partition, draw(st.integers(1, 3)), ordering, split, overwrites)


@dataclass
class Expected:
    """The table as a mapping by key and partition."""

    ordering: tuple[str, ...]
    rows: dict[Row, Row] = field(default_factory=dict)

    def apply(self, batch: Batch) -> tuple[int, int, int]:
        """Inserts, updates and deletes of a batch."""
        inserts = updates = deletes = 0
        for row, is_gone in batch:
            place, old = row[: PLACE + 1], self.rows.get(row[: PLACE + 1])
            if old is not None and self.ordering and int(str(row[ORDER])) < int(str(old[ORDER])):
                continue
            inserts += old is None and not is_gone
            updates += old is not None and not is_gone
            deletes += old is not None and is_gone
            if is_gone:
                self.rows.pop(place, None)
            else:
                self.rows[place] = row
        return inserts, updates, deletes

    def shown(self) -> Signed:
        return Signed(self.rows.values())


def follow(case: Case) -> int:
    """Write the batches; after each the table is what the mapping is, however it is read. How many changed it."""
    with tempfile.TemporaryDirectory() as folder:
        table = WrittenTable(Path(folder, "t"), COLUMNS, case.partition, case.buckets, case.ordering).create()
        expected = Expected(case.ordering)
        states: list[tuple[str, Signed]] = [(table.frontier, Signed())]
        for number, batch in enumerate(case.batches):
            upserts, deletes = ([row for row, gone in batch if gone == wanted] for wanted in (False, True))
            if is_whole := case.overwrites[number]:
                expected, batch = Expected(case.ordering), [(row, False) for row in upserts]
            result = table.overwrite(upserts) if is_whole else table.upsert(upserts, deletes)
            counts = expected.apply(batch)
            assert (result.inserts, result.updates, result.deletes) == counts, f"counts of batch {number} of {case}"
            states.append((result.frontier, expected.shown()))
            assert table.rows() == states[-1][1], f"rows after batch {number} of {case}"
        end, after = states[-1]
        for turn, (start, before) in enumerate(states[:-1]):
            change = Signed({row: after[row] - before[row] for row in after | before if after[row] != before[row]})
            if not any(case.overwrites[turn:]):
                assert logs_between(table.timeline, start, end)
            assert table.change(start, end) == change, f"logs from {start} of {case}"
            assert table.change(start, end, compared=True) == change, f"file slices from {start} of {case}"
            assert table.rows(start) == before, f"rows at {start} of {case}"
        return sum(before != after for (_, before), (_, after) in pairwise(states))


def test_a_written_table_follows_its_batches() -> None:
    moved = []

    @examples(CASES)
    @given(case=written())
    def every_case(case: Case) -> None:
        moved.append(follow(case))

    every_case()
    assert sum(moved) >= len(moved), "most batches change the table"


Merge = Callable[[GroupMerge, pa.Schema, Mapping[str, str]], MergedFile | None]


def by_merge(naive: Callable[[Merge], Merge]) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(upsert, "merge_file", naive(file_merge.merge_file))


def by_result(change: Callable[[MergedFile], MergedFile]) -> Callable[[pytest.MonkeyPatch], None]:
    """What the merge of a file says of it."""

    def naive(merge: Merge) -> Merge:
        def changed(work: GroupMerge, schema: pa.Schema, footer: Mapping[str, str]) -> MergedFile | None:
            result = merge(work, schema, footer)
            return None if result is None else change(result)

        return changed

    return by_merge(naive)


def _deletes_ignored(merge: Merge) -> Merge:
    def naive(work: GroupMerge, schema: pa.Schema, footer: Mapping[str, str]) -> MergedFile | None:
        staying = work.actions.filter(pc.invert(work.actions.column(IS_DELETED)))
        return merge(replace(work, actions=staying), schema, footer)

    return naive


def _without_the_file_of_before(merge: Merge) -> Merge:
    def naive(work: GroupMerge, schema: pa.Schema, footer: Mapping[str, str]) -> MergedFile | None:
        return merge(replace(work, previous=None, previous_path=None), schema, footer)

    return naive


def _logged_without_deletes(result: MergedFile) -> MergedFile:
    replaced = pc.is_in(result.left.column("_sml_key"), value_set=result.entered.column("_sml_key").combine_chunks())
    return replace(result, left=result.left.filter(replaced))


def _always_wins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(file_merge._Merge, "_wins", lambda _self, old, _actions: [True] * old.num_rows)


def _ties_lose(patch: pytest.MonkeyPatch) -> None:
    def naive(self: file_merge._Merge, old: pa.Table, actions: pa.Array) -> list[bool]:
        new = self.merge.actions.take(actions)
        pairs = zip(new.column("o").to_pylist(), old.column("o").to_pylist(), strict=True)
        return [not self.merge.ordering or mine > theirs for mine, theirs in pairs]

    patch.setattr(file_merge._Merge, "_wins", naive)


def _replaced_rows_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(upsert, "_replaced_groups", lambda work: {} if work.overwrites else None)


def _buckets_by_turns(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(upsert, "buckets_of", lambda keys, buckets: [number % buckets for number, _ in enumerate(keys)])


def _sequences_of_every_commit_alike(patch: pytest.MonkeyPatch) -> None:
    entering = file_merge._Merge._entering

    def naive(self: file_merge._Merge) -> pa.Table:
        rows = entering(self)
        index = rows.schema.get_field_index(SEQUENCE)
        return rows.set_column(index, rows.schema.field(index), pa.repeat("1", rows.num_rows))

    patch.setattr(file_merge._Merge, "_entering", naive)


MUTANTS: Mapping[str, Callable[[pytest.MonkeyPatch], None]] = {
    "deletes are ignored": by_merge(_deletes_ignored),
    "an order that is never asked": _always_wins,
    "a row of the same order loses": _ties_lose,
    "buckets that are not those of the keys": _buckets_by_turns,
    "a log that lacks a delete": by_result(_logged_without_deletes),
    "a log of after-images only": by_result(lambda result: replace(result, left=result.left.slice(0, 0))),
    "a log that lacks a row": by_result(lambda result: replace(result, entered=result.entered.slice(1))),
    "a commit that does not say that rows left": by_result(lambda result: replace(result, deletes=0)),
    "rows of two commits that cannot be told apart": _sequences_of_every_commit_alike,
    "rows that are replaced stay": _replaced_rows_stay,
    "the file of before is not merged": by_merge(_without_the_file_of_before),
}


ABOUT_ORDER = {"an order that is never asked", "a row of the same order loses"}


@sample("mutant", MUTANTS, every=4)
def test_a_naive_writer_is_caught(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[mutant](monkeypatch)

    @examples(100, shrink=False)
    @given(case=written((("o",),)) if mutant in ABOUT_ORDER else written())
    def every_case(case: Case) -> None:
        follow(case)

    with pytest.raises(AssertionError, match=r"^(counts|rows|logs|file slices) (of|after|from|at)"):
        every_case()
