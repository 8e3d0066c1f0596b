from tests.properties.case import Case

CASE = Case(
    sql="select a, count(*) as n from (select a from ods.t union all select b as a from ods.t) as x group by a",
    tables={"t": (("a", "string"), ("b", "string"))},
    batches=[{"t": {"1": ("", None), "2": ("1", "")}}, {"t": {"1": None, "2": ("", "1")}}, {"t": {"2": None}}],
)
