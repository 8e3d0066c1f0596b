"""`modules` of templates: dates, time zones, regular expressions and iterators. Owns what of them is available."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from types import SimpleNamespace
from zoneinfo import ZoneInfo


class Zone(ZoneInfo):
    """`modules.pytz.timezone('Europe/Berlin')`, with the methods of pytz's zones that templates call."""

    @property
    def zone(self) -> str:
        return self.key

    def localize(self, moment: datetime.datetime, is_dst: bool = False) -> datetime.datetime:  # noqa: ARG002
        """The same local time, in this zone."""
        return moment.replace(tzinfo=self)

    def normalize(self, moment: datetime.datetime) -> datetime.datetime:
        return moment.astimezone(self)


class Utc(datetime.tzinfo):
    """`modules.pytz.utc`; Python's own has no `localize`."""

    zone = "UTC"

    def utcoffset(self, _moment: datetime.datetime | None) -> datetime.timedelta:
        return datetime.timedelta(0)

    dst = utcoffset

    def tzname(self, _moment: datetime.datetime | None) -> str:
        return self.zone

    def localize(self, moment: datetime.datetime, is_dst: bool = False) -> datetime.datetime:  # noqa: ARG002
        return moment.replace(tzinfo=self)

    def normalize(self, moment: datetime.datetime) -> datetime.datetime:
        return moment.astimezone(self)

    def __str__(self) -> str:
        return self.zone


def _make_interruptible(function: Callable[..., Iterable[object]]) -> Callable[..., Iterator[object]]:
    """Yield the same items, each in a step of Python: iteration in C alone cannot be interrupted."""

    @wraps(function, assigned=("__name__", "__doc__"))
    def call(*args: object, **named: object) -> Iterator[object]:
        for item in function(*args, **named):  # noqa: UP028 (`yield from` is no step)
            yield item

    return call


_UTC = Utc()
_OF_RE = (
    "match search fullmatch sub subn split findall finditer compile escape "
    "A ASCII I IGNORECASE M MULTILINE S DOTALL U UNICODE X VERBOSE"
)
_OF_ITERTOOLS = (
    "count cycle repeat accumulate chain compress islice starmap tee zip_longest product permutations combinations "
    "combinations_with_replacement"
)
# Chosen functions only: a module itself would lead out of the sandbox (`modules.datetime.sys`).
MODULES = SimpleNamespace(
    pytz=SimpleNamespace(timezone=Zone, utc=_UTC, UTC=_UTC),
    datetime=SimpleNamespace(
        datetime=datetime.datetime,
        date=datetime.date,
        time=datetime.time,
        timedelta=datetime.timedelta,
        timezone=datetime.timezone,
        tzinfo=datetime.tzinfo,
    ),
    re=SimpleNamespace(**{name: getattr(re, name) for name in _OF_RE.split()}),
    itertools=SimpleNamespace(
        **{name: _make_interruptible(getattr(itertools, name)) for name in _OF_ITERTOOLS.split()}
    ),
)
