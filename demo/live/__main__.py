"""The live demo: MariaDB, Debezium and Kafka on this machine, and `sml watch` between them and the tables.

Run it in the project root (`make demo-live`). It starts the services on loopback, changes the shop's database while
`sml watch` runs, shows how `user_agg` follows, compares ODS with the database row by row, and stops everything.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from demo.live import database
from demo.story import Story
from sqlmesh_like.cli.app import main
from sqlmesh_like.errors import MachineError
from tests.services.connect import debezium, of_mariadb
from tests.services.kafka import broker
from tests.services.mariadb import Server, find_server, mariadb

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT = ROOT / ".demo" / "live"
TOPIC = "cdc_all"
_WAIT_SECONDS = 240


def make_project(kafka: str) -> None:
    """Create a project with the shop demo's models, whose source reads Kafka instead of files."""
    shutil.rmtree(PROJECT, ignore_errors=True)
    for name in ("models", "macros", "seeds"):
        shutil.copytree(ROOT / name, PROJECT / name)
    for name in ("pyproject.toml", "profiles.yml"):
        shutil.copyfile(ROOT / name, PROJECT / name)
    sources = PROJECT / "models" / "ods" / "sources.yml"
    text = sources.read_text(encoding="utf-8")
    files = "files: {path: landing/shop/*.jsonl}"
    if files not in text:
        raise SystemExit(f"{sources} reads no files any more")
    place = f"kafka: {{bootstrap_servers: '{kafka}', topics: [{TOPIC}]}}\n      trigger: 2 seconds"
    sources.write_text(text.replace(files, place), encoding="utf-8")


@contextmanager
def watching() -> Iterator[subprocess.Popen[bytes]]:
    """Run `sml watch` in a separate process while the context is open; SIGTERM lets it complete its work."""
    command = [sys.executable, "-m", "sqlmesh_like", "watch", "--project-dir", str(PROJECT)]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=120)
    if code not in (0, 128 + signal.SIGTERM):
        raise SystemExit(f"sml watch ended with {code}")


def shown(name: str) -> list[dict[str, Any]]:
    """Return the rows of a table, by `sml show`; empty where it does not exist yet."""
    out = io.StringIO()
    words = ["show", name, "--output", "json", "--limit", "-1", "--project-dir", str(PROJECT)]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = main(words)
    return [] if code else json.loads(out.getvalue())


def differences(server: Server, tables: Iterable[str] = database.TABLES) -> list[str]:
    """Return the rows in which ODS tables differ from the database's, by default of all tables."""
    unequal = []
    for table in tables:
        theirs, key = database.rows(server, table), database.KEYS[table]
        ours = {
            row[key]: {name: row[name] for name in row if name != "year_month"} for row in shown(f"source:shop.{table}")
        }
        keys = sorted({*ours, *theirs})
        unequal += [f"{table} {k}: {ours.get(k)} is not {theirs.get(k)}" for k in keys if ours.get(k) != theirs.get(k)]
    return unequal


def wait(process: subprocess.Popen[bytes], problems: Callable[[], list[str]]) -> float:
    """Wait until there are no problems left and return the seconds; the demo ends if they persist."""
    started = time.monotonic()
    while open_problems := problems():
        if process.poll() is not None or time.monotonic() - started > _WAIT_SECONDS:
            raise SystemExit("\n".join(["the lake did not follow:", *open_problems[:10]]))
        time.sleep(0.5)
    return time.monotonic() - started


def lags(server: Server) -> list[str]:
    ours = {row["device_model"]: row["num"] for row in shown("user_agg")}
    theirs = database.devices(server)
    return [] if ours == theirs else [f"user_agg is {ours}, the database says {theirs}"]


def follow_changes(story: Story, process: subprocess.Popen[bytes], server: Server) -> None:
    story.step("2. sml watch", "Ingestion and models in one process. It ingests a snapshot and builds all tables.")
    wait(process, lambda: lags(server) or differences(server))
    story.show("user_agg")
    for number, (what, statements) in enumerate(database.CHANGES, start=3):
        story.step(f"{number}. The database changes", what)
        database.run(server, *statements)
        seconds = wait(process, lambda: lags(server) or differences(server))
        story.show("user_agg")
        print(f"followed {seconds:.1f} seconds after the last statement", flush=True)
    story.step("6. Is ODS what the database shows?", "Each table by SELECT *, row by row, value by value.")
    for table in database.TABLES:
        unequal = differences(server, [table])
        print(f"{table}: {len(database.rows(server, table))} rows, {len(unequal)} differences", flush=True)


def run() -> None:
    try:
        find_server()
    except MachineError as error:
        raise SystemExit(f"error: {error}") from None
    story = Story(PROJECT, made=())
    with ExitStack() as services:
        folder = Path(
            services.enter_context(tempfile.TemporaryDirectory(prefix="sml-live-", ignore_cleanup_errors=True))
        )
        story.step("1. A shop goes live", "MariaDB, Kafka and Debezium start on this machine, on free ports.")
        server, kafka = services.enter_context(mariadb(folder)), services.enter_context(broker(folder))
        database.create(server)
        connector = of_mariadb(server, kafka, TOPIC, "test_db")
        services.enter_context(debezium(folder, kafka, connector, "mariadb"))
        make_project(kafka)
        story.sml("seed")
        with watching() as process:
            follow_changes(story, process, server)
        story.step("7. sml watch has stopped", "Every table once more, against a full recompute.")
        story.sml("verify")
    story.end("Services are stopped. The lake is in .demo/live/warehouse/.")


if __name__ == "__main__":
    run()
