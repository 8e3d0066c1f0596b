"""The shop's MariaDB: its tables, their changes, and their rows. Owns the SQL; knows nothing of a lake."""

from __future__ import annotations

from typing import Any

from sqlmesh_like.run.plain_values import plain
from tests.services.mariadb import Server

TABLES = ("user", "product", "user_order")
KEYS = {"user": "id", "product": "pid", "user_order": "id"}
_TIMES = "create_time datetime not null, modify_time datetime not null"
SCHEMA = (
    "create database test_db",
    f"""create table test_db.user (id int primary key, name varchar(40), device_model varchar(20), email varchar(40),
        phone varchar(20), {_TIMES})""",
    f"create table test_db.product (pid int primary key, pname varchar(40), pprice decimal(10,2), {_TIMES})",
    f"""create table test_db.user_order (id int primary key, oid varchar(20), uid int, pid int, onum int, {_TIMES})""",
)
_DAY = "'2022-06-01' + interval %s day"


def create(server: Server) -> None:
    """Create the tables with the shop's rows so far."""
    run(server, *SCHEMA)
    users = [(n, f"customer-{n:02d}", f"dm-{n % 3:02d}", f"abc{n:02d}@email.com", n, n) for n in range(1, 31)]
    products = [(n, f"product-{n}", f"{n * 7}.90", n, n) for n in range(1, 9)]
    orders = [(n, f"o-{n:04d}", n % 30 + 1, n % 8 + 1, n % 5 + 1, n % 60, n % 60) for n in range(1, 201)]
    with server.connect("test_db") as connection, connection.cursor() as cursor:
        cursor.executemany(f"insert into user values (%s, %s, %s, %s, '188776', {_DAY}, {_DAY})", users)
        cursor.executemany(f"insert into product values (%s, %s, %s, {_DAY}, {_DAY})", products)
        cursor.executemany(f"insert into user_order values (%s, %s, %s, %s, %s, {_DAY}, {_DAY})", orders)


CHANGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Ten customers change their device, one leaves.",
        (
            "update user set device_model = 'dm-09', modify_time = now() where id <= 10",
            "delete from user where id = 30",
        ),
    ),
    (
        "A column appears, with a default: ALTER TABLE user ADD COLUMN age int DEFAULT 18. Two customers sign up.",
        (
            "alter table user add column age int default 18",
            "insert into user values (31, 'customer-31', 'dm-09', null, null, now(), now(), 44)",
            "insert into user (id, name, device_model, create_time, modify_time)"
            " values (32, 'customer-32', 'dm-10', now(), now())",
            "update user set age = null, modify_time = now() where id = 31",
        ),
    ),
    (
        "Orders: one changes its number, one is deleted, some move to another month, prices rise.",
        (
            "update user_order set id = 1001, modify_time = now() where id = 1",
            "delete from user_order where id = 2",
            "update user_order set create_time = '2022-09-01', modify_time = now() where id between 3 and 6",
            "update product set pprice = pprice * 1.10, modify_time = now()",
            "update user set age = id, modify_time = now() where id between 11 and 20",
        ),
    ),
)
"""The changes while the lake follows: each step has a description and its statements."""


def run(server: Server, *statements: str) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        for number, statement in enumerate(statements):
            if number == 0 and not statement.startswith("create database"):
                cursor.execute("use test_db")
            cursor.execute(statement)


def rows(server: Server, table: str) -> dict[Any, dict[str, Any]]:
    """Return the rows of a table in the database by key, with values as in `sml show --output json`."""
    with server.connect("test_db") as connection, connection.cursor() as cursor:
        cursor.execute(f"select * from `{table}`")
        names = [column[0] for column in cursor.description or ()]
        records = [dict(zip(names, map(plain, row), strict=True)) for row in cursor.fetchall()]
    return {row[KEYS[table]]: row for row in records}


def devices(server: Server) -> dict[str, int]:
    """Return the rows that `user_agg` must have: number of users by device."""
    with server.connect("test_db") as connection, connection.cursor() as cursor:
        cursor.execute("select device_model, count(*) from user group by device_model")
        return dict(cursor.fetchall())
