"""`python -m bench.scale`: simulate a lake with the measured prices, or measure them on this machine."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from bench.program import REPOSITORY
from bench.scale.measure import measure
from bench.scale.prices import Prices
from bench.scale.simulation import Shape, Site, simulate, table_of

PRICES = REPOSITORY / "docs" / "scale.json"
PAGE = REPOSITORY / "docs" / "scale.md"
SHAPES = (
    Shape(100, 1),
    Shape(1_000, 10),
    Shape(10_000, 100),
    Shape(10_000, 100, runs=288),
    Shape(10_000, 100, runs=288, calls=20),
)
"""What the page shows."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.scale", description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--measure", action="store_true", help="measure the prices anew, for a quarter of an hour")
    shown.add_argument("--page", action="store_true", help="write the table of the page")
    parser.add_argument("--prices", type=Path, default=PRICES, help="file of the prices")
    for field in (*fields(Shape), *fields(Site)):
        kind, name = int if field.type == "int" else float, f"--{field.name.replace('_', '-')}"
        parser.add_argument(name, type=kind, default=field.default, metavar="N", help=field.metadata["help"])
    asked = parser.parse_args()
    if asked.measure:
        with tempfile.TemporaryDirectory(prefix="sml-scale-") as folder:
            measure(Path(folder)).write(asked.prices)
        return
    prices = Prices.read(asked.prices)
    if asked.page:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), prices), encoding="utf-8")
        return
    shape = Shape(**{field.name: getattr(asked, field.name) for field in fields(Shape)})
    site = Site(**{field.name: getattr(asked, field.name) for field in fields(Site)})
    print(*table_of([simulate(shape, site, prices)]), sep="\n")


def with_table(page: str, prices: Prices) -> str:
    """The page with its table as the prices have it."""
    begin, end = "<!-- simulated -->\n", "<!-- /simulated -->\n"
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}{''.join(_lines(prices))}{end}{after}"


def _lines(prices: Prices) -> Iterator[str]:
    for line in table_of([simulate(shape, Site(), prices) for shape in SHAPES]):
        yield f"{line}\n"


if __name__ == "__main__":
    main()
