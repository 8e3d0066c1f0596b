"""The size of files. Owns the number of a table's buckets, each one file, and of the tasks that write them."""

from __future__ import annotations

from collections.abc import Mapping

from sqlmesh_like.plan.history import History, Volume
from sqlmesh_like.plan.model_plan import PlannedModel

BYTES_A_FILE = 120 * 1024 * 1024
BUCKETS = "hoodie.bucket.index.num.buckets"
LARGEST_FILE = "hoodie.parquet.max.file.size"
_MOST_BUCKETS, _FEWEST_TASKS = 256, 2


def buckets_for(input_bytes: int, partitions: int, options: Mapping[str, object]) -> int:
    """Number of buckets per partition for a table of this size; only a rewrite of the table changes it.

    `options`: the user's Hudi options, which may set the number of buckets or the largest file size.

    >>> buckets_for(0, 0, {}), buckets_for(10**9, 2, {}), buckets_for(10**9, 2, {"hoodie.parquet.max.file.size": 10**8})
    (1, 4, 6)
    """
    if BUCKETS in options:
        return int(str(options[BUCKETS]))
    result = min(_MOST_BUCKETS, max(1, input_bytes // max(1, partitions) // _file_bytes(options) + 1))
    # Modulo 31, Java's hash of a text is that of its last character: keys that end in digits would fill ten buckets.
    return result + 1 if result % 31 == 0 else result


def buckets_of_new(planned: PlannedModel, history: History, options: Mapping[str, object]) -> int:
    """Number of buckets per partition of a model's table that is built, or built again."""
    volume = estimated_volume(planned, history)
    return buckets_for(volume.bytes, volume.partitions if planned.compiled.model.config.partition_by else 1, options)


def buckets_of_whole(planned: PlannedModel, history: History, options: Mapping[str, object]) -> int:
    """Number of buckets of a table whose rows are all written: that of the one that a run wrote there before."""
    record = planned.target.record
    return buckets_of_new(planned, history, options) if record is None else record.buckets


def estimated_volume(planned: PlannedModel, history: History) -> Volume:
    """Estimated volume of a full write: that of the inputs, or a tenth of it where groups are merged."""
    lake = [item for item in planned.inputs if item.state.kind in ("cow", "mor") and item.end]
    volume = [history.volume(item.state.uri, item.end or "") for item in lake]
    share = 10 if planned.compiled.classification.strategy == "aggregate_merge" else 1
    partitions = max((each.partitions for each in volume), default=1)
    return Volume(sum(each.bytes for each in volume) // share, partitions=partitions)


def fits_in_a_file(size: int, options: Mapping[str, object]) -> bool:
    """Whether this many bytes fit in one file."""
    return size < _file_bytes(options)


def tasks_for(input_bytes: int, options: Mapping[str, object]) -> int:
    """Number of tasks that write this many bytes, each about one file: Hudi's shuffle parallelism.

    >>> tasks_for(200 * 1024**3, {"hoodie.parquet.max.file.size": 256 * 1024**2})
    800
    """
    return max(_FEWEST_TASKS, -(-input_bytes // _file_bytes(options)))


def _file_bytes(options: Mapping[str, object]) -> int:
    return int(str(options.get(LARGEST_FILE, BYTES_A_FILE)))
