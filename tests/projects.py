"""A project of a test alone. Owns how its files are written and how the test comes to stand in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest


def enter_project(root: Path, monkeypatch: pytest.MonkeyPatch, files: Mapping[str, str]) -> None:
    """Write the files below `root` and stand there, with no word from outside where profiles are."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    monkeypatch.chdir(root)
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)
