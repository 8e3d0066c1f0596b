"""What dbt-core 1.11.16 reads from a seed is what is read here: 1,500 files of texts that are easily mistaken."""

from __future__ import annotations

import json
import random
import subprocess
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from sqlmesh_like.names import NodeId, TableName
from sqlmesh_like.render.rendered import RenderedSeed
from sqlmesh_like.run.seeds import read_seed
from tests.dbt_core.program import python_of_dbt

FILES = 1500
TEXTS = [
    *("1", "-3", "007", "+5", "- 5", "-0", "1.50", "2.0", ".5", "1.", "1e3", "1e-3", "1_000", "٣", "$5", "5%", "£3"),
    *("99999999999", "99999999999999999999", "12345678901234567.89", '"1,000"', "0x10", "5-", "%", "1d"),
    *("null", "NULL", " Null ", '""', '" "', "", "none", "N/A", "true", "FALSE", "True", "t", "yes", "x", " x ", "é"),
    *("2024-01-02", "2024-1-2", "2024-02-30", "20240102", "1/2/2024", "12:30:00", "2018-01-01 7:00:00"),
    *("2018-01-01 07:00", "2018-01-01T07:00", "2018-01-01T07:00:00Z", "2018-01-01T07:00:00+02:00"),
    *("2018-01-01 07:00:00.5", "2018-W01-1T07:00:00", "20180101T070000", '"a\r\nb"', '"say ""hi"""', 'a"b'),
]
THEIRS = """
import json, sys
from dbt_common.clients.agate_helper import from_csv
def plain(value):
    if hasattr(value, "utcoffset") and value.utcoffset() is not None:
        value = (value - value.utcoffset()).replace(tzinfo=None)
    return None if value is None else [type(value).__name__, str(value)]
for path in sys.stdin.read().splitlines():
    print(json.dumps([[plain(value) for value in row] for row in from_csv(path, ()).rows]))
"""


def made(dice: random.Random) -> str:
    width, pool, end = dice.randint(1, 3), dice.sample(TEXTS, dice.randint(1, 3)), dice.choice(["\n", "\r\n"])
    lines = [",".join(dice.choices(pool, k=dice.randint(max(1, width - 1), width))) for _ in range(dice.randint(0, 4))]
    if dice.random() < 0.15:
        lines.insert(dice.randint(0, len(lines)), "")
    return end.join([",".join("abc"[:width]), *lines]) + dice.choice([end, ""])


def ours(folder: Path, name: str) -> list[tuple[object, ...]]:
    seed = RenderedSeed(NodeId("seed", "p", "s"), "s", name, TableName("dws", "s"), {}, {})
    return [tuple(map(plain, row)) for row in read_seed(seed, folder).rows]


def plain(value: object) -> object:
    """A value without Spark's type: as for dbt's numbers, how many digits a decimal has is another matter."""
    match value:
        case bool() | str() | None:
            return value
        case int() | float() | Decimal():
            return float(value)
        case datetime():
            return str(value.astimezone(UTC).replace(tzinfo=None))
        case _:
            return str(value)


def theirs(value: list[str] | None) -> object:
    if value is None:
        return None
    kind, text = value
    return {"Decimal": lambda: float(text), "bool": lambda: text == "True"}.get(kind, lambda: text)()


@pytest.mark.release
def test_a_seed_has_the_values_that_dbt_reads(tmp_path: Path) -> None:
    python, dice = python_of_dbt(), random.Random(38)
    names = [f"{number}.csv" for number in range(FILES)]
    for name in names:
        (tmp_path / name).write_bytes(made(dice).encode())
    asked = "\n".join(str(tmp_path / name) for name in names)
    done = subprocess.run([str(python), "-c", THEIRS], input=asked, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    differing = {}
    for name, line in zip(names, done.stdout.splitlines(), strict=True):
        wanted = [tuple(map(theirs, row)) for row in json.loads(line)]
        if (mine := ours(tmp_path, name)) != wanted:
            differing[(tmp_path / name).read_text()] = (mine, wanted)
    assert not differing, "\n".join(f"{text!r}: here {mine}, dbt {dbts}" for text, (mine, dbts) in differing.items())
