"""A column as templates see it: dbt's `api.Column`, with Spark's types."""

from __future__ import annotations

from sqlmesh_like.sql_text import spark_identifier

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_NO_SIZE = 256
"""The size that dbt reports for text without a size."""


class ColumnOf:
    """A column of a relation. `dtype` is its whole type; sizes are those that the caller gives.

    Unlike in dbt, `is_numeric()` also recognizes a decimal with its precision.
    """

    def __init__(
        self,
        column: str,
        dtype: str,
        char_size: int | None = None,
        numeric_precision: int | None = None,
        numeric_scale: int | None = None,
    ) -> None:
        self.name = self.column = column
        self.dtype = self.data_type = dtype
        self.char_size, self.numeric_precision, self.numeric_scale = char_size, numeric_precision, numeric_scale

    @classmethod
    def create(cls, name: str, label_or_dtype: str) -> ColumnOf:
        return cls(name, cls.translate_type(label_or_dtype))

    @staticmethod
    def translate_type(name: str) -> str:
        """Spark's name for a type of dbt."""
        return {"text": "string", "integer": "int", "numeric": "decimal(28,6)"}.get(name.lower(), name.lower())

    @staticmethod
    def string_type(size: int) -> str:
        return f"varchar({size})"

    @staticmethod
    def numeric_type(dtype: str, precision: int | None, scale: int | None) -> str:
        kind = "decimal" if dtype.lower() in ("numeric", "number") else dtype
        return kind if precision is None or scale is None else f"{kind}({precision},{scale})"

    @property
    def quoted(self) -> str:
        return spark_identifier(self.name)

    def literal(self, value: object) -> str:
        return f"cast({value} as {self.dtype})"

    def is_string(self) -> bool:
        return self._kind() in ("string", "varchar", "char", "text")

    def is_numeric(self) -> bool:
        return self._kind() in ("decimal", "numeric")

    def is_number(self) -> bool:
        return self._kind() in _NUMBERS

    def is_integer(self) -> bool:
        return self._kind() in _NUMBERS[:4]

    def is_float(self) -> bool:
        return self._kind() in ("float", "double")

    def string_size(self) -> int:
        return _NO_SIZE if self.char_size is None else int(self.char_size)

    def can_expand_to(self, _other: object) -> bool:
        return False

    def _kind(self) -> str:
        return self.dtype.partition("(")[0].strip().lower()

    def _parts(self) -> tuple[object, ...]:
        return (self.name, self.dtype, self.char_size, self.numeric_precision, self.numeric_scale)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ColumnOf) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __str__(self) -> str:
        return f"<Column {self.name} ({self.data_type})>"

    __repr__ = __str__
