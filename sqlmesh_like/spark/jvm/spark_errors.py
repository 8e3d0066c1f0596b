"""Exceptions of Spark and Hudi → errors of this project. Owns messages for users, and which errors a new plan fixes."""

from __future__ import annotations

import re
import signal
import subprocess
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from sqlmesh_like.errors import Location, NodeError, RetryableError
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.remedies import MORE_MEMORY, remedy
from sqlmesh_like.render.rendered import RenderedModel

_OUT_OF_MEMORY = 52
"""Exit code of a JVM of Spark in which a task ran out of memory."""
_VANISHED = ("FileNotFoundException", "does not exist", "PATH_NOT_FOUND")


@contextmanager
def failing(what: str) -> Iterator[None]:
    """Turn Spark's exceptions within the context into a NodeError that begins with `what`."""
    with reporting_lost_jvm(what):
        try:
            yield
        except (Py4JJavaError, PySparkException) as error:
            if failure := _function_failure(error):
                raise failure from error
            text = first_line(error)
            raise NodeError(f"{what}: {text}", hint=remedy(text, "the same command again")) from error
        except OSError as error:  # what Spark computed is written without it
            if (hint := remedy(error, "the same command again")) is None:
                raise
            raise NodeError(f"{what}: {error}", hint=hint) from error


@contextmanager
def failing_model(planned: PlannedModel) -> Iterator[None]:
    """The same for the work on one model; a RetryableError where a data file vanished, which a new plan fixes."""
    model = planned.compiled.model
    try:
        with reporting_lost_jvm(f"{model.path}: {model.table}"):
            yield
    except (Py4JJavaError, PySparkException) as error:
        text, name = first_line(error), model.table
        hint: str | None
        if has_vanished(error):
            hint = "a data file vanished while it was read: run again, which plans anew"
            raise RetryableError(f"{name}: {text}", hint=hint) from error
        if failure := _worker_failure(model, error) or _function_failure(error):
            raise failure from error
        raise NodeError(f"{model.path}: {name}: {text}", hint=remedy(text, "sml run")) from error
    except OSError as error:  # what Spark computed is written without it
        if (hint := remedy(error, "sml run")) is None:
            raise
        raise NodeError(f"{model.table}: {planned.target.uri} cannot be written: {error}", hint=hint) from error


@contextmanager
def reporting_lost_jvm(what: str) -> Iterator[None]:
    """Turn the errors that follow the end of Spark's JVM into a NodeError: `what`, then how the JVM ended."""
    try:
        yield
    except (Py4JError, ConnectionError, EOFError) as error:
        if isinstance(error, Py4JJavaError) or (ended := _jvm_end()) is None:
            raise
        hint = f"target/logs/spark.log may say why; if memory was short: {MORE_MEMORY}; then the same command again"
        raise NodeError(f"{what}: Spark's JVM {ended}", hint=hint) from error


@contextmanager
def without_lost_jvm() -> Iterator[None]:
    """Ignore errors of tidying up what ended with the JVM."""
    try:
        yield
    except (Py4JError, ConnectionError, EOFError):
        if _jvm_end() is None:
            raise


def _jvm_end() -> str | None:
    """How the JVM that this process started has ended; None while it runs."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    try:
        code = process.wait(timeout=2)
    except subprocess.TimeoutExpired:
        return None
    if code == _OUT_OF_MEMORY:
        return "ran out of memory"
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"has ended with exit code {code}"


def has_vanished(error: BaseException) -> bool:
    """Whether Spark did not find a file that existed when the run was planned."""
    return isinstance(error, Py4JJavaError | PySparkException) and any(sign in str(error) for sign in _VANISHED)


def has_lost_file(error: BaseException) -> bool:
    """The same within the code of a Python model, without errors about paths that the code itself may name."""
    return isinstance(error, Py4JJavaError | PySparkException) and "FileNotFoundException" in str(error)


def code_failure(model: RenderedModel, error: BaseException) -> NodeError:
    """An error raised by the code of a Python model, located at the innermost line of its file."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == model.path]
    if isinstance(error, SyntaxError) and error.filename == model.path:
        lines = [error.lineno]
    is_spark = isinstance(error, Py4JJavaError | PySparkException)
    said = first_line(error) if is_spark and isinstance(error, Exception) else _line(str(error))
    return NodeError(f"{type(error).__name__}: {said}", location=Location(model.path, lines[-1] if lines else None))


def _worker_failure(model: RenderedModel, error: Py4JJavaError | PySparkException) -> NodeError | None:
    """An error that a Python model's function raised in a Spark worker while its rows were computed; else None."""
    return _failure_in(re.escape(model.path), error) if model.python else None


def _function_failure(error: Py4JJavaError | PySparkException) -> NodeError | None:
    """An error that a function of the project in Python raised: only such files have paths within the project."""
    if said := re.search(r"PythonFunctionError: (.+?\.py): (.*)", _whole_text(error)):
        return NodeError(_line(said[2]), location=Location(said[1]))
    return _failure_in(r"(?!/)[^\"<>]+\.py", error)


def _failure_in(path: str, error: Py4JJavaError | PySparkException) -> NodeError | None:
    """An error that was raised in a worker, at the innermost line of a file whose path matches a pattern."""
    text = _whole_text(error)
    places = list(re.finditer(rf'File "({path})", line (\d+)', text))
    if not places:
        return None
    said = re.search(r"^(?!\s)[A-Za-z_][\w.]*(?::.*)?$", text[places[-1].end() :], re.MULTILINE)
    message = _line(said[0]) if said else first_line(error)
    return NodeError(message, location=Location(places[-1][1], int(places[-1][2])))


def _whole_text(error: Py4JJavaError | PySparkException) -> str:
    texts = [str(error)]
    cause = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    while cause is not None:
        texts.append(str(cause.toString()))
        cause = cause.getCause()
    return "\n".join(texts)


def first_line(error: Exception) -> str:
    """The first line of Spark's message and, where Hudi wrapped it, of the root cause, which names file or value."""
    if not isinstance(error, Py4JJavaError):
        return _line(str(error)) or type(error).__name__
    outer = root = error.java_exception
    while root.getCause() is not None:
        root = root.getCause()
    lines = dict.fromkeys([_line(outer.toString()), _line(root.toString())])
    return "; ".join(line for line in lines if line)


def _line(text: str) -> str:
    return text.strip().partition("\n")[0][:500]
