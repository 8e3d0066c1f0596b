"""OpenLineage events of a run: START, then COMPLETE or FAIL, for the call and, as its children, for each node.

A job is a node, by its unique id, in the namespace of `OPENLINEAGE_NAMESPACE` or `default`.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence

from openlineage.client import event_v2
from openlineage.client.facet_v2 import JobFacet, RunFacet, error_message_run, job_type_job, parent_run, sql_job
from openlineage.client.uuid import generate_new_uuid

from sqlmesh_like import __version__
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.open_lineage.datasets import Datasets
from sqlmesh_like.render.rendered import RenderedModel, RenderedSeed, RenderedTest
from sqlmesh_like.run.result import BLOCKING, ModelResult, NodeResult, RenderedNode, RunResult, SeedResult
from sqlmesh_like.secrets import scrub_text

PRODUCER = f"pkg:pypi/sqlmesh_like@{__version__}"
event_v2.set_producer(PRODUCER)
ReportedNode = RenderedModel | RenderedSeed | RenderedTest
"""Nodes that read or write tables of the lake; unit tests, which have their own rows, do not."""


class RunEvents:
    """The events of one call."""

    def __init__(self, loaded: Loaded, command: str) -> None:
        self._datasets = Datasets(loaded)
        self._namespace = os.environ.get("OPENLINEAGE_NAMESPACE") or "default"
        self._call = f"{loaded.project.name}.{command}"
        self._call_id = str(generate_new_uuid())
        self._run_ids: dict[str, str] = {}

    def call_start_event(self) -> event_v2.RunEvent:
        return self._of_call(event_v2.RunState.START)

    def call_end_event(self, result: RunResult) -> event_v2.RunEvent:
        return self._of_call(event_v2.RunState.COMPLETE if result.ok else event_v2.RunState.FAIL)

    def start_event(self, node: ReportedNode) -> event_v2.RunEvent:
        self._run_ids[node.unique_id] = str(generate_new_uuid())
        return self._of_node(node, event_v2.RunState.START, self._outputs(node))

    def end_event(self, node: ReportedNode, result: NodeResult) -> event_v2.RunEvent | None:
        """Return the last event of a node, None where it was skipped and so never started."""
        if node.unique_id not in self._run_ids:
            return None
        if result.status in BLOCKING:
            return self._of_node(node, event_v2.RunState.FAIL, self._outputs(node), result.message)
        return self._of_node(node, event_v2.RunState.COMPLETE, self._outputs_of_result(node, result))

    def _outputs(self, node: ReportedNode) -> list[event_v2.OutputDataset]:
        return [] if isinstance(node, RenderedTest) else [self._datasets.output(node.unique_id, node.table)]

    def _outputs_of_result(self, node: ReportedNode, result: NodeResult) -> list[event_v2.OutputDataset]:
        match result:
            case ModelResult():
                return [self._datasets.output_with_columns(result.model, result.written)]
            case SeedResult():
                return [self._datasets.output(result.node.unique_id, result.node.table, result.written)]
            case _:
                return self._outputs(node)

    def _of_node(
        self,
        node: ReportedNode,
        state: event_v2.RunState,
        outputs: list[event_v2.OutputDataset],
        error: str | None = None,
    ) -> event_v2.RunEvent:
        above = parent_run.ParentRunFacet(
            parent_run.Run(self._call_id), parent_run.Job(self._namespace, self._call)
        )  # fmt: skip
        facets: dict[str, RunFacet] = {"parent": above}
        if error is not None:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(scrub_text(error), "SQL")
        job_facets: dict[str, JobFacet] = {"jobType": _job_type(node.unique_id.kind.upper())}
        if not isinstance(node, RenderedSeed):
            job_facets["sql"] = sql_job.SQLJobFacet(scrub_text(node.sql), "spark")
        return event_v2.RunEvent(
            eventTime=_now(),
            eventType=state,
            run=event_v2.Run(self._run_ids[node.unique_id], facets),
            job=event_v2.Job(self._namespace, node.unique_id, job_facets),
            inputs=[] if isinstance(node, RenderedSeed) else self._datasets.inputs(node.inputs),
            outputs=outputs,
            producer=PRODUCER,
        )

    def _of_call(self, state: event_v2.RunState) -> event_v2.RunEvent:
        facets: dict[str, JobFacet] = {"jobType": _job_type("CALL")}
        return event_v2.RunEvent(
            eventTime=_now(),
            eventType=state,
            run=event_v2.Run(self._call_id),
            job=event_v2.Job(self._namespace, self._call, facets),
            producer=PRODUCER,
        )


def reported_nodes(nodes: Sequence[RenderedNode]) -> list[ReportedNode]:
    """Return the nodes that events are sent for."""
    return [node for node in nodes if isinstance(node, RenderedModel | RenderedSeed | RenderedTest)]


def _job_type(kind: str) -> job_type_job.JobTypeJobFacet:
    return job_type_job.JobTypeJobFacet(processingType="BATCH", integration="SQLMESH_LIKE", jobType=kind)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat()
