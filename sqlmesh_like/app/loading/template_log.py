"""What templates and the project's files say while they are read. Owns that a warning is reported once."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import cast

from sqlmesh_like.app.loading.project_cache import LoggedMessage
from sqlmesh_like.app.reporter import Level, Notify
from sqlmesh_like.limits.record import report_message, sends_messages
from sqlmesh_like.project.reading.file_dependencies import rendered_node
from sqlmesh_like.project.reading.project_warnings import LOGGER, REPEATED, RepeatedWarning, merge_repeated


class TemplateLog(logging.Handler):
    """Forwards messages of `log()` and `exceptions.warn()` in templates; each warning is forwarded once."""

    def __init__(self, notify: Notify) -> None:
        super().__init__(logging.INFO)
        self._notify = notify
        self.messages: list[LoggedMessage] = []

    def listen(self) -> None:
        """Take what is logged from now on, in the place of an earlier log."""
        from sqlmesh_like.cdc.sources.database import load_progress  # help and lists need nothing of ingestion

        for name in ("sqlmesh_like.render", LOGGER, load_progress.LOGGER):
            logger = logging.getLogger(name)
            logger.handlers = [self]
            logger.setLevel(logging.INFO)
            logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        text = getattr(record, REPEATED, None) or record.getMessage()
        self.say(text, "warn" if record.levelno >= logging.WARNING else "info")

    def say(self, text: str | RepeatedWarning, level: Level) -> None:
        """Report a message, in a child process to its parent; a warning that was reported is only recorded."""
        message = text, level, rendered_node()
        is_known = level == "warn" and any((text, level) == known[:2] for known in self.messages)
        if not is_known or message not in self.messages:
            self.messages.append(message)
        if sends_messages():
            report_message(message)
        elif not is_known and isinstance(text, str):
            self._notify(text, level)

    def repeat(self, message: object) -> None:
        """Say what a child process has logged."""
        text, level, _node = cast(LoggedMessage, message)
        self.say(text, level)

    def say_repeated(self, packages: str, level: Level) -> None:
        """Say what many places have in one line each; what stands in packages is for their authors to change."""
        repeated = [text for text, _level, _node in self.messages if isinstance(text, RepeatedWarning)]
        for line in merge_repeated(one for one in repeated if not one.place.path.startswith(f"{packages}/")):
            self._notify(line, level)

    def warnings(self) -> Iterator[str]:
        """The warnings that were shown, without those of `say_repeated`."""
        return (text for text, level, _node in self.messages if level == "warn" and isinstance(text, str))
