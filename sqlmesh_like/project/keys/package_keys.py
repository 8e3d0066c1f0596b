"""The keys of `packages.yml` and `dependencies.yml`."""

from __future__ import annotations

from sqlmesh_like.project.keys.shape import Key, Shape
from sqlmesh_like.project.keys.value_types import each, text, unchecked_value

PACKAGE = Shape("a package", {
    "local": Key(text, help="A folder.", example="../shared"),
    "git": Key(text, help="Address of a repository.", example="https://git.example.com/shared.git"),
    "revision": Key(text, help="Of `git`: a tag, branch or commit.", example="v1.2"),
    "subdirectory": Key(text, help="Of `git`: where the package is in it.", example="dbt"),
    "tarball": Key(text, help="Address of an archive.", example="https://files.example.com/shared.tar.gz"),
    "package": Key(text, help="Name in dbt's hub; it must be installed already: the hub is not used.",
                   example="dbt-labs/dbt_utils"),
    "version": Key(unchecked_value("text or list of texts", [">=1.1.0", "<2.0.0"]), help="Of `package`; not checked."),
    "name": Key(unchecked_value("text", "shared"), help="dbt's; the name is that of the package's project."),
    "warn-unpinned": Key(unchecked_value("true or false", False), help="dbt's; no effect here."),
    "private": Key(unchecked_value("text", "shop/shared"), help="dbt's; no effect here: give `git`."),
})  # fmt: skip
PACKAGES = Shape("packages.yml", {
    "packages": Key(each(PACKAGE), help="The packages.", example=[{"local": "../shared"}]),
    "projects": Key(
        unchecked_value("list", [{"name": "shared"}]), help="dbt's; no effect here: give `local` or `git`."
    ),
})  # fmt: skip
