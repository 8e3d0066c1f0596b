"""Alerts of a watch: runs a command or calls a webhook. Owns how often; `watch_alerts` owns what causes one.

Each alert is sent in a thread of its own queue: a hook that hangs blocks nothing else, and one that fails causes a
warning.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import Literal

import requests

from sqlmesh_like.app.reporter import Notify
from sqlmesh_like.errors import UsageError
from sqlmesh_like.secrets import scrubbed

AlertKind = Literal["failure", "lag", "dead letters", "full refresh"]
AGAIN_AFTER = 3600.0
"""Seconds in which an alert of a kind about the same table, model or source is not sent again."""
_HOOK_SECONDS = 30.0
_MOST_WAITING = 100
"""Alerts that wait for a slow hook; more are dropped, with a warning."""


@dataclass(frozen=True)
class Alert:
    """`subject`: the table, model or source that it is about; `text` is for people, without secrets."""

    kind: AlertKind
    subject: str
    text: str

    def to_json(self) -> str:
        return json.dumps({name: scrubbed(value) for name, value in asdict(self).items()}, ensure_ascii=False)


@dataclass
class Alerts:
    """Sends alerts to hooks: commands of the shell, which get it as JSON on standard input, and http(s) addresses.

    `again_after`: seconds in which the same kind about the same subject is not repeated.
    """

    hooks: Sequence[str]
    notify: Notify
    again_after: float = AGAIN_AFTER
    clock: Callable[[], float] = monotonic
    _sent: dict[tuple[AlertKind, str], float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _waiting: queue.Queue[Alert | None] = field(default_factory=lambda: queue.Queue(_MOST_WAITING))

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._work, name="alerts", daemon=True)
        if self.hooks:
            self._thread.start()

    def send(self, alert: Alert) -> None:
        """Send an alert, unless one like it was sent a short while ago."""
        if not self.hooks or not self._is_due(alert):
            return
        try:
            self._waiting.put_nowait(alert)
        except queue.Full:
            self.notify(f"warning: an alert about {alert.subject} was dropped: the hooks are too slow", "warn")

    def close(self) -> None:
        """Wait for what is being sent, a short while for each hook."""
        if self.hooks:
            self._waiting.put(None)
            self._thread.join(_HOOK_SECONDS * len(self.hooks) + 1)

    def _is_due(self, alert: Alert) -> bool:
        with self._lock:
            now, key = self.clock(), (alert.kind, alert.subject)
            last = self._sent.get(key)
            if last is not None and now - last < self.again_after:
                return False
            self._sent = {other: at for other, at in self._sent.items() if now - at < self.again_after}
            self._sent[key] = now
            return True

    def _work(self) -> None:
        while (alert := self._waiting.get()) is not None:
            for number, hook in enumerate(self.hooks, 1):
                try:
                    _call(hook, alert)
                except (OSError, subprocess.SubprocessError, requests.RequestException) as error:
                    # An address may hold a token: only its number is named.
                    self.notify(f"warning: alert hook {number} failed: {_reason(error)}", "warn")


def check_hooks(hooks: Sequence[str]) -> None:
    """Raises UsageError for an empty hook."""
    if any(not hook.strip() for hook in hooks):
        raise UsageError("--alert is empty", hint="give a command, or an address that begins with https://")


def _call(hook: str, alert: Alert) -> None:
    if hook.startswith(("http://", "https://")):
        content = alert.to_json().encode()
        headers = {"Content-Type": "application/json"}
        requests.post(hook, data=content, headers=headers, timeout=_HOOK_SECONDS).raise_for_status()
        return
    subprocess.run(
        hook, shell=True, check=True, input=alert.to_json() + "\n", text=True, timeout=_HOOK_SECONDS,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "SML_ALERT_KIND": alert.kind, "SML_ALERT_SUBJECT": alert.subject},
    )  # fmt: skip


def _reason(error: Exception) -> str:
    match error:
        case subprocess.CalledProcessError():
            return f"it ended with exit code {error.returncode}"
        case subprocess.TimeoutExpired() | requests.Timeout():
            return f"it took more than {_HOOK_SECONDS:.0f} seconds"
        case requests.HTTPError():
            return f"it answered with {error.response.status_code}"
    return type(error).__name__
