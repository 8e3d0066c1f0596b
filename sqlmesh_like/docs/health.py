"""Problems of a project's nodes, and since when: failed, with a warning, or stale. Owns finding them.

Failures are those of all calls of this target (`artifacts.run_history`): a test that failed on Monday has not passed
because Tuesday's call did not run it. Sources are stale by their freshness, tables by their frontier.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlmesh_like.artifacts.files import timestamp
from sqlmesh_like.artifacts.json_objects import mapping_of
from sqlmesh_like.artifacts.run_history import FAILED
from sqlmesh_like.docs.plans import DocumentedModel
from sqlmesh_like.docs.site_data import Json, SiteData, artifact_rows
from sqlmesh_like.plan.model_plan import InputVersion

ProblemKind = Literal["failed", "warned", "stale"]
_KINDS: tuple[ProblemKind, ...] = ("failed", "warned", "stale")


@dataclass(frozen=True)
class Problem:
    """A problem of one node. `since` and `checked` in ISO 8601 (UTC); None: not known."""

    unique_id: str
    kind: ProblemKind
    status: str
    message: str
    since: str | None = None
    checked: str | None = None


def find_problems(site_data: SiteData) -> tuple[Problem, ...]:
    """Return failures first, then warnings, then stale nodes; within these the oldest first."""
    unreadable = ((unique_id, facts.problem) for unique_id, facts in site_data.tables.items() if facts.problem)
    problems = [
        *(Problem(i, "failed", "error", f"{error.location}: {error.message}") for i, error in site_data.errors.items()),
        *(Problem(unique_id, "failed", "error", problem) for unique_id, problem in unreadable),
        *_failures(site_data.problems), *_stale_sources(site_data.freshness), *_stale_tables(site_data),
    ]  # fmt: skip
    return tuple(sorted(problems, key=lambda each: (_KINDS.index(each.kind), each.since or "~", each.unique_id)))


def _failures(problems: Json) -> Iterator[Problem]:
    for unique_id, value in problems.items():
        known = mapping_of(value)
        status, since, at = str(known.get("status")), known.get("since"), known.get("at")
        kind: ProblemKind = "failed" if status in FAILED else "warned"
        message = str(known.get("message") or "")
        yield Problem(unique_id, kind, status, message, str(since) if since else None, str(at) if at else None)


def _stale_sources(freshness: Json | None) -> Iterator[Problem]:
    for row in artifact_rows(freshness):
        status = str(row.get("status"))
        checked = str(row["snapshotted_at"]) if row.get("snapshotted_at") else None
        if status == "runtime error":
            yield Problem(str(row.get("unique_id")), "failed", status, str(row.get("error") or ""), None, checked)
        elif status in ("warn", "error"):
            loaded = str(row.get("max_loaded_at"))
            message = f"its newest row is of {loaded[:19].replace('T', ' ')}"
            yield Problem(str(row.get("unique_id")), "stale", status, message, _overdue(loaded, row), checked)


def _overdue(loaded: str, row: Json) -> str | None:
    """Return the time at which a source exceeded its lowest threshold, None where it is not known."""
    ages = [_age(mapping_of(each)) for each in mapping_of(row.get("criteria")).values()]
    known = [age for age in ages if age is not None]
    try:
        moment = datetime.datetime.fromisoformat(loaded)
    except ValueError:
        return None
    return timestamp(moment + min(known)) if known else None


def _age(threshold: Json) -> datetime.timedelta | None:
    count, period = threshold.get("count"), threshold.get("period")
    if not isinstance(count, int) or period not in ("minute", "hour", "day"):
        return None
    return datetime.timedelta(**{f"{period}s": count})


def _stale_tables(site_data: SiteData) -> Iterator[Problem]:
    """Yield problems of tables that a run would change now: their inputs have changed, or are behind themselves."""
    behind: dict[str, Problem] = {}
    for unique_id, model in site_data.models.items():  # each after its inputs
        if (problem := _behind(unique_id, model, site_data, behind)) is not None:
            behind[unique_id] = problem
    yield from behind.values()


def _behind(
    unique_id: str, model: DocumentedModel, site_data: SiteData, behind: Mapping[str, Problem]
) -> Problem | None:
    planned = model.planned
    if planned is None or not planned.target.exists or planned.strategy == "no_op":
        return None
    moved = [item for item in planned.inputs if item.start and item.end and item.start != item.end]
    unread = [item for item in planned.inputs if not item.start and item.end]
    upstream = [behind[item.ref.unique_id] for item in planned.inputs if item.ref.unique_id in behind]
    since: list[str | None]
    if moved:
        since = [_first_unread(item, site_data) for item in moved]
        rows = sum(item.change.rows for item in moved)
        message = f"{rows:,} changed rows of {_names(moved)} are not in it yet"
    elif unread:
        since, message = [], f"it has not read {_names(unread)} yet"
    elif upstream:
        since = [problem.since for problem in upstream]
        message = f"it reads {_names([i for i in planned.inputs if i.ref.unique_id in behind])}, which is behind"
    else:
        since, message = [], "; ".join(reason.message for reason in planned.reasons) or "a run would change it"
    known = [each for each in since if each]
    return Problem(unique_id, "stale", "stale", message, min(known, default=None), timestamp(site_data.now))


def _names(inputs: Sequence[InputVersion]) -> str:
    return ", ".join(str(item.ref.table) for item in inputs)


def _first_unread(item: InputVersion, site_data: SiteData) -> str | None:
    """Return the completion time of the first known commit after the frontier."""
    facts = site_data.tables.get(item.ref.unique_id)
    consumed = (item.start or "").partition("_")[2]
    times = [commit.time for commit in facts.commits if commit.instant.partition("_")[2] > consumed] if facts else []
    return min(times, default=None)
