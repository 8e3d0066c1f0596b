"""Files of a project and its packages: which links are followed."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmesh_like.errors import ProjectError
from sqlmesh_like.project.reading.files import files_under


@pytest.mark.parametrize("package", ["dbt_packages/kit", "a/b/kit"])
def test_a_link_of_a_package_into_the_root_project_is_refused(tmp_path: Path, package: str) -> None:
    models = tmp_path / package / "models"
    models.mkdir(parents=True)
    (tmp_path / package / "dbt_project.yml").write_text("name: kit")
    (tmp_path / "secret.sql").write_text("select 1")
    (models / "m.sql").symlink_to(tmp_path / "secret.sql")
    with pytest.raises(ProjectError, match=f"{package}/models/m.sql: this is a link that leaves the project"):
        files_under(tmp_path, [f"{package}/models"], (".sql",))
