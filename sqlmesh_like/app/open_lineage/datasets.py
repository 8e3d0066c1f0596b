"""Tables as OpenLineage datasets, with their facets: columns, column lineage, output statistics.

Names: https://openlineage.io/docs/spec/naming. A table is named by its folder; one without a folder by its own name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

from openlineage.client import event_v2
from openlineage.client.facet_v2 import (
    OutputDatasetFacet,
    column_lineage_dataset,
    output_statistics_output_dataset,
    schema_dataset,
)

from sqlmesh_like.analyze.algebra.column_lineage import ColumnLineage, ColumnOrigin, How, InfluenceRole, all_roles
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.preflight import input_schemas
from sqlmesh_like.names import NodeId, TableName
from sqlmesh_like.plan.catalog import locations
from sqlmesh_like.plan.history import CommitSummary
from sqlmesh_like.plan.lineage import Lineage
from sqlmesh_like.render.rendered import InputRef, RenderedModel

_VALUES: Mapping[How, str] = {"copied": "IDENTITY", "computed": "TRANSFORMATION", "aggregated": "AGGREGATION"}
_ROWS: Mapping[InfluenceRole, str] = {"filters": "FILTER", "joins": "JOIN", "groups": "GROUP_BY"}


@dataclass
class Datasets:
    """The datasets of one run."""

    loaded: Loaded

    @cached_property
    def _places(self) -> Mapping[str, str]:
        return locations(self.loaded.project, self.loaded.rendered, self.loaded.target)

    @cached_property
    def _lineage(self) -> Lineage:
        models = [model.unique_id for model in self.loaded.rendered.models]
        return Lineage(self.loaded.rendered, input_schemas(self.loaded, models), is_lenient=True)

    def name(self, unique_id: str, table: TableName) -> tuple[str, str]:
        """Return namespace and name.

        For a table in S3 `s3://bucket` and its path, on a disk `file` and its path, else `duckdb` or `spark` and
        `schema.table`.
        """
        place = self._places.get(unique_id)
        if place is None:
            return self.loaded.target.type, str(table)
        address = urlsplit(place)
        if not address.scheme or not address.netloc:
            return "file", address.path
        return f"{address.scheme}://{address.netloc}", address.path.lstrip("/")

    def inputs(self, refs: tuple[InputRef, ...]) -> list[event_v2.InputDataset]:
        """Return the inputs of a query, each once."""
        names = dict.fromkeys(self.name(ref.unique_id, ref.table) for ref in refs)
        return [event_v2.InputDataset(namespace, name) for namespace, name in names]

    def output(
        self, unique_id: NodeId, table: TableName, written: CommitSummary | None = None
    ) -> event_v2.OutputDataset:
        """Return a table that is written, with the statistics of its commit."""
        statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet
        facets: dict[str, OutputDatasetFacet] = {}
        if written is not None:
            facets["outputStatistics"] = statistics(written.rows, written.bytes, written.files)
        return event_v2.OutputDataset(*self.name(unique_id, table), outputFacets=facets)

    def output_with_columns(self, model: RenderedModel, written: CommitSummary | None) -> event_v2.OutputDataset:
        """Return `output` with columns and column lineage; without them where a star hides the columns."""
        output, columns = self.output(model.unique_id, model.table, written), self._lineage.direct(model)
        if columns:
            fields = [schema_dataset.SchemaDatasetFacetFields(column.name, column.type) for column in columns]
            assert output.facets is not None
            output.facets["schema"] = schema_dataset.SchemaDatasetFacet(fields)
            output.facets["columnLineage"] = self._column_lineage(model, columns)
        return output

    def _column_lineage(
        self, model: RenderedModel, columns: tuple[ColumnLineage, ...]
    ) -> column_lineage_dataset.ColumnLineageDatasetFacet:
        tables: dict[str, TableName] = {ref.unique_id: ref.table for ref in model.inputs}
        influences = all_roles(*(column.influences for column in columns))
        return column_lineage_dataset.ColumnLineageDatasetFacet(
            {
                column.name: column_lineage_dataset.Fields(
                    [self._field(tables, origin, "DIRECT", [_VALUES[how]]) for origin, how in column.origins.items()]
                )
                for column in columns
            },
            [
                self._field(tables, origin, "INDIRECT", [_ROWS[role] for role in roles])
                for origin, roles in influences.items()
            ],
        )

    def _field(
        self, tables: Mapping[str, TableName], origin: ColumnOrigin, kind: str, subtypes: Iterable[str]
    ) -> column_lineage_dataset.InputField:
        transformations = [column_lineage_dataset.Transformation(kind, subtype) for subtype in subtypes]
        namespace, name = self.name(origin.input_id, tables[origin.input_id])
        return column_lineage_dataset.InputField(namespace, name, origin.column, transformations)
