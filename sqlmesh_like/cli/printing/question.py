"""A question before something that cannot be undone. Owns asking it on a terminal, with the spinner paused."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import click

from sqlmesh_like.cli.printing.activity import current
from sqlmesh_like.errors import UsageError


def confirm(question: str, refusal: str, hint: str) -> bool:
    """Return the answer. Raises UsageError, with the text `refusal`, where there is no terminal to ask on."""
    if not sys.stdin.isatty():
        raise UsageError(refusal, hint=hint)
    call = current()
    with nullcontext() if call is None else call.suspend():
        return click.confirm(question, err=True)
