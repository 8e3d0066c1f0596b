"""A project's function in Python as a worker of Spark runs it. Sent to workers by value: it imports nothing of `sml`.

The file is run in the worker when the first row asks for it, never in the process that plans. What the function returns
is checked: Spark would take a value of another type for NULL.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal, localcontext
from types import ModuleType

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


class PythonFunctionError(Exception):
    """What is wrong with a function as such, not raised by its own code; its text begins with the path of its file."""


class PythonScalar:
    """Calls `entry_point` of a file with the values of one row. `returns` is a type in Spark's short spelling."""

    def __init__(self, source: str, path: str, entry_point: str, returns: str, runtime_version: str | None) -> None:
        self._source, self._path, self._entry_point = source, path, entry_point
        self._returns, self._runtime_version = returns, runtime_version
        self._function: Callable[..., object] | None = None

    def __call__(self, *values: object) -> object:
        if self._function is None:
            self._function = self._load()
        returned = self._function(*values)
        return None if returned is None else self._check(returned)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_function": None}

    def _load(self) -> Callable[..., object]:
        here = f"{sys.version_info.major}.{sys.version_info.minor}"
        if self._runtime_version is not None and self._runtime_version != here:
            raise self._error(f"runtime_version is {self._runtime_version}, and Spark's Python is {here}")
        module = ModuleType("sml_python_function")
        module.__file__ = self._path
        exec(compile(self._source, self._path, "exec", dont_inherit=True), module.__dict__)
        function: Callable[..., object] = module.__dict__[self._entry_point]
        return function

    def _check(self, value: object) -> object:
        kind = self._returns
        if kind in _BITS and isinstance(value, int) and not isinstance(value, bool):
            if -(1 << (_BITS[kind] - 1)) <= value < 1 << (_BITS[kind] - 1):
                return value
            raise self._error(f"{self._entry_point} returned {value}, which does not fit {kind}")
        if kind == "double" and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if kind.startswith("decimal") and isinstance(value, int | Decimal) and not isinstance(value, bool):
            return self._decimal(Decimal(value))
        is_date = isinstance(value, date) and not isinstance(value, datetime)
        if (
            (kind == "boolean" and isinstance(value, bool))
            or (kind == "string" and isinstance(value, str))
            or (kind == "binary" and isinstance(value, bytes | bytearray))
            or (kind == "date" and is_date)
        ):
            return value
        raise self._error(f"{self._entry_point} returned {type(value).__name__} {value!r:.80}, not a value of {kind}")

    def _decimal(self, value: Decimal) -> Decimal:
        """The value, if the type has room for all of its digits: Spark would round it, or make NULL of it."""
        digits, scale = (int(part) for part in self._returns[8:-1].split(","))
        with localcontext(prec=1000):
            exponent = value.normalize().as_tuple().exponent
            if isinstance(exponent, int) and exponent >= -scale and abs(value) < Decimal(10) ** (digits - scale):
                return value
        raise self._error(f"{self._entry_point} returned {value}, which does not fit {self._returns}")

    def _error(self, message: str) -> PythonFunctionError:
        return PythonFunctionError(f"{self._path}: {message}")
