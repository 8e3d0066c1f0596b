"""Secrets of a call, and the scrubber for everything that is printed, logged and written. Owns both.

Secrets are the values of `DBT_ENV_SECRET_…` variables, of settings named like a password, key or token, and passwords
within addresses and lists of options. Code that reads such values registers them with `learn…`; all text that leaves
the process goes through `scrub_text`. Values of fewer than four characters are ignored: they occur in every text.
"""

from __future__ import annotations

import html
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, TextIO, cast
from urllib.parse import quote, quote_plus, unquote

from sqlmesh_like.sql_text import spark_literal, standard_literal

ENVIRONMENT_PREFIX = "DBT_ENV_SECRET"
MASK = "*****"
_SHORTEST = 4
_SHORTEST_LINE = 16
"""Length from which a line of a multi-line secret, such as a private key, is a secret: shorter ones occur anywhere."""
_PLAIN_WORDS = frozenset({"true", "false", "none", "null"})

SECRET_NAME = (
    r"(?i)passw(?:or)?d|passwd|\bpwd\b|passphrase|secret|token|credential|jaas|signature|connection[._-]?string"
    r"|(?:access|account|api|auth|private|shared|encryption|master|sas|signing|storage)[._-]?key|^key$"
)
"""A regular expression, for Python and Java, that finds names of settings whose values are secret."""
_SECRET_NAME = re.compile(SECRET_NAME)
_ABOUT_SECRETS = re.compile(
    r"(?i)(?:path|file|location|ur[il]|endpoint|type|algorithm|class|provider|enabled|expiry|seconds|fields?|name)$"
)
"""Settings about secrets: where one is or how it is used. Secrets within addresses are found by `_WITHIN`."""
_WITHIN = (
    re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@'\"]*:(?P<secret>[^\s'\"]+)@"),
    re.compile(r"(?i)(?<![a-z])(?:\w*(?:password|passwd|pwd|secret|token|signature)|\w+[._-]?key|sig)\s*=\s*"
               r"(?:\"(?P<secret>[^\"]+)\"|'(?P<single>[^']+)'|(?P<bare>[^\s&;,\"']+))"),
    # https://<token>@host; before a database's host stands its user
    re.compile(r"(?<![A-Za-z0-9+.-])(?!(?:mysql|mariadb|postgres)[^/]*://)[A-Za-z][A-Za-z0-9+.-]*://"
               r"(?P<secret>[^\s/:@'\"]+)@"),
)  # fmt: skip
_PUBLIC_USERS = frozenset({"git", "oauth2", "x-access-token"})

_spellings: dict[str, None] = {}
"""Every form in which a secret may occur in a text, the longest first."""


def learn(value: object) -> None:
    """Register a secret. Values of fewer than four characters, and words such as `true`, are ignored."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return
    text = str(value)
    lines = [line.strip() for line in text.splitlines()] if "\n" in text else []
    for part in (text, text.strip(), *(line for line in lines if len(line) >= _SHORTEST_LINE)):
        if len(part) >= _SHORTEST and part.lower() not in _PLAIN_WORDS and part not in _spellings:
            _spellings.update(dict.fromkeys(_spellings_of(part)))
    ordered = sorted(_spellings, key=len, reverse=True)
    _spellings.clear()
    _spellings.update(dict.fromkeys(ordered))


def learn_environment() -> None:
    """Register the values of all variables `DBT_ENV_SECRET_…` of the process."""
    for name, value in os.environ.items():
        if name.startswith(ENVIRONMENT_PREFIX):
            learn(value)


def learn_settings(settings: object, name: str = "") -> None:
    """Register the secrets in settings of any depth, by the names of their keys and by the form of their values."""
    if isinstance(settings, Mapping):
        for key, value in settings.items():
            learn_settings(value, str(key))
    elif isinstance(settings, list | tuple):
        for value in settings:
            learn_settings(value, name)
    else:
        if is_secret_name(name):
            learn(settings)
        if isinstance(settings, str):
            learn_within(settings)


def learn_within(text: str) -> None:
    """Register passwords in an address or in a list of options, e.g. of a login module of Kafka."""
    for secret in secrets_within(text):
        learn(secret)
        learn(unquote(secret))


def secrets_within(text: str) -> Iterator[str]:
    """
    >>> list(secrets_within("mysql://me:w%40rd@db/shop?password=other")), list(secrets_within("https://git@host/a"))
    (['w%40rd', 'other'], [])
    >>> list(secrets_within("https://t0ken@host/a")), list(secrets_within("mysql://sales@db/sales"))
    (['t0ken'], [])
    """
    for pattern in _WITHIN:
        for match in pattern.finditer(text):
            secret = next(filter(None, match.groupdict().values()))
            if secret not in _PUBLIC_USERS:
                yield secret


def is_secret_name(name: str) -> bool:
    """Whether the value of a setting of this name is secret.

    >>> [is_secret_name(name) for name in ("password", "fs.s3a.secret.key", "sslKeyPassword", "private_key_path")]
    [True, True, True, False]
    >>> is_secret_name("primary_key"), is_secret_name("hoodie.datasource.write.recordkey.field")
    (False, False)
    """
    return bool(_SECRET_NAME.search(name)) and not _ABOUT_SECRETS.search(name)


def is_secret_setting(name: str, value: str) -> bool:
    """Whether a setting contains a secret, and so must not be written where others can read it."""
    return is_secret_name(name) or next(secrets_within(value), None) is not None or scrub_text(value) != value


def forget() -> None:
    """Forget all secrets, at the start and at the end of a call."""
    _spellings.clear()


def spellings() -> tuple[str, ...]:
    """Return the forms of all secrets, for scrubbers outside of this process."""
    return tuple(_spellings)


def learn_spellings(forms: Iterable[str]) -> None:
    """Register the forms of secrets that another process has learnt."""
    known = sorted({*_spellings, *forms}, key=len, reverse=True)
    _spellings.clear()
    _spellings.update(dict.fromkeys(known))


def scrub_text(text: str) -> str:
    """Return the text with every secret replaced by `*****`.

    >>> forget(); learn("hunter2 & co"); scrub_text("password hunter2 & co, quoted: hunter2%20%26%20co")
    'password *****, quoted: *****'
    >>> forget()
    """
    for spelling in _spellings:
        if spelling in text:
            text = text.replace(spelling, MASK)
    return text


def scrub_data(data: Mapping[str, object]) -> Mapping[str, object]:
    """Scrub data that can be written as JSON; without secrets in it, the data itself is returned."""
    if not _spellings:
        return data
    text = json.dumps(data, ensure_ascii=False, default=str)
    clean = scrub_text(text)
    return data if clean == text else cast(Mapping[str, object], json.loads(clean))


def scrub_bytes(data: bytes) -> bytes:
    """Scrub bytes that are, or contain, text in UTF-8."""
    for spelling in _spellings:
        data = data.replace(spelling.encode(errors="surrogatepass"), MASK.encode())
    return data


def _spellings_of(value: str) -> set[str]:
    """Return a value in the spellings of other languages: JSON, also encoded twice, Python, SQL, HTML and addresses."""
    as_json = [json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    in_script = [text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026") for text in as_json]
    in_script += [text.replace("</", "<\\/") for text in as_json]
    twice = [json.dumps(text, ensure_ascii=False)[1:-1] for text in as_json]
    in_sql = [standard_literal(value)[1:-1], spark_literal(value)[1:-1]]
    in_page = [html.escape(value), html.escape(value, quote=False)]
    in_address = [quote(value, safe=""), quote(value), quote_plus(value)] if _is_encodable(value) else []
    return {value, repr(value)[1:-1], *as_json, *in_script, *twice, *in_sql, *in_page, *in_address}


def _is_encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


class _ScrubbingBytes:
    """A binary stream that scrubs what is written."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, data: bytes) -> int:
        self._stream.write(scrub_bytes(bytes(data)))
        return len(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _ScrubbingText:
    """A text stream that scrubs what is written; other methods are those of the stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        clean = scrub_text(text)
        try:
            self._stream.write(clean)
        except UnicodeEncodeError:  # a character that the encoding lacks, or a surrogate
            encoding = self._stream.encoding or "utf-8"
            self._stream.write(clean.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        self.write("".join(lines))

    @property
    def buffer(self) -> _ScrubbingBytes:
        return _ScrubbingBytes(self._stream.buffer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._stream)


@contextmanager
def scrubbing() -> Iterator[None]:
    """Scrub everything that is printed within the context. Secrets of an earlier call of this process are forgotten."""
    forget()
    learn_environment()
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, _ScrubbingText(stream)) for stream in streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
        forget()
