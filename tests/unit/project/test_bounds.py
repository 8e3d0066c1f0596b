"""Limits of templates: what is measured."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sqlmesh_like.project.reading import bounds


def test_memory_is_counted_in_pages_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "statm"
    state.write_text("9 3 1 0 0 0 0")
    monkeypatch.setattr(bounds, "_STATE", state)
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 65536}.__getitem__)
    assert bounds._memory() == 3 * 65536
