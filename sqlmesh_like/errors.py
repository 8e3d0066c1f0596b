"""The hierarchy of errors. Owns their fields and exit codes; the command line decides how they are printed.

Every error a user can cause is a `UsageError` (exit code 2): it says *what* is wrong, *where* (file, line, column, all
1-based) and *what to do next*. A `NodeError` is the failure of one node, test or comparison (exit code 1).
"""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Location:
    """A position in a file of the project: path relative to its root, 1-based line and column (None: unknown)."""

    path: str
    line: int | None = None
    column: int | None = None

    @classmethod
    def at(cls, path: str, text: str, offset: int) -> Location:
        """The position of a character of a file's text.

        >>> Location.at("models/a.sql", "select\\n  1", 9)
        Location(path='models/a.sql', line=2, column=3)
        """
        return cls(path, text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))

    def __str__(self) -> str:
        parts = [self.path, *(str(part) for part in (self.line, self.column) if part is not None)]
        return ":".join(parts)


class SmlError(Exception):
    """Root of all errors of this package."""

    exit_code = 1
    heading = ""
    """Text above `parts` where there are several."""

    def __init__(self, message: str, *, location: Location | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        """Errors are sent from one process to another as they are, whatever their constructors take."""
        return _rebuild_error, (type(self), self.args, self.__dict__)

    @property
    def parts(self) -> tuple[SmlError, ...]:
        """The errors that this one reports, each with its own location; usually only itself."""
        return (self,)

    def __str__(self) -> str:
        """
        >>> str(ProjectError("no such thing", location=Location("models/a.sql", 3, 5), hint="did you mean b?"))
        'models/a.sql:3:5: no such thing\\n  did you mean b?'
        """
        where = f"{self.location}: " if self.location else ""
        what_next = f"\n  {self.hint}" if self.hint else ""
        return f"{where}{self.message}{what_next}"


def _rebuild_error(kind: type[SmlError], args: tuple[object, ...], fields: Mapping[str, object]) -> SmlError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(fields)
    return error


class UsageError(SmlError):
    """The user requested something that cannot be done as requested. Nothing was changed."""

    exit_code = 2


class ProjectError(UsageError):
    """A project, profile, properties or model file is wrong."""


class JinjaError(ProjectError):
    """A template cannot be rendered."""


class SqlError(ProjectError):
    """A model's SQL cannot be parsed or names something that does not exist."""


class SeveralErrors(SqlError):
    """The errors of several nodes; the message lists all of them."""

    def __init__(self, errors: tuple[SqlError, ...]) -> None:
        self.heading = f"{len(errors)} nodes cannot be run"
        super().__init__("\n".join([self.heading, *map(str, errors)]))
        self.errors = errors

    @property
    def parts(self) -> tuple[SqlError, ...]:
        return self.errors


def require_sound(errors: Mapping[str, SqlError]) -> None:
    """Raise the errors of nodes, given by unique id, if there are any: several different ones as SeveralErrors."""
    distinct = tuple({str(error): error for error in errors.values()}.values())
    if len(distinct) == 1:
        raise distinct[0]
    if distinct:
        raise SeveralErrors(distinct)


def as_sql_error(error: SmlError) -> SqlError:
    """Return the error of a node's template as an error of its SQL: the node and its readers fail.

    It is a new one each time: the traceback of a stored error that was raised would keep objects alive.
    """
    return SqlError(error.message, location=error.location, hint=error.hint)


class CycleError(ProjectError):
    """The models depend on each other in a cycle; the message contains the whole cycle."""


class SelectionError(UsageError):
    """A selector is malformed or matches nothing."""


class MachineError(UsageError):
    """The machine lacks something: a JDK, a jar, a writable warehouse."""


class NewerVersionError(UsageError):
    """What is stored was written by a newer version, and is left as it is: nothing is guessed, rebuilt or removed."""

    def __init__(self, what: str, why: str) -> None:
        message = f"{what} was written by a newer version of sml: {why}"
        super().__init__(message, hint="use that version, or a later one; nothing was changed")


class NodeError(SmlError):
    """One node failed while running; its descendants are skipped, the others continue."""


class UnreadableTableError(NodeError):
    """Metadata of a table cannot be read: a file is truncated, empty or invalid."""


class RetryableError(NodeError):
    """A failure that planning again may fix: a file of the pinned snapshot vanished, or a lock was held."""


class UnslicedError(NodeError):
    """A table can be built as a whole, but not slice by slice; nothing was written."""


class IngestError(NodeError):
    """Events cannot be ingested; nothing of the failed table's batch was written."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return a hint with the closest known name, or None where none is close.

    >>> nearest("user_ag", ["user_agg", "orders"])
    "did you mean 'user_agg'?"
    >>> nearest("USERS", ["users"])
    "did you mean 'users'?"
    >>> nearest("zzz", ["user_agg"]) is None
    True
    """
    names, name = list(known), name[:_LONGEST_NAME]
    other_case = [one for one in names if one.lower() == name.lower()]
    close = other_case or difflib.get_close_matches(name, _likely(name, names), n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else None


_LONGEST_NAME, _MOST_NAMES = 200, 1_000
"""What is compared letter by letter: a project may have tens of thousands of names, as long as their author likes."""


def _likely(name: str, names: list[str]) -> list[str]:
    """The names that share most pairs of letters with this one."""
    if len(names) > _MOST_NAMES:
        pairs = set(pairwise(name))
        names = heapq.nlargest(
            _MOST_NAMES, names, key=lambda one: len(pairs.intersection(pairwise(one[:_LONGEST_NAME])))
        )
    return [one for one in names if len(one) <= _LONGEST_NAME]


def with_article(noun: str) -> str:
    """Return a noun with its indefinite article.

    >>> with_article("date"), with_article("int")
    ('a date', 'an int')
    """
    return f"{'an' if noun[:1] in 'aeio' else 'a'} {noun}"


def first_line(error: Exception) -> str:
    """The first line of what another library says, with single spaces; the error's name where it says nothing.

    >>> first_line(ValueError("no  such table\\nLINE 1: ...")), first_line(KeyError())
    ('no such table', 'KeyError')
    """
    lines = str(error).strip().splitlines()
    return " ".join(lines[0].split()) if lines else type(error).__name__
