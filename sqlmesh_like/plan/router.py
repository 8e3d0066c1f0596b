"""Which engine reads, computes and commits. Owns this choice for models, queries, samples, exports and ingestion.

DuckDB and this process may do what they are proven to do like Spark and Hudi, over files of this machine and of object
stores. Where they may, a form that is not proven (`duckdb.exact_sql`) or a table that this process cannot write
(`hudi.writer`) still leaves the work to Spark; `sml run` says which engine it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlmesh_like.analyze.text_fidelity import is_text_again
from sqlmesh_like.names import is_in_reach, is_store, is_tried_store
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.project.nodes import Target

_LARGEST_BUILD = 1_000_000_000
"""Bytes of the inputs of a table that is built in this process, which reads them once. What it writes has a bound of
its own (`duckdb.programs.local_actions`)."""


@dataclass(frozen=True)
class Route:
    """The engine that computes the next run of a model; None: there is nothing to compute.

    `because`: why it is Spark, or why Spark commits what DuckDB computes.
    """

    engine: Literal["duckdb", "spark"] | None
    because: str


@dataclass(frozen=True)
class Router:
    """The choices of one target. Each method says why Spark has to do it; None: this process may."""

    target: Target

    def why_spark_reads(self, *uris: str) -> str | None:
        """Of queries, samples, changes and exports of these tables."""
        if self.target.delta_engine == "spark":
            return "the target's delta_engine is spark"
        return next((f"{uri} is out of this process's reach" for uri in uris if not is_in_reach(uri)), None)

    def why_spark_computes(self, *uris: str) -> str | None:
        """Of the change of a model with these tables.

        If executors are on other machines, the files may be there, too, and this machine should not do their work.
        """
        return self._why_executors() or self.why_spark_reads(*uris)

    def why_spark_computes_model(self, planned: PlannedModel) -> str | None:
        model = planned.compiled.model
        if planned.reconciles and not is_text_again(model.sql, planned.compiled.facts.tree):
            return "Spark is asked whether it reads the query as the compiler does"
        return self.why_spark_computes(planned.target.uri, *(item.state.uri for item in planned.inputs))

    def why_spark_builds(self, planned: PlannedModel) -> str | None:
        """Of the first build of a table, and of one whose rows are all replaced."""
        if planned.compiled.model.config.table_type != "cow":
            return "the table is merge-on-read"
        if planned.compiled.table.build is None:
            return "the query is not known in full"
        if files := [str(item.ref.table) for item in planned.inputs if item.state.kind == "files"]:
            return f"{files[0]} is not a Hudi table"
        if sum(item.volume.bytes for item in planned.inputs if item.volume is not None) > _LARGEST_BUILD:
            return "the inputs are large"
        if not is_text_again(planned.compiled.model.sql, planned.compiled.facts.tree):
            return "Spark is asked whether it reads the query as the compiler does"
        if planned.target.kind == "missing" and (reason := self.why_spark_creates(planned.target.uri)):
            return reason
        reason = self.why_spark_registers or self.why_spark_commits(planned.target.uri)
        return reason or self.why_spark_computes_model(planned)

    def why_spark_commits(self, uri: str) -> str | None:
        """Of a commit to a table, or the removal of its history."""
        if is_store(uri) and not is_tried_store(uri):
            return "commits without Spark are tried on S3 and HDFS alone"
        if is_store(uri) and self.target.store.single_writer:
            return "the store has no conditional writes (`single_writer`)"
        return self.why_spark_computes(uri)

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
                built = self.why_spark_builds(planned)
                return Route("spark", built) if built else Route("duckdb", "")
            case "append" | "merge" | "delete+insert" | "insert_overwrite":
                return Route("spark", "the strategy is the author's")
        reason = self.why_spark_computes_model(planned)
        if reason:
            return Route("spark", reason)
        reason = self.why_spark_commits(planned.target.uri)
        if reason is None and self.why_spark_registers and planned.compiled.model.config.partition_by:
            reason = f"if partitions are new, which the catalog {self.target.catalog} is told of"
        return Route("duckdb", reason or "")

    @property
    def why_spark_registers(self) -> str | None:
        """Of a commit by which a table gets columns or partitions that a catalog lists."""
        if self.target.catalog == "none":
            return None
        return f"the catalog {self.target.catalog} is told of new columns and partitions"

    def _why_executors(self) -> str | None:
        return None if runs_here(self.target.master) else f"the executors of {self.target.master} are elsewhere"


def runs_here(master: str) -> bool:
    """Whether driver and executors all run on this machine.

    >>> runs_here("local[*]"), runs_here("local-cluster[2,1,1024]"), runs_here("yarn")
    (True, True, False)
    """
    return master.startswith("local")
