"""No command and no option without help, a place in docs/commands.md and a test."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import click
import pytest

from sqlmesh_like.cli.app import COMMANDS, build_app
from sqlmesh_like.cli.options import global_options

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = runpy.run_path(str(ROOT / "docs" / "generate_commands.py"))
LEAVES: dict[tuple[str, ...], click.Command] = dict(REFERENCE["leaves"](build_app()))
TESTS = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("test_*.py"))]
TESTS.append((ROOT / "demo" / "shop" / "__main__.py").read_text(encoding="utf-8"))
WORDS = [frozenset(re.findall(r"[\w-]+", text)) for text in TESTS]


def is_named(*words: str) -> bool:
    """Whether a test holds all these words as literals or parts of a call's words."""
    return any(held.issuperset(words) for held in WORDS)


def test_the_page_of_commands_is_the_one_that_code_makes() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert page == REFERENCE["page"](), "run `python docs/generate_commands.py`"


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_a_command_has_help_and_a_test(words: tuple[str, ...]) -> None:
    command = LEAVES[words]
    assert command.help, f"sml {' '.join(words)} has no help"
    assert COMMANDS[words[0]]
    quoted = ", ".join(f'"{word}"' for word in words)
    assert any(quoted in text for text in TESTS), f"no test calls [{quoted}]"


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_each_option_of_a_command_has_help_and_a_test(words: tuple[str, ...]) -> None:
    for option in REFERENCE["own_options"](LEAVES[words]):
        spellings = [*option.opts, *option.secondary_opts]
        assert option.help, f"{spellings[0]} of sml {' '.join(words)} has no help"
        assert any(is_named(*words, spelt) for spelt in spellings), (
            f"no test of sml {' '.join(words)} uses {spellings[0]}"
        )


def test_each_shared_flag_has_help_and_a_test() -> None:
    for option in global_options():
        assert isinstance(option, click.Option) and option.help, option.name
        assert any(is_named(spelt) for spelt in option.opts), f"no test uses {option.opts[0]}"
