"""Two hundred random edits of TPC-H, TPC-DS and the demos' models: no wrong row, few rebuilds, and what each costs."""

from __future__ import annotations

import statistics
import warnings
from collections import Counter
from contextlib import closing
from itertools import count as numbers

import pytest

from sqlmesh_like.analyze.algebra.relation import scanned_columns
from tests.levels import count
from tests.tpc.edit_lake import EditCost, EditLake, UnbuiltError, constants
from tests.tpc.edits import EditedModel, edited, models

EDITS = count(20, 200, 2000)
REBUILDS = ("rewritten", "rebuilt")
"""The whole query is run, and all rows are written."""


def cost_of(edit: EditedModel, pool: dict[str, tuple[str, ...]]) -> EditCost | None:
    """What an edit does to a table of random rows; None where these are not such that both queries can be computed."""
    assert edit.before.facts.relation is not None
    with closing(EditLake(scanned_columns(edit.before.facts.relation), pool)) as lake:
        try:
            return lake.edit(edit.before, edit.after)
        except UnbuiltError:
            return None


@pytest.mark.release
def test_random_edits_of_real_models_are_right_and_cost_what_they_change() -> None:
    every = models()
    pool, done = dict(constants(model for _, model in every)), list[EditCost]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # DuckDB's of a copy to Arrow
        for number in numbers():
            edit = edited(number, every)
            if (cost := cost_of(edit, pool)) is not None:
                assert not cost.differs, f"edit {number} of {edit.name}: {edit.kinds}, {cost.way}"
                done.append(cost)
            if len(done) == EDITS:
                break
    ways, shares = Counter(cost.way for cost in done), [cost.bytes / max(1, cost.rebuild) for cost in done]
    for way, number in ways.most_common():
        own = [share for share, cost in zip(shares, done, strict=True) if cost.way == way]
        print(f"{way}: {number}, bytes beside a rebuild's {statistics.median(own):.3f} ({min(own):.3f}–{max(own):.3f})")
    print(f"all: {len(done)}, bytes beside a rebuild's {statistics.median(shares):.3f}")
    assert sum(ways[way] for way in REBUILDS) <= 0.1 * EDITS, ways
    assert statistics.median(shares) <= 0.2, sorted(shares)
