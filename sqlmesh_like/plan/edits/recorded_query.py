"""The query of a table as its commits hold it, so that an edited one can be compared with it. Owns its form.

That is its SQL, with views inlined, and the input columns that it reads, in JSON that is compressed. A query that is
read back is believed only if it has the recorded fingerprint.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.canonical_form import rows_form
from sqlmesh_like.analyze.algebra.relation import (
    Relation,
    Scan,
    children,
    columns,
    scanned_columns,
    used_columns,
    with_children,
)
from sqlmesh_like.analyze.binding.ties import core, is_decided, is_tied
from sqlmesh_like.analyze.query_analysis import analyze
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.delta.whole_window import keeps_rows_below
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import SqlError
from sqlmesh_like.names import Column, NodeId, Schema, TableName
from sqlmesh_like.plan.edits.widened_inputs import recorded_schema
from sqlmesh_like.plan.fingerprint import fingerprint, is_of_query
from sqlmesh_like.plan.history import TableRecord
from sqlmesh_like.render.rendered import InputRef, SourceMap
from sqlmesh_like.secrets import scrub_text

_MOST = 12_000
"""Characters of a query that is recorded; each commit of its table has them."""


def recorded_query(compiled: CompiledModel) -> str:
    """The query as a commit holds it; empty where it is too long, rebuilt by design, or has a secret in it."""
    relation = compiled.facts.relation
    if relation is None or compiled.table.build is None:
        return ""
    used, schemas = used_columns(relation), scanned_columns(relation)
    read = {name: [[c.name, c.type] for c in schema if c.name in used[name]] for name, schema in schemas.items()}
    sql = compiled.facts.tree.sql(SPARK, comments=False)
    if scrub_text(sql) != sql:
        return ""
    tables = {ref.unique_id: [ref.table.schema, ref.table.identifier] for ref in compiled.facts.inputs}
    text = json.dumps({"sql": sql, "read": read, "tables": tables}, separators=(",", ":"))
    packed = base64.b85encode(zlib.compress(text.encode(), 9)).decode()
    return packed if len(packed) <= _MOST else ""


def query_before(record: TableRecord, edited: CompiledModel) -> CompiledModel | None:
    """The query of a record, over the inputs as they are now; None if it is not known.

    Columns that have become wider since have the types of then (`widened_inputs`).
    It has the settings of the edited model: whether these are the recorded ones, the fingerprint says.
    """
    relation = edited.facts.relation
    if not record.query or relation is None:
        return None
    try:
        stored = json.loads(zlib.decompress(base64.b85decode(record.query)))
        sql, read = str(stored["sql"]), {n: _schema(columns) for n, columns in stored["read"].items()}
        gone = {name: schema for name, schema in read.items() if name not in scanned_columns(relation)}
        # Inputs of the recorded query that the edited one does not read.
        tables = stored.get("tables", {})
        present = {ref.unique_id for ref in edited.facts.inputs}
        names = [(NodeId.parse(name), tables[name]) for name in gone if name in tables and name not in present]
        others = [InputRef(node, TableName(schema, identifier), "model") for node, (schema, identifier) in names]
        inputs = (*edited.facts.inputs, *others)
        model = replace(edited.model, sql=sql, raw_sql=sql, source_map=SourceMap(sql, sql), inputs=inputs)
        schemas = {**gone, **scanned_columns(relation)}
        for known in (schemas, read):  # the recorded ones where `select *` reads more columns now
            before = CompiledModel.of(analyze(model, known, {}))
            if fingerprint(before) == record.fingerprint and before.facts.relation is not None:
                now = _as_now(before.facts.relation, schemas, {})
                return None if now is None else CompiledModel.of(replace(before.facts, relation=now))
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error, SqlError, RecursionError):
        pass  # recorded by another version, or a column that it reads is gone
    return None


def as_recorded(record: TableRecord | None, edited: CompiledModel, print_: str | None = None) -> CompiledModel:
    """The recorded query if the edited one selects the same rows with other keys, else the edited one.

    Such are inner joins in another order, whose row keys name rows in that order: the table goes on with its own.
    `print_`: the fingerprint of the edited one, if it is known.
    """
    if record is None or not record.query or is_of_query(record, edited, print_):
        return edited
    form = _form_of_rows(edited)
    before = query_before(record, edited) if form is not None else None
    return before if before is not None and _form_of_rows(before) == form else edited


def is_table_of(record: TableRecord, compiled: CompiledModel) -> bool:
    """Whether the rows that a commit left are those of a query, whatever their keys."""
    return is_of_query(record, compiled) or as_recorded(record, compiled) is not compiled


def _form_of_rows(compiled: CompiledModel) -> object | None:
    pruned = compiled.facts.pruned
    if pruned is None or compiled.table.build is None or keeps_rows_below(compiled.table.state):
        return None
    form = rows_form(pruned, _is_by_key)
    return None if form is None else [form, columns(pruned), compiled.table.state]


def _is_by_key(call: exp.Expr) -> bool:
    return is_tied(call) if isinstance(call, exp.Window) else is_decided(core(call))


def _schema(columns: list[list[str | None]]) -> Schema:
    return tuple(Column(str(name), type_) for name, type_ in columns)


def _as_now(relation: Relation, schemas: Mapping[str, Schema], done: dict[int, Relation | None]) -> Relation | None:
    """The relation over inputs that may have further columns now; None where a column is gone or no wider type."""
    if id(relation) not in done:
        if isinstance(relation, Scan):
            schema = recorded_schema(relation.schema, schemas.get(relation.input_id, ()))
            done[id(relation)] = None if schema is None else replace(relation, schema=schema)
        else:
            below = [_as_now(child, schemas, done) for child in children(relation)]
            known = tuple(child for child in below if child is not None)
            done[id(relation)] = with_children(relation, known) if len(known) == len(below) else None
    return done[id(relation)]
