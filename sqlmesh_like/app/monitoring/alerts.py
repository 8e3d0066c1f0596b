"""Alerts of a watch: runs a command or calls a webhook. Owns how often; `watch_alerts` owns what causes one.

Alerts are queued and sent by a separate thread: a hook that hangs does not block the watch, and one that fails causes
a warning.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import Literal

import requests

from sqlmesh_like.app.reporter import Notify
from sqlmesh_like.control_characters import escape_lines
from sqlmesh_like.errors import UsageError
from sqlmesh_like.secrets import scrub_text

AlertKind = Literal["failure", "lag", "dead letters", "full refresh", "difference"]
AGAIN_AFTER = 3600.0
"""Seconds before an alert of the same kind about the same table, model or source is sent again."""
_HOOK_SECONDS = 30.0
_MOST_WAITING = 100
"""Capacity of the queue for a slow hook; further alerts are dropped, with a warning."""


def sendable(text: str) -> str:
    r"""Return a text that UTF-8, JSON and an environment can hold; what they cannot is spelt out.

    >>> sendable("a\0b\ud800"), sendable("two\nlines")
    ('a\\x00b\\ud800', 'two\nlines')
    """
    return escape_lines(text)


@dataclass(frozen=True)
class Alert:
    """`subject`: the table, model or source that it is about; `text` is for people. `to_json` removes secrets."""

    kind: AlertKind
    subject: str
    text: str

    def to_json(self) -> str:
        """Return the alert as JSON that every hook can take: characters that no text may have are spelt out."""
        return json.dumps(
            {name: sendable(scrub_text(value)) for name, value in asdict(self).items()}, ensure_ascii=False
        )


@dataclass
class Alerts:
    """Sends alerts to hooks: shell commands, which get an alert as JSON on standard input, and http(s) addresses.

    `again_after`: seconds before an alert of the same kind about the same subject is sent again.
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
        """Queue an alert, unless one of its kind and subject was sent less than `again_after` ago."""
        if not self.hooks or not self._is_due(alert):
            return
        try:
            self._waiting.put_nowait(alert)
        except queue.Full:
            self.notify(f"warning: an alert about {alert.subject} was dropped: the hooks are too slow", "warn")

    def close(self) -> None:
        """Wait for queued alerts, at most about as long as one alert may take."""
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
                except Exception as error:  # noqa: BLE001 (whatever it is, later alerts must be sent)
                    # An address may contain a token, so the message has only the hook's number.
                    with suppress(Exception):  # the terminal may be gone
                        self.notify(f"warning: alert hook {number} failed: {_reason(error)}", "warn")

    @property
    def is_alive(self) -> bool:
        """Whether alerts are sent, or none are wanted."""
        return not self.hooks or self._thread.is_alive()


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
        env={**os.environ, "SML_ALERT_KIND": alert.kind, "SML_ALERT_SUBJECT": sendable(alert.subject)},
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
