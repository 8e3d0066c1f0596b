"""Metrics of the code's structure: `python -m tools.metrics [ROOT …]` prints a Markdown column for each checkout."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median

SMALL_FILE = 50
SHORT_FUNCTION = 15
PARTICIPLE = re.compile(
    r"_?(?!(?:need|feed|seed|embed|speed)$)(?:[a-z]+ed|made|found|told|kept|spelt|held|given|taken|written|shown|seen|lost|built)"
)
"""Names of functions that say how a value came about instead of what it is; `_judged`, not `judged_rows`."""


@dataclass(frozen=True)
class Metrics:
    """Counts of the package `sqlmesh_like` in one checkout; private functions are those at the top level of modules."""

    files: int
    lines: int
    small_files: int
    private_functions: int
    short_single_use: int
    median_function: float
    ambiguous_names: int
    participle_names: int
    largest_folder: str
    paths: str


def measure(root: Path) -> Metrics:
    """Measure a checkout."""
    files = sorted((root / "sqlmesh_like").rglob("*.py"))
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    lengths: list[int] = []
    private = short = participles = 0
    owners: Counter[str] = Counter()
    for path, text in texts.items():
        tree = ast.parse(text)
        words = Counter(re.findall(r"\w+", text))
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                owners[node.name] += path.parent.name != "commands"
            if isinstance(node, ast.FunctionDef) and node.name.startswith("_"):
                private += 1
                short += words[node.name] == 2 and _length(node) < SHORT_FUNCTION
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        lengths += [_length(node) for node in functions]
        participles += sum(PARTICIPLE.fullmatch(node.name) is not None for node in functions)
    folders = Counter(path.parent for path in files if path.name != "__init__.py" and path.parent.name != "commands")
    folder, count = folders.most_common(1)[0]
    return Metrics(
        files=len(files),
        lines=sum(text.count("\n") for text in texts.values()),
        small_files=sum(
            0 < text.count("\n") < SMALL_FILE for path, text in texts.items() if path.name != "__init__.py"
        ),
        private_functions=private,
        short_single_use=short,
        median_function=median(lengths),
        ambiguous_names=sum(number > 1 for number in owners.values()),
        participle_names=participles,
        largest_folder=f"{count} ({folder.name})",
        paths=", ".join(map(str, path_lengths(root))) or "not written down",
    )


def path_lengths(root: Path) -> list[int]:
    """Return the number of files on each path that `docs/architecture.md` lists; a test checks that list."""
    text = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    tables = text.partition("## Three paths, file by file")[2].partition("\n## ")[0].split("\n\n")
    return [table.strip().count("\n") - 1 for table in tables if table.startswith("| |")]


def _length(node: ast.FunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


ROWS = {
    "files": "modules",
    "lines": "lines",
    "small_files": f"modules under {SMALL_FILE} lines",
    "private_functions": "private top-level functions",
    "short_single_use": f"… used once and shorter than {SHORT_FUNCTION} lines",
    "median_function": "lines of the median function",
    "ambiguous_names": "public classes and functions whose name is in two or more modules",
    "participle_names": "functions named by a bare participle",
    "largest_folder": "modules in the largest folder",
    "paths": "files to follow a changed row (its end without a JVM), an event, a model's text",
}


def main() -> None:
    """Print a table with a column for each checkout."""
    roots = [Path(root) for root in sys.argv[1:]] or [Path(__file__).resolve().parent.parent]
    columns = [vars(measure(root)) for root in roots]
    print(f"| | {' | '.join(root.resolve().name for root in roots)} |")
    print(f"|---|{'---|' * len(roots)}")
    for field, title in ROWS.items():
        print(f"| {title} | {' | '.join(str(column[field]) for column in columns)} |")


if __name__ == "__main__":
    main()
