"""HDFS without a JVM, on a real NameNode and DataNodes: puts on a condition, killed puts, and a lake that is followed.

A release runs the tests of stores against it as well (`tests/services/stores.py`).
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from obstore.exceptions import AlreadyExistsError, PreconditionError

from sqlmesh_like.cli.app import main
from sqlmesh_like.errors import MachineError, NodeError
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores import hdfs_client
from sqlmesh_like.hudi.stores.hdfs_client import HdfsClient
from sqlmesh_like.hudi.timeline import Timeline
from tests.faults import calls
from tests.faults.test_first_builds import SEEDS
from tests.services.hdfs import HdfsServer, hdfs

_FILE = "t/.hoodie/file"
MODEL = "model.p.per_customer"


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    with hdfs(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture
def server(started: HdfsServer) -> HdfsServer:
    started.make_bucket("of this test")
    return started


def seen(client: HdfsClient) -> tuple[bytes, str]:
    answer = client.get(_FILE)
    return answer.bytes(), str(answer.meta["e_tag"])


def test_of_many_creations_one_wins_and_it_is_whole(server: HdfsServer) -> None:
    contents = [str(number).encode() * 5_000 for number in range(24)]

    def create(content: bytes) -> bytes | None:
        try:
            HdfsClient(server.authority, {}).put(_FILE, content, mode="create")
        except AlreadyExistsError:
            return None
        return content

    with ThreadPoolExecutor(24) as pool:
        winners = [content for content in pool.map(create, contents) if content is not None]
    assert winners == [seen(server.client)[0]]
    assert folder(f"hdfs://{server.authority}/t").files() == [".hoodie/file"]
    assert remains(server) == [], "what the others wrote beside it is gone"


def test_no_replacement_is_lost_though_many_want_it_at_once(server: HdfsServer) -> None:
    server.client.put(_FILE, b"0", mode="create")

    def count_to_four(_: int) -> None:
        client, done = HdfsClient(server.authority, {}), 0
        while done < 4:
            content, tag = seen(client)
            try:
                client.put(_FILE, str(int(content) + 1).encode(), mode={"e_tag": tag})
            except PreconditionError:
                continue
            done += 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count_to_four, range(4)))
    assert seen(server.client)[0] == b"16"
    assert remains(server) == []


KILLED = """
import os, signal, sys
from hdfs_native import Client
from sqlmesh_like.hudi.stores.hdfs_client import HdfsClient
from sqlmesh_like.hudi.timeline import Timeline
authority, tag, point = sys.argv[1:]
rename = Client.rename
def die(self, source, target, overwrite=False):
    at = "slot" if "next_" in target else "file"
    if at == point:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(self, source, target, overwrite)
    if at + " done" == point:
        os.kill(os.getpid(), signal.SIGKILL)
Client.rename = die
HdfsClient(authority, {}).put("t/.hoodie/file", b"killed", mode={"e_tag": tag})
"""


def killed(server: HdfsServer, tag: str, point: str) -> None:
    """A process that is killed at a point of replacing the file by `killed`."""
    command = [sys.executable, "-c", KILLED, server.authority, tag, point]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL


@pytest.mark.parametrize("point", ["slot", "slot done", "file", "file done"])
@pytest.mark.fault("a process that is killed while it replaces a file of HDFS", ends="recovers")
def test_a_killed_replacement_is_done_or_not_and_the_next_one_goes_on(
    server: HdfsServer, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = server.client
    client.put(_FILE, b"first", mode="create")
    killed(server, seen(client)[1], point)
    content, tag = seen(client)
    assert content == (b"killed" if point == "file done" else b"first")
    monkeypatch.setattr(hdfs_client, "_HELD", 0.2)
    client.put(_FILE, b"next", mode={"e_tag": tag})
    assert seen(client)[0] == b"next"
    assert folder(f"hdfs://{server.authority}/t").files() == [".hoodie/file"]


@pytest.mark.parametrize("is_held_again", [False, True])
def test_a_holder_that_stood_still_replaces_nothing(
    server: HdfsServer, monkeypatch: pytest.MonkeyPatch, is_held_again: bool
) -> None:
    """Its slot was broken meanwhile; the file in the slot that a third writer has then is not its own."""
    slow, other = server.client, server.client
    slow.put(_FILE, b"first", mode="create")
    tag, rename = seen(slow)[1], slow._hdfs.rename
    monkeypatch.setattr(hdfs_client, "_HELD", 0.0)

    def stand_still(source: str, target: str, overwrite: bool = False) -> None:
        if target == f"/{_FILE}" and seen(other)[0] == b"first":
            other.put(_FILE, b"other", mode={"e_tag": tag})
            if is_held_again:
                killed(server, seen(other)[1], "slot done")
        rename(source, target, overwrite)

    monkeypatch.setattr(slow._hdfs, "rename", stand_still)
    with pytest.raises(PreconditionError, match="has changed"):
        slow.put(_FILE, b"slow", mode={"e_tag": tag})
    assert seen(other)[0] == b"other"
    assert bool(remains(server)) == is_held_again


@pytest.mark.fault("a file of HDFS that another user's killed call was replacing", ends="refuses")
def test_a_slot_that_cannot_be_taken_is_said_and_nothing_is_replaced(
    server: HdfsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = server.client
    client.put(_FILE, b"first", mode="create")
    client.put("t/.hoodie/.smlput_next_file/of-another", b"other")
    monkeypatch.setattr(hdfs_client, "_GIVEN_UP", 0.2)  # before the slot may be broken
    with pytest.raises(NodeError, match="is held by another writer"):
        client.put(_FILE, b"next", mode={"e_tag": seen(client)[1]})
    assert seen(client)[0] == b"first"
    assert [path.rpartition("/")[2] for path in remains(server)] == [".smlput_next_file", "of-another"]


def test_a_file_that_is_gone_is_not_replaced(server: HdfsServer) -> None:
    client = server.client
    client.put(_FILE, b"first", mode="create")
    tag = seen(client)[1]
    client.delete([_FILE, "t/none"])
    with pytest.raises((PreconditionError, FileNotFoundError)):
        client.put(_FILE, b"next", mode={"e_tag": tag})
    assert folder(f"hdfs://{server.authority}/t").files() == []


@pytest.mark.parametrize(
    ("authority", "words"),
    [("127.0.0.1:1", "HDFS does not answer"), ("nowhere", "no NameNode of that name"), ("", "which file system")],
)
@pytest.mark.fault("an HDFS that is not there", ends="refuses")
def test_an_hdfs_that_is_not_there_is_said(authority: str, words: str) -> None:
    with pytest.raises(MachineError, match=words) as refused:
        HdfsClient(authority, {"dfs.client.failover.max.attempts": "1"}).get("t")
    assert refused.value.hint and "\n" not in refused.value.message


@pytest.fixture
def root(server: HdfsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a seed and a model, and its warehouse on HDFS."""
    warehouse = f"hdfs://{server.authority}/lake"
    output = {"type": "spark", "master": "local[2]", "schema": "dws", "warehouse": warehouse}
    texts = {
        "profiles.yml": json.dumps({"lake": {"target": "t", "outputs": {"t": output}}}),
        "pyproject.toml": '[tool.sqlmesh_like]\nname = "p"\nprofile = "lake"\n',
        "seeds/orders.csv": SEEDS["seeds/orders.csv"],
        "models/per_customer.sql": "select customer, count(*) as n from {{ ref('orders') }} group by customer",
    }
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_project_is_built_followed_and_rolled_back_without_a_jvm(
    server: HdfsServer, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["debug"]) == 0
    assert "its conditional writes keep locks of all machines" in capsys.readouterr().out
    assert main(["build"]) == 0
    assert rows(capsys) == {1: 2, 2: 1}
    first = Timeline(f"hdfs://{server.authority}/lake/dws/per_customer").frontier
    (root / "seeds/orders.csv").write_text(SEEDS["seeds/orders.csv"].replace("1,1,20,", "1,2,20,"))
    assert main(["build"]) == 0
    results = json.loads((root / "target" / "run_results.json").read_text())["results"]
    assert {each["unique_id"]: each["adapter_response"].get("engine") for each in results}[MODEL] == "duckdb"
    assert rows(capsys) == {1: 1, 2: 2}
    assert main(["rollback", "per_customer", "--to", str(first), "--yes"]) == 0
    assert rows(capsys) == {1: 2, 2: 1}
    capsys.readouterr()
    assert main(["locks"]) == 0 and "Nobody holds a lock" in capsys.readouterr().out


@pytest.mark.release
def test_spark_on_this_machine_reads_and_writes_it(root: Path) -> None:
    for words in (("build",), ("verify",), ("run", "--full-refresh"), ("verify",)):
        if words[0] == "run":
            profile = root / "profiles.yml"
            profile.write_text(profile.read_text().replace('"type"', '"delta_engine": "spark", "type"'))
        code, output = calls.finished(calls.start(root, *words))
        assert code == 0, output
    results = json.loads((root / "target" / "run_results.json").read_text())["results"]
    assert {each["adapter_response"].get("engine") for each in results} <= {"spark", None}


def rows(capsys: pytest.CaptureFixture[str]) -> dict[int, int]:
    capsys.readouterr()
    assert main(["show", "per_customer", "--output", "json"]) == 0
    return {row["customer"]: row["n"] for row in json.loads(capsys.readouterr().out)}


def remains(server: HdfsServer) -> list[str]:
    """Files and folders that are there for the time of a put."""
    return [each.path for each in server.client._all("", recursive=True) if "/.smlput_" in each.path]
