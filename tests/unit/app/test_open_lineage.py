"""Runs as OpenLineage events: by the client's own configuration, read back by its own classes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from openlineage.client import event_v2
from openlineage.client.facet_v2 import (
    column_lineage_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    parent_run,
    schema_dataset,
    sql_job,
    tags_run,
)

from sqlmesh_like.app.open_lineage import listener
from sqlmesh_like.cli.app import main
from tests.levels import parametrize
from tests.projects import enter_project

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {outputs: {t: {type: duckdb, schema: dws}}}\n",
    "models/schema.yml": """
models: [{name: per_code, columns: [{name: code, data_tests: [not_null]}]}]
""",
    "models/per_code.sql": "select code, sum(rate) as total, max(rate + 1) as best from {{ ref('rates') }}"
    " where rate > 0 group by code",
    "seeds/rates.csv": "code,rate\na,1\na,2\nb,3\n",
}
FACETS = {
    "columnLineage": column_lineage_dataset.ColumnLineageDatasetFacet,
    "errorMessage": error_message_run.ErrorMessageRunFacet,
    "jobType": job_type_job.JobTypeJobFacet,
    "outputStatistics": output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet,
    "parent": parent_run.ParentRunFacet,
    "schema": schema_dataset.SchemaDatasetFacet,
    "sql": sql_job.SQLJobFacet,
    "tags": tags_run.TagsRunFacet,
}
Event = Mapping[str, object]
TO_FILE = "transport: {type: file, log_file_path: events.jsonl, append: true}\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter_project(tmp_path, monkeypatch, FILES)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE_NAMESPACE", "OPENLINEAGE_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def configure(project: Path, text: str) -> None:
    """Write the user's own configuration."""
    file = project / "home/.openlineage/openlineage.yml"
    file.parent.mkdir(parents=True)
    file.write_text(text)


def configure_file(project: Path) -> Path:
    configure(project, TO_FILE)
    return project / "events.jsonl"


def read(path: Path) -> list[dict[str, object]]:
    events = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]
    for event in events:
        rebuild(event)
    return events


def rebuild(event: dict[str, object]) -> None:
    """The client's classes take it: each key is one of the standard, times, ids and required keys are checked."""
    text = json.loads(json.dumps(event))
    text.pop("schemaURL")
    run, job = text.pop("run"), text.pop("job")
    for facets in (run["facets"], job["facets"], *(table["facets"] for table in text["inputs"] + text["outputs"])):
        rebuild_facets(facets)
    for table in text["outputs"]:
        rebuild_facets(table.pop("outputFacets"))
    inputs = [event_v2.InputDataset(**table) for table in text.pop("inputs")]
    outputs = [event_v2.OutputDataset(**table) for table in text.pop("outputs")]
    kind = event_v2.RunState(text.pop("eventType"))
    event_v2.RunEvent(
        run=event_v2.Run(**run), job=event_v2.Job(**job), inputs=inputs, outputs=outputs, eventType=kind, **text
    )


def rebuild_facets(facets: dict[str, dict[str, object]]) -> None:
    for name, facet in facets.items():
        keys = {key: value for key, value in facet.items() if not key.startswith("_")}
        assert str(facet["_schemaURL"]).startswith("https://openlineage.io/spec/facets/")
        FACETS[name](**keys)


def message(events: list[dict[str, object]]) -> list[tuple[object, object]]:
    return [(event["job"]["name"], event["eventType"]) for event in events]  # type: ignore[index]


def test_a_build_is_told_node_by_node_with_columns_and_where_they_come_from(project: Path) -> None:
    path = configure_file(project)
    assert main(["build", "-q", "--threads", "1"]) == 0
    events = read(path)
    assert message(events) == [
        ("shop.build", "START"),
        ("seed.shop.rates", "START"),
        ("seed.shop.rates", "COMPLETE"),
        ("model.shop.per_code", "START"),
        ("model.shop.per_code", "COMPLETE"),
        (message(events)[5][0], "START"),
        (message(events)[6][0], "COMPLETE"),
        ("shop.build", "COMPLETE"),
    ]
    assert str(message(events)[5][0]).startswith("test.shop.not_null_per_code_code.")
    (output,) = events[4]["outputs"]  # type: ignore[misc]
    rates = {"namespace": "duckdb", "name": "dws.rates"}
    assert (output["namespace"], output["name"]) == ("duckdb", "dws.per_code")
    assert [field["name"] for field in output["facets"]["schema"]["fields"]] == ["code", "total", "best"]
    lineage = output["facets"]["columnLineage"]
    said = {
        name: [(one["field"], one["transformations"][0]["subtype"]) for one in field["inputFields"]]
        for name, field in lineage["fields"].items()
    }
    assert said == {
        "code": [("code", "IDENTITY")],
        "total": [("rate", "AGGREGATION")],
        "best": [("rate", "AGGREGATION")],
    }
    assert {(one["field"], one["transformations"][0]["subtype"]) for one in lineage["dataset"]} == {
        ("code", "GROUP_BY"),
        ("rate", "FILTER"),
    }
    assert all({key: one[key] for key in rates} == rates for one in lineage["dataset"])
    assert [{key: one[key] for key in rates} for one in events[4]["inputs"]] == [rates]  # type: ignore[attr-defined]


def test_a_column_that_decides_rows_in_several_ways_is_sent_with_all_of_them(project: Path) -> None:
    (project / "models/per_code.sql").write_text(
        "select x.code, count(*) as n from {{ ref('rates') }} x join {{ ref('rates') }} y on x.code = y.code"
        " where x.code > '' group by x.code"
    )
    path = configure_file(project)
    assert main(["build", "-q"]) == 0
    (lineage,) = (
        output["facets"]["columnLineage"]
        for event in read(path)
        if event["eventType"] == "COMPLETE"
        for output in event["outputs"]  # type: ignore[attr-defined]
        if output["name"] == "dws.per_code"
    )
    (code,) = lineage["dataset"]
    assert {one["subtype"] for one in code["transformations"]} == {"FILTER", "JOIN", "GROUP_BY"}


def test_the_runs_of_a_call_hang_together(project: Path) -> None:
    path = configure_file(project)
    assert main(["run", "-q"]) == 0
    call, start, end, last = read(path)
    assert start["run"]["runId"] == end["run"]["runId"] != call["run"]["runId"] == last["run"]["runId"]  # type: ignore[index]
    assert start["run"]["facets"]["parent"]["run"]["runId"] == call["run"]["runId"]  # type: ignore[index]


def test_a_failure_is_told_with_its_message(project: Path) -> None:
    (project / "seeds/rates.csv").write_text("code,rate\n,1\n")
    path = configure_file(project)
    assert main(["build", "-q"]) == 1
    events = read(path)
    kinds = [kind for name, kind in message(events) if str(name).startswith("test.")]
    assert kinds == ["START", "FAIL"]
    assert message(events)[-1] == ("shop.build", "FAIL")
    (failed,) = [event for event in events if event["eventType"] == "FAIL" and "facets" in event["run"]
                 and "errorMessage" in event["run"]["facets"]]  # type: ignore[operator,index]  # fmt: skip
    assert "1" in failed["run"]["facets"]["errorMessage"]["message"]  # type: ignore[index]


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[dict[str, object]]]]:
    """An address that takes events, and those that came."""
    came: list[dict[str, object]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append({"path": self.path, **json.loads(self.rfile.read(int(self.headers["Content-Length"])))})
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", came
        server.shutdown()
        thread.join()


def test_events_go_by_http_too(receiver: tuple[str, list[dict[str, object]]], monkeypatch: pytest.MonkeyPatch) -> None:
    address, came = receiver
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "http")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__URL", address)
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__COMPRESSION", "")
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "lake")
    assert main(["run", "-q"]) == 0
    assert {event.pop("path") for event in came} == {"/api/v1/lineage"}
    for event in came:
        rebuild(event)
    assert {event["job"]["namespace"] for event in came} == {"lake"}  # type: ignore[index]
    assert [kind for _, kind in message(came)] == ["START", "START", "COMPLETE", "COMPLETE"]


def test_a_receiver_that_is_not_there_costs_no_run(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(project, "transport: {type: http, url: 'http://127.0.0.1:1', retry: {total: 0}, timeout: 1}\n")
    assert main(["run"]) == 0
    out = capsys.readouterr().out
    assert out.count("OpenLineage events are not sent any more") == 1
    assert "Done. PASS=1" in out


class Client:
    """A client whose transport cannot be closed as it should."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.timeouts: list[float] = []

    def emit(self, event: object) -> None: ...

    def close(self, timeout: float = -1) -> bool:
        self.timeouts.append(timeout)
        if self.error is not None:
            raise self.error
        return False


@pytest.mark.parametrize(
    ("error", "warning"), [(RuntimeError("broker gone"), "broker gone"), (None, "some were still waiting")]
)
def test_a_transport_that_cannot_be_closed_costs_no_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception | None, warning: str
) -> None:
    client = Client(error)
    monkeypatch.setattr(listener, "find_client", lambda: client)
    assert main(["run"]) == 0
    out = capsys.readouterr().out
    assert f"OpenLineage events are not sent any more: {warning}" in out and "Done. PASS=1" in out
    assert [timeout > 0 for timeout in client.timeouts] == [True], "by default it waits without limit"


def test_a_wrong_configuration_is_said_before_anything_is_run(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(project, "transport: {type: pigeon}\n")
    assert main(["run"]) == 2
    err = capsys.readouterr().err
    assert "OpenLineage's client cannot be configured" in err and "Traceback" not in err
    assert not (project / "target/run_results.json").exists()


@parametrize("disabled", suite=[""], release=["true"])
def test_nothing_is_sent_and_nothing_is_loaded_unless_somebody_asks(project: Path, disabled: str) -> None:
    if disabled:
        configure_file(project)
    code = (
        "import os, sys\n"
        f"os.environ['OPENLINEAGE_DISABLED'] = {disabled!r}\n"
        "from sqlmesh_like.cli.app import main\n"
        "code = main(['run', '-q'])\n"
        "print(code, [name for name in sys.modules if name.startswith('openlineage')])\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "0 []\n"
    assert result.stderr == ""
    assert not (project / "events.jsonl").exists()


@pytest.mark.parametrize("variables", [{}, {"OPENLINEAGE__TRANSPORT__TYPE": "file"}], ids=["alone", "beside variables"])
def test_a_file_of_the_project_configures_nothing_unless_the_user_names_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variables: Mapping[str, str]
) -> None:
    (project / "evil.py").write_text("from pathlib import Path\nPath('imported').touch()\nclass T: ...\n")
    (project / "openlineage.yml").write_text(
        "transport: {type: evil.T}\nfacets: {environment_variables: [SECRET]}\n" if not variables else TO_FILE
    )
    monkeypatch.syspath_prepend(str(project))
    monkeypatch.setenv("SECRET", "s3cr3t")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
        monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", "home/own.jsonl")
        (project / "home").mkdir()
    assert main(["run"]) == 0
    assert "openlineage.yml of this folder is not read: name it by OPENLINEAGE_CONFIG" in capsys.readouterr().out
    assert not (project / "imported").exists() and not (project / "events.jsonl").exists()

    (project / "openlineage.yml").write_text(TO_FILE)
    monkeypatch.setenv("OPENLINEAGE_CONFIG", "openlineage.yml")
    monkeypatch.delenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", raising=False)
    assert main(["run"]) == 0
    assert "not read" not in capsys.readouterr().out and len(read(project / "events.jsonl")) == 4
