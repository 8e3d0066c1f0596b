"""A new project that runs as it is. Owns what it starts with."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from sqlmesh_like.errors import UsageError

_FILES = {
    "pyproject.toml": """\
[tool.sqlmesh_like]
name = "{name}"
profile = "{name}"
flags = {{strict_undefined = true}}

[tool.sqlmesh_like.models.{name}.dws]
"+schema" = "dws"
""",
    "profiles.yml": """\
{name}:
  target: local
  outputs:
    local: {{type: spark, schema: dws, warehouse: warehouse, threads: 2}}
    test: {{type: duckdb, schema: dws}} # no JVM, nothing is kept: sml build -t test
""",
    "seeds/orders.csv": """\
id,product,amount,ordered_on
1,tea,5.00,2024-01-02
2,coffee,7.50,2024-01-02
3,tea,4.50,2024-02-10
""",
    "models/dws/product_sales.sql": """\
select product, count(*) as orders, sum(cast(amount as decimal(10, 2))) as total
from {{{{ ref('orders') }}}}
group by product
""",
    "models/dws/product_sales.yml": """\
version: 2
models:
  - name: product_sales
    description: Orders and their total by product
    columns:
      - name: product
        data_tests: [not_null, unique]
""",
    ".gitignore": "target/\nwarehouse/\n",
}


def make_project(name: str) -> None:
    """Make the folder `name` with a seed, a model, its tests and a profile.

    Raises UsageError, and changes nothing, where the name cannot be that of a project or is taken.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise UsageError(f"{name!r} cannot be a project's name", hint="letters, digits and _ only: sml init my_lake")
    folder = Path(name)
    if folder.exists():
        raise UsageError(f"{name} exists already", hint="choose another name, or remove it")
    # Made beside it: an end halfway leaves nothing.
    with tempfile.TemporaryDirectory(prefix=".sml-init-", dir=folder.parent) as temporary:
        project = Path(temporary) / name
        for path, text in _FILES.items():
            (project / path).parent.mkdir(parents=True, exist_ok=True)
            (project / path).write_text(text.format(name=name), encoding="utf-8")
        project.rename(folder)
