"""Other forms of a query that have the same rows. Owns which clause each changes; whether it helps, `trial` finds out.

A form that has other rows, or values of another type, is not here: a sum of decimals is another sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Join, columns, walk
from sqlmesh_like.analyze.binding.joining import conjuncts
from sqlmesh_like.analyze.binding.scope import offset_of
from sqlmesh_like.analyze.expressions.types import infer, is_exact_key
from sqlmesh_like.analyze.query_analysis import QueryFacts, parse
from sqlmesh_like.analyze.spark_types.coercion import INTEGERS, TIMES, is_number, wider
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.render.rendered import RenderedModel, SourceMap


@dataclass(frozen=True)
class Rewriting:
    """A model in another form, and the words that say what was changed: the new clause or setting."""

    model: RenderedModel
    advice: str


def partition_by_date(facts: QueryFacts) -> Iterator[Rewriting]:
    """The model partitioned by one of its dates.

    Texts and whole numbers may have as many values as there are rows, which no query says: they are not advised.
    """
    config = facts.model.config
    known = columns(facts.relation) if facts.relation is not None and config.frozen_before is None else ()
    for column in known:
        if column.type == "date" and (column.name,) != config.partition_by:
            new = replace(config, partition_by=(column.name,))
            yield Rewriting(replace(facts.model, config=new), f"set partition_by='{column.name}'")


def remove_partitions(facts: QueryFacts) -> Iterator[Rewriting]:
    if facts.model.config.partition_by and facts.model.config.frozen_before is None:
        config = replace(facts.model.config, partition_by=())
        yield Rewriting(replace(facts.model, config=config), "remove partition_by")


def with_equal_types(facts: QueryFacts) -> Iterator[Rewriting]:
    """Equalities of joins with Spark's own conversion written out, where both sides then have an exact type."""
    joins = (node for node in walk(facts.relation) if isinstance(node, Join)) if facts.relation is not None else ()
    for join in joins:
        known = {c.name.lower(): c.type for side in (join.left, join.right) for c in columns(side)}
        for equality in conjuncts(join.condition) if join.condition is not None else ():
            if isinstance(equality, exp.EQ) and (type_ := _comparison_type(equality, known)) is not None:
                yield from _cast_where(facts, offset_of(equality), type_, (equality, known))


def _comparison_type(equality: exp.EQ, known: Mapping[str, str | None]) -> str | None:
    """The type in which Spark compares the sides of an equality of two types; None if it is not exact, or not known.

    Source: `findCommonTypeForBinaryComparison` of Spark 3.5.
    """
    left, right = infer(equality.this, known), infer(equality.expression, known)
    if left is None or right is None or left == right:
        return None
    other = right if left == "string" else left
    if "string" in (left, right):
        common = other if other in (*INTEGERS, "date", *TIMES) else None
    else:
        is_alike = (is_number(left) and is_number(right)) or {left, right} <= {"date", *TIMES}
        common = wider(left, right) if is_alike else None
    return common if is_exact_key(common) else None


def _cast_where(
    facts: QueryFacts, offset: int | None, type_: str, bound: tuple[exp.EQ, Mapping[str, str | None]]
) -> Iterator[Rewriting]:
    """The query with the equality at an offset over casts, if its text has exactly one there."""
    equality, known = bound
    needs_cast = [infer(side, known) != type_ for side in (equality.this, equality.expression)]
    tree = parse(facts.model)
    places = [node for node in tree.find_all(exp.EQ) if offset is not None and offset_of(node) == offset]
    for place in places[:1] if len(places) == 1 else []:
        for side, is_cast in zip((place.this, place.expression), needs_cast, strict=True):
            if is_cast:
                side.replace(exp.Cast(this=side.copy(), to=exp.DataType.build(type_, dialect=SPARK)))
        yield _rewriting(facts, tree, f"write {place.sql(SPARK)}, as Spark compares them")


def with_collected_sets(facts: QueryFacts) -> Iterator[Rewriting]:
    """COLLECT_LIST of DISTINCT values as COLLECT_SET: neither says in which order its values are."""
    tree = parse(facts.model)
    lists = [node for node in tree.find_all(exp.ArrayAgg) if isinstance(node.this, exp.Distinct)]
    for node in lists:
        values = node.this.expressions
        if len(values) == 1:
            new = exp.ArrayUniqueAgg(this=values[0].copy())
            node.replace(new)
            yield _rewriting(facts, tree, f"write {new.sql(SPARK)}")
            return


def _rewriting(facts: QueryFacts, tree: exp.Expr, advice: str) -> Rewriting:
    sql = tree.sql(SPARK)
    return Rewriting(replace(facts.model, sql=sql, source_map=SourceMap(sql, sql)), advice)


Rewrite = Callable[[QueryFacts], Iterator[Rewriting]]
REWRITINGS: Mapping[str, tuple[Rewrite, ...]] = {
    **dict.fromkeys(("AGG002", "AGG005", "AGG008", "NST001", "SET001", "DST001", "WIN001"), (partition_by_date,)),
    "PAR002": (partition_by_date, remove_partitions),
    "CLK003": (remove_partitions,),
    "JOI003": (with_equal_types,),
    "AGG006": (with_collected_sets,),
}
"""What may help where a plan has a rule as its reason."""
