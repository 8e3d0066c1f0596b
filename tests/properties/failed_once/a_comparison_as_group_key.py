from tests.properties.case import Case

CASE = Case(
    sql="select a <=> b as k, count(distinct c) as n from ods.t group by a <=> b",
    tables={"t": (("a", "int"), ("b", "int"), ("c", "int"))},
    batches=[
        {"t": {"1": (1, 1, 1), "2": (None, None, 2), "3": (1, None, 3)}},
        {"t": {"1": (1, 2, 1)}},
        {"t": {"2": None, "3": (2, 2, -1)}},
    ],
)
