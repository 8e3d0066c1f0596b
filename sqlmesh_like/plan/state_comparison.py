"""What `--state` records of an earlier project. Owns the values and what `state:` and `result:` match.

`artifacts` reads the artifacts and compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from sqlmesh_like.errors import SelectionError, nearest
from sqlmesh_like.names import NodeId

StateDifference = Literal[
    "body", "configs", "relation", "macros", "contract", "persisted_descriptions", "fqn", "definition"
]
"""How a node differs: its text, settings, table name, a macro it calls, its contract, descriptions that are stored with
the table, its folder, and the rest of its declaration: a source's freshness, a unit test's rows, who may read it."""

STATE_DIFFERENCES: tuple[StateDifference, ...] = get_args(StateDifference)
_UNNAMED = ("fqn", "definition")  # matched by `state:modified` alone
_T = TypeVar("_T")
_STATES = (
    "new",
    "old",
    "modified",
    "unmodified",
    *(f"modified.{kind}" for kind in STATE_DIFFERENCES if kind not in _UNNAMED),
)
_QUERIES = frozenset({"model", "seed", "snapshot", "test", "analysis"})
_OF_NEW = {
    "modified": {*_QUERIES, "unit_test"},
    "configs": {*_QUERIES, "source", "exposure", "semantic_model", "metric", "saved_query"},
    "relation": {*_QUERIES, "source"},
    "macros": set[str](),
}
"""Types whose new nodes count as modified, by selector: as in dbt-core, `state:modified` leaves out a new source."""
_RESULTS = ("error", "fail", "warn", "pass", "success", "skipped", "no-op", "runtime error")


@dataclass(frozen=True)
class ComparisonState:
    """An earlier state of the project. `changes` holds, by unique id, how each node that existed then differs now.

    None means that the folder does not hold the artifact; `folder` is for messages.
    """

    folder: str
    changes: Mapping[str, frozenset[StateDifference]] | None
    statuses: Mapping[str, str] | None
    fresher: frozenset[str] | None = None  # sources with newer rows than `sources.json` of the folder records


def source_test(past: ComparisonState | None, value: str) -> Callable[[str], bool]:
    """Return whether `source_status:<value>` matches a unique id. Raises SelectionError as `state_test` does."""
    _refuse_unknown("source_status", value, ("fresher",))
    fresher = _require_artifact(past, "source_status", "sources.json", past.fresher if past else None)
    return lambda unique_id: unique_id in fresher


def state_test(past: ComparisonState | None, value: str) -> Callable[[str], bool]:
    """Return whether `state:<value>` matches a unique id. Raises SelectionError without a state or for an unknown word.

    As in dbt, a new node counts as modified if nodes of its type can be modified in the way that `value` names.
    """
    _refuse_unknown("state", value, _STATES)
    changes = _require_artifact(past, "state", "manifest.json", past.changes if past else None)
    kind = value.partition(".")[2]
    match value.partition(".")[0]:
        case "new":
            return lambda unique_id: unique_id not in changes
        case "old":
            return lambda unique_id: unique_id in changes
        case "unmodified":
            return lambda unique_id: unique_id in changes and not changes[unique_id]
        case modified:
            of_new = _OF_NEW.get(kind or modified, _QUERIES)
            return lambda unique_id: (
                bool(changes[unique_id] if not kind else kind in changes[unique_id])
                if unique_id in changes
                else NodeId.parse(unique_id).kind in of_new
            )


def result_test(past: ComparisonState | None, value: str) -> Callable[[str], bool]:
    """Return whether `result:<value>` matches a unique id. Raises SelectionError as `state_test` does."""
    _refuse_unknown("result", value, _RESULTS)
    statuses = _require_artifact(past, "result", "run_results.json", past.statuses if past else None)
    return lambda unique_id: statuses.get(unique_id) == value


def _refuse_unknown(method: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        hint = nearest(value, known) or f"known: {', '.join(f'{method}:{word}' for word in known)}"
        raise SelectionError(f"selector '{method}:{value}' is none of {method}'s", hint=hint)


def _require_artifact(past: ComparisonState | None, method: str, file: str, value: _T | None) -> _T:
    if past is None:
        hint = f"give --state PATH, the folder of an earlier {file}"
        raise SelectionError(f"{method}: needs something to compare with", hint=hint)
    if value is None:
        hint = (
            "`sml compile` writes manifest.json, `sml run` and the like run_results.json, `sml freshness` sources.json"
        )
        where = f"{past.folder} or not in the target folder" if method == "source_status" else past.folder
        raise SelectionError(f"{method}: needs {file}, which is not in {where}", hint=hint)
    return value
