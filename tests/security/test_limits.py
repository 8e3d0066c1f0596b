"""The child process in which a project is read: whatever it does, it ends in an error that names file and setting."""

from __future__ import annotations

import errno
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from sqlmesh_like.cli import context
from sqlmesh_like.cli.app import main
from sqlmesh_like.errors import Location, NewerVersionError, SeveralErrors, SqlError
from sqlmesh_like.limits import child
from sqlmesh_like.limits.record import note_place, report_message
from sqlmesh_like.limits.settings import ResourceLimitError
from tests.levels import IS_RELEASE, parametrize
from tests.projects import enter_project

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory and tells why it ended")
Shown = pytest.CaptureFixture[str]
FILES = {
    "dbt_project.yml": "name: shop\nprofile: shop\n",
    "profiles.yml": "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
    "models/a.sql": "select 1 as a",
}
TUPLES = "{% set n = namespace(t=(1,)) %}{% for i in range(60) %}{% set n.t = (n.t, n.t) %}{% endfor %}\n"
LISTS = TUPLES.replace("(n.t, n.t)", "[n.t, n.t]").replace("(1,)", "[1]")
TWICE = (
    "{% set n = namespace(t=(1,), u=(1,)) %}"
    "{% for i in range(60) %}{% set n.t = (n.t, n.t) %}{% set n.u = (n.u, n.u) %}{% endfor %}\n"
)
TEMPLATES = {
    "a hash of tuples": f"{TUPLES}select 1 as a,\n  {{{{ {{n.t: 1}} }}}} as b",
    "tuples compared": f"{TWICE}select 1 as a,\n  {{{{ n.t == n.u }}}} as b",
    "nested tojson": f"{LISTS}select 1 as a,\n  {{{{ tojson(n.t) }}}} as b",
    "a list as text": f"{LISTS}select 1 as a,\n  {{{{ n.t | string }}}} as b",
    "wide numbers": "select 1 as a,\n\n  '{% for i in range(99999) %}{% set x = '%9999999d' % i %}{% endfor %}' as b",
    "four gigabytes": "{% set l = [] %}\n\n{% for i in range(4000) %}{% do l.append('x' * 1000000 ~ i) %}{% endfor %}",
    "texts of texts": "{% set l = ['x' * 9999999] * 900 %}\n\n{% set t = l | map('upper') | list | tojson %}",
}


_AFTER_A_CALL = """
import resource, sys, duckdb
from sqlmesh_like.cli.app import main
from sqlmesh_like.duckdb.duck_connection import sandbox
assert main(sys.argv[1:]) == 0
try:
    sandbox().execute("select length(repeat('x', 1900000000))")
    sys.exit("it was computed")
except duckdb.OutOfMemoryException:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def call(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`sml` as a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables}
    command = [sys.executable, "-m", "sqlmesh_like", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


IN_TURN = [(name, ("ls", "build", "compile")[turn % 3]) for turn, name in enumerate(TEMPLATES)]
CHEAP = ("four gigabytes",)


@parametrize(
    ("name", "command"),
    suite=[case for case in IN_TURN if case[0] in CHEAP],
    release=[case for case in IN_TURN if case[0] not in CHEAP],
)
def test_no_template_takes_more_than_it_may(
    name: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ls` and `compile` run in a child as a whole, `build` reads the project in one."""
    enter_project(tmp_path, monkeypatch, {**FILES, "models/m.sql": TEMPLATES[name]})
    called = call(command, SML_MAX_SECONDS="2", SML_MAX_MEMORY="600")
    line = "models/m.sql:3:" if name in ("wide numbers", "four gigabytes") else "models/m.sql:"
    assert called.returncode == 2 and line in called.stderr and "unexpected" not in called.stderr, called.stderr
    assert "SML_MAX_" in called.stderr or "this template is not rendered" in called.stderr, called.stderr


@pytest.mark.release
def test_a_step_of_c_code_is_ended_at_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = TEMPLATES["a hash of tuples"].replace("select", "{# one\n two #}\nselect")
    enter_project(tmp_path, monkeypatch, {**FILES, "models/ü.sql": step})
    called = call("build", SML_MAX_SECONDS="1", PYTHONIOENCODING="utf-8")
    assert called.returncode == 2
    assert "models/ü.sql:5: this takes more time of a processor than it may" in called.stderr
    assert "SML_MAX_SECONDS" in called.stderr


@pytest.mark.release
def test_a_macro_is_named_where_it_is_defined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    macro = f"\n\n{{% macro slow() %}}\n{TUPLES}{{{{ {{n.t: 1}} }}}}{{% endmacro %}}"
    enter_project(tmp_path, monkeypatch, {**FILES, "macros/m.sql": macro, "models/m.sql": "select {{ slow() }} as a"})
    called = call("parse", SML_MAX_SECONDS="1")
    assert called.returncode == 2 and "macros/m.sql:5: this takes more time" in called.stderr


def test_what_took_most_of_the_time_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what came last; and a line, so that an editor can go there."""
    monkeypatch.setenv("SML_MAX_SECONDS", "1")

    def work() -> None:
        for place, seconds in ((Location("dear.yml", 7), 0.7), (Location("cheap.sql"), 9)):
            note_place(place)
            end = time.process_time() + seconds
            while time.process_time() < end:
                pass

    with pytest.raises(ResourceLimitError) as raised:
        child.run_limited(work)
    assert str(raised.value.location) == "dear.yml:7"
    monkeypatch.setattr("time.process_time", lambda: 0.0)
    with pytest.raises(ResourceLimitError) as raised:
        child.run_limited(lambda: note_place(Location("last.sql")) or os.kill(os.getpid(), signal.SIGXCPU))
    assert str(raised.value.location) == "last.sql:1"


def test_a_child_without_memory_to_say_so_is_one_without_memory() -> None:
    class Unspeakable(Exception):
        def add_note(self, _note: str) -> None:
            raise MemoryError

    def work() -> None:
        note_place(Location("packages.yml"))
        raise Unspeakable

    with pytest.raises(ResourceLimitError, match="takes more memory than it may") as raised:
        child.run_limited(work)
    assert str(raised.value.location) == "packages.yml:1"


def test_what_cannot_be_sent_to_the_parent_is_said() -> None:
    with pytest.raises(child.UnsendableError):
        child.run_limited(threading.Lock)

    class OfThisTestError(Exception):
        pass

    def work() -> None:
        raise OfThisTestError("no module has it")

    with pytest.raises(RuntimeError, match=r"^OfThisTestError: no module has it$"):
        child.run_limited(work)


@pytest.mark.parametrize(
    ("end", "message", "hint"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "killed, likely for want of memory", "SML_MAX_MEMORY"),
        (lambda: os.kill(os.getpid(), signal.SIGILL), "ended with SIGILL", "nested too deep"),
        (lambda: os._exit(7), "ended with exit code 7", "nested too deep"),
    ],
)
def test_whatever_ends_the_child_the_parent_says_where_and_why(
    end: Callable[[], None], message: str, hint: str
) -> None:
    def work() -> None:
        note_place(Location("a.yml", 3))
        report_message("begun")
        end()

    messages: list[object] = []
    with pytest.raises(ResourceLimitError, match=message) as raised:
        child.run_limited(work, messages.append)
    assert (messages, str(raised.value.location)) == (["begun"], "a.yml:3")
    assert hint in (raised.value.hint or "")


@pytest.mark.parametrize(("number", "setting"), [(errno.EFBIG, "SML_MAX_OUTPUT"), (errno.EMFILE, "SML_MAX_FILES")])
def test_an_error_of_the_system_that_a_limit_causes_names_it(number: int, setting: str) -> None:
    def work() -> None:
        raise OSError(number, "of the system")

    with pytest.raises(ResourceLimitError) as raised:
        child.run_limited(work)
    assert setting in (raised.value.hint or "")


def test_a_child_that_does_not_end_is_ended_and_one_whose_parent_is_interrupted_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []
    fork = os.fork
    monkeypatch.setattr("os.fork", lambda: seen.append(fork()) or seen[-1])
    monkeypatch.setattr(child, "_PATIENCE", 0.0)
    monkeypatch.setattr(child, "_PATIENCE_FACTOR", 0.0)
    with pytest.raises(ResourceLimitError, match="this does not come to an end"):
        child.run_limited(partial(time.sleep, 600))

    def interrupt(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(child, "_is_stuck", interrupt)
    with pytest.raises(KeyboardInterrupt):
        child.run_limited(partial(time.sleep, 600))
    assert len(seen) == 2 and not any(Path(f"/proc/{each}").exists() for each in seen)


def test_sql_that_needs_too_much_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = ", ".join(f"{number} as c{number}" for number in range(200_000))
    enter_project(tmp_path, monkeypatch, {**FILES, "models/m.sql": f"select {columns}"})
    called = call("compile", SML_MAX_SECONDS="60", SML_MAX_MEMORY="100")
    assert called.returncode == 2 and "models/m.sql" in called.stderr and "SML_MAX_MEMORY" in called.stderr
    if IS_RELEASE:
        called = call("compile", SML_MAX_SECONDS="1", SML_MAX_MEMORY="0")
        assert called.returncode == 2 and "models/m.sql" in called.stderr and "SML_MAX_SECONDS" in called.stderr


SPOKEN = {
    **FILES,
    "macros/say.sql": "{% macro say(text) %}{{ log(text, info=True) }}{% endmacro %}",
    "models/a.sql": "{{ say('first') }}{{ exceptions.warn('beware') }}select {{ nothing }} 1 as a",
    "models/b.sql": "{{ say('second') }}select {{ ref('a').no_such_thing() }} as b",
    "models/c.sql": "select {{ ref('d') }} as c",
}


@parametrize("command", suite=["ls"], release=["explain"])
def test_messages_and_errors_are_those_without_a_child(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter_project(tmp_path, monkeypatch, SPOKEN)
    with_child = call(command, "--no-color", CI="")
    without = call(command, "--no-color", CI="", SML_MAX_SECONDS="0", SML_MAX_MEMORY="0")
    said = [line.split("  ", 1)[-1] for line in with_child.stderr.splitlines()]
    assert (with_child.returncode, with_child.stdout) == (without.returncode, without.stdout)
    assert said == [line.split("  ", 1)[-1] for line in without.stderr.splitlines()]
    assert with_child.returncode == 2 and "first" in with_child.stderr and "models/c.sql" in with_child.stderr


@pytest.mark.parametrize("caches", ["true", "false"])
def test_a_project_read_in_a_child_is_the_same(
    caches: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    """Also where a node depends on the time."""
    files = {
        **FILES,
        "models/b.sql": "select '{{ run_started_at }}' as b",
        "tests/t.sql": "select * from {{ ref('a') }} where a > 1",
    }
    enter_project(tmp_path, monkeypatch, files)
    monkeypatch.setenv("SML_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("DBT_PARTIAL_PARSE", caches)
    monkeypatch.setattr(context, "limit_memory", lambda: None)  # the limit would be this process's, to its end
    counts = []
    for is_on in (False, True, True):
        monkeypatch.setattr(child, "is_on", is_on)
        assert main(["test"]) == 0
        counts.append(capsys.readouterr().out.count("PASS"))
    assert len(set(counts)) == 1


def test_an_iterator_in_config_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    model = "{{ config(meta={'rows': [1] | map('upper')}) }}select 1 as a"
    enter_project(tmp_path, monkeypatch, {**FILES, "models/m.sql": model})
    assert main(["ls"]) == 2
    assert "models/m.sql" in (said := capsys.readouterr().err) and "is not data" in said


@parametrize("command", suite=["ls"], release=["build"])
def test_a_secret_that_a_child_learns_is_scrubbed_from_its_errors(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = "shop: {target: t, outputs: {t: {type: duckdb, schema: dws, spark: {my.password: hunter22}}}}\n"
    model = "select {{ exceptions.raise_compiler_error(target.name ~ ' hunter' ~ '22') }}"
    enter_project(tmp_path, monkeypatch, {**FILES, "profiles.yml": profile, "models/m.sql": model})
    called = call(command)
    assert called.returncode != 0 and "hunter22" not in called.stderr and "*****" in called.stderr, called.stderr


def test_a_setting_that_is_no_number_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter_project(tmp_path, monkeypatch, FILES)
    called = call("ls", SML_MAX_SECONDS="much")
    assert called.returncode == 2 and "SML_MAX_SECONDS must be a whole number" in called.stderr


def test_what_duckdb_computes_stays_within_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own limit does not count the values that it is working on: after a call of `sml` these are limited, too."""
    enter_project(tmp_path, monkeypatch, FILES)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    called = subprocess.run(
        [sys.executable, "-c", _AFTER_A_CALL, "build"], capture_output=True, text=True, check=False, env=environment
    )
    assert called.returncode == 0, called.stdout + called.stderr
    assert int(called.stdout.splitlines()[-1]) < 2_000_000, "kB, of 4 GB without the limit"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_parent_ends_both(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter_project(tmp_path, monkeypatch, {**FILES, "models/m.sql": TEMPLATES["a hash of tuples"]})
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "SML_MAX_SECONDS": "300"}
    process = subprocess.Popen(
        [sys.executable, "-m", "sqlmesh_like", "ls"],
        env=environment,
        stderr=subprocess.PIPE,
        preexec_fn=partial(signal.signal, number, signal.SIG_DFL),  # shells let what runs behind them ignore SIGINT
    )
    try:
        below = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while not (children := below.read_text().split()):
            time.sleep(0.02)
        while process.poll() is None:  # a step of C code hears no signal, and two that come at once count as one
            process.send_signal(number)
            time.sleep(0.1)
        assert process.returncode in (128 + number, -number)  # a further one may end it by itself
        assert not Path(f"/proc/{children[0]}").exists()
    finally:
        process.kill()
        process.communicate()


def test_errors_are_sent_whole() -> None:
    one = SqlError("no", location=Location("m.sql", 3, 5), hint="do")
    for error in (one, SeveralErrors((one, SqlError("other"))), NewerVersionError("it", "of format 9")):
        sent = pickle.loads(pickle.dumps(error))
        assert (type(sent), str(sent), sent.args, sent.location) == (
            type(error),
            str(error),
            error.args,
            error.location,
        )
    assert [str(part) for part in pickle.loads(pickle.dumps(SeveralErrors((one,)))).parts] == [str(one)]


@pytest.mark.release
def test_an_editor_gets_the_error_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lsprotocol import types

    from tests.unit.cli.test_language_server import Editor, with_editor

    enter_project(tmp_path, monkeypatch, {**FILES, "models/m.sql": TEMPLATES["a hash of tuples"]})
    monkeypatch.setenv("SML_MAX_SECONDS", "1")

    async def story(editor: Editor) -> None:
        editor.open("models/m.sql")
        (mark,) = (await editor.marks.get()).diagnostics
        assert "takes more time of a processor" in mark.message and mark.range.start.line == 2
        editor.save("models/m.sql", "select 1 as a")
        assert await editor.marks.get() == types.PublishDiagnosticsParams(editor.uri("models/m.sql"), ())

    with_editor(tmp_path, story)


def test_the_size_of_a_project_lifts_its_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file more is a quarter of a second more; nothing that a template does is."""
    many = {f"models/m{number}.sql": "select 1 as a" for number in range(300)}
    enter_project(tmp_path, monkeypatch, {**FILES, **many})
    called = call("ls", "--output", "json", SML_MAX_SECONDS="1")
    assert called.returncode == 0, called.stderr
    assert len([json.loads(line) for line in called.stdout.splitlines()]) == 301
