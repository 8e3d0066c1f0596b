"""Payloads that a generator makes of the classes that got in before: none does anything outside, or is "unexpected".

Each number is one project. The suite tries a few, `make test-all` 300.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from sqlmesh_like.app.setup.archive import ArchiveError, extract
from sqlmesh_like.cli.app import main
from sqlmesh_like.docs.server import is_own_host
from tests.levels import parametrize
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]
SECRET, PRECIOUS = "hunter2-outside", "precious-outside"
PROFILES = "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n"
FILES = {
    "dbt_project.yml": "name: shop\nprofile: shop\n",
    "profiles.yml": PROFILES,
    "models/a.sql": "select 1 as a",
    "models/s.yml": "models: [{name: a, columns: [{name: a, data_tests: [not_null]}]}]\n",
    "seeds/s.csv": "id,name\n1,x\n",
}
_STEPS = (
    '..', '../other', '/etc', '~', '$HOME', '{outside}', 'a/../..', '.', '', '//', 'C:\\', 'con', '\u202e',
    'a' * 300,
)  # fmt: skip
_PATH_KEYS = (
    'model-paths', 'seed-paths', 'macro-paths', 'test-paths', 'snapshot-paths', 'analysis-paths', 'docs-paths',
    'target-path', 'packages-install-path', 'clean-targets',
)  # fmt: skip
_OBJECTS = (
    "''", '[]', 'ref', 'source', 'var', 'env_var', 'this', 'target', 'adapter', 'exceptions', 'log', 'config',
    'model', 'modules.datetime', 'modules.re', 'modules.pytz', 'modules.itertools', 'builtins', 'api', 'graph',
    'invocation_id', 'run_started_at', 'self', 'namespace()', 'cycler()', 'joiner()', 'lipsum', 'dict', 'range',
    'flags', 'dbt_version', 'local_md5', 'fromjson', 'tojson', 'caller', 'context', "ref('a')", 'run_query',
    'execute', 'return',
)  # fmt: skip
_STEPS_OF_OBJECTS = (
    '.__class__', '.__mro__[1]', '.__subclasses__()', '.__globals__', '.__builtins__', '.__init__', '.__dict__',
    '.__code__', '.__self__', '.__func__', '.gi_frame', '.f_back', '.f_globals', '.mro()', "['__class__']",
    "|attr('__class__')", "|attr('\\x5f_globals\\x5f_')", ".__getattribute__('__class__')",
    "|map(attribute='__class__')|list", '|string', '|list', '|format', '.format', '.format_map', '|xmlattr',
    '|pprint', '.func_globals', '.environment', '.loader', '.sys', '.os', '.utils', '.__reduce_ex__(2)',
    '.__wrapped__', '.datetime.__class__', '.re', '.sre_compile', '.parser', '()', '(1)',
)  # fmt: skip
_FORMATS = (
    '{}.format({})', "'{{0.__class__.__init__.__globals__}}'.format({1})", "('%s' % {1})", '({0} ~ {1})',
)  # fmt: skip
_YAML = (
    "!!python/object/apply:os.system ['touch {outside}/made']", '!!python/name:os.system', '!!binary x', '&a [*a]',
    '<<: *b', '? a', '.nan', "0x" + "f" * 300, '1:60:60', '2024-13-45', '!!set {a}', '!!omap [a: 1]', '- - - x',
    "{{ env_var('DBT_ENV_SECRET_X') }}", "{{ env_var('HIDDEN') | attr('__class__') }}", '\x85', '\ufeff',
    '\U0010ffff', '%TAG ! x', '--- !<x>', "'", '"\\ud800"', 'null: null', '[[[[', '1e999', '-0', '=', 'yes: no',
    '!!float x', '!!timestamp x', '*x', '|2\n x', '>-', '@x', '`x', '%', '\t- x',
)  # fmt: skip
_NAMES = (
    '../x', 'a b', 'a;drop', 'a`b', 'a"b', "a'b", '\x1b[2J', '\u202egnp', '::stop-commands::x', 'con', '__proto__',
    'ß' * 60, 'x' * 240, '-rf', 'a\nb', '%s', '{{ 1 }}', "{{ ''.__class__ }}", '*', '.', '\u0130', 'a\x7f',
)  # fmt: skip
_PATTERNS = (
    '(a+)+$', '(?=x)', '(a)\\1', '(?P<x>', '[', '(?i)x', 'a{9999}', '((a{9}){9}){9}', '\\p{L}', '(?#x)', 'x*+',
    '(?<!x)',
)  # fmt: skip
_ROWS = (
    "=cmd|'/c'!A1", '\x00', '"', '\ufffe', '\ud7ff', 'x' * 200000, '1' * 5000, 'nan', '\r', '${x}', '{{ 1 }}',
    '@SUM(1)', '\x1b]0;x\x07',
)  # fmt: skip


def _paths(chance: Random, files: dict[str, str]) -> None:
    way = "/".join(chance.choices(_STEPS, k=chance.randint(1, 4)))
    key = chance.choice(_PATH_KEYS)
    value = f"'{way}'" if key in ("target-path", "packages-install-path") else f"['{way}']"
    files["dbt_project.yml"] += f"{key}: {value}\n"


def _template(chance: Random) -> str:
    walk = lambda: chance.choice(_OBJECTS) + "".join(chance.choices(_STEPS_OF_OBJECTS, k=chance.randint(1, 4)))  # noqa: E731
    said = walk() if chance.random() < 0.7 else chance.choice(_FORMATS).format(walk(), walk())
    return chance.choice(
        ("{{{{ {} }}}}", "{{% set x = {} %}}{{{{ x }}}}", "{{% for x in {} %}}{{{{ x }}}}{{% endfor %}}")
    ).format(said)


def _templates(chance: Random, files: dict[str, str]) -> None:
    files["models/m.sql"] = f"select '{_template(chance)}' as a"
    files["models/n.yml"] = (
        f'models: [{{name: m, description: "{_template(chance)}", meta: {{a: "{_template(chance)}"}}}}]\n'
    )


def _yaml(chance: Random, files: dict[str, str]) -> None:
    path = chance.choice(("dbt_project.yml", "models/s.yml", "packages.yml", "selectors.yml", "profiles.yml"))
    text, piece = files.get(path, "x: [{name: a}]\n"), chance.choice(_YAML)
    place = chance.randrange(len(text))
    files[path] = chance.choice(
        (text[:place] + piece + text[place:], f"{text}{piece}\n", text[:place] + piece, f"a: {piece}\n{text}")
    )


def _names(chance: Random, files: dict[str, str]) -> None:
    name, column = chance.choices(_NAMES, k=2)
    with suppress(ValueError):
        files[f"models/{name.replace('/', '_')}.sql"] = f"select 1 as `{column}`"
    quoted = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    files["models/n.yml"] = f'models: [{{name: "{quoted}", config: {{schema: "{quoted}", alias: "{quoted}"}}}}]\n'


def _patterns(chance: Random, files: dict[str, str]) -> None:
    table = f"{{name: t, ingest: {{table: '{chance.choice(_PATTERNS)}', primary_key: id}}}}"
    ingest = f"{{format: debezium, files: {{path: '{chance.choice(_STEPS)}'}}}}"
    files["models/n.yml"] = f"sources: [{{name: s, schema: ods, ingest: {ingest}, tables: [{table}]}}]\n"
    files["selectors.yml"] = f"selectors: [{{name: x, definition: '{chance.choice(_PATTERNS)}'}}]\n"


def _rows(chance: Random, files: dict[str, str]) -> None:
    cells = ",".join(chance.choices(_ROWS, k=3))
    files["seeds/s.csv"] = f"{chance.choice(_ROWS)[:50]},b,c\n{cells}\n"
    files["models/m.sql"] = "select * from {{ ref('s') }}"


WAYS: tuple[Callable[[Random, dict[str, str]], None], ...] = (_paths, _templates, _yaml, _names, _patterns, _rows)
COMMANDS = (["compile"], ["ls", "--output", "json"], ["parse"], ["lint"], ["docs", "generate"], ["build"], ["clean"])


@parametrize("number", suite=range(24), release=range(24, 300))
def test_a_generated_project_gets_nowhere(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    chance = Random(number)
    outside = tmp_path / "other"
    (outside / "models").mkdir(parents=True)
    (outside / "models" / "p.sql").write_text(f"select '{PRECIOUS}' as p")
    monkeypatch.setenv("DBT_ENV_SECRET_X", SECRET)
    monkeypatch.setenv("SML_CACHE_DIR", str(tmp_path / "cache"))
    files = dict(FILES)
    WAYS[number % len(WAYS)](chance, files)
    root = tmp_path / "shop"
    root.mkdir()
    with suppress(OSError, ValueError):  # a name that the system does not take
        enter_project(
            root, monkeypatch, {path: text.replace("{outside}", str(outside)) for path, text in files.items()}
        )
    monkeypatch.chdir(root)
    if chance.random() < 0.3:
        _plant_link(chance, root, outside)
    before = _state(outside)
    code = main(chance.choice(COMMANDS))
    shown = capsys.readouterr()
    said = shown.out + shown.err + "".join(_written(root))
    assert code in (0, 1, 2) and "unexpected" not in shown.err, shown.err[-600:]
    assert SECRET not in said and "<class" not in said and "\x1b[2J" not in shown.out + shown.err
    assert (PRECIOUS not in said) and _state(outside) == before


def _plant_link(chance: Random, root: Path, outside: Path) -> None:
    place = root / chance.choice(
        ("models/l.sql", "macros", "target", "seeds/l.csv", "models/l", "packages.yml", "tests")
    )
    if not os.path.lexists(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(chance.choice((outside, outside / "models", outside / "models" / "p.sql", Path("/dev/zero"))))


def _state(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _written(root: Path) -> list[str]:
    paths = (path for path in (root / "target").rglob("*") if not (root / "target").is_symlink())
    return [path.read_text(errors="replace") for path in paths if path.is_file() and not path.is_symlink()]


def test_generated_archives_write_nothing_elsewhere(tmp_path: Path) -> None:
    for number in range(150):
        chance = Random(number)
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode=chance.choice(("w", "w:gz", "w:xz", "w:bz2"))) as archive:
            for _ in range(chance.randint(1, 4)):
                member = tarfile.TarInfo("/".join(chance.choices((*_STEPS, *_NAMES), k=chance.randint(1, 4)))[:600])
                member.type = chance.choice(
                    (tarfile.REGTYPE,) * 3 + (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE)
                )
                member.linkname = chance.choice(("../../x", "/etc/passwd", "x"))
                member.mode = chance.choice((0o644, 0o4777, 0))
                if chance.random() < 0.2:
                    member.pax_headers = {
                        chance.choice(("path", "linkpath", "size")): chance.choice(("../../y", "/y", "9"))
                    }
                with suppress(ValueError, UnicodeError):
                    archive.addfile(member, io.BytesIO(b""))
        data = bytearray(content.getvalue())
        for _ in range(chance.choice((0, 0, 3, 30))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        into = tmp_path / "in" / str(number)
        with suppress(ArchiveError):
            extract(bytes(data), into)
        assert all(path.is_relative_to(tmp_path / "in") for path in tmp_path.rglob("*") if path != tmp_path / "in")
        assert not any(path.is_symlink() or path.is_fifo() for path in tmp_path.rglob("*"))


def test_generated_hosts_are_not_ours() -> None:
    for number in range(150):
        chance = Random(number)
        host = chance.choice(("evil.test", "localhost.evil.test", "127.0.0.1.evil.test", "xn--localhost-x.test"))
        host = chance.choice(
            (
                host,
                host.upper(),
                f"{host}:8080",
                f"localhost@{host}",
                f"{host}.",
                f"localhost#{host}",
                f"localhost/{host}",
                f"[::1]{host}",
                f"{host}\\localhost",
                f"127.0.0.1 {host}",
            )
        )
        assert not is_own_host(host), host
