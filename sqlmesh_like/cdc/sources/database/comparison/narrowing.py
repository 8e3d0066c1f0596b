"""From sums of chunks to the keys whose rows differ. Owns the steps; `side` has the queries.

A chunk whose sum is the same on both sides has the same rows, but for a collision of 60 bits. Of one that differs, the
sums of buckets of keys are compared, and of a bucket that differs, the hashes of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise

from sqlmesh_like.cdc.sources.database.comparison.side import Key, Side, Span, Sum

CHUNK_ROWS = 50_000
"""Rows of a span: what one query of the database reads."""
BUCKET_ROWS = 200
"""Rows of a bucket, about, whose hashes are compared one by one if the bucket differs."""
_LISTED_ROWS = 50_000
"""Most rows whose hashes are listed at once, but for a single bucket."""
MOST_KEYS = 10_000
"""Where more rows differ, the rest of the table is not narrowed to rows."""


@dataclass
class Narrowed:
    """What was compared. `keys`: those whose rows differ; `rows`: of the database, in all that was compared.

    `left`: rows in chunks that differ and were not narrowed, because there were `MOST_KEYS` already.
    """

    keys: list[Key] = field(default_factory=list)
    rows: int = 0
    left: int = 0


def spans_of(bounds: Sequence[str]) -> tuple[Span, ...]:
    """The spans between these bounds, which together have all rows.

    >>> spans_of(["5"])
    (Span(after=None, upto='5'), Span(after='5', upto=None))
    """
    edges = (None, *bounds, None)
    return tuple(Span(after, upto) for after, upto in pairwise(edges))


def narrow(
    database: Side, lake: Callable[[], Side], spans: Sequence[Span], each: Callable[[Sum], None] = lambda _: None
) -> Narrowed:
    """Compare all rows of these spans. `lake` prepares that side while the database is asked.

    `each` is called with what a query has read of the database, after it.
    """
    narrowed = Narrowed()
    if len(spans) == 1:  # its buckets tell as much as its sum
        own = lake()
        _narrow_span(database, own, spans[0], own.sum(spans[0]).rows, narrowed, each)
        return narrowed
    with ThreadPoolExecutor(1) as pool:
        prepared = pool.submit(lake)
        sums = []
        for span in spans:
            sums.append(database.sum(span))
            each(sums[-1])
        own = prepared.result()
    for span, total in zip(spans, sums, strict=True):
        if own.sum(span) == total:
            narrowed.rows += total.rows
        else:
            _narrow_span(database, own, span, total.rows, narrowed, each)
    return narrowed


def _narrow_span(
    database: Side, lake: Side, span: Span, rows: int, narrowed: Narrowed, each: Callable[[Sum], None]
) -> None:
    if len(narrowed.keys) >= MOST_KEYS:
        narrowed.left += rows
        return
    buckets, there, here = 1, dict[int, Sum](), dict[int, Sum]()
    while rows > 2 * buckets * BUCKET_ROWS or not there.keys() | here.keys():
        buckets = max(1, rows // BUCKET_ROWS)
        there, here = database.sums(span, buckets), lake.sums(span, buckets)
        counts = [sum(each.rows for each in sums.values()) for sums in (there, here)]
        each(Sum(counts[0]))
        if not any(counts):
            return
        rows = max(counts)  # `rows` may have been that of a side that lacks most of them
    narrowed.rows += counts[0]
    sizes = {
        number: max(there.get(number, _NO_ROWS).rows, here.get(number, _NO_ROWS).rows)
        for number in sorted(there.keys() | here.keys())
        if there.get(number) != here.get(number)
    }
    for group in _groups(sizes):
        if len(narrowed.keys) >= MOST_KEYS:
            left = sum(there.get(number, _NO_ROWS).rows for number in group)
            narrowed.left += left
            narrowed.rows -= left
            continue
        theirs, ours = database.hashes(span, buckets, group), lake.hashes(span, buckets, group)
        each(Sum(sum(map(len, theirs.values()))))
        narrowed.keys += [key for key in theirs.keys() | ours.keys() if theirs.get(key) != ours.get(key)]


_NO_ROWS = Sum()


def _groups(sizes: Mapping[int, int]) -> Iterator[tuple[int, ...]]:
    """Buckets with so many rows, as groups that are listed at once.

    >>> list(_groups({1: 30_000, 4: 30_000, 5: 10}))
    [(1,), (4, 5)]
    """
    group: list[int] = []
    for number, size in sizes.items():
        if group and sum(sizes[each] for each in group) + size > _LISTED_ROWS:
            yield tuple(group)
            group = []
        group.append(number)
    if group:
        yield tuple(group)
