"""The file of a lake's releases: replaced as a whole, by several calls at once, and refused where it is none."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from sqlmesh_like.errors import MachineError, NewerVersionError
from sqlmesh_like.releases.release import KEPT, ReleasedTable, Releases
from sqlmesh_like.releases.release_file import LocalReleases

TABLES = {"model.p.a": ReleasedTable("dws.a", "1_2")}


def add(releases: Releases) -> Releases:
    return releases.with_release(TABLES, "run", "2024-05-01T00:00:00Z")


def test_no_release_of_calls_at_once_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "r/shop.json"
    threads = [threading.Thread(target=lambda: LocalReleases(path).change(add)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    releases = LocalReleases(path).read()
    assert (releases.current, [each.id for each in releases.listed]) == (6, [1, 2, 3, 4, 5, 6])


def test_old_releases_are_forgotten_unless_they_are_held() -> None:
    releases = add(Releases()).with_hold(1, is_held=True)
    for _ in range(2 * KEPT):
        releases = add(releases)
    assert [each.id for each in releases.listed] == [1, *range(KEPT + 2, 2 * KEPT + 2)]
    assert [each.id for each in releases.protected] == [1, 2 * KEPT + 1]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b'{"version": 2}', NewerVersionError),
        (b'{"version": 1, "current": 1}', MachineError),
        (b'{"version": 1, "current": null, "candidate": null, "releases": [{"tables": []}]}', MachineError),
        (b'{"version": 1, "current": 99, "candidate": null, "releases": []}', MachineError),
        (b'{"version": 1e999}', MachineError),
        (b"[1]", MachineError),
        (b"[" * 100_000, MachineError),
        (b"{", MachineError),
    ],
)
def test_a_file_that_holds_no_releases_is_refused_and_left(
    content: bytes, error: type[Exception], tmp_path: Path
) -> None:
    path = tmp_path / "shop.json"
    path.write_bytes(content)
    with pytest.raises(error, match=r"shop\.json"):
        LocalReleases(path).change(add)
    assert path.read_bytes() == content
