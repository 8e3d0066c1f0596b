from tests.properties.case import Case

CASE = Case(
    sql="select sum(a) as total, min(a) as least from ods.t",
    tables={"t": (("a", "int"),)},
    batches=[{"t": {"1": (1,)}}, {"t": {"2": (1,)}}, {"t": {"1": None}}, {"t": {"2": None}}],
)
