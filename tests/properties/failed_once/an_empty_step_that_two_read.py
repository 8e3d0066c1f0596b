import datetime

from tests.properties.case import Case

CASE = Case(
    sql="select `l`.`a` as `a` from ods.t as `l` right join (select cast(`x`.`a` as bigint) as `a` from ods.t as "
    "`x` intersect select cast(`y`.`a` as bigint) as `a` from (with part as (select * from ods.t as `f` where "
    "date '2024-01-01' <= current_date) select `l`.`a` as `a` from part as l join part as r on `l`.`a` = "
    "`r`.`a`) as `y`) as `r` on `l`.`a` = `r`.`a`",
    tables={"t": (("a", "int"), ("x", "int"), ("r", "string"))},
    batches=[
        {"t": {"1": (None, None, None), "2": (None, None, None), "3": (None, None, None)}},
        {"t": {"1": (None, None, None)}},
        {"t": {"1": (None, None, None)}},
        {"t": {"1": (-1, None, None)}},
    ],
    partition_by=("a",),
    clocks=[
        datetime.datetime(2023, 12, 31, 12, 0),
        datetime.datetime(2023, 12, 31, 12, 0),
        datetime.datetime(2023, 12, 31, 12, 0),
    ],
)
