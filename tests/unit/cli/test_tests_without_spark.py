"""`sml test` on a lake's tables with no JVM, where DuckDB counts what Spark would."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from sqlmesh_like.app.lakes import lake as cli_lake
from sqlmesh_like.cli.app import main
from sqlmesh_like.names import Column
from sqlmesh_like.run.ports import Rows
from tests.local_lake import make_table

TESTS = """
version: 2
sources:
  - name: shop
    schema: ods
    tables:
      - name: orders
        columns:
          - {name: id, data_tests: [unique, not_null]}
          - {name: status, data_tests: [{accepted_values: {values: [open, paid]}}]}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "shop"\n')
    (tmp_path / "profiles.yml").write_text("lake: {target: a, outputs: {a: {type: spark, schema: dws, warehouse: w}}}")
    (tmp_path / "models/s.yml").write_text(TESTS)
    rows = pa.table({
        "id": pa.array([1, 2, 3], pa.int32()),
        "status": pa.array(["open", "paid", "lost"]),
        "amount": pa.array([Decimal("1.50"), None, Decimal("-2.00")], pa.decimal128(10, 2)),
    })  # fmt: skip
    make_table(tmp_path / "w/ods/orders", rows)
    return tmp_path


def test_data_tests_are_counted_and_failing_rows_shown(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "tests/positive.sql").write_text("select id, amount from {{ source('shop', 'orders') }} where amount < 0")
    assert main(["test", "--project-dir", str(root)]) == 1
    shown = capsys.readouterr().out
    assert "PASS=2 WARN=0 ERROR=2" in shown
    assert "Got 1 result, configured to fail if != 0" in shown and "lost" in shown and "-2.00" in shown


@pytest.mark.parametrize("engine", ["auto", "spark"])
def test_spark_counts_what_duckdb_is_not_trusted_with(
    engine: str, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    class Spark:
        def query(self, tree: object, tables: object, limit: int, shown: object = None) -> Rows:
            asked.append(tree)
            return Rows((Column("failures"), Column("warn"), Column("fail")), ((0, False, False),))

        def release(self) -> None: ...

        def stop(self) -> None: ...

    monkeypatch.setattr(cli_lake, "spark_engine", lambda *_: Spark())
    text = (root / "profiles.yml").read_text().replace("warehouse: w", f"warehouse: w, delta_engine: {engine}")
    (root / "profiles.yml").write_text(text)
    (root / "tests/sounds.sql").write_text("select id from {{ source('shop', 'orders') }} where soundex(status) = 'x'")
    code = main(["test", "--project-dir", str(root)])
    assert (code, len(asked)) == ((1, 1) if engine == "auto" else (0, 4)), capsys.readouterr().out
