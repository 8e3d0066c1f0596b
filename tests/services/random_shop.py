"""Five tables of a MariaDB shop with every kind of column, and random statements on them, DDL among them.

A column knows its DDL, the Spark type that its ODS column must have, and how to make a value. The generator keeps the
keys that stand, so that most updates and deletes hit a row; what rows hold is the database's to say.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

Make = Callable[[Random], Any]
Statement = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Column:
    """One column: MariaDB's type, the type of its ODS column, a maker of values. Key columns are never NULL."""

    name: str
    ddl: str
    spark: str
    make: Make
    is_nullable: bool = True

    def value(self, random: Random) -> Any:
        return None if self.is_nullable and random.random() < 0.2 else self.make(random)


@dataclass
class Table:
    """A table as it is now. `dropped`: columns that the ODS table keeps and the database has no more."""

    name: str
    key: tuple[str, ...]
    columns: list[Column]
    keys: list[tuple[Any, ...]] = field(default_factory=list)
    dropped: set[str] = field(default_factory=set)

    def create(self) -> str:
        columns = ", ".join(f"{_quoted(column.name)} {column.ddl}" for column in self.columns)
        return f"create table {_quoted(self.name)} ({columns}, primary key ({', '.join(map(_quoted, self.key))}))"

    def new_key(self, random: Random) -> tuple[Any, ...]:
        own = {column.name: column for column in self.columns}
        while (key := tuple(own[name].make(random) for name in self.key)) in self.keys:
            pass
        return key


def _quoted(name: str) -> str:
    return f"`{name}`"


def _int(low: int, high: int) -> Make:
    """Whole numbers, the ends often."""
    return lambda random: random.choice((low, high, 0 if low <= 0 else low, random.randint(low, high)))


def _decimal(precision: int, scale: int) -> Make:
    def make(random: Random) -> Decimal:
        digits = random.choice((1, scale or 1, precision))
        # From text: arithmetic would round to the context's 28 digits.
        return Decimal(f"{random.choice(('', '-'))}{random.randrange(10**digits)}e-{scale}")

    return make


def _moment(first: datetime, last: datetime, digits: int) -> Make:
    step = 10 ** (6 - digits)
    span = (last - first) // timedelta(microseconds=1)
    return lambda random: first + timedelta(microseconds=random.randrange(span) // step * step)


def _clock(digits: int) -> Make:
    most, step = 838 * 3600 * 10**6, 10 ** (6 - digits)
    return lambda random: timedelta(microseconds=random.randint(-most, most) // step * step)


def _text(size: int) -> Make:
    dead_letters = "abcXYZ 0189'\"\\\n\t,;:{}/éßñ漢字🙂_%"
    return lambda random: "".join(random.choice(dead_letters) for _ in range(random.randint(0, size)))


def _bytes(low: int, high: int) -> Make:
    return lambda random: random.randbytes(random.randint(low, high))


def _uuid(random: Random) -> str:
    return str(uuid.UUID(int=random.getrandbits(128), version=4))


def _json(random: Random) -> str:
    return json.dumps({"a": [random.randint(0, 9), None], "ü": {"b": random.random() < 0.5}, "s": 'x"y\\z'})


def _one_of(*values: Any) -> Make:
    return lambda random: random.choice(values)


_FIRST, _LAST = datetime(1900, 1, 1), datetime(9999, 1, 1)
_UNIX = (datetime(1971, 1, 1), datetime(2037, 1, 1))


def shop() -> dict[str, Table]:
    """The tables at the start, by name."""
    tables = (_users(), _items(), _numbers(), _moments(), _things())
    return {table.name: table for table in tables}


def _users() -> Table:
    columns = [
        Column("id", "int unsigned not null", "bigint", _int(1, 4_294_967_295), False),
        Column("name", "varchar(40) default 'no name'", "string", _text(40)),
        Column("vip", "tinyint(1)", "int", _one_of(0, 1)),
        Column("balance", "decimal(12,2) not null default 0", "decimal(12,2)", _decimal(12, 2), False),
        Column("create_time", "datetime", "timestamp", _moment(datetime(2024, 1, 1), datetime(2024, 6, 1), 0)),
        Column("modify_time", "timestamp(3) null default null", "timestamp", _moment(*_UNIX, 3)),
        Column("device", "enum('phone','tab let','漢') default 'phone'", "string", _one_of("phone", "tab let", "漢")),
        Column("tags", "set('a','b','c')", "string", _one_of("", "a", "a,c", "a,b,c")),
        Column("profile", "json", "string", _json),
    ]
    return Table("user", ("id",), columns)


def _items() -> Table:
    columns = [
        Column("order-id", "bigint not null", "bigint", _int(-(2**63), 2**63 - 1), False),
        Column("1x", "int not null", "int", _int(-3, 3), False),
        Column("select", "varchar(20) character set latin1", "string", _one_of("", "é", "x")),
        Column("grösse", "decimal(20,8)", "decimal(20,8)", _decimal(20, 8)),
        Column("a b", "double", "double", lambda random: random.uniform(-1e300, 1e300)),
        Column("i", "int", "bigint", _int(-(2**31), 2**31 - 1)),
        Column("price", "decimal(10,2)", "decimal(14,4)", _decimal(10, 2)),
        Column("gone", "varchar(9) default 'old'", "string", _text(9)),
    ]
    return Table("order-item", ("order-id", "1x"), columns)


def _numbers() -> Table:
    columns = [
        Column("id", "bigint unsigned not null", "decimal(20,0)", _int(0, 2**64 - 1), False),
        *(_whole(name, bits, is_signed) for name, bits in _SIZES.items() for is_signed in (True, False)),
        Column("b", "bigint", "bigint", _int(-(2**63), 2**63 - 1)),
        Column("bu", "bigint unsigned", "decimal(20,0)", _int(0, 2**64 - 1)),
        Column("f", "float", "float", lambda random: random.randint(-999, 999) / 8),
        Column("d", "double", "double", lambda random: random.gauss(0, 1e9)),
        Column("n", "decimal(38,10)", "decimal(38,10)", _decimal(38, 10)),
        Column("huge", "decimal(65,30)", "string", _decimal(65, 30)),
        Column("y", "year", "int", _int(1901, 2155)),
        Column("b1", "bit(1)", "boolean", _one_of(0, 1)),
        Column("b10", "bit(10)", "bigint", _int(0, 1023)),
        Column("b64", "bit(64)", "decimal(20,0)", _int(0, 2**64 - 1)),
        Column("yes", "boolean", "int", _one_of(0, 1)),
    ]
    return Table("numbers", ("id",), columns)


_SIZES = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32}


def _whole(name: str, bits: int, is_signed: bool) -> Column:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)
    kind = "bigint" if high >= 2**31 else "int"
    word = "" if is_signed else " unsigned"
    return Column(f"{name[0]}{'s' if is_signed else 'u'}{bits}", f"{name}{word}", kind, _int(low, high))


def _moments() -> Table:
    columns = [
        Column("key", "varchar(20) not null", "string", lambda random: f"k:{random.randint(0, 10**6)},é", False),
        Column("d", "date", "date", lambda random: date(1900, 1, 1) + timedelta(days=random.randint(0, 2_958_000))),
        Column("t", "time", "string", _clock(0)),
        Column("t6", "time(6)", "string", _clock(6)),
        *(Column(f"dt{n}", f"datetime({n})", "timestamp", _moment(_FIRST, _LAST, n)) for n in (0, 1, 3, 4, 6)),
        *(Column(f"ts{n}", f"timestamp({n}) null default null", "timestamp", _moment(*_UNIX, n)) for n in (0, 2, 6)),
    ]
    return Table("moments", ("key",), columns)


def _things() -> Table:
    columns = [
        Column(
            "id",
            "char(36) not null",
            "string",
            _uuid,
            False,
        ),
        Column("fixed", "binary(8)", "binary", _bytes(8, 8)),
        Column("vary", "varbinary(20)", "binary", _bytes(0, 20)),
        Column("data", "blob", "binary", _bytes(0, 300)),
        Column("words", "text", "string", _text(300)),
        Column("more", "mediumtext", "string", _text(30)),
        Column("doc", "json not null default '{}'", "string", _json, False),
        Column("ident", "uuid", "string", _uuid),
    ]
    return Table("things", ("id",), columns)


def statements(tables: dict[str, Table], random: Random, count: int) -> Iterator[Statement]:
    """So many random statements, each as text with its parameters."""
    for _ in range(count):
        table = random.choice(list(tables.values()))
        roll = random.random()
        if roll < 0.5 or not table.keys:
            yield _insert(table, random, random.choice((1, 1, 1, 4)))
        elif roll < 0.8:
            yield _update(table, random)
        elif roll < 0.88:
            yield _rekey(table, random)
        else:
            yield _delete(table, random)


def _insert(table: Table, random: Random, count: int) -> Statement:
    # What is not named takes its default.
    named = [column for column in table.columns if column.name in table.key or random.random() < 0.9]
    parameters: list[Any] = []
    for _ in range(count):
        key = dict(zip(table.key, table.new_key(random), strict=True))
        table.keys.append(tuple(key.values()))
        parameters += [key.get(column.name, column.value(random)) for column in named]
    row = f"({', '.join(['%s'] * len(named))})"
    names = ", ".join(_quoted(column.name) for column in named)
    return f"insert into {_quoted(table.name)} ({names}) values {', '.join([row] * count)}", tuple(parameters)


def _where(table: Table, key: tuple[Any, ...]) -> Statement:
    return " and ".join(f"{_quoted(name)} = %s" for name in table.key), key


def _update(table: Table, random: Random) -> Statement:
    own = [column for column in table.columns if column.name not in table.key]
    chosen = random.sample(own, random.randint(1, len(own)))
    sets = ", ".join(f"{_quoted(column.name)} = %s" for column in chosen)
    where, key = _where(table, random.choice(table.keys))
    values = tuple(column.value(random) for column in chosen)
    return f"update {_quoted(table.name)} set {sets} where {where}", (*values, *key)


def _rekey(table: Table, random: Random) -> Statement:
    index = random.randrange(len(table.keys))
    old, new = table.keys[index], table.new_key(random)
    table.keys[index] = new
    where, key = _where(table, old)
    sets = ", ".join(f"{_quoted(name)} = %s" for name in table.key)
    return f"update {_quoted(table.name)} set {sets} where {where}", (*new, *key)


def _delete(table: Table, random: Random) -> Statement:
    where, key = _where(table, table.keys.pop(random.randrange(len(table.keys))))
    return f"delete from {_quoted(table.name)} where {where}", key


def alter(tables: dict[str, Table]) -> Iterator[str]:
    """Statements of DDL, one at a time, the tables following: columns added anywhere, widened, dropped."""
    user, items, moments, things = (tables[name] for name in ("user", "order-item", "moments", "things"))
    age = Column("age", "int not null default 18", "int", _int(0, 120), False)
    yield _add(user, age, " after name")
    yield _add(user, Column("score", "decimal(6,2) default 1.50", "decimal(6,2)", _decimal(6, 2)), " first")
    yield _modify(items, Column("i", "bigint", "bigint", _int(-(2**63), 2**63 - 1)))
    yield _modify(items, Column("price", "decimal(14,4)", "decimal(14,4)", _decimal(14, 4)))
    yield _drop(items, "gone")
    default = "datetime(6) not null default '2020-02-03 04:05:06.000007'"
    yield _add(items, Column("new-col", default, "timestamp", _moment(_FIRST, _LAST, 6), False))
    yield _add(moments, Column("day", "date default '2001-02-03'", "date", _one_of(date(2020, 2, 29))))
    yield _add(moments, Column("at", "time(3) default '-10:11:12.5'", "string", _clock(3)))
    yield _add(things, Column("note", "varchar(9)", "string", _text(9)))
    yield _add(things, Column("raw", "varbinary(4) default 'ab'", "binary", _bytes(0, 4)))
    yield _modify(things, Column("vary", "varbinary(200)", "binary", _bytes(0, 200)))


def _add(table: Table, column: Column, place: str = "") -> str:
    table.columns.append(column)
    return f"alter table {_quoted(table.name)} add column {_quoted(column.name)} {column.ddl}{place}"


def _modify(table: Table, column: Column) -> str:
    table.columns[[each.name for each in table.columns].index(column.name)] = column
    return f"alter table {_quoted(table.name)} modify column {_quoted(column.name)} {column.ddl}"


def _drop(table: Table, name: str) -> str:
    table.columns = [column for column in table.columns if column.name != name]
    table.dropped.add(name)
    return f"alter table {_quoted(table.name)} drop column {_quoted(name)}"


def plain(value: Any, spark: str) -> Any:
    """A value of the database as the ODS table should show it: durations as text, bits as numbers, moments in UTC."""
    match value:
        case timedelta():
            return _clock_text(value // timedelta(microseconds=1))
        case datetime():
            return value.replace(tzinfo=UTC)
        case bytes() if spark == "boolean":
            return value == b"\x01"
        case bytes() if spark in ("bigint", "decimal(20,0)"):
            return int.from_bytes(value, "big")
        case Decimal() if spark == "string":
            return f"{value:f}"
    return value


def _clock_text(micros: int) -> str:
    seconds, rest = divmod(abs(micros), 10**6)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{'-' if micros < 0 else ''}{text}{f'.{rest:06d}' if rest else ''}"
