"""Facts and strategy → what is executed. Owns which program implements which strategy."""

from __future__ import annotations

from functools import partial

from sqlmesh_like.analyze.algebra.relation import Aggregate, Relation, TopK, Windowed, columns, is_linear
from sqlmesh_like.analyze.query_analysis import QueryFacts
from sqlmesh_like.classify.group_tops import group_top
from sqlmesh_like.classify.strategy import Classification
from sqlmesh_like.delta import aggregates, changes, group_tops, limits, partitions, rows
from sqlmesh_like.delta.frozen import with_frozen_partitions
from sqlmesh_like.delta.program import TablePlan
from sqlmesh_like.delta.whole_window import whole_window_delta, with_rows_below


def compile_table(facts: QueryFacts, classification: Classification) -> TablePlan:
    """The plan of a model's table: how it is built in full and how it follows changes."""
    return plan_of_relation(facts, classification, facts.pruned)


def plan_of_relation(facts: QueryFacts, classification: Classification, relation: Relation | None) -> TablePlan:
    """The plan of the rows of a relation: the model's query, or a part of it that has the same columns and keys."""
    plan, config = _table_plan(facts, classification, relation), facts.model.config
    if config.frozen_before is None or not config.partition_by or plan.build is None or relation is None:
        return plan
    return with_frozen_partitions(plan, relation, config.partition_by[0], columns(relation))


def goes_on_from_its_rows(facts: QueryFacts) -> bool:
    """Whether changed rows and the table's own ones tell what changes in it, as a rule, though groups are recomputed.

    So it is of the first rows of a query or of each group, and of windows over all rows, over a linear query.
    """
    relation = facts.pruned
    if isinstance(relation, TopK):
        return not relation.skipped and is_linear(relation.child)
    if relation is None or facts.model.config.partition_by:
        return False
    if (top := group_top(relation)) is not None:
        return is_linear(top.child)
    return isinstance(relation, Windowed) and with_rows_below(relation) is not None and is_linear(relation.child)


def _table_plan(facts: QueryFacts, classification: Classification, relation: Relation | None) -> TablePlan:
    match classification.strategy:
        case "row_based" | "group_recompute":
            assert relation is not None
            if isinstance(relation, TopK):
                return TablePlan(rows.rows(relation), relation.order_only, derive=partial(limits.limit_delta, relation))
            if (whole := with_rows_below(relation)) is not None:
                wider, below = whole
                return TablePlan(rows.rows(wider), below, derive=partial(whole_window_delta, wider))
            if (top := group_top(relation)) is not None:
                return TablePlan(
                    group_tops.build_group_top(top),
                    group_tops.kept_rows(top),
                    derive=partial(group_tops.group_top_delta, top),
                )
            return TablePlan(rows.rows(relation), derive=partial(changes.relation_delta, relation))
        case "aggregate_merge":
            assert isinstance(relation, Aggregate)
            state = aggregates.state_schema(relation)
            return TablePlan(
                aggregates.build_aggregate(relation), state, derive=partial(aggregates.aggregate_delta, relation)
            )
        case "partition_rescan":
            assert relation is not None
            rescan = partitions.rescan(relation, facts.model.config.partition_by)
            # Both are sound and share one build; each run chooses the cheaper one for its change.
            return TablePlan(rows.rows(relation), derive=partial(changes.relation_delta, relation), rescan=rescan)
    return TablePlan(None)
