"""The demo lakes without a JVM: their unit tests, and a year's contracts on every day of two months."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.compiler import Compiler
from sqlmesh_like.duckdb.programs.memory_lake import MemoryLake, Value
from sqlmesh_like.names import Column
from sqlmesh_like.project.loader import load_project
from sqlmesh_like.project.profile import load_target
from sqlmesh_like.render.renderer import render_project
from tests.levels import count

ROOT = Path(__file__).resolve().parents[2]
SALES = "model.estate_lake.sales"
COLUMNS = tuple(
    Column(name, kind)
    for name, kind in (
        ("SaleId", "int"), ("UnitId", "int"), ("StatusId", "int"), ("ContractSubtotal", "decimal(18,4)"),
        ("ContractSigningDate", "timestamp"), ("AgentId", "int"), ("CustomerId", "int"), ("EventAt", "timestamp"),
    )
)  # fmt: skip
Row = Sequence[Value]
START, DAYS = datetime(2024, 1, 1, 12), count(20, 60, 400)


@pytest.mark.checklist(70, 71, 72, 73, 75, 76, 77, 78, 79)
@pytest.mark.parametrize("lake", [".", "demo/retail", "demo/estate"])
def test_the_models_of_a_lake_answer_as_by_hand(lake: str) -> None:
    assert main(["test", "-s", "test_type:unit", "-q", "--project-dir", str(ROOT / lake)]) == 0


def model(name: str) -> CompiledModel:
    project = load_project(ROOT / "demo" / "estate", {})
    rendered = render_project(project, load_target(project, None, None, None, {}))
    return Compiler({SALES: COLUMNS}).compile(rendered.model(f"model.estate_lake.{name}"))


def sold(dice: random.Random, now: datetime) -> Row:
    """A contract signed today or one of the days around a year ago, at midnight or within the day."""
    day = now.date() - timedelta(days=dice.choice([0, 0, 1, 100, 364, 365, 366]))
    at = datetime(day.year, day.month, day.day) + timedelta(hours=dice.choice([0, 0, 23]))
    cents = Decimal(dice.randrange(10**6)) / 10_000
    return (0, 1, dice.choice([3, 3, 3, 2]), cents, at, dice.randint(1, 3), 1, at)


def total(rows: Mapping[str, Row], today: date) -> list[tuple[object, ...]]:
    """Contracts by agent, added up by Python over what was signed in the 365 days that end today."""
    by_agent: dict[int, list[Decimal]] = {}
    for _, _, status, value, signed, agent, _, _ in rows.values():
        assert isinstance(signed, datetime) and isinstance(value, Decimal) and isinstance(agent, int)
        if status == 3 and timedelta(0) <= today - signed.date() < timedelta(days=365):
            by_agent.setdefault(agent, []).append(value)
    return sorted((agent, sum(values), len(values)) for agent, values in by_agent.items())


@pytest.mark.checklist(74, 75)
def test_contracts_of_the_past_year_are_the_full_sum_on_every_day() -> None:
    dice, plan, rows = random.Random(7), model("contracts_by_agent"), dict[str, Row]()
    assert plan.table.program is not None and plan.classification.strategy == "aggregate_merge"
    with closing(MemoryLake({SALES: COLUMNS}, START)) as lake:
        lake.build(plan, {SALES: {}})
        for day in range(DAYS):
            now = START + timedelta(days=day)
            before, rows = rows, dict(rows)
            if day % 3 == 0:
                rows[str(len(rows))] = sold(dice, now)
            if day % 7 == 0:  # an old record is corrected: another value, or it was no contract at all
                rows[dice.choice(list(rows))] = sold(dice, now)
            lake.apply(plan, {SALES: before}, {SALES: rows}, now)
            assert sorted(lake.rows()) == total(rows, now.date()), now
        assert not lake.verify(plan)


def test_steps_towards_a_unit_are_counted_by_when_they_happened() -> None:
    def seen(sale: int, unit: int, hour: int) -> Row:
        return (sale, unit, 1, None, None, 1, 101, datetime(2024, 5, 1, hour))

    plan = model("funnel")
    before = {"1": seen(1, 11, 12), "2": seen(2, 11, 10), "3": seen(3, 11, 12), "4": seen(4, 12, 9)}
    with closing(MemoryLake({SALES: COLUMNS}, START)) as lake:
        lake.build(plan, {SALES: before})
        # Of two at one moment the lower `SaleId` is the earlier step.
        assert steps(lake) == {2: (1, 0), 1: (2, 2), 3: (3, 2), 4: (1, 0)}
        lake.apply(plan, {SALES: before}, {SALES: {**before, "2": seen(2, 11, 15)}})
        assert steps(lake) == {1: (1, 0), 3: (2, 0), 2: (3, 3), 4: (1, 0)}, "a corrected time renumbers the way"


def steps(lake: MemoryLake) -> dict[object, tuple[object, ...]]:
    """Step and hours since the first one, by sale."""
    return {row[2]: tuple(row[4:6]) for row in lake.rows()}
