"""A lake of random rows for edits of real models: what each does to a table, and how many bytes it reads and writes.

Bytes are those of compressed columns: of the inputs and of the table those that executed queries name, each read as a
whole; of the table all that are written, as those of a copy-on-write table of one file, which any changed row writes.
"""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import duckdb
import pyarrow.parquet as pq
from sqlglot import exp

from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.delta.machine import ReadyStep
from sqlmesh_like.delta.program import split_relation
from sqlmesh_like.duckdb.duck_types import duck_quoted, duck_type
from sqlmesh_like.duckdb.programs.memory_lake import LakeSnapshot, MemoryLake
from sqlmesh_like.duckdb.programs.memory_steps import STORED, MemorySteps
from sqlmesh_like.errors import NodeError
from sqlmesh_like.names import KEY, Schema, is_hidden
from sqlmesh_like.sql_text import standard_literal
from tests.properties.edited_table import Way, apply_edit, plan_after

Pool = Mapping[str, tuple[str, ...]]
"""Constants by the name of the column that queries compare them with, as literals of strings."""
_ROWS, _KEYS = 600, 150


@dataclass(frozen=True)
class EditCost:
    """What was done with a table, the bytes that this read and wrote, and those of a rebuild."""

    way: Way
    bytes: int
    rebuild: int
    differs: bool  # the table is not that of the edited query


class UnbuiltError(Exception):
    """Raised where random rows are not those that a query can be computed for."""


class _LoggedSteps(MemorySteps):
    """Keeps the queries of the steps that are executed."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.queries: list[exp.Query] = []

    def create_step(self, step: ReadyStep) -> bool:
        self.queries.append(step.query)
        return super().create_step(step)


class EditLake(MemoryLake):
    """Inputs of random rows, which stay."""

    def __init__(self, schemas: Mapping[str, Schema], pool: Pool) -> None:
        super().__init__(schemas)
        self._sizes: dict[str, Mapping[str, int]] = {}
        for input_id, schema in schemas.items():
            items = [_item(c.name, c.type or "string", pool.get(c.name.lower(), ())) for c in schema]
            rows = f"SELECT {', '.join(items)}, CAST(i AS VARCHAR) AS {KEY} FROM range({_ROWS}) AS r(i)"
            self._db.execute(f"INSERT INTO current.{duck_quoted(input_id)} {rows}")
            self._sizes[input_id] = self._column_bytes(f"current.{duck_quoted(input_id)}")

    def _load(self, role: str, snapshot: LakeSnapshot) -> None:
        """The rows of inputs are those of the beginning."""

    def _remember_only(self, compiled: CompiledModel) -> None:
        super()._remember_only(compiled)
        self._steps = _LoggedSteps(self._db)

    def edit(self, before: CompiledModel, after: CompiledModel) -> EditCost:
        """Build a table of the query before, and bring it to the one after. Raises UnbuiltError."""
        try:
            for model in (after, before):
                self._remember_only(model)
                self.build(model, {})
        except (duckdb.Error, NodeError) as error:  # several rows of a scalar subquery, too many of a join
            raise UnbuiltError from error
        stored = self._column_bytes(STORED)
        rows = sorted(map(repr, self.stored_rows()))
        self._remember_only(after)
        if plan_after(before, after) is not after:
            read = [] if after.table.build is None else [after.table.build]
            whole = sum(self._bytes_read(read, stored).values()) + sum(stored.values())
            return EditCost("kept", 0, whole, self._differs(after, has_keys=False))
        way, edit = apply_edit(before, after, self, {})
        build = [] if after.table.build is None else [after.table.build]
        queries = {
            "kept": [], "derived": [edit.rows] if edit and edit.rows is not None else [],
            "columns computed": [edit.rows] if edit and edit.rows is not None else [],
            "followed": self._steps.queries if isinstance(self._steps, _LoggedSteps) else [],
        }.get(way, build)  # fmt: skip
        read = sum(self._bytes_read(queries, stored).values())  # type: ignore[arg-type]
        read += sum(stored.values()) if way == "compared" else 0
        is_written = sorted(map(repr, self.stored_rows())) != rows
        written = sum(self._column_bytes(STORED).values())
        whole = sum(self._bytes_read(build, stored).values()) + written
        return EditCost(way, read + (written if is_written else 0), whole, self._differs(after))

    def _differs(self, model: CompiledModel, *, has_keys: bool = True) -> bool:
        """Whether the table is not that of a query (without `has_keys`: whether visible rows are not).

        Of decimals that DuckDB computes as doubles the last digits depend on the order of rows, which Spark's do not:
        if only these differ, they are left out.
        """
        build = model.table.build
        if not self.verify(model) and not (has_keys and build is not None and self.verify_state(model)):
            return False
        types = {c.name: c.type or "" for c in (*(model.facts.schema or ()), *model.table.state)}
        made = [] if build is None else self._db.execute(f"DESCRIBE {self._whole(build)}").fetchall()
        doubles = {row[0] for row in made if types.get(row[0], "").startswith("decimal") and row[1] == "DOUBLE"}
        names = [(name, type_) for name, type_ in self._columns() if has_keys or not is_hidden(name)]
        shown = [(name, type_) for name, type_ in names if name not in doubles]
        return build is None or not doubles or bool(self._difference(shown, self._whole(build)))

    def _bytes_read(self, queries: Iterable[exp.Query], stored: Mapping[str, int]) -> Mapping[tuple[str, str], int]:
        """By table and column."""
        read: dict[tuple[str, str], int] = {}
        for query in queries:
            names = {each.name.lower() for each in query.find_all(exp.Column)}
            for table in query.find_all(exp.Table):
                outside = split_relation(table)
                if outside is None or outside[0] == "changes":
                    continue
                sizes = stored if outside[0] == "target" else self._sizes[outside[1]]
                is_whole = outside[0] == "target" and query.find(exp.Star) is not None
                read |= {(outside[1], n): size for n, size in sizes.items() if is_whole or n.lower() in names}
        return read

    def _column_bytes(self, table: str) -> Mapping[str, int]:
        """Compressed bytes of the columns of a table, written as Parquet."""
        file = io.BytesIO()
        pq.write_table(self._db.execute(f"SELECT * FROM {table}").to_arrow_table(), file, compression="zstd")
        metadata, sizes = pq.ParquetFile(file).metadata, dict[str, int]()
        for group in range(metadata.num_row_groups):
            for number in range(metadata.num_columns):
                chunk = metadata.row_group(group).column(number)
                name = chunk.path_in_schema.split(".")[0]
                sizes[name] = sizes.get(name, 0) + chunk.total_compressed_size
        return sizes


def constants(models: Iterable[CompiledModel]) -> Pool:
    """What queries compare columns with: rows of other values would meet few of their conditions."""
    pool: dict[str, set[str]] = defaultdict(set)
    for model in models:
        for node in model.facts.tree.find_all(exp.EQ, exp.In, exp.Between, exp.LT, exp.LTE, exp.GT, exp.GTE):
            own = [c.name.lower() for c in node.find_all(exp.Column)]
            for literal in node.find_all(exp.Literal) if len(own) == 1 else ():
                pool[own[0]].add(standard_literal(literal.name))
    return {name: tuple(sorted(values)) for name, values in pool.items()}


def _item(name: str, type_: str, pool: tuple[str, ...]) -> str:
    """A random value: now and then NULL, else a constant of the pool or another value of the type."""
    dice = f"(hash(i, '{name}') % 1000)"
    listed = f"list_element([{', '.join(pool)}], CAST(1 + {dice} % {len(pool)} AS BIGINT))" if pool else "NULL"
    base = type_.partition("(")[0]
    other = {
        "string": f"'v' || ({dice} % 7)", "date": f"DATE '1998-01-01' + CAST({dice} * 2 AS INTEGER)",
        "timestamp": f"TIMESTAMP '2024-01-01 00:00:00' + to_hours(CAST({dice} AS INTEGER))",
        "decimal": f"{dice} / 10.0", "boolean": f"{dice} % 2 = 0",
    }.get(base, f"i % {_KEYS}" if re.search(r"(_sk|key|_id|_number)$", name) else f"{dice} % 60")  # fmt: skip
    value = f"CASE WHEN {dice} < 30 THEN NULL WHEN {dice} < 700 THEN TRY_CAST({listed} AS {duck_type(type_)}) END"
    others = f"CASE WHEN {dice} >= 30 THEN TRY_CAST({other} AS {duck_type(type_)}) END"
    return f"coalesce({value}, {others}) AS {duck_quoted(name)}"
