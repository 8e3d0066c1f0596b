"""`modules` of templates: dates, time zones, regular expressions and iterators. Owns what of them is within reach."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from types import SimpleNamespace
from zoneinfo import ZoneInfo


class Zone(ZoneInfo):
    """`modules.pytz.timezone('Europe/Berlin')`, with what templates call of pytz's zones."""

    def localize(self, moment: datetime.datetime, is_dst: bool = False) -> datetime.datetime:  # noqa: ARG002
        """A moment without a zone, in this one."""
        return moment.replace(tzinfo=self)

    def normalize(self, moment: datetime.datetime) -> datetime.datetime:
        return moment.astimezone(self)


def _stepped(function: Callable[..., Iterable[object]]) -> Callable[..., Iterator[object]]:
    """The same items, each by a step of Python: what runs in C alone cannot be stopped."""

    @wraps(function, assigned=("__name__", "__doc__"))
    def call(*args: object, **named: object) -> Iterator[object]:
        for item in function(*args, **named):  # noqa: UP028 (`yield from` is no step)
            yield item

    return call


# Chosen functions only: a module itself would lead out of the sandbox (`modules.datetime.sys`).
MODULES = SimpleNamespace(
    pytz=SimpleNamespace(timezone=Zone, utc=datetime.UTC, UTC=datetime.UTC),
    datetime=SimpleNamespace(
        datetime=datetime.datetime,
        date=datetime.date,
        time=datetime.time,
        timedelta=datetime.timedelta,
        timezone=datetime.timezone,
    ),
    re=SimpleNamespace(
        **{name: getattr(re, name) for name in ("match", "search", "fullmatch", "sub", "split", "findall", "escape")}
    ),
    itertools=SimpleNamespace(
        **{
            name: _stepped(getattr(itertools, name))
            for name in ("chain", "product", "combinations", "permutations", "islice")
        }
    ),
)
