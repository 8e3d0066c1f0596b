"""What is wrong with the nodes of a run before anything is written. Owns what is reported, and what stops the run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from sqlmesh_like.app.lakes.lake import Lake
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.preflight import check_before_run
from sqlmesh_like.app.reporter import Notify
from sqlmesh_like.classify.rules import RULES
from sqlmesh_like.errors import SqlError, require_sound
from sqlmesh_like.names import NodeId
from sqlmesh_like.run.seeds import SeedTable


def check_run(
    lake: Lake,
    selected: Collection[str],
    written: Sequence[str],
    seeds: Mapping[str, SeedTable],
    notify: Notify,
    unread: Mapping[str, SqlError] = MappingProxyType({}),
) -> Mapping[str, SqlError]:
    """Report warnings and return the errors of selected nodes by unique id, before anything is written.

    As in dbt, an invalid model fails alone with its readers. Raises SqlError where no table is left to build, and for
    an invalid node that is only read. `unread`: errors of nodes whose inputs cannot be read.
    """
    lake.loaded.reporter.phase("planning")
    _warn_of_watermarks(lake.loaded, selected, notify)
    tables = [str(lake.catalog.places[unique_id].table) for unique_id in sorted(lake.catalog.borrowed)]
    if tables:
        call = lake.loaded.invocation
        notify(f"read from {call.defer_state or call.state}: {', '.join(tables)}")
    models = [unique_id for unique_id in written if unique_id not in seeds]
    checked = check_before_run(lake.loaded, lake.catalog, models, seeds.values())
    errors = {**_broken_templates(lake.loaded, selected, written, notify), **checked.errors, **unread}
    views = {model.unique_id for model in lake.loaded.rendered.models if model.config.materialized == "view"}
    is_nothing_left = bool(errors.keys() & set(written)) and set(written) - views <= errors.keys()
    if is_nothing_left or not errors.keys() <= set(selected):
        require_sound(errors)
    return errors


def _broken_templates(
    loaded: Loaded, selected: Collection[str], written: Collection[str], notify: Notify
) -> dict[str, SqlError]:
    """Return errors of the templates of selected nodes, of nodes above written ones, and of inputs of selected tests.

    Those of other nodes are reported as warnings.
    """
    broken, read = loaded.rendered.errors, loaded.graph.above(written)
    errors = {unique_id: error for unique_id, error in broken.items() if unique_id in selected or unique_id in read}
    tested: dict[str, list[NodeId]]
    tested = {test.unique_id: [ref.unique_id for ref in test.inputs] for test in loaded.rendered.tests}
    tested |= {test.unique_id: [test.model.unique_id] for test in loaded.rendered.unit_tests}
    for unique_id, inputs in tested.items():
        if unique_id in selected and (causes := broken.keys() & inputs):
            errors.setdefault(unique_id, broken[min(causes)])
    for unique_id, error in broken.items():
        if unique_id not in errors:
            notify(f"warning: {error}", "warn")
    return errors


def _warn_of_watermarks(loaded: Loaded, selected: Collection[str], notify: Notify) -> None:
    chosen = [m for m in loaded.rendered.models if m.unique_id in selected]
    models = [m for m in chosen if m.is_handwritten_incremental]
    batches = [model for model in chosen if model.is_microbatch]
    is_run = loaded.target.type == "spark"  # on DuckDB every table is built in full by each run
    run = [model for model in models if is_run and model.author_strategy is not None]
    whole = [model for model in models if model not in run]
    asked = "is_incremental"
    for rule, word, warned in (("CFG004", asked, whole), ("CFG005", asked, run), ("CFG006", "microbatch", batches)):
        if warned:
            first, *others = ((model.name, model.place_of(word)) for model in warned)
            names = ", ".join([first[0], *(f"{name} ({place})" for name, place in others)])
            notify(f"warning: {first[1]}: {rule} {names}: {RULES[rule].meaning}", "warn")
