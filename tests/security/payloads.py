"""Payloads that a generator makes, one class each: what a pull request, a package or an event could bring.

Owns the texts and where they are put. A payload is a project's files, links and pipes, and the command that meets them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import cast

from sqlmesh_like.app.setup.file_schemas import SCHEMA_FILES, file_json_schema

SECRET, PRECIOUS = "hunter2-outside", "precious-outside"
PROFILES = "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n"
FILES = {
    "dbt_project.yml": "name: shop\nprofile: shop\n",
    "profiles.yml": PROFILES,
    "models/a.sql": "select 1 as a",
    "models/orders.sql": "select 1 as id, 2.5 as amount, 'open' as status",
    "models/s.yml": "models: [{name: a, columns: [{name: a, data_tests: [not_null]}]}]\n",
    "seeds/s.csv": "id,name\n1,x\n",
}
COMMANDS = (
    ["compile"], ["ls", "--output", "json"], ["parse"], ["lint"], ["docs", "generate"], ["build"], ["clean"], ["seed"],
    ["lineage", "a"], ["show", "a"], ["report"], ["deps", "-t", "t"], ["import-check"], ["run-operation", "x"],
    ["ls", "--select", "+a", "tag:x", "path:models"], ["diff", "--state", "target"],
    ["docs", "generate", "--no-compile"], ["explain"], ["freshness"], ["debug"],
)  # fmt: skip


@dataclass
class Payload:
    """A project: texts or bytes by path, links and pipes by path, and the command.

    `{outside}` is a folder beside it.
    """

    command: list[str]
    files: dict[str, str | bytes] = field(default_factory=lambda: dict(FILES))
    links: dict[str, str] = field(default_factory=dict)
    pipes: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)


_TEXTS: Mapping[str, list[str | list[str | list[object]]]] = json.loads(
    Path(__file__).with_name("payloads.json").read_text()
)
"""Texts by what they are for; a list is what is joined, and one in it a text and how often it is repeated."""


@cache
def texts(kind: str) -> tuple[str, ...]:
    """Texts of `payloads.json`."""
    return tuple(one if isinstance(one, str) else "".join(map(_part, one)) for one in _TEXTS[kind])


def _part(part: str | list[object]) -> str:
    return part if isinstance(part, str) else str(part[0]) * int(str(part[1]))


STEPS, PATTERNS, OBJECTS, STEPS_OF_OBJECTS = map(texts, ("steps", "patterns", "objects", "steps_of_objects"))
_FORMATS, _PLACES, YAML, NAMES, ROWS = map(texts, ("formats", "places", "yaml", "names", "rows"))
LINKED, LED_TO = map(texts, ("linked", "led_to"))
NUMBERS: tuple[object, ...] = (
    -1, 0, 2**31, 2**63, 2**64, 10**400, 1e308, -1e-320, 0.1, True, False, None, "9" * 5_000, "1e9", "-1", "NaN", [],
    {}, [[]], [None], {"a": None}, {"": ""}, {"a": {"b": {"c": 1}}}, [1, "a", None], "", " ", "\n",
)  # fmt: skip


def text_of(chance: Random) -> str:
    """Any hostile text."""
    return chance.choice((*NAMES, *PATTERNS, *STEPS, *ROWS, *YAML, template(chance)))


def template(chance: Random) -> str:
    """A template that walks from something that templates know to what they must not reach."""

    def walk() -> str:
        return chance.choice(OBJECTS) + "".join(chance.choices(STEPS_OF_OBJECTS, k=chance.randint(1, 4)))

    said = walk() if chance.random() < 0.7 else chance.choice(_FORMATS).format(walk(), walk())
    return chance.choice(_PLACES).format(said)


# -- the classes ---------------------------------------------------------------------------------------------------


def paths(chance: Random) -> Payload:
    payload = Payload(chance.choice(COMMANDS))
    way = "/".join(chance.choices(STEPS, k=chance.randint(1, 4)))
    folders = ("model", "seed", "macro", "test", "snapshot", "analysis", "docs", "asset", "function")
    listed = ("clean-targets", *(f"{folder}-paths" for folder in folders))
    single = ("target-path", "packages-install-path", "log-path")
    settings = {key: json.dumps([way]) for key in listed} | {key: json.dumps(way) for key in single}
    key, quoted = chance.choice(list(settings)), json.dumps(way)
    spot = chance.randrange(6)
    if spot < 3:
        payload.files["dbt_project.yml"] = f"{FILES['dbt_project.yml']}{key}: {settings[key]}\n"
    elif spot == 3:
        payload.files["packages.yml"] = f"packages: [{{{chance.choice(('local', 'git', 'tarball'))}: {quoted}}}]\n"
        payload.command = chance.choice((["deps", "-t", "t"], ["ls"]))
    elif spot == 4:
        given = f"{{input: \"ref('a')\", format: {chance.choice(('csv', 'sql'))}, fixture: {quoted}}}"
        payload.files["models/u.yml"] = (
            f"unit_tests: [{{name: u, model: b, given: [{given}], expect: {{format: csv, fixture: {quoted}}}}}]\n"
        )
        payload.files["models/b.sql"] = "select a from {{ ref('a') }}"
        payload.command = chance.choice((["test"], ["build"], ["compile"]))
    else:
        kind = chance.choice(("csv", "parquet", "json", "hudi", "delta"))
        table = f"{{name: t, location: {quoted}, format: {kind}, identifier: {quoted}}}"
        payload.files["models/u.yml"] = (
            f"sources: [{{name: s, schema: {quoted}, tables: [{table}]}}]\nexposures: [{{name: e, type: notebook, "
            f"url: {quoted}, owner: {{name: x}}}}]\n"
        )
        payload.files["models/b.sql"] = "select * from {{ source('s', 't') }}"
    return payload


def links(chance: Random) -> Payload:
    payload = Payload(chance.choice(COMMANDS))
    for where in chance.sample(LINKED, k=chance.randint(1, 3)):
        fate = chance.random()
        payload.files.pop(where, None)
        if fate < 0.75:
            payload.links[where] = chance.choice(LED_TO)
        elif fate < 0.9:
            payload.pipes.append(where)
        else:
            payload.folders.append(where)
    if "profiles.yml" not in payload.files:
        payload.command = chance.choice((["ls"], ["debug"], ["build"]))
    payload.files["models/b.sql"] = "select * from {{ source('s', 't') }}"
    payload.files["models/t.yml"] = "sources: [{name: s, schema: ods, tables: [{name: t}]}]\n"
    return payload


def patterns(chance: Random) -> Payload:
    payload = Payload(chance.choice((["ls"], ["compile"], ["ls", "--selector", "x"], ["parse"], ["docs", "generate"])))
    pattern, other = (json.dumps(one) for one in chance.choices(PATTERNS, k=2))
    key = chance.choice(("table", "database", "schema"))
    table = f"{{name: t, ingest: {{{key}: {pattern}, primary_key: id}}}}"
    ingest = f"{{format: debezium, kafka: {{topic_pattern: {other}, bootstrap_servers: x}}}}"
    if chance.random() < 0.4:
        ingest = f"{{format: debezium, files: {{path: {json.dumps(chance.choice(PATTERNS))}}}}}"
    payload.files["models/n.yml"] = f"sources: [{{name: s, schema: ods, ingest: {ingest}, tables: [{table}]}}]\n"
    method = chance.choice(("", "path:", "fqn:", "tag:", "config.x:", "file:", "source:", "package:", "resource_type:"))
    definition = json.dumps(method + chance.choice(PATTERNS))
    payload.files["selectors.yml"] = f"selectors: [{{name: x, definition: {definition}}}]\n"
    if chance.random() < 0.4:
        payload.command = [
            "ls",
            "--select",
            chance.choice(("", "+", "@", "9999999999+")) + method + chance.choice(PATTERNS),
        ]
    if chance.random() < 0.3:
        rule = f"{{name: {pattern}, columns: {other}, pattern: {pattern}}}"
        payload.files["models/r.yml"] = f"column_rules: [{rule}]\n"
    return payload


def templates(chance: Random) -> Payload:
    payload = Payload(chance.choice(COMMANDS))
    payload.files["models/m.sql"] = f"select '{template(chance)}' as a"
    text = json.dumps(template(chance))
    place = chance.randrange(7)
    if place < 2:
        payload.files["models/n.yml"] = f"models: [{{name: m, description: {text}, meta: {{a: {text}}}}}]\n"
    elif place == 2:
        payload.files["macros/x.sql"] = f"{{% macro x() %}}{template(chance)}{{% endmacro %}}"
        payload.files["models/m.sql"] = "select '{{ x() }}' as a"
    elif place == 3:
        hooks = f"on-run-start: [{text}]\nmodels: {{+pre-hook: {text}, +meta: {{a: {text}}}}}\n"
        payload.files["dbt_project.yml"] = f"{FILES['dbt_project.yml']}{hooks}"
    elif place == 4:
        payload.files["dbt_project.yml"] = f"{FILES['dbt_project.yml']}vars: {{x: {text}}}\n"
        payload.files["models/m.sql"] = "select '{{ var('x') }}' as a"
    elif place == 5:
        payload.files["models/d.md"] = (
            f"{{% docs {chance.choice(('x', '__overview__'))} %}}{template(chance)}{{% enddocs %}}"
        )
    else:
        payload.files["tests/t.sql"] = f"select * from (select 1 as a) where a = '{template(chance)}'"
        payload.files["snapshots/k.sql"] = (
            "{% snapshot k %}{{ config(unique_key='a', strategy='check', check_cols='all') }}"
            f"{template(chance)}{{% endsnapshot %}}"
        )
    return payload


def yaml(chance: Random) -> Payload:
    payload = Payload(chance.choice(COMMANDS))
    kinds = {
        "dbt_project.yml",
        "models/s.yml",
        "packages.yml",
        "selectors.yml",
        "profiles.yml",
        "dependencies.yml",
        "report.yml",
    }
    path = chance.choice(sorted(kinds))
    if path == "profiles.yml":
        payload.command = chance.choice((["ls"], ["debug"], ["build"]))
    text, piece = str(FILES.get(path, "x: [{name: a}]\n")), chance.choice(YAML)
    place = chance.randrange(len(text))
    payload.files[path] = chance.choice(
        (text[:place] + piece + text[place:], f"{text}{piece}\n", text[:place] + piece, f"a: {piece}\n{text}")
    )
    if chance.random() < 0.15:
        payload.files[path] = str(payload.files[path]).encode(errors="replace")[:place] + chance.randbytes(9)
    return payload


_SCHEMA_OF = {
    "properties": "models/s.yml", "project": "dbt_project.yml", "profiles": "profiles.yml",
    "selectors": "selectors.yml", "packages": "packages.yml",
}  # fmt: skip


_schema = cache(file_json_schema)


def fields(chance: Random) -> Payload:
    """A file that its JSON Schema allows, but for one value or two."""
    payload = Payload(chance.choice(COMMANDS))
    kind = chance.choice([one for one in SCHEMA_FILES if one in _SCHEMA_OF] + ["properties"] * 8)
    document = _Document(chance, _schema(kind)).make()
    if kind == "project":
        document = {"name": "shop", "profile": "shop"} | cast(dict[str, object], document)
    if kind == "profiles":
        payload.command = chance.choice((["ls"], ["debug"], ["compile"]))
    payload.files[_SCHEMA_OF[kind]] = json.dumps(document)
    return payload


@dataclass
class _Document:
    chance: Random
    whole: Mapping[str, object]

    def make(self) -> object:
        return self._value(self.whole["allOf"][0], 0)  # type: ignore[index]

    def _value(self, schema: object, depth: int) -> object:
        chance = self.chance
        if chance.random() < 0.06 and depth > 1:
            return chance.choice((text_of(chance), chance.choice(NUMBERS)))
        match schema:
            case {"$ref": str() as name}:
                return self._value(self.whole["definitions"][name.rpartition("/")[2]], depth)  # type: ignore[index]
            case {"examples": [example, *_]} if depth > 9 or chance.random() < 0.5:
                return example
            case {"anyOf": [*forms]}:
                return self._value(chance.choice(forms), depth)
            case {"properties": dict() as properties}:
                required = set(cast(list[str], cast(dict[str, object], schema).get("required", [])))
                chosen = (required & set(properties)) | set(
                    chance.sample(sorted(properties), k=min(len(properties), chance.randint(1, 4)))
                )
                made = {key: self._value(properties[key], depth + 1) for key in sorted(chosen)}
                return made | ({text_of(chance): 1} if chance.random() < 0.02 else {})
            case {"items": items}:
                return [self._value(items, depth + 1) for _ in range(chance.randint(1, 2))]
            case {"enum": [*words]} if words:
                return chance.choice(words)
            case {"type": "boolean"}:
                return chance.random() < 0.5
            case {"type": "integer"}:
                return chance.choice((1, 2, 10))
            case _:
                return chance.choice(("orders", "a", "id", "ref('a')", "amount", text_of(chance)))


def names(chance: Random) -> Payload:
    payload = Payload(chance.choice(COMMANDS))
    name, column = chance.choices(NAMES, k=2)
    file = name.replace("/", "_").replace("\0", "0")[:200]
    payload.files[f"models/{file}.sql"] = f"select 1 as `{column}`"
    for path, kind in (("models/n.yml", "models"), ("models/s.yml", "entries")):
        text = chance.choice(texts(kind))
        payload.files[path] = text.replace("@1", json.dumps(name)).replace("@2", json.dumps(column))
    payload.files["models/d.md"] = f"{{% docs {name} %}}{column}{{% enddocs %}}" if chance.random() < 0.1 else ""
    return payload


def rows(chance: Random) -> Payload:
    shown = ("show m", "show m --output csv", "show m --output json")
    calls = ("seed", "build", *shown, "compile", "test", "report", "docs generate")
    payload = Payload(chance.choice(calls).split())
    cells = [chance.choice(ROWS) for _ in range(6)]
    head = [chance.choice(ROWS)[:50] if chance.random() < 0.1 else name for name in ("a", "b", "c")]
    quoted = ",".join('"{}"'.format(cell.replace('"', '""')) for cell in cells[3:])
    lines = [",".join(head), quoted, *([",".join(cells[:3])] if chance.random() < 0.3 else [])]
    content = chance.choice(("\n", "\r\n", "\r")).join(lines).encode(errors="surrogatepass")
    payload.files["seeds/s.csv"] = content if chance.random() < 0.9 else content + chance.randbytes(6)
    payload.files["models/m.sql"] = "select * from {{ ref('s') }}"
    kinds = ("int", "date", "timestamp", "decimal(38,10)", "boolean", "double", "array<int>", "x", "string")
    delimiter = json.dumps(
        chance.choice((",", ";", "\t", "", "\x00", ",,", '"', "\n")) if chance.random() < 0.2 else ","
    )
    types = f"column_types: {{a: {chance.choice(kinds)}}}, " if chance.random() < 0.4 else ""
    payload.files["models/s.yml"] = f"seeds: [{{name: s, config: {{{types}delimiter: {delimiter}}}}}]\n"
    if chance.random() < 0.4:
        cell, other = (json.dumps(chance.choice(ROWS)) for _ in range(2))
        payload.files["models/n.sql"] = "select a from {{ ref('m') }}"
        given = f"{{input: \"ref('m')\", rows: [{{a: {cell}}}, {{a: {other}}}]}}"
        payload.files["models/u.yml"] = (
            f"unit_tests: [{{name: u, model: n, given: [{given}], expect: {{rows: [{{a: {cell}}}]}}}}]\n"
        )
    if chance.random() < 0.3:
        cell = chance.choice(ROWS).replace("'", "")
        payload.files["models/o.sql"] = f"select '{cell}' as a, {{{{ log('{cell}', info=true) }}}} 1 as b"
    if payload.command == ["report"]:
        title, text = (json.dumps(cell) for cell in cells[:2])
        chart = f'{{sql: "select 1 as x", kind: number, title: {title}, text: {text}}}'
        payload.files["report.yml"] = f"charts: [{chart}]\n"
    return payload


CLASSES: tuple[Callable[[Random], Payload], ...] = (paths, links, patterns, templates, yaml, fields, names, rows)


def payload_of(number: int) -> Payload:
    """The payload of a number: the classes take turns."""
    return CLASSES[number % len(CLASSES)](Random(number))
