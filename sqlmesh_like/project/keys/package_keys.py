"""The keys of `packages.yml` and `dependencies.yml`."""

from __future__ import annotations

from sqlmesh_like.project.keys.shape import Key, Shape
from sqlmesh_like.project.keys.value_types import anything, each, text

_OF_DBT = Key(anything, help="dbt's; no effect here.")
PACKAGE = Shape("a package", {
    "local": Key(text, help="A folder.", example="../shared"),
    "git": Key(text, help="Address of a repository.", example="https://git.example.com/shared.git"),
    "revision": Key(text, help="Of `git`: a tag, branch or commit.", example="v1.2"),
    "subdirectory": Key(text, help="Of `git`: where the package is in it.", example="dbt"),
    "tarball": Key(text, help="Address of an archive.", example="https://files.example.com/shared.tar.gz"),
    "package": Key(text, help="Name in dbt's hub; it must be installed already: the hub is not used.",
                   example="dbt-labs/dbt_utils"),
    **dict.fromkeys(("version", "name", "warn-unpinned", "private"), _OF_DBT),
})  # fmt: skip
PACKAGES = Shape("packages.yml", {
    "packages": Key(each(PACKAGE), help="The packages.", example=[{"local": "../shared"}]),
    "projects": _OF_DBT,
})  # fmt: skip
