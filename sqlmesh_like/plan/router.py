"""Which engine reads, computes and commits. Owns this choice for models, queries, samples, exports and ingestion.

DuckDB and this process may do what they are proven to do like Spark and Hudi, over files of this machine and of object
stores. Where they may, a form that is not proven (`duckdb.exact_sql`) or a table that this process cannot write
(`hudi.writer`) still leaves the work to Spark; `sml run` says which engine it was.

If Spark's executors are on other machines, they do what is large: builds of more than 128 MB of inputs, and changes
that read or rewrite more than `driver_max_bytes`. All else, the driver's process does: it lists these files anyway.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlmesh_like.names import is_in_reach, is_store, is_tried_store
from sqlmesh_like.plan.cost import EngineName
from sqlmesh_like.plan.model_plan import SMALL_INPUT, PlannedModel
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.project.reading.session_settings import value_settings

_LARGEST_BUILD = 1_000_000_000
"""Bytes of the inputs of a table that is built in this process, which reads them once. What it writes has a bound of
its own (`duckdb.programs.local_actions`)."""
_LARGEST_DRIVER_BUILD = 128_000_000
"""The same where executors are on other machines: they are soon faster, once their application has started."""
_LARGEST_RECOMPUTE = 16_000_000
"""Bytes of stored rows up to which executors return them recomputed: files are compressed, what they return is not."""


@dataclass(frozen=True)
class Route:
    """The engine that computes the next run of a model; None: there is nothing to compute.

    `because`: why Spark does some of the work, or why a cluster's driver does it. `commits`: the engine that writes the
    commit. `scans`: the one that reads tables; Spark returns what is needed of large ones if DuckDB computes.
    """

    engine: EngineName | None
    because: str
    commits: EngineName | None = None
    scans: EngineName | None = None


IN_PROCESS = Route("duckdb", "", "duckdb", "duckdb")


def on_spark(because: str) -> Route:
    return Route("spark", because, "spark", "spark")


@dataclass(frozen=True)
class Router:
    """The choices of one target. Each method says why Spark has to do it; None: this process may."""

    target: Target

    def why_spark_reads(self, *uris: str) -> str | None:
        """Of queries, samples, changes and exports of these tables."""
        if setting := next(iter(value_settings(self.target.spark)), None):
            return f"the target sets {setting}, which may change values"
        return self._why_out_of_reach(*uris)

    def _why_out_of_reach(self, *uris: str) -> str | None:
        if self.target.delta_engine == "spark":
            return "the target's delta_engine is spark"
        return next((f"{uri} is out of this process's reach" for uri in uris if not is_in_reach(uri)), None)

    def why_spark_computes_model(self, planned: PlannedModel) -> str | None:
        """Of the change of a model."""
        if planned.reconciles and not planned.compiled.facts.is_text_again:
            return "Spark is asked whether it reads the query as the compiler does"
        reason = self.why_spark_reads(planned.target.uri, *(item.state.uri for item in planned.inputs))
        if planned.slice is not None and planned.slice.left is not None and _is_merge_on_read(planned):
            return "of a merge-on-read table, slices are base files"  # rows that are upserted would be log files
        if planned.slice is not None:
            return reason or self._why_inputs_are_large(planned)
        return reason or (None if self.most_bytes is None else self._why_executors_compute(planned, self.most_bytes))

    def _why_executors_compute(self, planned: PlannedModel, most: int) -> str | None:
        """Of a change, if executors are on other machines: what Spark is to commit, it computes there as well."""
        if _is_merge_on_read(planned):
            return "the table is merge-on-read"
        if reason := self.why_spark_commits(planned.target.uri):
            return reason
        load = driver_load(planned)
        if load is not None and load.with_help > most:
            return f"{load.whole:,} bytes are read and rewritten; on the driver, {most:,} (`driver_max_bytes`)"
        return None

    def why_spark_builds(self, planned: PlannedModel) -> str | None:
        """Of the first build of a table, and of one whose rows are all replaced."""
        if reason := self.why_spark_reads():
            return reason
        if _is_merge_on_read(planned):
            return "the table is merge-on-read"
        if planned.compiled.table.build is None:
            return "the query is not known in full"
        if files := [str(item.ref.table) for item in planned.inputs if item.state.kind == "files"]:
            return f"{files[0]} is not a Hudi table"
        if reason := self._why_inputs_are_large(planned):
            return reason
        if not planned.compiled.facts.is_text_again:
            return "Spark is asked whether it reads the query as the compiler does"
        reason = self.why_spark_registers_model(planned) or self.why_spark_commits(planned.target.uri)
        return reason or self.why_spark_computes_model(planned)

    def _why_inputs_are_large(self, planned: PlannedModel) -> str | None:
        """Of a table that is built; a volume that is not known is that of an input that the same run builds first."""
        size = sum(item.volume.bytes for item in planned.inputs if item.volume is not None)
        size //= planned.slice.of if planned.slice is not None else 1
        if self.most_bytes is None:
            return "the inputs are large" if size > _LARGEST_BUILD else None
        if size <= (most := min(self.most_bytes, _LARGEST_DRIVER_BUILD)):
            return None
        return f"the inputs have {size:,} bytes; of more than {most:,}, executors of {self.target.master} build tables"

    def why_spark_commits(self, uri: str) -> str | None:
        """Of a commit of rows that this process has."""
        if is_store(uri) and not is_tried_store(uri):
            return "commits without Spark are tried on S3 and HDFS alone"
        if is_store(uri) and self.target.store.single_writer:
            return "the store has no conditional writes (`single_writer`)"
        return self._why_out_of_reach(uri)

    def why_executors_commit(self, uri: str) -> str | None:
        """Of a commit of rows that Spark has computed."""
        if not self.shares_disk:
            return f"they are on the executors of {self.target.master}"
        return self.why_spark_commits(uri)

    def why_spark_creates(self, uri: str) -> str | None:
        """Of a table that is not there yet."""
        return self.why_spark_registers or self.why_spark_commits(uri)

    def why_spark_cleans(self, uri: str) -> str | None:
        """Of the removal of a table's history."""
        return self.why_spark_commits(uri)

    def route(self, planned: PlannedModel) -> Route:
        """Who computes and commits the next run of a model, as far as its plan and its places tell."""
        match planned.strategy:
            case "no_op":
                return Route(None, "")
            case "full_refresh":
                if built := self.why_spark_builds(planned):
                    return on_spark(built)
                route = IN_PROCESS if self.most_bytes is None else replace(IN_PROCESS, because="on the driver")
                if self.why_spark_registers is None:
                    return route
                told = f"Spark tells the catalog {self.target.catalog} of the table once all slices are built"
                return replace(route, because=f"{route.because}; {told}" if route.because else told)
            case "append" | "merge" | "delete+insert" | "insert_overwrite":
                return on_spark("the strategy is the author's")
        if reason := self.why_spark_computes_model(planned):
            return on_spark(reason)
        route = IN_PROCESS if self.most_bytes is None else _on_driver(planned, self.most_bytes)
        reason = self.why_spark_commits(planned.target.uri)
        if reason is None and self.why_spark_registers and planned.compiled.model.config.partition_by:
            if not self.shares_disk:
                told = f"Spark tells the catalog {self.target.catalog} of new partitions"
                return replace(route, because=f"{route.because}; {told}")
            reason = f"if partitions are new, which the catalog {self.target.catalog} is told of"
        return replace(route, because=reason, commits="spark") if reason else route

    @property
    def why_spark_registers(self) -> str | None:
        """Of a commit by which a table gets columns or partitions that a catalog lists."""
        if self.target.catalog == "none":
            return None
        return f"the catalog {self.target.catalog} is told of new columns and partitions"

    def why_spark_registers_model(self, planned: PlannedModel) -> str | None:
        """The same of a run of a model: a table that is not at its place yet is not told of."""
        return None if planned.is_beside else self.why_spark_registers

    @property
    def shares_disk(self) -> bool:
        """Whether Spark reads and writes files on this machine's disk as this process does."""
        return runs_here(self.target.master)

    @property
    def most_bytes(self) -> int | None:
        """Bytes that the change of a table may read, and rewrite, in this process; None: Spark has no other machine."""
        return None if self.shares_disk else self.target.driver_max_bytes


@dataclass(frozen=True)
class DriverLoad:
    """Bytes that are read and rewritten: `whole`, and `with_help` if executors read large tables for the driver."""

    whole: int
    with_help: int


def driver_load(planned: PlannedModel) -> DriverLoad | None:
    """The load of the next run of a model; None: not known before the run.

    Rows of a table's own are looked up by most strategies, in any of its files.
    """
    if planned.estimate is None:
        volumes = [item.volume for item in planned.inputs]
        known = [volume.bytes for volume in volumes if volume is not None]
        whole = sum(known)
        return DriverLoad(whole, whole) if planned.reconciles and len(known) == len(volumes) else None
    work = planned.estimate.work(planned.strategy)
    own = planned.estimate.full.rewritten if planned.strategy not in ("row_based", "recompute_merge") else 0
    whole = work.read + own + work.rewritten
    helped = _load_with_help(planned, own, work.rewritten)
    return DriverLoad(whole, whole if helped is None else min(whole, helped))


def _is_merge_on_read(planned: PlannedModel) -> bool:
    return planned.compiled.model.config.table_type != "cow"


def _load_with_help(planned: PlannedModel, own: int, rewritten: int) -> int | None:
    """Bytes that the driver reads and rewrites if executors look rows up and compute steps in large tables.

    None: they would have to return too much. What a step returns is known only when it runs: if that is too much,
    executors do all of the work. Of recomputed rows, the table tells how many there are.
    """
    from sqlglot import exp

    from sqlmesh_like.delta.machine import work_of
    from sqlmesh_like.delta.program import DeltaProgram, RescanProgram

    changes = sum(item.change.read for item in planned.inputs if item.has_moved)
    match work_of(planned.table, planned.strategy, planned.moves):
        case DeltaProgram():
            small = (i.volume.bytes for i in planned.inputs if i.volume is not None and i.volume.bytes <= SMALL_INPUT)
            is_own_read = planned.unique_key or planned.frozen is not None
            return changes + sum(small) + (own if is_own_read else 0) + rewritten
        case RescanProgram():
            return changes + own + rewritten if rewritten <= _LARGEST_RECOMPUTE else None
        case exp.Query():
            stored = planned.estimate.full.rewritten if planned.estimate is not None else 0
            return stored + rewritten if stored <= _LARGEST_RECOMPUTE else None
    return None


def _on_driver(planned: PlannedModel, most: int) -> Route:
    """The route of a change that the driver of a cluster computes."""
    load, limit = driver_load(planned), f"`driver_max_bytes`: {most:,}"
    if load is None:
        return replace(IN_PROCESS, because=f"on the driver, if it reads and rewrites few enough bytes ({limit})")
    asks = planned.estimate is not None and planned.estimate.work(planned.strategy).has_jobs
    if load.whole <= most and asks:
        because = f"executors look rows up that are too many to be read on the driver beside the change ({limit})"
        return replace(IN_PROCESS, scans="spark", because=because)
    if load.whole <= most:
        return replace(IN_PROCESS, because=f"on the driver, as {load.whole:,} bytes are read and rewritten ({limit})")
    because = f"executors read what is needed of {load.whole - load.with_help:,} bytes; on the driver, "
    because += f"{load.with_help:,} are read and rewritten ({limit})"
    return replace(IN_PROCESS, scans="spark", because=because)


def runs_here(master: str) -> bool:
    """Whether driver and executors all run on this machine.

    >>> runs_here("local[*]"), runs_here("local-cluster[2,1,1024]"), runs_here("yarn")
    (True, True, False)
    """
    return master.startswith("local")
