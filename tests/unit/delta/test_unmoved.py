"""What a program leaves out where an input has not moved."""

from __future__ import annotations

import pytest
import sqlglot
from sqlmesh_like.delta.unmoved import without_unmoved

LEFT = "select l.a, l.w from changes.l as l join previous.r as r on l.a = r.a"
RIGHT = "select l.a, r.w from current.l as l join changes.r as r on l.a = r.a"
BOTH = f"select a, w from ({LEFT} union all {RIGHT}) as b"


def pruned(sql: str, *unmoved: str) -> str:
    return without_unmoved(sqlglot.parse_one(sql, dialect="spark"), frozenset(unmoved)).sql("spark").lower()


def kept(sql: str) -> str:
    return sqlglot.parse_one(sql, dialect="spark").sql("spark").lower()


@pytest.mark.parametrize(
    ("unmoved", "left"),
    [
        ((), BOTH),
        (("r",), f"select a, w from ({LEFT}) as b"),
        (("l",), f"select a, w from ({RIGHT}) as b"),
        (("other",), BOTH),
    ],
)
def test_a_join_is_read_from_the_side_that_moved(unmoved: tuple[str, ...], left: str) -> None:
    assert pruned(BOTH, *unmoved) == kept(left)


def test_nested_joins_lose_what_is_empty_below() -> None:
    inner = f"select x.a, x.w from ({RIGHT}) as x join previous.z as z on z.a = x.a"
    outer = "select y.a, z.w from current.y as y join changes.z as z on z.a = y.a"
    both = f"select a, w from ({inner} union all {outer}) as c"
    assert pruned(both, "r") == kept(f"select a, w from ({outer}) as c")
    assert pruned(both, "z") == kept(f"select a, w from ({inner}) as c")


@pytest.mark.parametrize(
    "sql",
    [
        "select a from (select a from previous.l union all select a from current.r) as b",  # snapshots do not vanish
        "select a from (select count(*) as a from changes.r union all select a from changes.l) as b",  # one row of none
        "select a from (select l.a from current.l as l left join changes.r as r on l.a = r.a "
        "union all select a from changes.l) as b",
        "select a from (select a from changes.r union select a from changes.l) as b",  # what is left may repeat
        "select a from (select a from changes.r union all select a as b from changes.l) as b",  # other names
        "select a from netted union all select a from changes.r",
    ],
)
def test_what_is_not_proven_empty_stays(sql: str) -> None:
    assert pruned(sql, "r") == kept(sql)
