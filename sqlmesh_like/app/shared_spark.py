"""The Spark that several calls use one after another. Owns when it is restarted and who may stop it."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sqlmesh_like.spark.jvm.session import Session


class StartSpark(Protocol):
    """Starts Spark, with or without the jars that read Kafka."""

    def __call__(self, *, with_kafka: bool) -> Session: ...


class SharedSpark:
    """One Spark session until `close`. A session that the caller gives is used as it is, and never stopped."""

    def __init__(self, session: Session | None = None) -> None:
        self._session = session
        self._is_ours = session is None
        self._reads_kafka = not self._is_ours
        self._lock = Lock()

    def session(self, start: StartSpark, *, with_kafka: bool = False) -> Session:
        """Return the session; the first call starts it, and one that needs Kafka's jars restarts it without them."""
        with self._lock:
            if self._session is not None and with_kafka and not self._reads_kafka:
                self._session.stop()
                self._session = None
            if self._session is None:
                self._session = start(with_kafka=with_kafka)
                self._reads_kafka = with_kafka
            return self._session

    def close(self) -> None:
        with self._lock:
            if self._session is not None and self._is_ours:
                self._session.stop()
                self._session = None
