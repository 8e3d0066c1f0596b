from tests.properties.case import Case

CASE = Case(
    sql="select * from ods.t as o where o.a <= (select max(i.a) from ods.t as i where i.a = o.a)",
    tables={"t": (("a", "int"), ("x", "int"), ("r", "string"))},
    batches=[
        {"t": {"1": (-1, None, ""), "2": (None, None, None), "3": (None, None, None)}},
        {"t": {"1": (-1, None, None)}},
        {"t": {"1": (None, None, None)}},
        {"t": {"1": (None, None, None)}},
    ],
    partition_by=("a",),
)
