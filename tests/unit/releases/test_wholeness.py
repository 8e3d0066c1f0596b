"""Which commits belong together after a run of some of a lake's tables: ods → dwd → dws, and another reader of ods."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from sqlmesh_like.names import NodeId, TableName
from sqlmesh_like.plan.catalog import Catalog, TablePlace
from sqlmesh_like.plan.history import TableRecord, TableState
from sqlmesh_like.releases.release import ReleasedTable, Tables
from sqlmesh_like.releases.wholeness import NotWholeError, TablesOfRun, whole_tables

INPUTS = {"dwd": ("ods",), "dws": ("dwd",), "other": ("ods",)}
IDS = {name: NodeId("source", "p", "s", name) if name == "ods" else NodeId("model", "p", name)
       for name in ("ods", "dwd", "dws", "other")}  # fmt: skip


@dataclass
class _History:
    """The tables at their newest commits, with what they say they have read; others are not asked for."""

    states: dict[str, TableState] = field(default_factory=dict)

    def state(self, uri: str, format: str = "hudi") -> TableState:
        return self.states[uri]


def state(name: str, commit: str, **read: str) -> TableState:
    record = TableRecord(IDS[name], "f", {IDS[each]: at for each, at in read.items()}, "now", "row_based")
    return TableState(name, "cow", commit, record if read else None)


def released(**commits: str) -> Tables:
    return {IDS[name]: ReleasedTable(f"t.{name}", commit) for name, commit in commits.items()}


BASE = released(ods="1", dwd="1", dws="1", other="1")


def whole(
    built: list[TableState],
    read: list[TableState],
    base: Tables = BASE,
    newest: tuple[TableState, ...] = (),
    *loose: str,
) -> dict[str, str]:
    catalog = Catalog(
        {unique_id: TablePlace(unique_id, TableName("t", name), name) for name, unique_id in IDS.items()},
        _History({each.uri: each for each in newest}),  # type: ignore[arg-type]
    )
    run = TablesOfRun(
        {IDS[each.uri]: each for each in built},
        {IDS[each.uri]: each for each in read},
        frozenset(IDS[name] for name in loose),
    )
    inputs = {IDS[name]: [IDS[each] for each in below] for name, below in INPUTS.items()}
    tables = whole_tables(catalog, lambda name: inputs.get(NodeId.parse(name), ()), run, base)
    return {name: tables[unique_id].commit for name, unique_id in IDS.items() if unique_id in tables}


def test_what_a_run_built_is_named_with_what_it_read() -> None:
    built = [state("dwd", "2", ods="2"), state("dws", "2", dwd="2"), state("other", "2", ods="2")]
    assert whole(built, [state("ods", "2")]) == {"ods": "2", "dwd": "2", "dws": "2", "other": "2"}


def test_a_change_without_effect_does_not_count_as_unread() -> None:
    built = [state("dwd", "1", ods="1"), state("dws", "1", dwd="1"), state("other", "1", ods="1")]
    assert whole(built, [state("ods", "2")]) == {"ods": "2", "dwd": "1", "dws": "1", "other": "1"}


def test_what_the_built_tables_inputs_have_read_is_named_as_they_record_it() -> None:
    read = [state("dwd", "2", ods="2")]
    assert whole([state("dws", "2", dwd="2")], read, {}) == {"ods": "2", "dwd": "2", "dws": "2"}


@pytest.mark.parametrize(
    ("built", "read", "message"),
    [
        ([state("dwd", "2", ods="2"), state("dws", "2", dwd="2")], [state("ods", "2")], "t.other has not read t.ods"),
        ([state("dws", "2", dwd="2")], [state("dwd", "2", ods="2")], "t.other has not read t.ods"),
        ([state("dwd", "2", ods="2"), state("other", "2", ods="2")], [state("ods", "2")], "t.dws has not read t.dwd"),
    ],
)
def test_a_table_that_has_not_read_what_moved_prevents_a_release(
    built: list[TableState], read: list[TableState], message: str
) -> None:
    newest = (state("other", "1", ods="1"), state("dws", "1", dwd="1"))
    with pytest.raises(NotWholeError, match=message):
        whole(built, read, BASE, newest)


def test_an_input_that_was_written_once_more_by_another_run_prevents_a_release() -> None:
    newest = (state("dwd", "3", ods="3"), state("other", "1", ods="1"))
    with pytest.raises(NotWholeError, match=r"t\.dws has not read t\.dwd"):
        whole([state("dws", "2", dwd="2")], [], BASE, newest, "dws")


def test_a_table_that_may_have_read_another_commit_counts_by_its_record() -> None:
    built = [state("dwd", "2", ods="2"), state("dws", "2", dwd="1"), state("other", "2", ods="2")]
    with pytest.raises(NotWholeError, match=r"t\.dws has not read t\.dwd"):
        whole(built, [state("ods", "2")], BASE, (), "dws")


def test_tables_that_the_project_no_longer_has_are_left_out() -> None:
    gone = {**BASE, "model.p.gone": ReleasedTable("t.gone", "1"), IDS["other"]: ReleasedTable("t.renamed", "1")}
    assert whole([state("dws", "1", dwd="1")], [], gone) == {"ods": "1", "dwd": "1", "dws": "1"}
