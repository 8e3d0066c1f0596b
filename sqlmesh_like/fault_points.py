"""Named steps at which a test ends this process. Owns their names; nothing happens unless the variable is set.

`SML_FAULT=hudi.commit.staged:3` kills the process (SIGKILL) when it reaches this step for the third time, and
`SML_FAULT=hudi.commit.staged:3:stop` stops it (SIGSTOP) until it is continued. A step is named after what has
just been done.
"""

from __future__ import annotations

import os
import signal
from functools import cache
from threading import Lock, get_ident

from sqlmesh_like.errors import UsageError, nearest

FAULT_VARIABLE = "SML_FAULT"

COMMIT_POINTS = (
    "hudi.commit.begin", "hudi.commit.requested", "hudi.commit.inflight", "hudi.commit.marker",
    "hudi.commit.partition", "hudi.commit.file", "hudi.commit.files", "hudi.commit.log", "hudi.commit.staged",
    "hudi.commit.complete", "hudi.commit.unmarked",
)  # fmt: skip
"""Steps of a commit that this process writes without Spark, in their order."""
REMOVAL_POINTS = ("hudi.removal.begin", "hudi.removal.files", "hudi.removal.inflight", "hudi.removal.request")
"""Steps of the removal of an incomplete commit."""
SPARK_POINTS = ("spark.write.begin", "spark.write.end")
"""Steps before and after each commit by Spark."""
SWAP_POINTS = ("swap.built", "swap.old_aside", "swap.new_in_place", "swap.end")
SLICE_POINTS = ("slices.committed", "slices.placed")
"""After each slice of a build, and after the finished table has taken its place."""
CREATE_POINTS = ("create.begin", "create.built", "create.end")
"""Steps of a table that is made without Spark; those of its commit come between the first two."""
STORE_TABLE_POINTS = ("create.properties",)
"""The step before the first commit of a table that is made without Spark on an object store."""
PUBLISH_POINTS = ("publish.begin", "publish.read", "publish.written", "publish.end")
"""`publish.written`: rows are written but not visible yet; in a database, its transaction is still open."""
PUBLISH_TOGETHER_POINTS = ("publish.together",)
"""All tables of a destination are written, and their transaction is still open."""
MAINTAIN_POINTS = (
    "maintain.begin", "maintain.compacted", "maintain.rebucketed", "maintain.cleaned", "maintain.archived",
    "maintain.log_removed",
)  # fmt: skip
CLEAN_POINTS = ("clean.requested", "clean.inflight", "clean.file", "clean.complete")
"""Steps of a clean without Spark; `clean.file` comes after each file."""
ARCHIVE_POINTS = (
    "archive.written", "archive.manifest", "archive.version", "archive.pending_removed", "archive.removed",
)  # fmt: skip
"""Steps by which old instants move to a table's history; the last one comes after each instant."""
INGEST_POINTS = (
    "ingest.begin", "ingest.dead_letters", "ingest.truncates", "ingest.floors", "ingest.table", "ingest.batch",
    "ingest.last_commits",
)  # fmt: skip
"""Steps of one batch; those of a table occur once for each table."""
SMALL_BATCH_POINTS = ("ingest.listed", "ingest.planned")
"""Steps of a batch without Spark, before its tables: its files are recorded, then the batch."""
DATABASE_POINTS = ("database.begin", "database.spooled", "database.confirmed")
"""Steps of an ingestion from a database, around those of its batches."""
DATABASE_ROW_POINTS = ("database.added", "database.range", "database.read_again")
"""Before rows that were read apart from the log are added to the spool, after those of a range, and after all."""
DATABASE_CASCADE_POINTS = ("database.cascades_read", "database.cascades_added")
"""Before rows that foreign keys have changed are added to the spool, and before that is noted."""
ROLLBACK_POINTS = ("rollback.marked", "rollback.in_flight", "rollback.undone")
"""Steps of each commit that is rolled back; `hudi.removal` comes between the last two."""
SAVEPOINT_POINTS = ("savepoint.begin", "savepoint.inflight", "savepoint.complete")
UNSAVE_POINTS = ("savepoint.reverted", "savepoint.deleted")
"""Steps of the deletion of a savepoint."""
DROP_POINTS = ("drop.moved", "drop.end")
"""Steps of each table that is dropped."""
STORE_DROP_POINTS = ("drop.marked",)
"""The step before these on an object store."""
ERASURE_POINTS = (
    "erasure.rows", "erasure.models", "erasure.old_file", "erasure.table", "erasure.artifacts",
)  # fmt: skip
"""Steps of `sml forget`; `erasure.rows` comes once for each table in which rows are looked for."""
ERASURE_REBUILD_POINTS = ("erasure.set_aside",)
"""Steps of `sml forget` for each model that has a partition named after what is forgotten."""
RELEASE_POINTS = ("release.staged", "release.complete")
"""Before and after the releases of a lake are replaced."""
CLONE_POINTS = ("clone.built", "clone.end", "environment.cloned")
"""Steps of each table that is cloned into an environment, and after the last one."""
PROMOTION_POINTS = (
    "promotion.begin", "promotion.linked", "promotion.requested", "promotion.committed", "promotion.aside",
    "promotion.moved", "promotion.table", "promotion.released", "promotion.end",
)  # fmt: skip
"""Steps of `sml promote`; those of a commit, and of a table, occur once for each."""
STORE_ENVIRONMENT_POINTS = ("promotion.ahead", "promotion.copied", "environment.removed")
"""Further ones on an object store: before the table goes in whose place another one is put, before that gets its
properties, and before an environment's files go."""
NODE_POINTS = ("seed.begin", "seed.end", "snapshot.begin", "snapshot.end")

POINTS = frozenset(
    COMMIT_POINTS + REMOVAL_POINTS + SPARK_POINTS + SWAP_POINTS + CREATE_POINTS + STORE_TABLE_POINTS
    + SLICE_POINTS + PUBLISH_POINTS + MAINTAIN_POINTS + CLEAN_POINTS + ARCHIVE_POINTS
    + INGEST_POINTS + SMALL_BATCH_POINTS + DATABASE_POINTS + DATABASE_ROW_POINTS + DATABASE_CASCADE_POINTS
    + ROLLBACK_POINTS + SAVEPOINT_POINTS + UNSAVE_POINTS + DROP_POINTS + STORE_DROP_POINTS + ERASURE_POINTS
    + ERASURE_REBUILD_POINTS + RELEASE_POINTS + CLONE_POINTS + PROMOTION_POINTS + STORE_ENVIRONMENT_POINTS + NODE_POINTS
    + PUBLISH_TOGETHER_POINTS
)  # fmt: skip
_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


class _Count:
    """How often this process has reached the wanted step."""

    lock = Lock()
    passed = 0


def check_variable() -> None:
    """Raises UsageError where the environment variable does not name a step."""
    _fault_of_environment()


def fault_point(name: str) -> None:
    """Kill or stop this process here, if the environment variable says so."""
    wanted = _fault_of_environment()
    if wanted is None or wanted[0] != name:
        return
    with _Count.lock:
        _Count.passed += 1
        is_now = _Count.passed == wanted[1]
    if is_now:
        # To this thread: a stop that another one receives would let this one run on for some steps.
        signal.pthread_kill(get_ident(), _SIGNALS[wanted[2]])


@cache
def _fault_of_environment() -> tuple[str, int, str] | None:
    text = os.environ.get(FAULT_VARIABLE)
    return parse_fault(text) if text else None


def parse_fault(text: str) -> tuple[str, int, str]:
    """Return the step, the number of the pass at which the process ends, and the signal.

    >>> parse_fault("hudi.commit.staged"), parse_fault("swap.built:2:stop")
    (('hudi.commit.staged', 1, 'kill'), ('swap.built', 2, 'stop'))
    """
    name, _, rest = text.partition(":")
    number, _, what = rest.partition(":")
    if name not in POINTS:
        raise UsageError(f"{FAULT_VARIABLE}={text}: there is no step {name!r}", hint=nearest(name, sorted(POINTS)))
    if (number and not (number.isdecimal() and int(number) > 0)) or (what and what not in _SIGNALS):
        raise UsageError(f"{FAULT_VARIABLE}={text} is not STEP[:NUMBER[:kill|stop]]", hint="e.g. swap.built:2:kill")
    return name, int(number or 1), what or "kill"
