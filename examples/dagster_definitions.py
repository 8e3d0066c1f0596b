"""A project's tables as Dagster's assets, its data tests as their checks, all built by `sml`.

`SML_PROJECT` is the project's folder; it has a dbt_project.yml, which dagster-dbt asks for. `sml` is on the PATH.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from dagster import AssetExecutionContext, Definitions
from dagster_dbt import DbtCliResource, dbt_assets

PROJECT = Path(os.environ["SML_PROJECT"])
sml = DbtCliResource(project_dir=PROJECT, dbt_executable="sml")
# Writes target/manifest.json, which is what the assets are made from. A deployment may do it once, when it is built.
sml.cli(["parse", "--quiet"], target_path=Path("target")).wait()


@dbt_assets(manifest=PROJECT / "target" / "manifest.json")
def tables(context: AssetExecutionContext, dbt: DbtCliResource) -> Iterator[object]:
    yield from dbt.cli(["build"], context=context).stream()


definitions = Definitions(assets=[tables], resources={"dbt": sml})
