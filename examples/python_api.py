"""The Python API on the shop's project: plan, build, test and read its tables, on DuckDB and without a JVM.

A notebook in plain text (jupytext, VS Code and PyCharm run its cells), or a script to be run in the folder of the
project: `python examples/python_api.py`. With another target the same lines work on a lake.
"""

from __future__ import annotations

import logging

from sqlmesh_like import Project
from sqlmesh_like.errors import ProjectError

# %% [markdown]
# ## The project
# Nothing is printed by the API: whoever wants to see progress configures logging.

# %%
logging.basicConfig(level=logging.WARNING)
project = Project.load(".", target="test")
models = project.ls(resource_type="model")
print(f"{project.name} on {project.target.name}: {len(models)} models")

# %% [markdown]
# ## The plan
# What the SQL of a model allows, what a run would do now, and why: what `sml explain` shows.

# %%
for model in project.plan("+revenue_by_month").models:
    rules = ", ".join(dict.fromkeys(reason.rule for reason in model.reasons))
    print(f"{model.table}: {model.strategy} ({rules}), now {model.next_run}")

# %% [markdown]
# ## The work
# A failure is in the result, not raised: a call that is wrong itself is.

# %%
result = project.build(select="+revenue_by_month")
print(f"{len(result.results)} nodes, {'all well' if result.ok else 'with failures'}")
for node_result in result.results:
    if node_result.status not in ("success", "pass"):
        print(f"{node_result.node.name}: {node_result.status} {node_result.message}")

# %% [markdown]
# ## The rows
# As Arrow, which pandas, polars and DuckDB take as it is.

# %%
revenue = project.table("dws.revenue_by_month")
print(", ".join(f"{column.name} {column.type}" for column in revenue.schema))
print(revenue.to_arrow(limit=3).to_pylist())
print(project.sql("select count(*) as months from dws.revenue_by_month").to_pylist())

# %%
try:
    project.table("revenue_by_mont").to_arrow()
except ProjectError as error:
    print(f"{error.message} – {error.hint}")

# %%
project.close()
