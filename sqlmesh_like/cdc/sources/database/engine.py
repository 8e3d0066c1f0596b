"""Debezium's engine in a process of its own. Owns starting and ending it, and what both sides say to each other.

Its settings, with the password, go through its standard input, which no other user can read; its log is a file. If
this process is killed, the engine's input ends, and so does the engine.
"""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import resources
from pathlib import Path
from threading import Condition, Thread

from sqlmesh_like.cdc.sources.database.connector_settings import printable
from sqlmesh_like.cdc.sources.database.server import database_error
from sqlmesh_like.errors import IngestError, MachineError, SmlError
from sqlmesh_like.project.nodes import DatabaseKind, DatabaseSettings
from sqlmesh_like.spark.jvm.jars import Jar, ensure_jars
from sqlmesh_like.spark.jvm.java import find_jdk

_JAVA = 17
"""The oldest version that Debezium runs on."""
_POLL_SECONDS = 0.2
_END_SECONDS = 30
_PACKAGE = "sqlmesh_like.cdc.sources.database"
_COMPILER = "org.codehaus.janino.SimpleCompiler"


def engine_jars(kind: DatabaseKind) -> tuple[Jar, ...]:
    """The pinned jars that read one kind of database."""
    text = resources.files(_PACKAGE).joinpath("engine.lock.toml").read_text(encoding="utf-8")
    return tuple(jar for jar in (Jar(**entry) for entry in tomllib.loads(text)["jar"]) if jar.part in ("engine", kind))


class EngineFailure(Exception):
    """The engine has ended by itself; the text is what it says."""


class Engine:
    """A running engine. `events`: how many it has spooled."""

    def __init__(self, settings: Mapping[str, str], kind: DatabaseKind, log: Path) -> None:
        jdk = find_jdk()
        if jdk.major < _JAVA:
            raise MachineError(f"reading a database needs Java {_JAVA}, not {jdk.version}", hint="set JAVA_HOME")
        jars = os.pathsep.join(map(str, ensure_jars(engine_jars(kind))))
        source = str(resources.files(_PACKAGE).joinpath("EventSpool.java"))
        command = [str(jdk.home / "bin" / "java"), "-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=4"]
        if jdk.trust_store is not None:
            command.append(f"-Djavax.net.ssl.trustStore={jdk.trust_store}")
        command += ["-cp", jars, _COMPILER, source, "EventSpool"]
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log, self.events = log, 0
        self._caught_up, self._failure, self._change = False, "", Condition()
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=out, text=True, encoding="utf-8"
            )
        self._reader = Thread(target=self._listen, daemon=True, name="database-engine")
        self._reader.start()
        self._send(*printable(settings), "")

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, *values = line.rstrip("\n").split("\t")
            with self._change:
                match word, values:
                    case "caught-up", _:
                        self._caught_up = True
                    case "events", [count]:
                        self.events += int(count)
                    case "failed", [_, text]:
                        self._failure = text
                self._change.notify_all()
        self._process.wait()
        with self._change:
            self._change.notify_all()

    def _send(self, *lines: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("".join(f"{line}\n" for line in lines))
            self._process.stdin.flush()
        except OSError:  # it has ended: whoever asks for its state is told why
            return

    def wait_until_caught_up(self, may_go_on: Callable[[], bool]) -> bool:
        """Wait until it has read what the log held when it began; False where it may not go on.

        Raises EngineFailure where it ends before.
        """
        with self._change:
            while not self._caught_up:
                self.require_running()
                if not may_go_on():
                    return False
                self._change.wait(_POLL_SECONDS)
        return True

    def require_running(self) -> None:
        """Raises EngineFailure where it has ended by itself."""
        if self._failure or self._process.poll() is not None:
            self._reader.join(_POLL_SECONDS)
            raise EngineFailure(self._failure or f"the process has ended (its log: {self.log})")

    def acknowledge(self, number: int) -> None:
        """Tell it that all events up to this segment are in tables."""
        self._send(f"acknowledge {number}")

    def end(self) -> None:
        """Let it end; what it was writing is read again by the next one."""
        self._send("stop")
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._reader.join()


def engine_error(settings: DatabaseSettings, said: str, source: str) -> SmlError:
    """What Debezium's engine says, as an error with advice."""
    if re.search(
        r"no longer available on the server|Could not find first log file|purged|can no longer be", said, re.I
    ):
        return IngestError(
            f"{settings.address} no longer has the part of its log that follows what was read",
            location=settings.declared_at,
            hint=f"sml ingest -s source:{source} --from earliest reads its tables again, without rows that are gone",
        )
    if re.search(r"internal schema size|schema isn't known|schema recovery", said, re.I):
        return IngestError(
            f"{settings.address}: Debezium's record of its tables' columns does not fit to its log: {said[-300:]}",
            location=settings.declared_at,
            hint=f"sml ingest -s source:{source} --from earliest reads its tables again",
        )
    if statement := re.search(
        r"DDL statement couldn't be parsed.*? with the statement '(.*?)'(?:\s|$)", said, re.I | re.S
    ):
        near = re.search(
            r"(?:alternative at|mismatched|extraneous) input '(.*?)'(?: expecting| at |\s*\||\s*$)", said, re.S
        )
        where = f", near {near[1].replace(chr(92) + 'n', ' ')[-40:].strip()!r}" if near else ""
        return IngestError(
            f"{settings.address}: Debezium does not understand a statement of its log{where}: {statement[1][:400]}",
            location=settings.declared_at,
            hint="take the table out of the source, if it is made so; if only this statement of it is unusual,"
            f" sml ingest -s source:{source} --from earliest reads its tables again, and its log from after that",
        )
    causes = [part for part in said.split(" | ") if part]
    return database_error(settings, causes[-1] if causes else said)
