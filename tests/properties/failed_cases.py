"""Cases that failed once. Owns their files: one a case, tried at each run from then on."""

from __future__ import annotations

import re
from pathlib import Path

from tests.properties.case import AGAIN, Case

FOLDER = Path(__file__).parent / "failed_once"


def keep(failure: BaseException, test: str, folder: Path = FOLDER) -> Path | None:
    """File the shrunk case that a failing test told; None where it told none."""
    notes: list[str] = getattr(failure, "__notes__", [])
    message = next((note.removeprefix(AGAIN).strip() for note in notes if note.startswith(AGAIN)), None)
    if message is None:
        return None
    setting, _, case = message.rpartition("\n\n")
    folder.mkdir(exist_ok=True)
    path = folder / f"{re.sub(r'[^0-9a-z]+', '_', test.lower()).strip('_')}.py"
    path.write_text(f"{setting}\nfrom tests.properties.case import Case\n\nCASE = {case}\n", encoding="utf-8")
    return path


def kept(path: Path) -> Case:
    """The case of a file."""
    names: dict[str, object] = {}
    exec(path.read_text(encoding="utf-8"), names)
    case = names["CASE"]
    assert isinstance(case, Case), path
    return case
