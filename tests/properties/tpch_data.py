"""Tiny TPC-H data and its changes, from a seed. Owns values that meet the constants of the queries, and batches.

Every table has unique keys; a value is NULL and a foreign key points nowhere now and then, as while events are late.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from random import Random

from sqlmesh_like.duckdb.programs.memory_lake import LakeSnapshot

Row = tuple[object, ...]
Tables = dict[str, dict[str, Row]]

SHIPPED = (date(1994, 1, 5), date(1994, 3, 10), date(1994, 9, 1), date(1995, 3, 20), date(1995, 9, 10),
           date(1996, 2, 10), date(1996, 3, 31), date(1998, 11, 1))  # fmt: skip
ORDERED = (date(1993, 7, 15), date(1993, 11, 2), date(1994, 5, 5), date(1994, 6, 1), date(1995, 2, 1),
           date(1996, 1, 9))  # fmt: skip
PARTS = (("green forest", "ECONOMY ANODIZED STEEL", "Brand#12", "SM BOX", 3),
         ("forest olive", "PROMO BURNISHED BRASS", "Brand#23", "MED BOX", 15),
         ("lime green", "ECONOMY ANODIZED STEEL", "Brand#34", "LG BOX", 14),
         ("forest mint", "STANDARD PLATED BRASS", "Brand#23", "MED BAG", 9),
         ("mint", "SMALL BRASS", "Brand#45", "JUMBO JAR", 15),
         ("plain", "MEDIUM POLISHED TIN", "Brand#45", "JUMBO JAR", 49))  # fmt: skip
NATIONS = {"FRANCE": 0, "GERMANY": 0, "BRAZIL": 1, "CANADA": 1, "SAUDI ARABIA": 2, "INDIA": 3}
"""Each nation and the position of its region."""

REGIONS = ("EUROPE", "AMERICA", "MIDDLE EAST", "ASIA")
PHONES = ("13-555", "31-555", "23-555", "11-555")
REMARKS = ("", "special packages requests", "Customer slow Complaints", "quiet")
ROWS = {
    "region": 4,
    "nation": 6,
    "supplier": 8,
    "part": 9,
    "partsupp": 20,
    "customer": 10,
    "orders": 30,
    "lineitem": 90,
}
"""Rows of each table at the start."""
KEYS = {"region": (0,), "nation": (0,), "supplier": (0,), "part": (0,), "partsupp": (0, 1), "customer": (0,),
        "orders": (0,), "lineitem": (0, 3)}  # fmt: skip
"""Positions of each table's key columns."""


def input_id(table: str) -> str:
    return f"source.tpch.tpch.{table}"


def states(seed: int, batches: int) -> list[LakeSnapshot]:
    """All tables before the first and after each batch of changes, by input id."""
    random = Random(seed)
    tables: Tables = {name: {} for name in ROWS}
    for name, count in ROWS.items():
        for _ in range(count):
            _insert(random, name, tables)
    snapshots = [_snapshot(tables)]
    for number in range(batches):
        for name in ROWS if number % 2 == 0 else random.sample(sorted(ROWS), 3):
            _change(random, name, tables)
        snapshots.append(_snapshot(tables))
    return snapshots


def _snapshot(tables: Tables) -> LakeSnapshot:
    return {input_id(name): dict(rows) for name, rows in tables.items()}


def _change(random: Random, name: str, tables: Tables) -> None:
    """Update, delete, re-key, write again unchanged, insert: each once for every dozen rows, at least once."""
    rows = tables[name]
    for _ in range(max(1, ROWS[name] // 12)):
        updated = random.choice(sorted(rows))
        rows[updated] = _with_key(name, _row(random, name), rows[updated])
        rows.pop(random.choice(sorted(rows)))
        moved = _with_key(name, rows.pop(random.choice(sorted(rows))), _row(random, name))
        rows[_key(name, moved)] = moved
        again = random.choice(sorted(rows))
        rows[again] = (*rows[again],)
        for _ in range(2):
            _insert(random, name, tables)


def _insert(random: Random, name: str, tables: Tables) -> None:
    """A row under a new key; where a small table has none left, one row is replaced."""
    rows = [_row(random, name) for _ in range(40)]
    fresh = [row for row in rows if _key(name, row) not in tables[name]]
    chosen = (fresh or rows)[0]
    tables[name][_key(name, chosen)] = chosen


def _key(name: str, row: Row) -> str:
    return "-".join(str(row[position]) for position in KEYS[name])


def _with_key(name: str, row: Row, keyed: Row) -> Row:
    """The first row with the key columns of the second one."""
    return tuple(keyed[n] if n in KEYS[name] else value for n, value in enumerate(row))


def _row(random: Random, name: str) -> Row:
    """A row in the order of the table's columns; one value of 25 that is no key is NULL."""
    row = _values(random, name)
    is_null = [n not in KEYS[name] and random.random() < 0.04 for n in range(len(row))]
    return tuple(None if lost else value for lost, value in zip(is_null, row, strict=True))


def _values(random: Random, name: str) -> Row:
    pick = random.choice

    def number(last: int) -> int:
        return random.randint(1, last)

    def money(*whole: int) -> Decimal:
        return Decimal(pick(whole)) + Decimal(pick((0, 1, 25, 99))) / 100

    match name:
        case "region":
            key = random.randrange(len(REGIONS))
            return key, REGIONS[key], pick(REMARKS)
        case "nation":
            key = random.randrange(len(NATIONS))
            name, region = list(NATIONS.items())[key]
            return key, name, pick((region, region, 3)), pick(REMARKS)
        case "supplier":
            key = number(8)
            nation = random.randrange(len(NATIONS))
            return key, f"Supplier#{key}", "here", nation, pick(PHONES), money(-1, 0, 7), pick(REMARKS)
        case "part":
            key, (title, kind, brand, container, size) = number(11), pick(PARTS)
            return key, title, "Maker#1", brand, kind, size, container, money(900, 901), pick(REMARKS)
        case "partsupp":
            return number(9), number(8), pick((1, 5, 60, 200)), money(0, 1, 2), pick(REMARKS)
        case "customer":
            key = number(16)
            segment = pick(("BUILDING", "BUILDING", "MACHINERY"))
            nation = random.randrange(len(NATIONS))
            return key, f"Customer#{key}", "there", nation, pick(PHONES), money(-1, 0, 7, 8), segment, pick(REMARKS)
        case "orders":
            priority = pick(("1-URGENT", "2-HIGH", "5-LOW"))
            total, ordered = money(10, 300), pick(ORDERED)
            return number(34), number(12), pick("FFO"), total, ordered, priority, "Clerk#1", 0, pick(REMARKS)
    return _lineitem(random, money(1, 100, 250), (number(34), number(9), number(8), number(6)))


def _lineitem(random: Random, price: Decimal, keys: tuple[int, int, int, int]) -> Row:
    pick = random.choice
    quantity = Decimal(pick((1, 5, 11, 23, 25, 310)))
    discount, tax = (Decimal(pick((0, 5, 6, 7, 10))) / 100 for _ in range(2))
    first = random.randrange(len(SHIPPED) - 2)
    dates = pick((SHIPPED[first : first + 3], tuple(pick(SHIPPED) for _ in range(3))))
    mode = pick(("AIR", "AIR REG", "MAIL", "SHIP"))
    instruction = pick(("DELIVER IN PERSON", "DELIVER IN PERSON", "NONE"))
    flags = (pick("RNA"), pick("OF"))
    return *keys, quantity, price, discount, tax, *flags, *dates, instruction, mode, "quiet"
