"""The stores that keep the same promise: S3 in the suite, HDFS as well in a release."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.services.hdfs import HdfsServer, hdfs
from tests.services.s3 import S3Server, s3

Server = S3Server | HdfsServer
ONLY_S3 = pytest.mark.parametrize("server", ["s3"], indirect=True)
"""For what is about S3's requests or keys."""


@pytest.fixture(scope="module", params=["s3", pytest.param("hdfs", marks=pytest.mark.release)])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of a module of tests, which imports this fixture."""
    start = {"s3": s3, "hdfs": hdfs}[request.param]
    with start(tmp_path_factory.mktemp(request.param)) as started:
        yield started
