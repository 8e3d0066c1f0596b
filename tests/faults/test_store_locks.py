"""Locks of lakes on stores, on a real S3 server and HDFS: across processes, kills and standstills, with Hudi's own.

No test waits for a lock to end: clocks that are ahead stand for the time that passes.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.lakes.call_locks import CallLocks
from sqlmesh_like.app.lakes.lake_lock import idle_changes, lake_lock
from sqlmesh_like.app.lakes.lock_registry import Conflict, Holder, Locks
from sqlmesh_like.app.lakes.store_registry import StoreRegistry
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.reporter import LogReporter
from sqlmesh_like.cli.app import main
from sqlmesh_like.errors import MachineError, NewerVersionError, RetryableError
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores import conditional_file
from sqlmesh_like.hudi.stores.commit_guard import claim_table, guarded_commit, guarding
from sqlmesh_like.hudi.stores.store_client import client_of, use_store
from sqlmesh_like.hudi.stores.table_lease import Lease, TableLease, lock_uri
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.project.reading.store_settings import StoreSettings
from tests.levels import parametrize
from tests.services.stores import ONLY_S3, Server
from tests.services.stores import server as server

LATER = 1000.0
"""Seconds by which a clock is ahead that has seen all locks end."""


@pytest.fixture
def lake(server: Server, tmp_path: Path) -> Loaded:
    """A lake in a bucket of its own, with the table `dws/m`."""
    bucket = f"lake-{abs(hash(tmp_path)) % 10**12}"
    server.make_bucket(bucket)
    loaded = lake_at(f"{server.uri(bucket)}/w", server.settings())
    client_of(loaded.target.warehouse).put("w/dws/m/.hoodie/hoodie.properties", b"hoodie.table.name=m\n")
    return loaded


def lake_at(warehouse: str, store: StoreSettings, lock_timeout: float = 0) -> Loaded:
    use_store(warehouse, store)
    target = Target("p", "t", "spark", warehouse=warehouse, store=store)
    call = Invocation(lock_timeout=lock_timeout)
    return SimpleNamespace(target=target, invocation=call, reporter=LogReporter())  # type: ignore[return-value]


def table(lake: Loaded) -> str:
    return f"{lake.target.warehouse}/dws/m"


def writes(lake: Loaded) -> Locks:
    return {table(lake): "replace"}


def call(lake: Loaded, owner: str, locks: Locks | None = None, ahead: float = 0, process: int = 0) -> CallLocks:
    """A call of another machine, whose clock may be ahead."""
    holder = Holder("run", process, f"host-of-{owner}", "2024-05-01 00:00:00+00:00", locks or writes(lake))
    registry = StoreRegistry(lake.target.warehouse, 60, clock=lambda: time.time() + ahead)
    return OtherMachine(lake.target.warehouse, owner, holder, registry, 60)


class OtherMachine(CallLocks):
    """A call whose clock, which is ahead, is not compared with the store's."""

    def _require_clock(self) -> None:
        pass


def lock_file(lake: Loaded) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(
        bytes(client_of(table(lake)).get("w/dws/m/.hoodie/.locks/table_lock.json").bytes())
    )
    return record


def commit(lake: Loaded, log: list[str], word: str = "committed") -> None:
    with guarded_commit(table(lake), lambda: None):
        log.append(word)


HOLDER = """
import sys, time
from types import SimpleNamespace as N
from sqlmesh_like.app.lakes.lake_lock import idle_changes, lake_lock
from sqlmesh_like.app.reporter import LogReporter
from sqlmesh_like.errors import RetryableError
from sqlmesh_like.hudi.stores.store_client import use_store
from sqlmesh_like.project.reading.store_settings import StoreSettings
warehouse, endpoint, access, secret = sys.argv[1:]
store = StoreSettings(endpoint, access_key=access, secret_key=secret)
use_store(warehouse, store)
target = N(warehouse=warehouse, store=store)
loaded = N(target=target, invocation=N(lock_timeout=0), reporter=LogReporter())
sys.stdin.readline()
try:
    with lake_lock(loaded, "run", {f"{warehouse}/dws/m": "replace"}):
        print("held", flush=True)
        time.sleep(600)
except RetryableError as error:
    print(error.message, flush=True)
"""


def test_a_call_knows_whether_another_had_locks_since_it_looked(lake: Loaded) -> None:
    idle = idle_changes(lake)
    with lake_lock(lake, "run", writes(lake)) as held:
        assert held.are_next_after(idle)
        assert idle_changes(lake) is None, "a call is in the record"
    assert not held.are_next_after(idle_changes(lake)), "it was looked later"
    idle = idle_changes(lake)
    other = call(lake, "other", {"elsewhere": "replace"})
    assert other.take() is None
    with lake_lock(lake, "run", writes(lake)) as held:
        assert not held.are_next_after(idle), "another is in the record"
    other.release()
    idle = idle_changes(lake)
    assert other.take() is None
    other.release()
    with lake_lock(lake, "run", writes(lake)) as held:
        assert not held.are_next_after(idle), "another has come and gone"
    assert not held.are_next_after(None)


def other_process(lake: Loaded) -> subprocess.Popen[str]:
    store = lake.target.store
    arguments = [lake.target.warehouse, store.endpoint, store.access_key, store.secret_key]
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def started(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.checklist(47)
@pytest.mark.fault("two machines that need the same table of a store", ends="refuses")
def test_of_processes_that_want_a_table_one_has_it_and_the_others_are_told_who(lake: Loaded) -> None:
    with ExitStack() as running:
        processes = [running.enter_context(other_process(lake)) for _ in range(2)]
        for process in processes:
            running.callback(process.kill)
        for process in processes:
            started(process)
        answers = [answer(process) for process in processes]
        assert sorted(text == "held" for text in answers) == [False, True]
        winner, refused = processes[answers.index("held")], next(text for text in answers if text != "held")
        assert f"another `sml run` is writing {table(lake)}" in refused
        assert f"process {winner.pid} on " in refused and ", since 20" in refused
        with pytest.raises(RetryableError, match=f"process {winner.pid} on"), lake_lock(lake, "run", writes(lake)):
            pass
        record = lock_file(lake)
        assert set(record) == {"expired", "validUntil", "owner"} and record["expired"] is False
        assert record["validUntil"] > time.time() * 1000
        winner.kill()
        winner.wait()
        with lake_lock(lake, "run", {"dws/other": "replace"}):  # which replaces the record
            pass
        with lake_lock(lake, "run", writes(lake)):  # at once: it is seen on this machine that its process has ended
            assert lock_file(lake)["owner"] != record["owner"]
    assert lock_file(lake)["expired"] is True


def test_one_of_many_threads_takes_a_lock_file_and_nobody_elses_is_written_over(lake: Loaded) -> None:
    leases = [TableLease(table(lake), f"owner-{number}", 60) for number in range(16)]
    taken: list[str] = []
    threads = [
        threading.Thread(target=lambda lease=lease, n=n: lease.take() or taken.append(f"owner-{n}"))
        for n, lease in enumerate(leases)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [lock_file(lake)["owner"]] == taken


@pytest.mark.fault("a call that stands still for longer than its locks on a store last", ends="refuses")
def test_a_stale_holder_does_not_commit_after_another_has_taken_over(lake: Loaded) -> None:
    log: list[str] = []
    stale, next_one = call(lake, "stale"), call(lake, "next", ahead=LATER)
    assert stale.take() is None
    with guarding(stale):
        commit(lake, log, "before")
        assert next_one.take() is None, "its time has passed"
        assert lock_file(lake)["owner"] == "next"
        with pytest.raises(
            RetryableError, match="nothing was committed, because the locks of this call no longer hold"
        ):
            commit(lake, log, "after")
    stale.release()
    assert log == ["before"]
    assert (lock_file(lake)["owner"], lock_file(lake)["expired"]) == ("next", False), "what it no longer has it leaves"
    next_one.release()


def test_a_run_takes_a_tables_own_lock_where_it_writes_and_waits_for_another_writer(lake: Loaded) -> None:
    other = TableLease(table(lake), "spark-7", 600)
    waiting = lake_at(lake.target.warehouse, lake.target.store, lock_timeout=300)
    assert not claim_table(table(lake)), "no call has locks"
    with lake_lock(waiting, "run", writes(lake), claims=True):
        assert other.take() is None, "the run has written nothing yet"
        threading.Timer(1, other.release).start()
        assert claim_table(table(lake)), "what it knew of the table is to be read again"
        assert lock_file(lake)["expired"] is False
        assert not claim_table(table(lake)), "it has the lock"
        assert not claim_table(f"{lake.target.warehouse}/dws/other"), "none that it writes"
        assert other.take() is not None
    assert lock_file(lake)["expired"] is True
    assert other.take() is None
    with lake_lock(lake, "run", writes(lake), claims=True), pytest.raises(RetryableError) as refused:
        claim_table(table(lake))
    assert "nothing was written: another writer holds the lock of" in refused.value.message
    assert lock_file(lake)["owner"] == "spark-7"


def test_a_run_that_claims_tables_excludes_other_calls_from_its_beginning(lake: Loaded) -> None:
    with lake_lock(lake, "run", writes(lake), claims=True):
        with pytest.raises(RetryableError, match="sml run"), lake_lock(lake, "run", writes(lake)):
            pass
        log: list[str] = []
        commit(lake, log)
        assert log == ["committed"] and lock_file(lake)["expired"] is False, "a commit takes the lock where nobody has"


def test_locks_that_are_renewed_are_not_taken_over_and_those_of_a_suspended_process_hold_on(lake: Loaded) -> None:
    holder = call(lake, "holder")
    assert holder.take() is None
    early = call(lake, "early", ahead=59)
    assert isinstance(early.take(), Conflict)
    assert StoreRegistry(lake.target.warehouse, LATER * 2).renew("holder")
    with guarding(holder):
        holder.require_held(table(lake))
    holder.release()
    assert early.take() is None
    early.release()


def test_a_suspended_process_keeps_its_locks(lake: Loaded) -> None:
    with other_process(lake) as process:
        started(process)
        assert answer(process) == "held"
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(RetryableError, match=f"process {process.pid} on"), lake_lock(lake, "run", writes(lake)):
            pass
        process.kill()


@pytest.mark.fault("a writer of Hudi with its own lock provider", ends="refuses")
def test_a_lock_of_hudis_own_provider_is_honoured_and_taken_over_when_its_validity_has_passed(lake: Loaded) -> None:
    client, path = client_of(table(lake)), "w/dws/m/.hoodie/.locks/table_lock.json"
    ends = int((time.time() + 600) * 1000)
    client.put(path, Lease("7c9e6679-spark", ends).encode())
    with pytest.raises(RetryableError) as refused, lake_lock(lake, "run", writes(lake)):
        pass
    assert f"another writer holds the lock of {table(lake)}: owner 7c9e6679-spark, until 20" in refused.value.message
    with lake_lock(lake, "ingest", {f"{lake.target.warehouse}/ods/t": "append"}):
        pass  # the record of locks is free again
    client.put(path, Lease("7c9e6679-spark", ends - 1_200_000).encode())
    with lake_lock(lake, "run", writes(lake)):
        assert lock_file(lake)["owner"] != "7c9e6679-spark"
    client.put(path, b'{"form": 2}')
    unknown = pytest.raises(NewerVersionError, match="is not a record of Hudi's lock provider")
    with unknown, lake_lock(lake, "run", writes(lake)):
        pass


def test_a_call_waits_for_another_writers_lock_says_so_and_renews_its_own(
    lake: Loaded, caplog: pytest.LogCaptureFixture
) -> None:
    other = TableLease(table(lake), "spark-7", 600)
    assert other.take() is None
    threading.Timer(1, other.release).start()
    waiting = lake_at(lake.target.warehouse, lake.target.store, lock_timeout=300)
    caplog.set_level("INFO")
    with lake_lock(waiting, "run", writes(lake)):
        ours = lock_file(lake)
        said = rf"waiting up to (300|2\d\d) seconds: another writer holds the lock of {re.escape(table(lake))}"
        assert re.search(said, caplog.text)  # a busy machine may have asked for the lock for a second before it says so
    assert ours["owner"] != "spark-7"


def test_locks_are_renewed_also_after_a_first_attempt_to_take_them_failed(lake: Loaded) -> None:
    other, holder = TableLease(table(lake), "spark-7", 600), call(lake, "holder")
    assert other.take() is None
    assert isinstance(holder.take(), Conflict)
    other.release()
    assert holder.take() is None
    ends, holder.seconds = lock_file(lake)["validUntil"], 0.6
    holder.start()
    limit = time.monotonic() + 60
    while lock_file(lake)["validUntil"] == ends:
        assert time.monotonic() < limit
        time.sleep(0.05)
    holder.release()


def test_a_commit_that_an_earlier_holder_completes_after_the_takeover_is_noticed(lake: Loaded) -> None:
    timeline, instant = "w/dws/m/.hoodie/timeline", "20240501000000000"
    client = client_of(table(lake))
    stale, next_one = call(lake, "stale"), call(lake, "next", ahead=LATER)
    assert stale.take() is None
    for name in (f"{instant}.commit.requested", f"{instant}.inflight"):
        client.put(f"{timeline}/{name}", b"")
    assert next_one.take() is None
    with guarding(next_one):
        next_one.require_held(table(lake))
        client.put(f"{timeline}/{instant}_20240501000009000.commit", b"{}")
        with pytest.raises(RetryableError, match=f"has completed {instant} meanwhile"):
            next_one.require_held(table(lake))
    next_one.release()


def test_readers_are_together_and_modes_exclude_each_other_as_on_a_disk(lake: Loaded) -> None:
    readers = [call(lake, name, {table(lake): "read"}) for name in ("a", "b")]
    assert [reader.take() for reader in readers] == [None, None]
    assert isinstance(call(lake, "c").take(), Conflict)
    appending = call(lake, "d", {table(lake): "append"})
    assert appending.take() is None
    with appending.also({f"{lake.target.warehouse}/dws/n": "clean"}) as conflict:
        assert conflict is None
    with appending.also({table(lake): "clean"}) as conflict:
        assert conflict is not None and conflict.holder is not None and conflict.holder.host == "host-of-a"
    for each in (*readers, appending):
        each.release()
    with lake_lock(lake, "run", writes(lake)):
        pass


def test_a_table_gets_its_lock_file_when_it_exists(lake: Loaded) -> None:
    new = f"{lake.target.warehouse}/dws/new"
    with lake_lock(lake, "run", {new: "replace"}), guarded_commit(new, lambda: None):
        assert folder(new).files() == [], "Hudi would look for a table there"
        client_of(new).put("w/dws/new/.hoodie/hoodie.properties", b"hoodie.table.name=new\n")
        with guarded_commit(new, lambda: None):  # the next one of the same call
            assert client_of(new).head("w/dws/new/.hoodie/.locks/table_lock.json")
        other = TableLease(new, "spark-7", 600)
        assert other.take() is not None
    assert other.take() is None, "the call has given it back"


def test_locks_are_listed_and_those_of_a_table_ended_after_which_their_call_commits_nothing(
    lake: Loaded, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = {"type": "spark", "schema": "dws", "warehouse": lake.target.warehouse, **server.output()}
    (tmp_path / "profiles.yml").write_text(json.dumps({"lake": {"target": "t", "outputs": {"t": output}}}))
    (tmp_path / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "p"\nprofile = "lake"\n')
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "m.sql").write_text("select 1 as id")

    def sml(*words: str) -> tuple[int, str]:
        code, shown = main([*words, "--project-dir", str(tmp_path)]), capsys.readouterr()
        return code, shown.out + shown.err

    assert sml("locks") == (0, "Nobody holds a lock\n")
    code, shown = sml("unlock", "m")
    assert code == 1 and "nobody holds a lock of dws.m" in shown
    log: list[str] = []
    holder = call(lake, "holder", process=7)
    assert holder.take() is None
    with guarding(holder):
        commit(lake, log, "before")
        listed = json.loads(sml("locks", "--output", "json")[1])
        assert [(row["lock"], row["mode"], row["process"]) for row in listed] == [(table(lake), "replace", "7")]
        code, shown = sml("run")
        assert code == 1 and "process 7 on host-of-holder, since 2024-05-01" in shown
        code, shown = sml("unlock", "m")
        assert code == 0 and "process 7 on host-of-holder" in shown and "it will commit nothing more" in shown
        with pytest.raises(RetryableError, match="or they were ended"):
            commit(lake, log, "after")
    holder.release()
    assert log == ["before"] and lock_file(lake)["expired"] is True
    client_of(table(lake)).put("w/dws/m/.hoodie/.locks/table_lock.json", Lease("spark-7", 2**50).encode())
    code, shown = sml("unlock", "m")
    assert code == 0 and "another writer held, owner spark-7" in shown


@pytest.mark.fault("a lost lock in the middle of a commit", ends="refuses")
def test_a_commit_under_way_is_stopped_when_the_locks_are_lost(lake: Loaded) -> None:
    holder = call(lake, "holder")
    holder.seconds = 0.6
    assert holder.take() is None
    stopped = threading.Event()
    with guarding(holder):
        holder.start()
        with guarded_commit(table(lake), stopped.set):
            StoreRegistry(lake.target.warehouse, 60).remove("holder")  # `sml unlock`
            assert stopped.wait(60)
        with pytest.raises(RetryableError, match="no longer hold"):
            commit(lake, [])
    holder.release()


@pytest.mark.fault("a call that runs on and on loses its locks", ends="refuses")
def test_a_call_that_goes_on_without_its_locks_knows_it(lake: Loaded) -> None:
    with lake_lock(lake, "watch", writes(lake)) as held:
        held.require_held()
        for entry in StoreRegistry(lake.target.warehouse, 60).entries():
            StoreRegistry(lake.target.warehouse, 60).remove(entry.owner)  # `sml unlock`
        with pytest.raises(RetryableError, match="no longer hold"):
            commit(lake, [])
        with pytest.raises(RetryableError, match="the locks of this call no longer hold: another call"):
            held.require_held()


@pytest.mark.fault("a store without conditional writes", ends="refuses")
def test_a_store_without_conditional_writes_is_refused_with_the_setting_that_takes_it(
    lake: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = client_of

    class Unconditional:
        def __init__(self, uri: str) -> None:
            self._client = real(uri)

        def put(self, path: str, content: bytes, **_: object) -> object:
            return self._client.put(path, content)

        def __getattr__(self, name: str) -> object:
            return getattr(self._client, name)

    monkeypatch.setattr(conditional_file, "client_of", Unconditional)
    with pytest.raises(MachineError) as refused, lake_lock(lake, "run", writes(lake)):
        pass
    assert "has no conditional writes" in refused.value.message
    assert "store: {single_writer: true}" in (refused.value.hint or "")
    alone = StoreSettings(lake.target.store.endpoint, single_writer=True)
    with lake_lock(lake_at(lake.target.warehouse, alone), "run", writes(lake)):
        pass


@pytest.mark.fault("a clock that is off by more than the locks bear", ends="refuses")
def test_a_clock_that_is_off_is_said_and_no_lock_is_kept(lake: Loaded) -> None:
    registry = StoreRegistry(lake.target.warehouse, 60, clock=lambda: time.time() - LATER)
    wrong = CallLocks(lake.target.warehouse, "wrong", call(lake, "wrong").holder, registry, 60)
    with pytest.raises(MachineError, match=r"the clock of this machine is \d+ seconds behind that of the store"):
        wrong.take()
    with lake_lock(lake, "run", writes(lake)):
        pass


@ONLY_S3
@parametrize(
    ("change", "words"),
    suite=[
        ({"endpoint": "http://127.0.0.1:1"}, "the store does not answer at http://127.0.0.1:1"),
        ({"bucket": "none"}, "there is no such bucket"),
    ],
    release=[
        ({"secret_key": "wrong-word"}, "access is denied: SignatureDoesNotMatch")
    ],  # the suite's server asks for none
)
@pytest.mark.fault("a bucket, key or endpoint that is wrong", ends="refuses")
def test_what_is_wrong_with_a_store_is_said(lake: Loaded, change: dict[str, str], words: str) -> None:
    settings = {"endpoint": lake.target.store.endpoint, "access_key": lake.target.store.access_key,
                "secret_key": lake.target.store.secret_key, **change}  # fmt: skip
    bucket = settings.pop("bucket", "other")
    wrong = lake_at(f"s3a://{bucket}/w", StoreSettings(**settings))
    with pytest.raises(MachineError) as refused, lake_lock(wrong, "run", {}):
        pass
    assert words in refused.value.message
    assert "wrong-word" not in str(refused.value)


def test_a_put_whose_answer_was_lost_counts_as_done(lake: Loaded) -> None:
    lease = TableLease(table(lake), "me", 60)
    file = conditional_file.ConditionalFile(lock_uri(table(lake)))
    content = Lease("me", 5).encode()
    assert file.replace(content, None) is not None
    assert file.replace(content, None) is not None, "its repetition finds what it has written"
    assert file.replace(Lease("you", 5).encode(), None) is None
    assert lease.take() is None
