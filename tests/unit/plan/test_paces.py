"""What a table's commits say of how long its runs took."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlmesh_like.plan.cost import paces
from sqlmesh_like.plan.history import TableRecord, TableState

RECORD = TableRecord(
    "model.shop.m", "print", {}, "2024-01-01T00:00:00+00:00", "row_based",
    started="2024-01-01T00:00:10+00:00", seconds_expected=2.0,
)  # fmt: skip
STATE = TableState("m", "cow", "20240101000012000_20240101000014000", RECORD)


def test_a_pace_is_the_time_to_the_end_of_the_commit_beside_what_was_expected() -> None:
    assert paces(STATE) == {"row_based": 2.0}


def test_runs_before_count_and_those_of_other_strategies_are_handed_on() -> None:
    record = replace(RECORD, paces={"row_based": 1.0, "full_refresh": 0.5})
    assert paces(replace(STATE, record=record)) == {"row_based": 1.5, "full_refresh": 0.5}


@pytest.mark.parametrize(
    "record",
    [
        replace(RECORD, started=""),
        replace(RECORD, started="2024-01-01T00:00:15+00:00"),
        replace(RECORD, started="2023-01-01T00:00:15+00:00"),
        replace(RECORD, seconds_expected=0.0),
        replace(RECORD, started="at noon"),
    ],
    ids=["not said", "after its end", "a year before", "nothing expected", "not a time"],
)
def test_what_cannot_be_a_time_taken_says_nothing(record: TableRecord) -> None:
    assert paces(replace(STATE, record=replace(record, paces={"row_based": 3.0}))) == {"row_based": 3.0}


def test_tables_without_a_record_have_no_pace() -> None:
    assert paces(replace(STATE, record=None)) == {}
    assert paces(replace(STATE, frontier=None)) == {}


def test_records_of_earlier_versions_are_read() -> None:
    text = '{"fingerprint": "f", "frontier": {}, "now": "n", "strategy": "row_based", "unique_id": "u"}'
    assert paces(replace(STATE, record=TableRecord.from_json(text))) == {}
