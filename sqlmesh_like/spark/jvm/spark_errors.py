"""What Spark and Hudi raise → our errors. Owns what a user is told of it, and what is worth another plan."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from sqlmesh_like.errors import NodeError, RetryableError
from sqlmesh_like.plan.model_plan import PlannedModel

_VANISHED = ("FileNotFoundException", "does not exist", "PATH_NOT_FOUND")


@contextmanager
def failing(what: str) -> Iterator[None]:
    """What Spark raises within is a NodeError that says what failed."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        raise NodeError(f"{what}: {first_line(error)}") from error


@contextmanager
def failing_model(planned: PlannedModel) -> Iterator[None]:
    """The same for the work on one model: a RetryableError where a data file vanished, which a new plan fixes."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        text, name = first_line(error), planned.compiled.model.table
        if any(sign in str(error) for sign in _VANISHED):
            hint = "a data file vanished while it was read: run again, which plans anew"
            raise RetryableError(f"{name}: {text}", hint=hint) from error
        raise NodeError(f"{planned.compiled.model.path}: {name}: {text}") from error


def first_line(error: Exception) -> str:
    """What Spark says and, where Hudi wrapped it, the cause at the bottom: only that names the file or the value."""
    if not isinstance(error, Py4JJavaError):
        return _line(str(error)) or type(error).__name__
    outer = root = error.java_exception
    while root.getCause() is not None:
        root = root.getCause()
    lines = dict.fromkeys([_line(outer.toString()), _line(root.toString())])
    return "; ".join(line for line in lines if line)


def _line(text: str) -> str:
    return text.strip().partition("\n")[0][:500]
