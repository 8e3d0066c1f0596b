"""Whether a table is of its model's text as it is now. Owns when a former answer holds, so that nothing is compiled.

The answer follows from the record of the table's commit, the model's text and settings, the views that it reads, and
the columns of its inputs: a key over all of these, kept where the answer was yes, is that answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sqlmesh_like.app.lakes.lake_tables import LakeTables
from sqlmesh_like.app.loading.check_cache import check_key
from sqlmesh_like.plan.history import TableRecord, TableState
from sqlmesh_like.render.rendered import RenderedModel

if TYPE_CHECKING:
    from sqlmesh_like.plan.planner import Planner


@dataclass(frozen=True)
class TextComparison:
    """Compares tables of a lake with the texts of their models.

    `known`: keys of former comparisons that found no difference, by unique id; `make_planner` is called where one
    of them does not answer.
    """

    lake: LakeTables
    known: Mapping[str, str]
    make_planner: Callable[[], Planner]

    @cached_property
    def _planner(self) -> Planner:
        return self.make_planner()

    def is_of_text(self, model: RenderedModel, record: TableRecord, inputs: Mapping[str, TableState]) -> bool:
        """Whether the rows of a commit are those of a model's text; `inputs`: what it reads, by unique id.

        Raises SqlError for a text that is not valid.
        """
        key = self.key(model, record, inputs)
        if key is not None and self.known.get(model.unique_id) == key:
            return True
        from sqlmesh_like.plan.edits.recorded_query import is_table_of  # a known answer needs no SQL parser

        return is_table_of(record, self._planner.compile(model, inputs))

    def key(self, model: RenderedModel, record: TableRecord, inputs: Mapping[str, TableState]) -> str | None:
        """All that the answer for a table follows from; None where it also depends on what the lake holds.

        An input without columns is compiled from its own text, and a template may ask for rows.
        """
        views = self.lake.reads.views_below(model)
        schemas = [(unique_id, inputs[unique_id].schema) for unique_id in self.lake.reads.of(model)]
        if any(each.asks_lake for each in (model, *views)) or any(schema is None for _, schema in schemas):
            return None
        recorded = (record.fingerprint, record.meaning, record.query)
        return check_key(recorded, model, views, schemas)
