"""A Python model on Spark: its function is called with the pinned inputs. Owns `dbt` as the function sees it.

The code runs in this process with all its permissions. Data that it reads without `dbt.ref` and `dbt.source` is not
pinned, and its changes are not noticed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Protocol, cast

from pyspark.sql import DataFrame, SparkSession

from sqlmesh_like.analyze.algebra.contract_order import contract_order
from sqlmesh_like.errors import NodeError
from sqlmesh_like.plan.checks.check import refuse_untrusted
from sqlmesh_like.project.reading.session_settings import FIXED
from sqlmesh_like.render.relations import TemplateRelation
from sqlmesh_like.render.rendered import PythonCode, RenderedModel, reference_key
from sqlmesh_like.spark.jvm.spark_errors import code_failure, has_lost_file

_RESTORED = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")
"""Settings that the rows of every table depend on, restored if the code has changed them in its session."""
_LITERALLY = "only what the text names by dbt.ref('…') and dbt.source('…', '…') is known before it runs"


class _Function(Protocol):
    def __call__(self, dbt: DbtObject, session: SparkSession) -> object: ...


class DbtConfig:
    """`dbt.config`: calling it has no effect when the model runs, because the text was read before."""

    def __init__(self, settings: Mapping[str, object]) -> None:
        self._settings = settings

    def __call__(self, *_given: object, **_settings: object) -> None:
        """Do nothing: the settings were read from the text before it ran."""

    def get(self, key: str, default: object = None) -> object:
        return self._settings.get(key, default)

    def meta_get(self, key: str, default: object = None) -> object:
        return self._settings.get(f"meta.{key}", default)


@dataclass
class DbtObject:
    """The `dbt` argument of a Python model."""

    config: DbtConfig
    this: TemplateRelation
    _inputs: Mapping[tuple[str, ...], DataFrame] = field(repr=False)
    is_incremental: bool = False

    def ref(self, *names: str, v: object = None, version: object = None) -> DataFrame:
        """A model or seed at the version that this run has pinned. Raises LookupError for other names."""
        return self._input_frame("ref", names, {"v": v, "version": version})

    def source(self, source: str, table: str) -> DataFrame:
        """A source's table at the version that this run has pinned. Raises LookupError for other names."""
        return self._input_frame("source", (source, table), {})

    def _input_frame(self, asked: str, names: tuple[str, ...], kwargs: Mapping[str, object]) -> DataFrame:
        frame = self._inputs.get(reference_key(asked, names, kwargs))
        if frame is None:
            shown = ", ".join(map(repr, names))
            raise LookupError(f"dbt.{asked}({shown}) is not among the inputs of this model: {_LITERALLY}")
        return frame


def python_rows(model: RenderedModel, session: SparkSession, read: Callable[[int], DataFrame]) -> DataFrame:
    """The rows that a Python model's function returns. `read` gives the rows of an input by its number in the model.

    Raises NodeError with file and line of an error in the model's text.
    """
    python = model.python
    assert python is not None
    refuse_untrusted(model, python)
    returned = _call_function(model, python, session, read)
    for name in _RESTORED:
        session.conf.set(name, FIXED[name])
    return _in_contract_order(model, _as_frame(returned, session, python))


def _call_function(
    model: RenderedModel, python: PythonCode, session: SparkSession, read: Callable[[int], DataFrame]
) -> object:
    # Read before the function runs, so that an error in reading an input is not attributed to it.
    frames: dict[str, DataFrame] = {ref.unique_id: read(number) for number, ref in enumerate(model.inputs)}
    inputs = {key: frames[unique_id] for key, unique_id in python.references.items()}
    dbt = DbtObject(DbtConfig(python.settings), TemplateRelation(model.table), inputs)
    try:
        return _function(model)(dbt, session)
    except (Exception, SystemExit) as error:
        if has_lost_file(error):
            raise  # a new plan may find the file
        raise code_failure(model, error) from None


def _function(model: RenderedModel) -> _Function:
    """The function in the model's text.

    Its module is not importable, so that functions in it are sent to executors by value.
    """
    module = ModuleType(f"sml_python_model_{re.sub(r'[^A-Za-z0-9_]', '_', model.name)}")
    module.__file__ = model.path
    exec(compile(model.sql, model.path, "exec", dont_inherit=True), module.__dict__)
    return cast("_Function", module.__dict__["model"])


def _as_frame(returned: object, session: SparkSession, python: PythonCode) -> DataFrame:
    try:
        if _is_of(returned, "pyspark.pandas"):
            returned = returned.to_spark()  # type: ignore[attr-defined]
        elif _is_of(returned, "pandas"):
            returned = session.createDataFrame(returned)
    except Exception as error:  # noqa: BLE001 (pandas, numpy and pyspark raise many types of errors)
        message = f"the DataFrame of pandas cannot become one of Spark: {type(error).__name__}: {error}"
        raise NodeError(message, location=python.function, hint="give its columns types, by astype()") from None
    if not isinstance(returned, DataFrame):
        message = f"the function returned {_kind_of(returned)}, not a Spark or pandas DataFrame"
        raise NodeError(message, location=python.function, hint="return df")
    names = Counter(name.lower() for name in returned.columns)
    if twice := [name for name, times in names.items() if times > 1]:
        raise NodeError(f"two columns are named {twice[0]!r}", location=python.function, hint="rename one")
    return returned


def _is_of(value: object, package: str) -> bool:
    """Whether a value is a DataFrame of a package, which need not be installed."""
    module = type(value).__module__
    return type(value).__name__ == "DataFrame" and (module == package or module.startswith(f"{package}."))


def _kind_of(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _in_contract_order(model: RenderedModel, frame: DataFrame) -> DataFrame:
    order = contract_order(model)
    if sorted(name.lower() for name in order) != sorted(name.lower() for name in frame.columns):
        return frame
    return frame.select(*[f"`{name}`" for name in order])
