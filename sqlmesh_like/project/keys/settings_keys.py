"""The keys of `dbt_project.yml` and `[tool.sqlmesh_like]`."""

from __future__ import annotations

from sqlmesh_like.project.keys.config_keys import NODES_BY_FOLDER, TESTS_BY_FOLDER
from sqlmesh_like.project.keys.shape import Key, Shape
from sqlmesh_like.project.keys.value_types import (
    NO_EFFECT_ON_QUOTES,
    anything,
    choice,
    each,
    entry,
    flag,
    plain_mapping,
    text,
    texts,
    unchecked_value,
    without_effect,
)

DISPATCH = Shape("dispatch", {
    "macro_namespace": Key(text, help="The package whose macros are looked up.", example="dbt_utils"),
    "search_order": Key(texts, help="The packages that are searched.", example=["shop", "dbt_utils"]),
})  # fmt: skip
FLAGS = Shape("flags", {
    "strict_undefined": Key(flag, False, help="Whether an undefined name in a template is an error.", example=True),
    "python_model_packages": Key(
        texts, help="Packages whose Python models and functions may be run.", example=["forecasts"]
    ),
}, others="take")  # fmt: skip
_BY_FOLDER = Key(plain_mapping, help="Settings by folder.", example={"shop": {"+enabled": False}})
_NO_FUNCTIONS = "functions have no settings by folder"
_WITHOUT_EFFECT = {
    "asset-paths": without_effect("text or list of texts", ["assets"], "pictures are not copied to the site"),
    "log-path": without_effect("text", "logs", "logs go to the terminal; redirect them"),
    "require-dbt-version": without_effect("text or list of texts", ">=1.7.0", "the version of dbt is not checked"),
    "quoting": NO_EFFECT_ON_QUOTES,
    "restrict-access": without_effect("true or false", True, "ref() to a package's protected model is allowed"),
    "functions": without_effect("mapping", {"shop": {"+enabled": False}}, _NO_FUNCTIONS),
    "analyses": without_effect("mapping", {"shop": {"+enabled": False}}, "analyses have no settings by folder"),
    "profiles": without_effect("mapping", {"lake": {"target": "dev"}}, "profiles are read from profiles.yml"),
}
_MODELS = entry(NODES_BY_FOLDER)
PATH_DEFAULTS = {
    "model-paths": "models",
    "seed-paths": "seeds",
    "test-paths": "tests",
    "macro-paths": "macros",
    "snapshot-paths": "snapshots",
    "analysis-paths": "analyses",
    "function-paths": "functions",
}
"""Settings that name folders of SQL, and their defaults."""
OLD_PATHS = {"source-paths": "model-paths", "data-paths": "seed-paths"}
"""Names that dbt used before 1.0, and still accepts."""
PROJECT_SETTINGS = Shape("the project's settings", {
    "name": Key(text, help="Name of the project. Default: the name of its folder.", example="shop"),
    "version": Key(anything, help="For information only.", example="1.0"),
    "profile": Key(text, help="The profile of profiles.yml. Default: the only one.", example="lake"),
    **{key: Key(texts, (default,), help=f"Folders of {default}.", example=[default])
       for key, default in PATH_DEFAULTS.items()},
    "docs-paths": Key(texts, help="Folders of doc blocks. Default: all of those above.", example=["docs"]),
    "target-path": Key(text, "target", help="Folder that commands write to.", example="target"),
    "clean-targets": Key(texts, help="What `sml clean` removes: folders of outputs only. Default: target-path.",
                         example=["target"]),
    "packages-install-path": Key(text, "dbt_packages", help="Folder of packages.", example="packages"),
    "vars": Key(plain_mapping, help="Variables for var() in templates; below a package's name, those of that package.",
                example={"least": 3}),
    "models": Key(_MODELS, help="Settings of models by folder.", example={"shop": {"dws": {"+schema": "dws"}}}),
    "seeds": Key(_MODELS, help="Settings of seeds by folder.", example={"shop": {"+schema": "dim"}}),
    "snapshots": Key(_MODELS, help="Settings of snapshots by folder.", example={"shop": {"+schema": "history"}}),
    "data_tests": Key(entry(TESTS_BY_FOLDER), help="Settings of data tests by folder.",
                      example={"shop": {"+severity": "warn"}}),
    "tests": Key(entry(TESTS_BY_FOLDER), help="The old name of `data_tests`.", example={"+severity": "warn"}),
    **dict.fromkeys(("unit_tests", "sources", "exposures", "metrics", "semantic-models", "saved-queries"), _BY_FOLDER),
    "on-run-start": Key(texts, help="Statements before a run.", example=["{{ log_start() }}"]),
    "on-run-end": Key(texts, help="Statements after a run.", example=["{{ log_end() }}"]),
    "dispatch": Key(each(DISPATCH), help="Where adapter.dispatch looks for macros.",
                    example=[{"macro_namespace": "dbt_utils", "search_order": ["shop", "dbt_utils"]}]),
    "flags": Key(entry(FLAGS), help="Switches; those of dbt's that have no effect here are ignored.",
                 example={"strict_undefined": True}),
    "release": Key(choice("always", "tested", "manual"), help="Whether a run makes a release: each without a failure, "
                   "only where data tests passed, or `sml release create` does. Default: none.", example="tested"),
    "query-comment": Key(anything, help="Ignored with a warning: comments are not added to statements.",
                         example="run by {{ target.name }}"),
    **{old: Key(texts, help=f"The old name of {new}.", example=[PATH_DEFAULTS[new]]) for old, new in OLD_PATHS.items()},
    "config-version": Key(unchecked_value("whole number", 2), help="Version of the format: 2."),
    "dbt-cloud": Key(unchecked_value("mapping", {"project-id": 1}), help="Settings of dbt's cloud; not read here."),
    **_WITHOUT_EFFECT,
})  # fmt: skip
