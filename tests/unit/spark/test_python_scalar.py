"""What a function in Python may return, by the type that it declares: as a worker of Spark checks it."""

from __future__ import annotations

import pickle
import sys
import traceback
from datetime import date
from decimal import Decimal

import pytest

from sqlmesh_like.spark.program.python_scalar import PythonFunctionError, PythonScalar

PATH = "functions/f.py"
IMPORTS = "from datetime import date, datetime\nfrom decimal import Decimal\n"


def of(returned: str, returns: str, version: str | None = None) -> PythonScalar:
    """A function that returns an expression over its argument `x`."""
    return PythonScalar(f"{IMPORTS}def f(x):\n    return {returned}\n", PATH, "f", returns, version)


@pytest.mark.parametrize(
    ("returned", "returns", "expected"),
    [
        ("x", "int", 7), ("None", "int", None), ("-2**31", "int", -(2**31)), ("x", "double", 7.0),
        ("x > 1", "boolean", True), ("str(x)", "string", "7"), ("b'a'", "binary", b"a"),
        ("date(2024, 1, x)", "date", date(2024, 1, 7)), ("x", "decimal(3,2)", Decimal(7)),
        ("Decimal('-9.99')", "decimal(3,2)", Decimal("-9.99")), ("Decimal('1.500')", "decimal(3,2)", Decimal("1.500")),
        ("Decimal('0.25')", "decimal(2,2)", Decimal("0.25")), ("Decimal(10) ** 37", "decimal(38,0)", Decimal(10) ** 37),
    ],
)  # fmt: skip
def test_a_value_of_the_type_is_returned(returned: str, returns: str, expected: object) -> None:
    value = pickle.loads(pickle.dumps(of(returned, returns)))(7)
    assert (value, type(value)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("returned", "returns", "said"),
    [
        ("True", "int", "f returned bool True, not a value of int"),
        ("x / 2", "int", "f returned float 3.5, not a value of int"),
        ("2**31", "int", "f returned 2147483648, which does not fit int"),
        ("1", "boolean", "f returned int 1, not a value of boolean"),
        ("x", "string", "f returned int 7, not a value of string"),
        ("datetime(2024, 1, 1)", "date", "not a value of date"),
        ("'1'", "double", "f returned str '1', not a value of double"),
        ("1.5", "decimal(3,2)", "f returned float 1.5, not a value of decimal(3,2)"),
        ("Decimal('1.555')", "decimal(3,2)", "f returned 1.555, which does not fit decimal(3,2)"),
        ("Decimal(10)", "decimal(3,2)", "f returned 10, which does not fit decimal(3,2)"),
        ("Decimal('1.5')", "decimal(2,2)", "f returned 1.5, which does not fit decimal(2,2)"),
        ("Decimal('NaN')", "decimal(3,2)", "f returned NaN, which does not fit decimal(3,2)"),
    ],
)
def test_any_other_value_is_an_error(returned: str, returns: str, said: str) -> None:
    with pytest.raises(PythonFunctionError) as error:
        of(returned, returns)(7)
    assert str(error.value).startswith(f"{PATH}: ") and said in str(error.value)


def test_the_version_of_python_is_that_of_the_declaration() -> None:
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert of("x", "int", here)(1) == 1
    with pytest.raises(PythonFunctionError, match=r"^functions/f\.py: runtime_version is 2\.7, and Spark's Python is"):
        of("x", "int", "2.7")(1)


def test_the_file_is_run_when_the_first_row_asks() -> None:
    PythonScalar("raise SystemError\n", PATH, "f", "int", None)  # nothing of it has been run
    broken = PythonScalar("def f(x):\n    return x.y\n", PATH, "f", "int", None)
    with pytest.raises(AttributeError) as error:
        broken(1)
    innermost = traceback.extract_tb(error.tb)[-1]
    assert (innermost.filename, innermost.lineno) == (PATH, 2)
