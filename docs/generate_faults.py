"""Writes the tables of kills and of other faults in docs/reliability.md: `python docs/generate_faults.py`.

They are in docs/kills.json and docs/faults.json. With a folder, `target`, in which `make test-deep` leaves counts in
`kills` and `faults`, these files are first written from there. A test compares page and counts.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
KILLS, FAULTS = DOCS / "kills.json", DOCS / "faults.json"
PAGE = DOCS / "reliability.md"
COLUMNS = ("tried", "recovered", "refused", "lost", "doubled", "stuck", "silent")
ENDS = {"recovers": "succeeds", "refuses": "fails, and says what to do first"}
"""What the next call must do, by the name that tests give it."""


def added_up(folder: Path) -> dict[str, dict[str, Any]]:
    """Counts by what was killed. `steps`: kills by where they hit."""
    result: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.json")):
        tally = json.loads(path.read_text(encoding="utf-8"))
        row = result.setdefault(tally["what"], {"steps": {}, **dict.fromkeys(COLUMNS, 0)})
        row["steps"] = dict(sorted((Counter(row["steps"]) + Counter(tally["kills"])).items()))
        for column in COLUMNS[1:]:
            row[column] += tally[column]
        row["tried"] = sum(row["steps"].values())
    return dict(sorted(result.items(), key=lambda item: -item[1]["tried"]))


def section(counts: dict[str, dict[str, Any]]) -> str:
    """The table, with a last row of sums."""
    heads = [column if column != "refused" else "refused, then recovered" for column in COLUMNS]
    lines = [f"| what was killed | named steps | {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) + 1)}"]
    for what, row in counts.items():
        steps = len(row["steps"].keys() - {"at random"})
        lines.append(f"| {what} | {steps} | {' | '.join(f'{row[column]:,}' for column in COLUMNS)} |")
    sums = [sum(row[column] for row in counts.values()) for column in COLUMNS]
    lines.append(f"| all | | {' | '.join(f'{each:,}' for each in sums)} |")
    return "\n".join(lines) + "\n"


def faults_of(folder: Path) -> list[dict[str, Any]]:
    """A row for each fault and end: how many cases were tried, and how many ended otherwise."""
    tried: Counter[tuple[str, str]] = Counter()
    wrong: Counter[tuple[str, str]] = Counter()
    for path in sorted(folder.glob("*.json")):
        for row in json.loads(path.read_text(encoding="utf-8")):
            tried[row["what"], row["ends"]] += row["tried"]
            wrong[row["what"], row["ends"]] += 0 if row["is_right"] else row["tried"]
    return [
        {"what": what, "ends": ends, "tried": number, "wrong": wrong[what, ends]}
        for (what, ends), number in sorted(tried.items())
    ]


def faults_section(rows: list[dict[str, Any]]) -> str:
    """The table of faults other than kills."""
    lines = ["| fault | the next call | cases | ended otherwise |", "|---|---|---:|---:|"]
    lines += [f"| {row['what']} | {ENDS[row['ends']]} | {row['tried']} | {row['wrong']} |" for row in rows]
    return "\n".join(lines) + "\n"


def page() -> str:
    """The whole page with the tables in their places."""
    text = PAGE.read_text(encoding="utf-8")
    tables = {
        "kills": section(json.loads(KILLS.read_text(encoding="utf-8"))),
        "faults": faults_section(json.loads(FAULTS.read_text(encoding="utf-8"))),
    }
    for name, table in tables.items():
        begin, end = f"<!-- {name}: written by docs/generate_faults.py -->\n", f"<!-- /{name} -->\n"
        before, _, rest = text.partition(begin)
        _, has_end, after = rest.partition(end)
        assert has_end, f"{PAGE} has no place for {name}"
        text = before + begin + table + end + after
    return text


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _write(KILLS, added_up(Path(sys.argv[1]) / "kills"))
        _write(FAULTS, faults_of(Path(sys.argv[1]) / "faults"))
    PAGE.write_text(page(), encoding="utf-8")
