"""TPC-H maintenance: 22 models over eight ODS tables, batches of changes, each beside a rebuild of the same tables."""

from __future__ import annotations

import json
import re
from math import exp, log
from pathlib import Path

from bench.lake import Call, Lake
from bench.tpch_data import MONTHS, PRIMARY_KEYS, Change, Database

OLD = Path(__file__).parent.parent / "tests" / "tpc" / "h" / "models"


def project(lake: Lake, memory: str = "4g", table_type: str | None = None) -> None:
    lake.write("pyproject.toml", '[tool.sqlmesh_like]\nname = "tpch"\nprofile = "lake"\n')
    spark = f"{{spark.driver.memory: {memory}}}"
    lake.write(
        "profiles.yml",
        "lake:\n  target: local\n  outputs:\n"
        f"    local: {{type: spark, schema: dws, warehouse: warehouse, threads: 1, spark: {spark}}}\n",
    )
    lines = ["version: 2", "sources:", "  - name: tpch", "    schema: ods", "    ingest:", "      format: dms",
             "      files: {path: 'landing/*/*/*.parquet'}", "    tables:"]  # fmt: skip
    for table, key in PRIMARY_KEYS.items():
        ingest = f"database: tpch, table: {table}, primary_key: [{', '.join(key)}]"
        if table in MONTHS:
            column = MONTHS[table]
            ingest += f", partition_by: {{column: {column}, format: yyyyMM, as: {column[0]}_month}}"
        if table_type:
            ingest += f", table_type: {table_type}"
        lines += [f"      - name: {table}", f"        ingest: {{{ingest}}}"]
    lake.write("models/sources.yml", "\n".join(lines) + "\n")
    for path in sorted(OLD.glob("*.sql")):
        lake.write(f"models/{path.name}", re.sub(r"\blimit\s+\d+\s*$", "", path.read_text(), flags=re.I))


def compared(changed: Call, rebuilt: Call) -> None:
    ratios = []
    for name, node in sorted(changed.nodes.items()):
        full = rebuilt.nodes[name]
        moved = node.status != "no-op"
        if moved:
            ratios.append(full.seconds / node.seconds)
        print(
            f"  {name} {node.strategy:16} {node.seconds:7.2f}  rebuild {full.seconds:7.2f}  "
            f"ratio {full.seconds / max(node.seconds, 1e-3):6.2f} rows {node.response.get('rows_affected')}"
        )
    mean = exp(sum(map(log, ratios)) / len(ratios))
    print(
        f"  {len(ratios)} moved; geometric mean rebuild/incremental {mean:.2f}; "
        f"run {changed.node_seconds:.0f} ({changed.seconds:.0f}) rebuild {rebuilt.node_seconds:.0f} ({rebuilt.seconds:.0f})"
    )


def main(root: Path, scale: float, changes: list[Change], table_type: str | None = None, verify: bool = False) -> None:
    lake = Lake(root)
    database = Database(root, root / "landing")
    state = root / "bench.json"
    number = 1
    if not state.exists():
        root.mkdir(parents=True)
        project(lake, table_type=table_type)
        database.load(scale)
        first = lake.sml("ingest")
        print(f"first ingestion {first.seconds:.0f} s", flush=True)
        built = lake.sml("run")
        print(f"first build {built.seconds:.0f} s", flush=True)
        rebuilt = lake.sml("run", "--full-refresh")
        print(f"rebuild {rebuilt.seconds:.0f} s nodes {rebuilt.node_seconds:.0f}", flush=True)
    else:
        number = json.loads(state.read_text())["number"]
    for change in changes:
        print(change.name, database.change(change, number), flush=True)
        number += 1
        state.write_text(json.dumps({"number": number}))
        taken = lake.sml("ingest")
        print(f"ingest {taken.seconds:.0f} s", flush=True)
        run = lake.sml("run")
        if verify:
            print(lake.sml("verify").output[-300:])
        rebuilt = lake.sml("run", "--full-refresh")
        compared(run, rebuilt)


if __name__ == "__main__":
    import sys

    spreads = [Change(float(text.split(":")[1]) / 100, text.split(":")[0]) for text in sys.argv[3:] if ":" in text]
    main(Path(sys.argv[1]), float(sys.argv[2]), spreads, verify="verify" in sys.argv)
