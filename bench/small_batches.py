"""A few rows at a time: what a lake costs that is looked at all the time, and where few rows arrive.

Ingestion of files, and `sml watch` from the arrival of a file to the commit of the models, as this process does them
beside the same by Spark (`delta_engine: spark`), each in a lake of its own, in turns. A run with nothing to do, and the
first after a file of the project was edited, are compared with the start of the program (`sml --version`).
"""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from bench.lake import Lake
from bench.program import IMPORTABLE, python, run_program
from bench.result import Options, SuiteResult, Timings
from sqlmesh_like.hudi.timeline import Timeline

FORMATS = ("parquet", "csv", "jsonl")
MODELS = 10
ARRIVALS = 3
_COLUMNS = {"id": "int", "city": "string", "amount": "decimal(12,2)", "rate": "double"}
_LONGEST = 300.0


def run(options: Options) -> SuiteResult:
    sizes, timings = ((100,) if options.is_quick else (100, 10_000)), Timings()
    here, spark = (_lake(options, name, engine) for name, engine in (("here", "auto"), ("spark", "spark")))
    for repetition in range(options.repeat):
        for size in sizes:
            for file in FORMATS:
                seconds = [_ingested(lake, file, size, repetition) for lake in (spark, here)]
                timings.add("ingestion, a call", f"{size:,} rows, {_FORMAT[file]}", other=seconds[0], ours=seconds[1])
        _idle(here, repetition, timings)
        for lake in (spark, here):
            lake.sml("run")
        (first, others), (our_first, our_others) = (_watched(lake, repetition) for lake in (spark, here))
        timings.add("watch", "first file, from the start of the program", other=first, ours=our_first)
        for other, ours in zip(others, our_others, strict=True):
            timings.add("watch", f"a further file of 10 rows, {MODELS} models", other=other, ours=ours)
    title = "Few rows at a time"
    ratio_of = "the same by Spark, or the start of the program ÷ sml"
    return SuiteResult("small_batches", title, ratio_of, timings.figures())


_FORMAT = {"parquet": "Parquet", "csv": "CSV", "jsonl": "Debezium's JSON"}


def _lake(options: Options, name: str, engine: str) -> Lake:
    """A project with a source and a table for each format of files, and models over that of Debezium's events."""
    lake = Lake(options.folder / name)
    lake.root.mkdir()
    lake.write_settings("shop", options.memory, 4)
    profile = yaml.safe_load((lake.root / "profiles.yml").read_text())
    profile["lake"]["outputs"]["local"]["delta_engine"] = engine
    lake.write_yaml("profiles.yml", profile)
    columns = [{"name": column, "data_type": type_} for column, type_ in _COLUMNS.items()]
    sources = [_source(file, columns) for file in FORMATS]
    lake.write_yaml("models/sources.yml", {"version": 2, "sources": sources})
    for number in range(MODELS):
        lake.write(f"models/m{number}.sql", f"select city, count(*) as n, sum(amount) as total from"
                   f" {{{{ source('jsonl', 'jsonl_orders') }}}} where id <> -{number + 1} group by city\n")  # fmt: skip
    for file in FORMATS:
        _land(lake, file, 100, 0)
        lake.sml("ingest", "--select", f"source:{file}")
    lake.sml("run")
    return lake


def _source(file: str, columns: list[dict[str, str]]) -> dict[str, object]:
    is_debezium = file == "jsonl"
    own = {"primary_key": ["id"], "table": "orders", **({"database": "db"} if is_debezium else {})}
    stream = {"format": "debezium" if is_debezium else "rows", "files": {"path": f"landing/{file}/*/*.{file}"}}
    table = {"name": f"{file}_orders", "columns": columns, "ingest": own}
    return {"name": file, "schema": "ods", "ingest": stream, "tables": [table]}


def _ingested(lake: Lake, file: str, size: int, repetition: int) -> float:
    _land(lake, file, size, repetition)
    return lake.sml("ingest", "--select", f"source:{file}").seconds


def _land(lake: Lake, file: str, size: int, repetition: int) -> None:
    """Put a file of rows there, complete when it appears: updates of the first ones, and inserts."""
    rows = [
        {"id": id, "city": f"c{id % 20}", "amount": f"{(id + repetition) % 1000}.25", "rate": id / 8}
        for id in range(size)
    ]
    folder = lake.root / "landing" / file / "orders"
    folder.mkdir(parents=True, exist_ok=True)
    half = folder / "_unfinished"
    if file == "parquet":
        types = pa.schema([("id", pa.int32()), ("city", pa.string()), ("amount", pa.string()), ("rate", pa.float64())])
        pq.write_table(pa.Table.from_pylist(rows, types), half)
    elif file == "csv":
        with half.open("w", encoding="utf-8", newline="") as written:
            writer = csv.DictWriter(written, list(_COLUMNS), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    else:
        half.write_text("".join(f"{json.dumps(_event(row))}\n" for row in rows), encoding="utf-8")
    half.rename(folder / f"{time.time_ns()}.{file}")


def _event(row: Mapping[str, object]) -> dict[str, object]:
    return {
        "op": "u",
        "before": None,
        "after": row,
        "source": {"db": "db", "table": "orders"},
        "ts_ms": time.time_ns() // 10**6,
    }


def _idle(lake: Lake, repetition: int, timings: Timings) -> None:
    """Runs with nothing to do, beside the start of the program."""
    lake.sml("run")
    lake.sml("run")

    def start() -> float:
        return run_program(python("sqlmesh_like", "--version"), lake.root, IMPORTABLE).seconds

    group = "a run with nothing to do"
    timings.add(group, f"{MODELS} models", other=start(), ours=lake.sml("run").seconds)
    model = lake.root / "models" / "m0.sql"
    model.write_text(f"{model.read_text()}-- edited {repetition}\n")
    timings.add(group, "the first after a comment of a model was edited", other=start(), ours=lake.sml("run").seconds)


def _watched(lake: Lake, repetition: int) -> tuple[float, list[float]]:
    """Seconds from the start of a watch to the models' first commit, and from each further file to their commit."""
    tables = [str(lake.root / "warehouse" / "dws" / f"m{number}") for number in range(MODELS)]

    def frontiers() -> list[str | None]:
        return [Timeline(table).frontier for table in tables]

    def arrive(since: float) -> float:
        before = frontiers()
        _land(lake, "jsonl", 10, repetition * 100 + time.time_ns() % 97)
        started = since or time.perf_counter()
        while any(now == then for now, then in zip(frontiers(), before, strict=True)):
            if time.perf_counter() > started + _LONGEST:
                raise RuntimeError(f"the models of {lake.root} did not follow a file")
            time.sleep(0.01)
        return time.perf_counter() - started

    with _watch(lake):
        first = arrive(time.perf_counter())
        further = []
        for _ in range(ARRIVALS):
            time.sleep(2)
            further.append(arrive(0))
    return first, further


@contextmanager
def _watch(lake: Lake) -> Iterator[None]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | IMPORTABLE
    words = python("sqlmesh_like", "watch", "--trigger", "1 second")
    with (lake.root / "watch.log").open("w") as log:
        process = subprocess.Popen(words, cwd=lake.root, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(120)
