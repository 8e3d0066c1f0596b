"""Writes docs/reference.md from the declarations that the loader checks: `python docs/generate_reference.py`."""

from __future__ import annotations

import json
from pathlib import Path

from sqlmesh_like.app.setup.file_schemas import SCHEMA_FILES
from sqlmesh_like.project.keys.json_schema import shapes_of
from sqlmesh_like.project.keys.shape import Key, Shape

HEAD = """# Reference: every key of the project's files

Generated from the declarations that the loader checks, by `python docs/generate_reference.py`. `sml schema KIND`
prints the same as JSON Schema, which editors use to complete and check YAML:

```
sml schema properties > .vscode/properties.schema.json
```

and in VS Code's settings, for its YAML extension:

```json
{"yaml.schemas": {".vscode/properties.schema.json": ["models/**/*.yml", "seeds/**/*.yml"]}}
```

Other editors read it from the file's first line: `# yaml-language-server: $schema=../.vscode/properties.schema.json`.

Keys in bold are required. A template (`{{ var('x') }}`, `{{ env_var('X') }}`) may be used for any value where the
loader renders it; a key without a default is unset by default. dbt's own keys are accepted so that a dbt project loads.
"""
OTHERS = {
    "refuse": "Any other key is an error.",
    "warn": "Any other key is ignored with a warning that suggests the nearest.",
    "take": "Other keys are allowed: they are the project's own, or another tool's.",
}
EMPTY = "–"


def page() -> str:
    """The whole page: files, and below each the entries that no earlier file has."""
    parts, written = [HEAD], set[int]()
    for kind, (file, title) in SCHEMA_FILES.items():
        parts.append(f"## {title}\n\n`sml schema {kind}`\n")
        shapes = [shape for shape in shapes_of(file) if shape.keys]
        for shape in shapes:
            if id(shape.keys) not in written:
                written.add(id(shape.keys))
                alike = [one.name for one in shapes if one.keys is shape.keys]
                heading = [] if shape is file else [f"### {_capital(', '.join(alike))}\n"]
                parts += [*heading, f"{OTHERS[shape.others]}\n", _table(shape)]
    return "\n".join(parts)


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _table(shape: Shape) -> str:
    rows = [_row(name, key) for name, key in shape.keys.items()]
    return "\n".join(["| key | type | default | example | |", "|---|---|---|---|---|", *rows, ""])


def _row(name: str, key: Key) -> str:
    default = EMPTY if key.default in (None, (), {}, "") else _code(_plain(key.default))
    cells = [
        f"**`{name}`**" if key.is_required else f"`{name}`",
        key.form.words,
        default,
        EMPTY if key.shown is None else _code(_plain(key.shown)),
        key.help or EMPTY,
    ]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _plain(value: object) -> object:
    """A default that is a list of one folder is shown as that folder."""
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value


def _code(value: object) -> str:
    """A value in YAML's flow style."""
    return f"`{_flow(value)}`"


def _flow(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(child)}" for key, child in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str):
        return value if _is_plain(value) else json.dumps(value, ensure_ascii=False)
    return json.dumps(value)


def _is_plain(text: str) -> bool:
    """Whether it can be written in YAML without quotes."""
    return (
        text not in ("", "true", "false", "null")
        and not text[0].isdigit()
        and not set("{}[]:,#&*!|>'\"%@`") & set(text)
    )


if __name__ == "__main__":
    (Path(__file__).parent / "reference.md").write_text(page(), encoding="utf-8")
