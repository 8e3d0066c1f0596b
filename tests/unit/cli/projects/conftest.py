"""Each project that a test here writes and that loads is valid by what `sml schema` prints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.yaml_schemas import faults


@pytest.fixture(autouse=True)
def _valid_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Looks when the test is over, while its environment variables are still there."""
    yield
    if (tmp_path / "models").is_dir():
        assert faults(tmp_path) == []
