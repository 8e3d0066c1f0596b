"""A shop's Debezium event log of any size, deterministic for a seed; `demo/shop/events` is a small one.

    python -m demo.shop.generate --users 1000 --products 50 --orders 5000 --changes 500 --seed 1 --out landing

`part1` is a snapshot of the tables `user`, `product` and `user_order` of database `test_db`; `part2` are the changes
after it: users that change device, new users (with a column `age` that did not exist before), new, changed, deleted,
moved and late orders, new prices.
"""

from __future__ import annotations

import argparse
import datetime
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from demo.shop.log import KEYS, Row, event

_START = datetime.datetime(2022, 6, 1, tzinfo=datetime.UTC)
_DAYS_BEFORE = 40
_LINES_PER_FILE = 200_000


@dataclass
class Shop:
    """The current database (table → key → row): the rows that the lake must have when all events are ingested."""

    chance: random.Random = field(compare=False)
    user: dict[int, Row] = field(default_factory=dict)
    product: dict[int, Row] = field(default_factory=dict)
    user_order: dict[int, Row] = field(default_factory=dict)

    last: dict[str, int] = field(default_factory=dict)
    changed: int = 0

    def rows(self, table: str) -> dict[int, Row]:
        tables = {"user": self.user, "product": self.product, "user_order": self.user_order}
        return tables[table]


def generate(out: Path, *, users: int, products: int, orders: int, changes: int, seed: int = 0) -> Shop:
    """Write `part1` and `part2` below `out` and return the database as it is at the end."""
    shop = begin(out / "part1", users=users, products=products, orders=orders, seed=seed)
    go_on(out / "part2", shop, changes)
    return shop


def begin(out: Path, *, users: int, products: int, orders: int, seed: int = 0) -> Shop:
    """Write the snapshot of a new shop into a folder and return the shop."""
    shop = Shop(random.Random(seed))
    for table, rows in (
        ("user", _users(shop.chance, range(1, users + 1))),
        ("product", _products(shop.chance, range(1, products + 1))),
        ("user_order", _orders(shop.chance, range(1, orders + 1), users, products)),
    ):
        _write(out, table, _snapshot(shop, table, rows))
    return shop


def go_on(out: Path, shop: Shop, changes: int, name: str = "changes") -> None:
    """Write `changes` more changes into files of this name, in order."""
    _write(out, name, _changes(shop.chance, shop, changes))


def _snapshot(shop: Shop, table: str, rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        _keep(shop, table, row)
        yield event(table, "r", None, row)


def _keep(shop: Shop, table: str, row: Row) -> None:
    key = _key(table, row)
    shop.rows(table)[key] = row
    shop.last[table] = max(key, shop.last.get(table, 0))


def _key(table: str, row: Row) -> int:
    key = row[KEYS[table]]
    assert isinstance(key, int)
    return key


def _moment(chance: random.Random) -> datetime.datetime:
    return _START + datetime.timedelta(seconds=chance.randrange(_DAYS_BEFORE * 86_400))


def _users(chance: random.Random, ids: Iterable[int]) -> Iterator[Row]:
    for number in ids:
        created = _moment(chance)
        yield {
            "id": number,
            "name": f"customer-{number:02d}",
            "device_model": f"dm-{chance.randint(1, 12):02d}",
            "email": f"abc{number:02d}@email.com",
            "phone": f"{chance.randrange(130_000, 200_000)}xxxxx",
            "create_time": created,
            "modify_time": created,
        }


def _products(chance: random.Random, ids: Iterable[int]) -> Iterator[Row]:
    for number in ids:
        created = _moment(chance)
        price = Decimal(chance.randrange(100, 100_000)) / 100
        yield {
            "pid": number,
            "pname": f"product-{number:03d}",
            "pprice": price,
            "create_time": created,
            "modify_time": created,
        }


def _orders(chance: random.Random, ids: Iterable[int], users: int, products: int) -> Iterator[Row]:
    for number in ids:
        created = _moment(chance)
        yield {
            "id": number,
            "oid": f"o{10_000 + number}",
            "uid": chance.randint(1, max(users, 1)),
            "pid": chance.randint(1, max(products, 1)),
            "onum": chance.randint(1, 120),
            "create_time": created,
            "modify_time": created,
        }


def _changes(chance: random.Random, shop: Shop, count: int) -> Iterator[str]:
    """Yield changes of the shop, one per second, after the last row of the snapshot was created."""
    now = _START + datetime.timedelta(days=_DAYS_BEFORE)
    kinds = (_move_device, _new_user, _new_order, _change_order, _delete_order, _move_order, _late_order, _new_price)
    for _ in range(count):
        moment = now + datetime.timedelta(seconds=shop.changed)
        shop.changed += 1
        yield from chance.choices(kinds, weights=(20, 15, 25, 15, 10, 5, 5, 5))[0](chance, shop, moment)


def _put(shop: Shop, table: str, after: Row) -> Iterator[str]:
    before = shop.rows(table).get(_key(table, after))
    _keep(shop, table, after)
    # Once a column is added to a table, its rows are logged with it.
    yield event(table, "u" if before else "c", {**dict.fromkeys(after), **before} if before else None, after)


def _any(chance: random.Random, shop: Shop, table: str) -> Row | None:
    """Return a random row; None where 20 random keys have none."""
    tries = (chance.randint(1, shop.last.get(table, 1)) for _ in range(20))
    return next((shop.rows(table)[key] for key in tries if key in shop.rows(table)), None)


def _move_device(chance: random.Random, shop: Shop, now: datetime.datetime) -> Iterator[str]:
    user = _any(chance, shop, "user")
    if user:
        device = f"dm-{chance.randint(1, 12):02d}"
        yield from _put(shop, "user", {**user, "device_model": device, "modify_time": now, "age": user.get("age")})


def _new_user(chance: random.Random, shop: Shop, now: datetime.datetime) -> Iterator[str]:
    user = next(_users(chance, [shop.last.get("user", 0) + 1]))
    yield from _put(shop, "user", {**user, "create_time": now, "modify_time": now, "age": chance.randint(18, 80)})


def _next_order(chance: random.Random, shop: Shop) -> Row:
    return next(_orders(chance, [shop.last.get("user_order", 0) + 1], len(shop.user), len(shop.product)))


def _new_order(chance: random.Random, shop: Shop, now: datetime.datetime) -> Iterator[str]:
    yield from _put(shop, "user_order", {**_next_order(chance, shop), "create_time": now, "modify_time": now})


def _late_order(chance: random.Random, shop: Shop, now: datetime.datetime) -> Iterator[str]:  # noqa: ARG001
    """Yield an order with times in the past: a watermark on `modify_time` would never see it."""
    yield from _put(shop, "user_order", _next_order(chance, shop))


def _change_order(chance: random.Random, shop: Shop, now: datetime.datetime) -> Iterator[str]:
    order = _any(chance, shop, "user_order")
    if order:
        yield from _put(shop, "user_order", {**order, "onum": chance.randint(1, 120), "modify_time": now})


def _move_order(chance: random.Random, shop: Shop, now: datetime.datetime) -> Iterator[str]:
    order = _any(chance, shop, "user_order")
    if order:
        yield from _put(shop, "user_order", {**order, "create_time": _moment(chance), "modify_time": now})


def _delete_order(chance: random.Random, shop: Shop, now: datetime.datetime) -> Iterator[str]:  # noqa: ARG001
    order = _any(chance, shop, "user_order")
    if order:
        del shop.user_order[_key("user_order", order)]
        yield event("user_order", "d", order, None)
        yield ""  # the tombstone message: a key without a value


def _new_price(chance: random.Random, shop: Shop, now: datetime.datetime) -> Iterator[str]:
    product = _any(chance, shop, "product")
    if product:
        price = Decimal(chance.randrange(100, 100_000)) / 100
        yield from _put(shop, "product", {**product, "pprice": price, "modify_time": now})


def _write(folder: Path, name: str, lines: Iterable[str]) -> None:
    """Write lines into files of `_LINES_PER_FILE` lines, so that readers can work in parallel."""
    folder.mkdir(parents=True, exist_ok=True)
    number, chunk = 0, []
    for line in lines:
        chunk.append(line)
        if len(chunk) == _LINES_PER_FILE:
            _write_file(folder / f"{name}-{number:04d}.jsonl", chunk)
            number, chunk = number + 1, []
    if chunk:
        _write_file(folder / f"{name}-{number:04d}.jsonl", chunk)


def _write_file(path: Path, lines: Sequence[str]) -> None:
    unfinished = path.with_name(f"_{path.name}")  # a file must be complete when it appears
    unfinished.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    unfinished.rename(path)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a shop's Debezium event log of any size.")
    for name, default in (("users", 100), ("products", 20), ("orders", 1000), ("changes", 100), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    sizes = {name: getattr(given, name) for name in ("users", "products", "orders", "changes", "seed")}
    shop = generate(given.out, **sizes)
    print(
        f"{len(shop.user)} users, {len(shop.product)} products, {len(shop.user_order)} orders in the end: {given.out}"
    )


if __name__ == "__main__":
    main()
