"""Sends tables to destinations. Owns the choice between a change and the whole table.

The change between the commit that a destination has and the newest one comes from the change feed of the model's
table. If that commit or its files are gone, or columns differ, the whole table is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from sqlmesh_like.errors import NodeError, RetryableError, SmlError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.plan.catalog import Catalog
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.project.publishing import Destination
from sqlmesh_like.publish.store import Published, Store, published_columns
from sqlmesh_like.render.rendered import RenderedModel
from sqlmesh_like.run.ports import ChangeExporter, Export, PublishResult

Outcome = tuple[PublishResult, ...] | SmlError
OpenStore = Callable[[Destination], Store]


def published_name(model: RenderedModel) -> str:
    """The name of a model's table at its destinations."""
    return (model.config.publish and model.config.publish.table) or model.table.identifier


@dataclass
class _Exports:
    """Exports of one table, open until all destinations have it: those that have the same commit share the change."""

    engine: ChangeExporter
    staging: str
    held: ExitStack
    _made: dict[tuple[str | None, str | None], Export] = field(default_factory=dict)

    def of(self, state: TableState, since: str | None) -> Export:
        key = (state.frontier, since)
        if key not in self._made:
            self._made[key] = self.held.enter_context(self.engine.export(state, since, self.staging))
        return self._made[key]


@dataclass
class LakePublisher:
    """Publishes tables of one lake, to each destination one at a time. `chosen`: destinations by the model's unique id.

    `afresh`: send whole tables, whatever the destinations have.
    """

    catalog: Catalog
    engine: ChangeExporter
    chosen: Mapping[str, tuple[Destination, ...]]
    open_store: OpenStore
    staging: str
    afresh: bool = False
    _stores: dict[str, Store] = field(default_factory=dict)
    _locks: dict[str, Lock] = field(init=False)

    def __post_init__(self) -> None:
        # Created in advance: if two threads each created one of their own, neither would wait.
        self._locks = {to.name: Lock() for places in self.chosen.values() for to in places}

    def publish_together(self, models: Sequence[RenderedModel]) -> Mapping[str, Outcome]:
        """Bring destinations up to date with several tables, those of each destination in one transaction.

        Returns what was sent of each model, by unique id, or why it was not: where one table of a destination fails,
        none of them is sent there.
        """
        sent: dict[str, tuple[PublishResult, ...]] = {model.unique_id: () for model in models}
        errors: dict[str, list[SmlError]] = {}
        with ExitStack() as held:
            exports: dict[str, _Exports] = {
                model.unique_id: _Exports(self.engine, self.staging, held) for model in models
            }
            for name, to in {to.name: to for places in self.chosen.values() for to in places}.items():
                own = [each for each in models if name in {to.name for to in self.chosen.get(each.unique_id, ())}]
                try:
                    results = self._send_together(own, to, exports) if own else {}
                except SmlError as error:
                    for model in own:
                        errors.setdefault(model.unique_id, []).append(error)
                    continue
                for unique_id, result in results.items():
                    sent[unique_id] = (*sent[unique_id], result)
        return {
            unique_id: _join_errors(errors[unique_id]) if unique_id in errors else sent[unique_id] for unique_id in sent
        }

    def _send_together(
        self, models: Sequence[RenderedModel], to: Destination, exports: Mapping[str, _Exports]
    ) -> Mapping[str, PublishResult]:
        def attempt() -> Mapping[str, PublishResult]:
            with self._store(to).together():
                return {each.unique_id: self._attempt_of(each, to, exports[each.unique_id]) for each in models}

        with self._locks[to.name]:
            try:
                return attempt()
            except RetryableError:
                return attempt()

    def _attempt_of(self, model: RenderedModel, to: Destination, exports: _Exports) -> PublishResult:
        try:
            self._require_built(model)
            return self._attempt(model, to, published_name(model), exports)
        except RetryableError:
            raise
        except SmlError as error:
            raise NodeError(
                f"nothing was sent to {to.name}: {model.table}: {error.message}", hint=error.hint
            ) from error

    def _require_built(self, model: RenderedModel) -> None:
        state = self.catalog.state(model.unique_id)
        if state.frontier is None or state.kind not in ("cow", "mor"):
            raise NodeError(f"{model.table} does not exist yet", hint="run it first: sml run")

    def publish(self, model: RenderedModel) -> tuple[PublishResult, ...]:
        self._require_built(model)
        table = published_name(model)
        with ExitStack() as held:
            exports = _Exports(self.engine, self.staging, held)
            sent: list[PublishResult] = []
            errors: list[SmlError] = []
            for to in self.chosen.get(model.unique_id, ()):
                try:
                    sent.append(self._send(model, to, table, exports))
                except SmlError as error:
                    errors.append(error)
            if errors:
                raise _join_errors(errors)
            return tuple(sent)

    def close(self) -> None:
        for store in self._stores.values():
            store.close()

    def _send(self, model: RenderedModel, to: Destination, table: str, exports: _Exports) -> PublishResult:
        with self._locks[to.name]:
            try:
                return self._attempt(model, to, table, exports)
            except RetryableError:
                # A file of the pinned commits vanished, or another process has published meanwhile.
                return self._attempt(model, to, table, exports)

    def _attempt(self, model: RenderedModel, to: Destination, table: str, exports: _Exports) -> PublishResult:
        state, store = self.catalog.state(model.unique_id), self._store(to)
        old = store.read_published(table)
        if old is not None and old.model != model.unique_id:
            hint = "give one of them another name there: config(publish={'to': …, 'table': …})"
            raise NodeError(f"{to.name}: the table {table} is that of {old.model}", hint=hint)
        since = self._since(old, state)
        if since is not None and since == state.frontier:
            return PublishResult(to.name, table, None)
        fault_point("publish.begin")
        export = exports.of(state, since)
        fault_point("publish.read")
        if not export.whole and (old is None or old.columns != published_columns(export.schema)):
            export = exports.of(state, None)  # columns differ
        new = Published(model.unique_id, state.uri, state.frontier, published_columns(export.schema))
        result = _write_export(store, to, table, export, old, new)
        fault_point("publish.end")
        return result

    def _since(self, old: Published | None, state: TableState) -> str | None:
        """Return the commit since which the change can be sent; None: the whole table must be sent."""
        if self.afresh or old is None or old.frontier is None or old.uri != state.uri:
            return None
        assert state.frontier is not None
        if old.frontier == state.frontier:
            return old.frontier
        if old.frontier > state.frontier:
            return None  # a release of earlier commits: the change feed goes forward only
        if any("map<" in (column.type or "") for column in state.schema or ()):
            return None  # Spark cannot compare maps, so rows that were rewritten unchanged cannot be recognized
        return None if self.catalog.history.unreadable_reason(state.uri, old.frontier, state.frontier) else old.frontier

    def _store(self, to: Destination) -> Store:
        if to.name not in self._stores:
            self._stores[to.name] = self.open_store(to)
        return self._stores[to.name]


@dataclass(frozen=True)
class SentTables:
    """What was published of models, by unique id."""

    outcomes: Mapping[str, Outcome]

    def publish(self, model: RenderedModel) -> tuple[PublishResult, ...]:
        """Return what was sent of a model. Raises the error for which nothing was."""
        outcome = self.outcomes[model.unique_id]
        if isinstance(outcome, SmlError):
            raise outcome
        return outcome


def _join_errors(errors: Sequence[SmlError]) -> SmlError:
    return errors[0] if len(errors) == 1 else NodeError("\n".join(map(str, errors)))


def _write_export(
    store: Store, to: Destination, table: str, export: Export, old: Published | None, new: Published
) -> PublishResult:
    counted = 0

    def batches() -> Iterator[Any]:
        nonlocal counted
        counted = 0
        for batch in export.batches():
            counted += batch.num_rows
            yield batch

    store.write(table, replace(export, batches=batches), old, new)
    return PublishResult(to.name, table, counted, export.whole)
