"""All rules that decide a strategy, each with its id. Owns their texts; `strategy` applies them.

The documentation's table of rules is generated from `RULES`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """One reason that a plan can have: what it means and what may make it cheaper (empty: nothing to gain).

    A plan repeats advice about settings alone; advice about SQL is tried first, on the query itself (`advice`).
    """

    id: str
    meaning: str
    advice: str = ""


@dataclass(frozen=True)
class Reason:
    """A rule applied at one position of a model; line and column are 1-based in the model's own file."""

    rule: str
    message: str
    line: int | None = None
    column: int | None = None
    hint: str = ""


_PARTITION = (
    "set partition_by to a column that the query copies from its inputs: then only touched partitions are rescanned"
)

_ALL = (
    Rule("ROW001", "each result row comes from one input row: the change of the result is the query over the change"),
    Rule("AGG001", "a mergeable aggregate: its hidden state is adjusted by the change of each group"),
    Rule("AGG002", "DISTINCT inside an aggregate needs all rows of its group", _PARTITION),
    Rule("AGG003", "a sum of floating numbers depends on the order of addition and drifts under retraction",
         "cast the argument to a decimal, or declare a tolerance: config(floating='1e-9')"),
    Rule("AGG004", "the type of the argument is not proven", "cast the argument: CAST(… AS DECIMAL(18,2))"),
    Rule("AGG005", "an aggregate that cannot be merged", _PARTITION),
    Rule("AGG006", "an aggregate whose result depends on the order of rows",
         "use max_by, min_by, first, last, collect_list or collect_set, of which the row key decides ties"),
    Rule("AGG008", "an aggregate whose result depends on the order of rows: in every plan the row key decides, or the"
         " elements of a set are sorted", _PARTITION),
    Rule("AGG009", "the value of the first or last row, with ties decided by the row key: that row is kept, and its"
         " group is recomputed where it goes and none beats it"),
    Rule("AGG010", "a sum of floating numbers with a declared tolerance: it is adjusted, and its group is recomputed"
         " where the proven bound of its error exceeds the tolerance"),
    Rule("KEY001", "a group key whose type has no exact text form", "cast the key to an exact type"),
    Rule("KEY002", "rows are keyed by values whose type is not proven or whose text is not unique",
         "cast them to an exact type"),
    Rule("AGG007", "floating values depend on the order of addition: nothing above may compute on them",
         "cast the argument to a decimal"),
    Rule("GRP001", "groups, windows and join keys that a change touches are recomputed, as they were and as they are"),
    Rule("MRG001", "an aggregate over rows that are recomputed: its hidden state is adjusted by how these differ"),
    Rule("JOI001", "an inner join: changed rows of one side meet the rows of the other side"),
    Rule("JOI002", "an outer, semi or anti join needs all rows of a join key"),
    Rule("JOI003", "no equality between values of one exact type on both sides of an outer, semi or anti join: where a"
         " side changes of which other rows' matches depend, the join is computed as it was and as it is",
         "join on an equality of columns of one type"),
    Rule("NST001", "an aggregate, DISTINCT or window function over the result of another one", _PARTITION),
    Rule("SET001", "INTERSECT ALL and EXCEPT ALL count the copies of a row on both sides", _PARTITION),
    Rule("DST001", "DISTINCT needs all copies of a row", _PARTITION),
    Rule("WIN001", "a window function needs all rows of its window partition", _PARTITION),
    Rule("WIN002", "tied order is decided by the row key, in the full and in the incremental plan"),
    Rule("WIN003", "window functions of one SELECT share no PARTITION BY expression: all rows are one window, which is"
         " computed anew where a row changes; only rows that differ are written"),
    Rule("LIM001", "LIMIT: the table's rows are merged with those that the change brings into the query; where too few"
         " of the first rows are left, the query is recomputed"),
    Rule("LIM002", "rows that ORDER BY of a LIMIT leaves tied are ordered by the row key, in the full and in the"
         " incremental plan"),
    Rule("LIM003", "too few of the first rows of a LIMIT were left after the change, or with OFFSET the change was not"
         " all behind them: this run recomputed the query"),
    Rule("LIM004", "LIMIT below another operator: where the query below it changes, the first rows are computed anew,"
         " and what differs goes on"),
    Rule("LIM005", "ROW_NUMBER, RANK or DENSE_RANK up to a number: the first rows of each group that the table has are"
         " merged with those that the change brings; where too few of a group are left, it is looked up in the inputs"),
    Rule("LIM006", "too few of the first rows of some groups were left after the change: this run has looked these"
         " groups up"),
    Rule("SUB001", "a subquery as a value: if its value changes, all rows are compared with it; if it has several rows"
         " the run fails, as in Spark"),
    Rule("PAR001", "the target partitions that a change touches are known from lineage: only these are rescanned"),
    Rule("PAR002", "partition_by is not provable from lineage",
         "partition by a column that the query copies from every input and that each GROUP BY or PARTITION BY holds"),
    Rule("QRY002", "a name in HAVING that is a column and an alias", "qualify the column or rename the alias"),
    Rule("QRY003", "LIMIT or OFFSET without ORDER BY or by values whose order is not proven"),
    Rule("QRY004", "INTERSECT or EXCEPT in a form that is not maintained"),
    Rule("QRY005", "a subquery in a form, or at a place, in which it is not maintained"),
    Rule("QRY012", "a correlated subquery that is not an aggregate, or reads values around it of inexact types",
         "join a query with GROUP BY instead"),
    Rule("QRY006", "a window function in a form that is not maintained"),
    Rule("QRY007", "a table function in a form that is not maintained",
         "explode one array in a LATERAL VIEW, and compute on its rows in a query around it"),
    Rule("QRY008", "an input that is not a ref() or source()", "declare it as a source"),
    Rule("QRY009", "a form of SQL that the compiler does not know"),
    Rule("QRY010", "GROUP BY ALL of windows, or a form of GROUPING SETS, ROLLUP or CUBE that is not maintained",
         "name plain columns as keys, each once"),
    Rule("FUN001", "a function that is not known to be pure", "use a built-in function"),
    Rule("FUN002", "a function that is not deterministic"),
    Rule("CLK001", "a value, key or join that depends on the clock: rebuilt when what the clock gives has changed",
         "read the clock in WHERE only"),
    Rule("CLK002", "rows that cross the clock's boundary since the last run are part of the change"),
    Rule("CLK003", "partitions in which rows cross the clock's boundary are not known from lineage",
         "drop partition_by, or filter by the clock in a view above the model"),
    Rule("TYP001", "a type that is not proven", "cast it explicitly"),
    Rule("TYP002", "a map cannot be compared", "convert it with to_json in the upstream model"),
    Rule("TYP003", "Spark gives the query other types or another meaning than the compiler: it is run as written"),
    Rule("PYT001", "a Python model: its function is run over whole inputs, nobody can tell what a change of them does",
         "compute in SQL what SQL can, and leave the rest to a model over it"),
    Rule("INP001", "the columns of an input are not known yet"),
    Rule("INP002", "an input that is not a Hudi table is read in full", "load it into a Hudi table"),
    Rule("HIS001", "the table does not exist yet"),
    Rule("HIS002", "the query or its settings changed since the last run"),
    Rule("HIS003", "the history of an input since the last run is gone"),
    Rule("HIS004", "the table was written by something else than this project"),
    Rule("HIS005", "the set of inputs changed since the last run"),
    Rule("HIS006", "data files of the table are missing"),
    Rule("EDT001", "the query is run and compared with the table: only rows that differ are written"),
    Rule("EDT002", "the edited query's rows follow from the stored ones: no input is read"),
    Rule("EDT003", "only what the edit changes is computed: rows that enter and leave, added columns and joins"),
    Rule("FRZ001", "frozen_before: rows of partitions before it stay as they are; those of the others are the query's"),
    Rule("FRZ002", "following the change would need stored rows of frozen partitions: the query is run, and compared"
         " with the other partitions", "group by the first column of partition_by, or leave LIMIT and windows over all"
         " rows to a model above"),
    Rule("FRZ003", "rows of frozen partitions that would have come, changed or gone, and have not"),
    Rule("SLC001", "the table is built slice by slice along its first partition column, each a commit; readers see it"
         " once all are built, or with build_visible as it grows"),
    Rule("SLC002", "an unfinished build in slices is not gone on with: its slices are dropped"),
    Rule("SLC003", "the table is built as a whole, not in slices",
         "partition by a column that each GROUP BY, PARTITION BY and join lets through"),
    Rule("CST001", "most of an input changed: a full refresh is clearly cheaper than following the change",
         "refresh: incremental"),
    Rule("CST002", "of two sound strategies that leave the same rows this one is clearly cheaper for this change"),
    Rule("CST003", "the whole query costs clearly less than following this change; only what differs is written",
         "refresh: incremental"),
    Rule("CFG001", "refresh: full"),
    Rule("CFG002", "materialized: table is rebuilt each run", "materialized: incremental"),
    Rule("CFG003", "--full-refresh"),
    Rule("CFG004", "the is_incremental() branch is not run: a watermark would lose late rows, the whole query none",
         "remove is_incremental(): the plan is derived"),
    Rule("CFG005", "the author's incremental_strategy is run: a watermark loses late rows, deletes and corrections",
         "remove is_incremental(): the plan is derived and loses nothing"),
    Rule("CFG006", "microbatch: the whole query from `begin` on is maintained, not one batch after another",
         "group and rank by the event time too, for then both give the same rows"),
    Rule("CFG007", "a setting of the target's Spark session may change what SQL means",
         "remove the setting from `spark:` in profiles.yml"),
)  # fmt: skip

TIED = frozenset({"WIN002", "AGG008", "AGG009", "LIM002"})
"""Rules of plans whose result is one of several that the query allows; it is compared with the plan's own build."""

RULES = {rule.id: rule for rule in _ALL}


ABOUT_SETTINGS = frozenset({"PYT001", "INP002", "CST001", "CST003", "CFG002", "CFG004", "CFG005", "CFG006", "CFG007"})
"""Rules whose advice is about a setting or the lake, and true of each plan that has them."""


def reason(rule: str, message: str, position: tuple[int | None, int | None] = (None, None)) -> Reason:
    """A reason with its rule's advice, if that is about settings. Raises KeyError for an id that is not in the table.

    >>> reason("CST001", "most of orders changed").hint, reason("AGG003", "SUM(x)").hint
    ('refresh: incremental', '')
    """
    known = RULES[rule]
    return Reason(rule, message, *position, hint=known.advice if rule in ABOUT_SETTINGS else "")
