"""Sends events during a run to the configured receiver. Owns that a run does not fail where they cannot be sent."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.open_lineage.configuration import find_client, unread_file
from sqlmesh_like.app.reporter import Level, RunListener
from sqlmesh_like.errors import first_line
from sqlmesh_like.run.result import NodeResult, RenderedNode, RunResult
from sqlmesh_like.secrets import scrub_text

if TYPE_CHECKING:
    from openlineage.client.client import OpenLineageClient
    from openlineage.client.event_v2 import RunEvent

    from sqlmesh_like.app.open_lineage.events import RunEvents

_CLOSE_SECONDS = 10.0
"""Time that events which are still waiting at the end of a run have."""


def with_lineage(loaded: Loaded, command: str, listener: RunListener) -> RunListener:
    """Return the listener, wrapped so that it also sends events where OpenLineage's client is configured.

    Raises UsageError and MachineError, see `find_client`.
    """
    client = find_client()
    if warning := unread_file():
        listener.notify(f"warning: {warning}", "warn")
    if client is None:
        return listener
    from sqlmesh_like.app.open_lineage.events import RunEvents

    return LineageListener(listener, client, RunEvents(loaded, command))


class LineageListener:
    """Forwards to another listener and sends events; after one that cannot be sent it sends no more."""

    def __init__(self, listener: RunListener, client: OpenLineageClient, events: RunEvents) -> None:
        self._listener = listener
        self._client = client
        self._events = events
        self._is_lost = False
        self._send(events.call_start_event)

    def started(self, number: int, total: int, node: RenderedNode) -> None:
        from sqlmesh_like.app.open_lineage.events import reported_nodes

        self._listener.started(number, total, node)
        for one in reported_nodes([node]):
            self._send(partial(self._events.start_event, one))

    def ended(self, number: int, total: int, result: NodeResult) -> None:
        from sqlmesh_like.app.open_lineage.events import reported_nodes

        self._listener.ended(number, total, result)
        for one in reported_nodes([result.node]):
            self._send(partial(self._events.end_event, one, result))

    def notify(self, text: str, level: Level = "info") -> None:
        self._listener.notify(text, level)

    def finished(self, result: RunResult) -> None:
        self._send(partial(self._events.call_end_event, result))
        self._close()
        self._listener.finished(result)

    def _send(self, event_of: Callable[[], RunEvent | None]) -> None:
        if self._is_lost:
            return
        try:
            event = event_of()
            if event is not None:
                self._client.emit(event)
        except Exception as error:  # noqa: BLE001 (transports raise any type of exception; none may fail the run)
            self._lose(first_line(error))

    def _close(self) -> None:
        """Wait for events that a transport sends in the background; without a limit it could wait forever."""
        try:
            if not self._client.close(timeout=_CLOSE_SECONDS):
                self._lose(f"some were still waiting after {_CLOSE_SECONDS:.0f} seconds")
        except Exception as error:  # noqa: BLE001 (as above)
            self._lose(first_line(error))

    def _lose(self, why: str) -> None:
        """Warn of events that cannot be sent, once for a run."""
        if not self._is_lost:
            self._is_lost = True
            self.notify(f"warning: OpenLineage events are not sent any more: {scrub_text(why)}", "warn")
