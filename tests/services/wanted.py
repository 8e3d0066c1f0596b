"""Whether tests of real services can run here. Owns skipping them with what to install, or failing where demanded."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from sqlmesh_like.errors import MachineError
from tests.services.process import DEMAND_VARIABLE


def need(*parts: Callable[[], object]) -> None:
    """Call each; a part that the machine lacks skips the test, or fails it where `SML_DEMAND_SERVICES` is set."""
    try:
        for part in parts:
            part()
    except MachineError as error:
        if os.environ.get(DEMAND_VARIABLE):
            raise
        pytest.skip(str(error))
