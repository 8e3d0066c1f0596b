"""Tables that went back behind their source's back: seen, never called nothing new, and healed from the source."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.errors import IngestError
from sqlmesh_like.hudi.timeline import Timeline
from tests.spark.ingest_lake import Lake, event, report_of, table


def delete_newest_commit(uri: Path) -> None:
    newest = max((uri / ".hoodie" / "timeline").glob("*commit"))
    for path in (newest, newest.parent / f".{newest.name}.crc"):
        path.unlink(missing_ok=True)


def delete_timeline(uri: Path) -> None:
    for path in (uri / ".hoodie" / "timeline").iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.release
@pytest.mark.fault(
    "a table of a source is restored, replaced by an older copy, or loses its newest commit or all",
    ends="recovers",
)
def test_a_table_that_went_back_gets_what_it_lacks_from_the_source_again(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lake = Lake(spark, tmp_path, (table("a"), table("b")), {"max_files_per_batch": 1})
    lake.land(event("c", {"id": 1, "v": "x"}, table="a"), event("c", {"id": 1, "v": "x"}, table="b"))
    lake.run()
    uri, copy = Path(lake.uri("a")), tmp_path / "copy"
    shutil.copytree(uri, copy)
    saved = Timeline(lake.uri("a")).completed[-1].requested
    spark.sql(f"call create_savepoint(path => '{uri}', commit_time => '{saved}')").collect()
    lake.land(event("u", {"id": 1, "v": "y"}, table="a"), event("c", {"id": 2, "v": "z"}, table="a"))
    lake.land(event("d", None, {"id": 2, "v": "z"}, table="a"), event("c", {"id": 3, "v": "w"}, table="a"))
    lake.run()
    assert lake.run().events == 0
    others, want = Timeline(lake.uri("b")).completed, [(1, "y"), (3, "w")]

    spark.sql(f"call rollback_to_savepoint(path => '{uri}', instant_time => '{saved}')").collect()
    for went_back, batches in (
        ("restored", 2),
        ("an older copy", 2),
        ("its newest commit deleted", 1),
        ("no commit", 3),
    ):
        if went_back == "an older copy":
            shutil.rmtree(uri)
            shutil.copytree(copy, uri)
        if went_back == "no commit":
            delete_timeline(uri)  # its files stay: under a new commit their rows would count beside those of now
        if went_back == "its newest commit deleted":
            delete_newest_commit(uri)
        caplog.clear()
        healed = lake.run()
        assert (healed.failed, healed.batches) == (False, batches), went_back
        assert "ods.a is not as its source left it" in caplog.text, went_back
        assert f"what it lacks is ingested again: {batches} batch" in caplog.text, went_back
        assert lake.rows("a", "id", "v") == want, went_back
    caplog.clear()
    assert lake.run().events == 0
    assert not caplog.text
    assert Timeline(lake.uri("b")).completed == others

    # What is new comes after what was missing, in one call.
    shutil.rmtree(uri)
    shutil.copytree(copy, uri)
    lake.land(event("u", {"id": 3, "v": "new"}, table="a"), event("c", {"id": 2, "v": "n"}, table="b"))
    assert report_of(lake.run(), "b").upserts == 1
    assert lake.rows("a", "id", "v") == [(1, "y"), (3, "new")]

    # Where the log has lost it, nothing is done, and said.
    shutil.rmtree(uri)
    shutil.copytree(copy, uri)
    (lake.landing / "0001.jsonl").unlink()
    commits = Timeline(lake.uri("a")).completed
    with pytest.raises(IngestError, match=r"lacks the events of 3 files, of which 1 are gone, e.g. .*0001.jsonl"):
        lake.run()
    assert Timeline(lake.uri("a")).completed == commits
    lake.run("earliest")
    assert lake.rows("a", "id", "v") == [(1, "x"), (3, "new")]
    shutil.rmtree(uri)
    with pytest.raises(IngestError, match="from before the source was last read from another start"):
        lake.run()
