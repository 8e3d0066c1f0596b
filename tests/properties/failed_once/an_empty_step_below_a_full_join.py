from tests.properties.case import Case

CASE = Case(
    sql="select `l`.`a` as `a` from ods.t as `l` full join (select `l`.`a` as `a` from ods.t as `l`, (select * from "
    "ods.t as `around` where `around`.`x` in (select `inner1`.`a` from (select * from ods.t as `f` where true) "
    "as `inner1`)) as `r` where `l`.`a` = `r`.`a`) as `r` on `l`.`a` = `r`.`a`",
    tables={"t": (("a", "int"), ("x", "int"), ("r", "string"), ("n", "date"), ("g", "date"))},
    batches=[
        {
            "t": {
                "1": (None, None, None, None, None),
                "2": (None, None, None, None, None),
                "3": (None, None, None, None, None),
            }
        },
        {"t": {"1": (None, None, None, None, None)}},
        {"t": {"1": (None, None, None, None, None)}},
        {"t": {"1": (-1, None, None, None, None)}},
    ],
    partition_by=("a",),
    clocks=[],
)
