"""Each project that a test here writes and that loads is valid by what `sml schema` prints."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.levels import IS_RELEASE
from tests.yaml_schemas import faults

ONE_IN = 1 if IS_RELEASE else 5
"""Loading a project again takes as long as many a test here: before a release each is looked at, otherwise a fifth."""


@pytest.fixture(autouse=True)
def _valid_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    """Looks when the test is over, while its environment variables are still there."""
    yield
    if zlib.crc32(request.node.nodeid.encode()) % ONE_IN == 0 and (tmp_path / "models").is_dir():
        assert faults(tmp_path) == []
