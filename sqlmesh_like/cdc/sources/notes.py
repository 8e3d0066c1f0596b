"""Notes of ingestion beside the tables, as JSON. Owns that those of a newer version are named, not guessed at."""

from __future__ import annotations

import json
from typing import Any

from sqlmesh_like.errors import NewerVersionError
from sqlmesh_like.hudi.storage import Folder

FORMAT = 1
"""Notes of this format are the bare value; those of later ones are `{"format": 2, "notes": …}`."""


def write_notes(place: Folder, name: str, value: object) -> None:
    """Write a note as a whole: a reader has the former one or this one."""
    path = f"{place.path}/{name}"
    place.fs.makedirs(place.path, exist_ok=True)
    with place.fs.open(f"{path}.new", "wb") as file:
        file.write(json.dumps(value, indent=1).encode())
    place.fs.mv(f"{path}.new", path)


def read_notes(place: Folder, name: str) -> Any:
    """Return the value of a note. Raises NewerVersionError."""
    data = json.loads(place.read(name))
    if isinstance(data, dict) and data.keys() >= {"format", "notes"} and isinstance(data["format"], int):
        raise NewerVersionError(f"{place.path}/{name}", f"its format is {data['format']}, this one knows {FORMAT}")
    return data
