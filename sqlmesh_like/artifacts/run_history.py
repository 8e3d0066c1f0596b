"""`run_history.json`: the calls of each target, and which of its nodes have had a problem since when.

`run_results.json` holds only the last call. A node's problem lasts until a call in which it succeeds; a call that
skips the node or leaves it out does not change that. Owns the shape, which is not dbt's; deleting the file loses
nothing but the history.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlmesh_like.artifacts.json_objects import Artifact, mapping_of
from sqlmesh_like.artifacts.state import statuses

HISTORY = "run_history.json"
MOST_CALLS = 60
"""Number of calls that are kept for a target, the newest ones."""
FAILED = frozenset({"error", "fail", "runtime error"})
_PROBLEMS = FAILED | {"warn"}
_SUCCESSES = frozenset({"success", "pass", "no-op"})
_MOST_LETTERS = 600

_Json = Mapping[str, object]


def extend_history(history: Artifact | None, target: str, run_results: _Json) -> dict[str, object]:
    """Return the history with the call of these run results added as the newest of this target."""
    targets = dict(mapping_of((history or {}).get("targets")))
    targets[target] = _append_call(mapping_of(targets.get(target)), run_results)
    return {"metadata": {"generated_at": _generated_at(run_results)}, "targets": targets}


@dataclass(frozen=True)
class TargetHistory:
    """The history of one target: its calls, oldest first, problems by unique id, and its last results, if any."""

    calls: tuple[Artifact, ...] = ()
    problems: Artifact = field(default_factory=dict)
    results: Artifact | None = None


def target_history(history: Artifact | None, target: str, run_results: Artifact | None) -> TargetHistory:
    """Return a target's history from the two files of a target folder.

    Run results that are not in the history of any target count as this target's.

    >>> target_history(None, "dev", None).calls
    ()
    """
    targets = mapping_of((history or {}).get("targets"))
    own = mapping_of(targets.get(target))
    if run_results is not None and not any(_knows(mapping_of(each), run_results) for each in targets.values()):
        own = _append_call(own, run_results)
    calls = tuple(mapping_of(call) for call in _list(own.get("calls")))
    is_own = run_results is not None and _knows(own, run_results)
    return TargetHistory(calls, mapping_of(own.get("problems")), run_results if is_own else None)


def _knows(target: _Json, run_results: _Json) -> bool:
    """Return whether a run is among the target's calls; one process, such as `sml watch`, has many runs."""
    metadata = mapping_of(run_results.get("metadata"))
    run = (metadata.get("invocation_id"), metadata.get("generated_at"))
    calls = map(mapping_of, _list(target.get("calls")))
    return any((call.get("invocation_id"), call.get("at")) == run for call in calls)


def _append_call(before: _Json, run_results: _Json) -> dict[str, object]:
    rows = [mapping_of(row) for row in _list(run_results.get("results"))]
    rebuild = {name: _number(value) for name, value in mapping_of(before.get("rebuild_bytes")).items()}
    read = {str(row.get("unique_id")): _bytes_read(row, rebuild) for row in rows}
    rebuild |= {unique_id: rebuilt for unique_id, (_, rebuilt) in read.items() if rebuilt}
    return {
        "calls": [*_list(before.get("calls")), _call(run_results, rows, read.values())][-MOST_CALLS:],
        "problems": _problems(mapping_of(before.get("problems")), rows, _generated_at(run_results)),
        "rebuild_bytes": rebuild,
    }


def _call(run_results: _Json, rows: list[Artifact], read: Iterable[tuple[int, int]]) -> dict[str, object]:
    """Return the entry of a call. `measured` is the number of models whose rebuild has a known size; `read_bytes` and
    `rebuild_bytes` are sums over them."""
    known = [pair for pair in read if pair[1]]
    outcomes = list(statuses(run_results).values())
    responses = [mapping_of(row.get("adapter_response")) for row in rows]
    return {
        "invocation_id": mapping_of(run_results.get("metadata")).get("invocation_id"),
        "at": _generated_at(run_results),
        "which": mapping_of(run_results.get("args")).get("which"),
        "seconds": run_results.get("elapsed_time"),
        "statuses": {status: outcomes.count(status) for status in sorted(set(outcomes))},
        "rows": sum(_number(response.get("rows_affected")) for response in responses),
        "written_bytes": sum(_number(response.get("bytes_written")) for response in responses),
        "read_bytes": sum(read for read, _ in known),
        "rebuild_bytes": sum(rebuilt for _, rebuilt in known),
        "measured": len(known),
    }


def _bytes_read(row: _Json, rebuild: Mapping[str, int]) -> tuple[int, int]:
    """Return the bytes that a model's run read, and that a rebuild would have read, by commit metadata; 0: not known.

    Where no input changed none was measured, and the last known size of a rebuild is used.
    """
    if row.get("status") == "no-op":
        return 0, rebuild.get(str(row.get("unique_id")), 0)
    response = mapping_of(row.get("adapter_response"))
    estimate, strategy = mapping_of(response.get("estimate")), str(response.get("strategy"))
    full = mapping_of(estimate.get("full_refresh"))
    if row.get("status") != "success" or not full:
        return 0, 0
    works = {**mapping_of(estimate.get("strategies")), "full_refresh": full}
    done = mapping_of(works.get(strategy))
    return _number(done.get("read_bytes", estimate.get("read_bytes"))), _number(full.get("read_bytes"))


def _problems(before: _Json, rows: list[Artifact], now: object) -> dict[str, object]:
    problems: dict[str, object] = dict(before)
    for row in rows:
        unique_id, status = str(row.get("unique_id")), str(row.get("status"))
        if status in _SUCCESSES:
            problems.pop(unique_id, None)
        elif status in _PROBLEMS:
            earlier = mapping_of(problems.get(unique_id))
            is_same = (earlier.get("status") in FAILED) == (status in FAILED)
            since = earlier.get("since") if is_same else None
            message = str(row.get("message") or "")[:_MOST_LETTERS]
            problems[unique_id] = {
                "status": status, "message": message, "failures": row.get("failures"), "since": since or now, "at": now,
            }  # fmt: skip
    return problems


def _generated_at(run_results: _Json) -> object:
    return mapping_of(run_results.get("metadata")).get("generated_at")


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _number(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0
