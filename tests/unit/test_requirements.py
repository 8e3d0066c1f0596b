"""What `make` installs: exact versions with hashes, for all that pyproject.toml names."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKED = ROOT / "requirements"
FILES = (
    *sorted(LOCKED.glob("*.txt")),
    *(ROOT / "tests/dbt_core/requirements.txt", ROOT / "bench/dbt/requirements.txt"),
    ROOT / "bench/dbt_duckdb/requirements.txt",
    *sorted((ROOT / "tests/orchestrators").glob("*.txt")),
)
EXTRAS = {"run": ("speed", "report", "lineage", "lsp", "s3", "hdfs"), "dev": ("dev", "bench"), "audit": ("audit",)}


def versions(file: Path) -> dict[str, str]:
    """The version of each package by its normal name."""
    lines = re.findall(r"^([\w.-]+)(?:\[\w,]+)?==(\S+)", file.read_text("utf-8"), re.MULTILINE)
    return {_normal(name): version for name, version in lines}


def _normal(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_package_has_a_version_and_hashes_and_no_address(file: Path) -> None:
    text = file.read_text("utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        assert re.fullmatch(r"[\w.-]+(\[[\w,]+\])?==[\w.+!]+( ; [^#]+?)?(\s+--hash=sha256:[0-9a-f]{64})+\s*", line), (
            line
        )
    assert "://" not in text


@pytest.mark.parametrize("kind", EXTRAS)
def test_all_that_is_asked_for_is_locked(kind: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = [
        *project["dependencies"],
        *(each for extra in EXTRAS[kind] for each in project["optional-dependencies"][extra]),
    ]
    locked = versions(LOCKED / f"{kind}.txt")
    assert {_normal(each) for each in asked} <= set(locked)
    assert versions(LOCKED / "run.txt").items() <= locked.items(), "one version of the product, however it is installed"


def test_builds_find_their_tools() -> None:
    built_by = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    assert {_normal(each) for each in built_by} <= set(versions(LOCKED / "build.txt"))
