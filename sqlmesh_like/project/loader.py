"""Files of a project → `ParsedProject`. Owns joining the project and its packages; each is a `PackageFiles`.

`render` renders the Jinja inside SQL. Nothing here starts an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sqlmesh_like.project.config import merge_config
from sqlmesh_like.project.doc_blocks import read_doc_blocks
from sqlmesh_like.project.folder_config import FolderConfig
from sqlmesh_like.project.functions.reading import refuse_same_names, without_foreign_python
from sqlmesh_like.project.nodes import ParsedProject, SeedFile, Target
from sqlmesh_like.project.package_reader import PackageFiles, read_package, seed_column_types
from sqlmesh_like.project.packages import installed_packages
from sqlmesh_like.project.profile import ProfileRequest, TargetWords
from sqlmesh_like.project.reading.files import files_under, read_text, relative
from sqlmesh_like.project.semantic.declarations import SemanticLayer
from sqlmesh_like.project.settings import Settings, find_project, load_settings
from sqlmesh_like.project.testing.unit_test_spec import UnitTestFile
from sqlmesh_like.project.testing.unit_tests import FixtureFile, unit_tests_of
from sqlmesh_like.project.unread import unread

__all__ = ["find_project", "load_project"]


TargetResolver = Callable[[ProfileRequest], Target]
"""Finds the target of a call; it is called only if a template in YAML reads the target."""


def load_project(
    root: Path, cli_vars: Mapping[str, object], resolve_target: TargetResolver | None = None
) -> ParsedProject:
    """Everything the project's files declare. Raises ProjectError at the first error."""
    root = root.resolve()
    settings = _with_target(load_settings(root, cli_vars), root, resolve_target)
    installed = [replace(package, target=settings.target) for package in installed_packages(root, settings, cli_vars)]
    docs = {one.name: read_doc_blocks(root, one.docs_paths, one.name) for one in (settings, *installed)}
    texts = {name: {block.name: block.text for block in blocks} for name, blocks in docs.items()}
    own = read_package(root, settings, texts)
    packages = [read_package(root, package, texts, settings) for package in installed]
    own = replace(own, seeds=tuple(_describe_by_package(seed, own, packages) for seed in own.seeds))
    parts = (own, *packages)
    unit_tests = tuple(test for part in parts for test in _unit_tests(root, part, settings))
    read = (function for part in parts for function in part.functions)
    functions = tuple(without_foreign_python(read, (settings.name, *settings.flags.python_model_packages)))
    refuse_same_names(functions)
    return ParsedProject(
        name=settings.name,
        root=root,
        settings_file=settings.file,
        profile_name=settings.profile,
        target_path=settings.target_path,
        clean_targets=settings.clean_targets,
        packages_path=settings.packages_path,
        vars=settings.vars,
        models=tuple(model for part in parts for model in part.models),
        seeds=tuple(seed for part in parts for seed in part.seeds),
        sources=tuple(source for part in parts for source in part.properties.sources),
        tests=tuple(test for part in parts for test in part.tests),
        macros=tuple(macro for part in parts for macro in part.macros),
        unit_tests=unit_tests,
        docs=tuple(block for blocks in docs.values() for block in blocks),
        macro_docs={name: doc for part in parts for name, doc in part.properties.macro_docs.items()},
        exposures=tuple(exposure for part in parts for exposure in part.properties.exposures),
        groups=tuple(group for part in parts for group in part.properties.groups),
        semantic=_semantic_layer([part.properties.semantic for part in parts]),
        analyses=tuple(analysis for part in parts for analysis in part.analyses),
        functions=functions,
        warnings=(*own.warnings, *unread(root, settings)),
        package_vars={part.settings.name: part.settings.vars for part in packages},
        dispatch=settings.dispatch,
        flags=settings.flags,
        release=settings.release,
        versions={one.name: one.version for one in (settings, *installed)},
        on_run_start=tuple(hook for part in parts for hook in part.settings.on_run_start),
        on_run_end=tuple(hook for part in parts for hook in part.settings.on_run_end),
    )


def _semantic_layer(layers: Sequence[SemanticLayer]) -> SemanticLayer:
    return SemanticLayer(
        tuple(one for layer in layers for one in layer.semantic_models),
        tuple(one for layer in layers for one in layer.metrics),
        tuple(one for layer in layers for one in layer.saved_queries),
    )


def _describe_by_package(seed: SeedFile, own: PackageFiles, packages: list[PackageFiles]) -> SeedFile:
    """As in dbt, a seed that replaces a disabled one of a package gets the properties in the package's YAML."""
    if seed.name in own.properties.seeds:
        return seed
    for package in packages:
        described = package.properties.seeds.get(seed.name)
        if described is None or any(one.name == seed.name and is_on(one) for one in package.seeds):
            continue
        config = merge_config(seed.config, described.config)
        types = {c.name: c.type for c in described.columns if c.type is not None}
        return replace(
            seed, config=config, column_types={**types, **seed_column_types(config)}, declared_types=types,
            description=described.description, column_docs=described.column_docs,
            described_in=described.declared_at.path,
        )  # fmt: skip
    return seed


def is_on(seed: SeedFile) -> bool:
    """Whether a seed is enabled."""
    return seed.config.get("enabled") is not False


def _with_target(settings: Settings, root: Path, resolve_target: TargetResolver | None) -> Settings:
    if resolve_target is None:
        return settings
    asking = ProfileRequest(root, settings.vars, settings.profile)
    return replace(settings, target=TargetWords(lambda: resolve_target(asking)))


def _unit_tests(root: Path, part: PackageFiles, over: Settings) -> tuple[UnitTestFile, ...]:
    """The unit tests of the project or of a package, without those that settings disable."""
    settings, properties = part.settings, part.properties
    paths = files_under(root, [f"{folder}/fixtures" for folder in settings.test_paths], (".csv", ".sql"))
    # Read only if there are unit tests that may use them.
    files = [FixtureFile(relative(path, root), read_text(path, root)) for path in paths if properties.unit_tests]
    names = [model.name for model in part.models]
    versions = [model.version for model in part.models if model.version is not None]
    unit_tests = unit_tests_of(properties.unit_tests, settings.name, names, versions, files, settings.words)
    values = settings.words.values()
    by_folder = FolderConfig(settings, values, values, over if settings.is_package else None)
    return tuple(test for test in unit_tests if not by_folder.is_off("unit_tests", test.path, test.model, test.name))
