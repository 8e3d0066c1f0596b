"""Measures `Prices`: projects of two sizes each, so that what a call costs is known apart from what a table adds.

The lakes on a store are on a real S3 server on this machine, behind a proxy that counts requests. Core seconds and
requests count, not the clock: other work on the machine changes neither much.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

import yaml

from bench.lake import Lake, node_runs
from bench.many_models import make_project
from bench.program import IMPORTABLE, python, run_program
from bench.scale.prices import Price, Prices, Slope
from tests.services.proxy import Proxy, proxy_of
from tests.services.s3 import S3Server, s3

_ROWS = 300
_MB = 1024 * 1024
_SUM = "select customer, sum(amount) as amount, count(*) as n from {{{{ ref('{above}') }}}} group by customer\n"
_FILTER = "select id, day, customer, amount + {number} as amount from {{{{ ref('{above}') }}}} where amount > 3\n"


def measure(folder: Path, is_quick: bool = False) -> Prices:
    """Measure for minutes, in an empty folder. `is_quick`: so small that it only shows that everything works."""
    models = (100, 300) if is_quick else (500, 2_000)
    tables = (2, 4) if is_quick else (20, 80)
    files = (20, 60) if is_quick else (500, 4_000)
    parse = Slope.through(*((n, _parse(folder / f"models{n}", n)) for n in models))
    no_op, change = _on_store(folder, tables)
    by_files, commit_bytes = _by_files(folder, files)
    rewrite = _rewrite(folder / "rewrite", 20_000 if is_quick else 2_000_000)
    machine = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    return Prices(parse, no_op, change, by_files, commit_bytes, rewrite, machine)


def _parse(folder: Path, count: int) -> Price:
    make_project(folder / "project", count)
    words = python("sqlmesh_like", "parse")
    done = run_program(words, folder / "project", {**IMPORTABLE, "SML_CACHE_DIR": str(folder / "cache")})
    return Price(done.core_seconds, done.peak_bytes / _MB)


def _on_store(folder: Path, counts: tuple[int, int]) -> tuple[Slope, Slope]:
    """Runs without changes, and what changed models add, for two numbers of models."""
    idle, changed = list[tuple[int, Price]](), list[tuple[int, Price]]()
    (folder / "s3").mkdir()
    with s3(folder / "s3") as server, proxy_of(server.port) as proxy:
        for count in counts:
            server.make_bucket(f"scale{count}")
            lake = _store_lake(folder / f"store{count}", count, server, proxy)
            _call(lake, proxy, "build")
            still = _call(lake, proxy, "run")
            _write_orders(lake, _ROWS, "900001,1,7,11\n")
            _call(lake, proxy, "seed")
            moved = _call(lake, proxy, "run")
            idle.append((count, still))
            changed.append((count, moved - still))
    return Slope.through(*idle), Slope.through(*changed)


def _store_lake(root: Path, count: int, server: S3Server, proxy: Proxy) -> Lake:
    """Every second model filters rows, the others aggregate; each reads the seed or a model before it."""
    lake = Lake(root)
    lake.write("pyproject.toml", '[tool.sqlmesh_like]\nname = "scale"\nprofile = "lake"\n')
    output = {"type": "spark", "schema": "dws", "warehouse": f"{server.uri(f'scale{count}')}/lake", "threads": 4}
    output |= server.output(proxy.endpoint)
    lake.write("profiles.yml", yaml.safe_dump({"lake": {"target": "store", "outputs": {"store": output}}}))
    _write_orders(lake, _ROWS)
    for number in range(count):
        above = "orders" if number < 4 else f"m{number - 4}"
        text = _SUM.format(above=above) if number % 4 == 3 else _FILTER.format(above=above, number=number)
        lake.write(f"models/m{number}.sql", text)
    return lake


def _write_orders(lake: Lake, rows: int, more: str = "", days: int = 10) -> None:
    lines = (f"{number},{number % days},{number % 100},{number * 7 % 1000}\n" for number in range(rows))
    lake.write("seeds/orders.csv", "id,day,customer,amount\n" + "".join(lines) + more)
    lake.write("seeds/s.yml", "version: 2\nseeds:\n  - name: orders\n    config: {unique_key: id}\n")


def _call(lake: Lake, proxy: Proxy, *words: str) -> Price:
    del proxy.requests[:]
    done = run_program(python("sqlmesh_like", *words), lake.root, IMPORTABLE)
    methods = [("LIST" if "list-type=" in path else method) for method, path in proxy.requests]
    reads = sum(method in ("GET", "HEAD") for method in methods)
    deletes = sum(method == "DELETE" for method in methods)
    return Price(done.core_seconds, done.peak_bytes / _MB, reads, len(methods) - reads - deletes, deletes)


def _by_files(folder: Path, counts: tuple[int, int]) -> tuple[Slope, float]:
    """A run with one changed row, of a table with that many partitions of a file each, and a model that joins it by
    key; and bytes of metadata for each file of a commit."""
    measured, commit_bytes = list[tuple[int, Price]](), 0.0
    for count in counts:
        lake = Lake(folder / f"files{count}")
        lake.root.mkdir()
        lake.write_settings("scale", "2g")
        _write_orders(lake, 2 * count, days=count)
        config = "{{ config(partition_by='day', unique_key='id') }}\n"
        lake.write("models/daily.sql", config + _FILTER.format(above="orders", number=1))
        lake.write("models/total.sql", _SUM.format(above="daily"))
        lake.sml("build")
        (first,) = (lake.root / "warehouse/dws/daily/.hoodie/timeline").glob("*_*.*commit")
        commit_bytes = first.stat().st_size / count
        _write_orders(lake, 2 * count, "9000001,1,7,11\n", days=count)
        lake.sml("seed")
        done = run_program(python("sqlmesh_like", "run"), lake.root, IMPORTABLE)
        measured.append((count, Price(done.core_seconds, done.peak_bytes / _MB)))
    return Slope.through(*measured), commit_bytes


def _rewrite(folder: Path, rows: int) -> float:
    """Core seconds of a megabyte of a file in which one row changes: a large file beside a small one."""
    measured = []
    for count in (rows // 100, rows):
        lake = Lake(folder / str(count))
        lake.root.mkdir(parents=True)
        lake.write_settings("scale", "2g")
        _write_orders(lake, 10)
        numbers = f"select explode(sequence(100, {count})) as id"
        lake.write("models/numbers.sql", f"select id, id % 10 as day, id % 1000 as customer from ({numbers})\n")
        lake.write(
            "models/large.sql",
            "select id, day, customer, cast(id * 7919 % 100003 as string) as text from {{ ref('numbers') }}\n"
            "union all select id, day, customer, 'new' as text from {{ ref('orders') }}\n",
        )
        lake.sml("build")
        _write_orders(lake, 10, "50,1,7,11\n")
        lake.sml("seed")
        done = run_program(python("sqlmesh_like", "run", "-s", "large"), lake.root, IMPORTABLE)
        node = node_runs(lake.root / "target" / "run_results.json")["large"]
        measured.append((done.core_seconds, float(str(node.response["bytes_written"])) / _MB))
    (few_seconds, few), (many_seconds, many) = measured
    return max(0.0, many_seconds - few_seconds) / (many - few)
