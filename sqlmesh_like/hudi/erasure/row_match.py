"""Rows by the values of some columns, which are given as texts. Owns comparing these in the type of each file."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from sqlmesh_like.hudi.erasure.searched_files import Source


@dataclass(frozen=True)
class RowMatch:
    """Rows whose `columns` have one of these combinations of values (each as long as `columns`)."""

    columns: tuple[str, ...]
    values: Collection[tuple[str, ...]]

    def rows_of(self, source: str | Source, shown: Collection[str] | None = None) -> pa.Table | None:
        """The matching rows of a Parquet file (`shown`: these columns); None where it lacks one of the columns."""
        schema = pq.read_schema(source)
        stored = {name.lower(): name for name in schema.names}
        if not all(name.lower() in stored for name in self.columns):
            return None
        names = [stored[name.lower()] for name in self.columns]
        typed = [combination for text in self.values if (combination := _typed_values(text, schema, names)) is not None]
        columns = schema.names if shown is None else [*names, *(name for name in shown if name not in names)]
        if not typed:
            return schema.empty_table().select(columns)
        # Files are pruned by statistics; combinations are compared afterwards.
        filters = [(name, "in", {each[index] for each in typed}) for index, name in enumerate(names)]
        # The path of a partition must not add a column to those of the file.
        rows = pq.read_table(source, columns=columns, filters=filters, partitioning=None)
        wanted = set(typed)
        combinations = zip(*(rows.column(name).to_pylist() for name in names), strict=True)
        return rows.filter(pa.array([each in wanted for each in combinations], pa.bool_()))


def _typed_values(texts: tuple[str, ...], schema: pa.Schema, names: list[str]) -> tuple[object, ...] | None:
    """The texts in the types of these columns; None where one has no value of its type: no row can match."""
    try:
        return tuple(
            typed_value(text, schema.field(name).type) for text, name in zip(texts, names, strict=True)
        )  # fmt: skip
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def typed_value(text: str, type_: pa.DataType) -> object:
    """A text as a value of a type, as Python has it. Raises ArrowInvalid where it is none.

    >>> typed_value("7", pa.int32()), typed_value("2024-05-01", pa.date32()), typed_value("7", pa.string())
    (7, datetime.date(2024, 5, 1), '7')
    """
    return pa.array([text]).cast(type_)[0].as_py()
