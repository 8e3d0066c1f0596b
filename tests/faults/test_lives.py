"""Whatever happens to a lake, and in whatever order: once all is ingested and run, each table is its SELECT."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults.life import Life
from tests.faults.tally import SEED
from tests.levels import count


@pytest.mark.parametrize("number", range(count(1, 4, 60)))
def test_a_lake_has_the_rows_of_its_selects_whatever_has_happened_to_it(tmp_path: Path, number: int) -> None:
    life = Life(tmp_path, random.Random(SEED + number))
    for _ in range(count(15, 40, 40)):
        life.step()
    life.catch_up()
