"""The simulation of large lakes: what it draws, what it charges, and that the page says what it computes."""

from __future__ import annotations

from random import Random

import pytest

from bench.scale.__main__ import PAGE, PRICES, with_table
from bench.scale.prices import Price, Prices, Slope
from bench.scale.simulation import Shape, Site, Table, _makespan, draw, simulate

FREE = Slope(Price(), Price())
NO_OP = Slope(Price(2.0, 100.0, 5, 7), Price(0.01, 0.1, 3, 2))
CHANGE = Slope(Price(0.5, 100.0), Price(0.2, 5.0, 6, 12, 1))
FEW = Prices(FREE, NO_OP, CHANGE, FREE, 300.0, 0.05, "a test")


def test_the_page_has_the_numbers_of_the_committed_prices() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "| run without changes" in page
    assert page == with_table(page, Prices.read(PRICES))


def test_prices_are_read_as_they_were_written(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("prices") / "p.json"
    FEW.write(path)
    assert Prices.read(path) == FEW


def test_tables_have_all_bytes_and_read_only_earlier_ones_of_lower_layers() -> None:
    shape = Shape(400, 2, layers=3)
    tables = draw(shape, Random(5))
    assert sum(table.megabytes for table in tables) == pytest.approx(2_000_000)
    layers: list[int] = []
    for number, table in enumerate(tables):
        assert all(each < number for each in table.inputs)
        layers.append(1 + max((layers[each] for each in table.inputs), default=0))
    assert max(layers) <= 4  # a source and three layers above it
    assert sum(not table.inputs for table in tables) >= 120


def test_requests_of_a_run_without_changes_are_those_of_its_models() -> None:
    shape = Shape(1_000, 1)
    models = sum(bool(table.inputs) for table in draw(shape, Random(1)))
    assert simulate(shape, Site(), FEW).idle.price.requests == pytest.approx(12 + 5 * models)


def test_each_call_of_a_split_run_pays_for_its_start_and_is_shorter() -> None:
    whole, split = (simulate(Shape(2_000, 5, calls=calls), Site(), FEW) for calls in (1, 10))
    assert split.idle.price.requests == pytest.approx(whole.idle.price.requests + 9 * 12)
    assert split.run.seconds < whole.run.seconds
    assert split.run.commits == whole.run.commits


def test_a_day_is_the_same_for_the_same_seed_only() -> None:
    days = [simulate(Shape(300, 1), Site(), FEW, seed) for seed in (1, 1, 2)]
    assert days[0] == days[1] != days[2]


def test_jobs_wait_for_their_inputs_and_for_a_thread() -> None:
    tables = [Table(1, 1), Table(1, 1, (0,)), Table(1, 1, (0,)), Table(1, 1, (1, 2)), Table(1, 1, (0,))]
    jobs = {1: 2.0, 2: 3.0, 3: 1.0}
    assert _makespan(tables, jobs, 1) == 6
    assert _makespan(tables, jobs, 2) == 4
    assert _makespan(tables, {**jobs, 4: 10.0}, 2) == pytest.approx(12)
    assert _makespan(tables, {}, 2) == 0


def test_what_does_not_fit_is_said() -> None:
    slow = Prices(FREE, NO_OP, Slope(Price(), Price(100.0, 1e6)), FREE, 300.0, 0.05, "a slow machine")
    assert simulate(Shape(100, 1), Site(), FEW).limits == ()
    said = " and ".join(simulate(Shape(500, 1), Site(), slow).limits)
    assert "times the 15 minutes" in said and "GB of memory" in said
