"""The fingerprints of queries that earlier calls have analyzed. Owns when such a fingerprint may be used again.

A model whose inputs have not moved needs no more of its query than this: whether it is the query of the stored rows.

Why it is sound: analysis and `fingerprint` are functions of the rendered model, of the rendered models that are
compiled before it (views, and tables that are not built), of the columns of their inputs, and of this program with
sqlglot under one version of Python; they read no file, no clock and no environment variable. All of these are in the
key, as `repr` writes them, which is complete for these frozen values. Macros, functions and vars are in the rendered
text, the config and the session's settings are fields of the model. A query that reads the clock is not remembered, nor
is one that is wrong. All else that a plan depends on is read anew by each plan: commits, frontiers, keys and files of
the tables, the fingerprint in their record. Where a plan asks more of a query, the query is analyzed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.names import Schema
from sqlmesh_like.render.rendered import RenderedModel

_LAYOUT = 1
"""Version of the record's form."""
_KEY, _FINGERPRINT = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{32}")
_ADDRESS = " at 0x"
"""In the `repr` of a value that does not say what it holds."""


@dataclass
class KnownQueries:
    """Fingerprints by unique id of the model, each with its key. `program`: differs between versions of all that
    analyzes.
    """

    program: str
    _known: dict[str, tuple[str, str]] = field(default_factory=dict)
    is_changed: bool = False

    def key(
        self, model: RenderedModel, below: Sequence[RenderedModel], schemas: Mapping[str, Schema | None]
    ) -> str | None:
        """A hash of all that a fingerprint depends on; None where that cannot be told. `below`: compiled before it."""
        text = repr((model, below, sorted(schemas.items())))
        if _ADDRESS in text:
            return None
        return hashlib.sha256(f"{self.program}\n{text}".encode(errors="surrogatepass")).hexdigest()

    def find(self, unique_id: str, key: str) -> str | None:
        """The fingerprint of a model's query; None if it was another query, or is not known."""
        known = self._known.get(unique_id)
        return known[1] if known is not None and known[0] == key else None

    def remember(self, key: str, compiled: CompiledModel) -> CompiledModel:
        """The model with its fingerprint, which the next call will know, unless its query reads the clock."""
        from sqlmesh_like.plan.fingerprint import fingerprint  # what is known need not be computed

        if compiled.clock_calls:
            return compiled
        print_ = fingerprint(compiled)
        self._known[compiled.model.unique_id] = (key, print_)
        self.is_changed = True
        return replace(compiled, known=print_)

    def to_json(self, unique_ids: Sequence[str]) -> str:
        """The record of the models with these ids."""
        kept = {unique_id: self._known[unique_id] for unique_id in unique_ids if unique_id in self._known}
        return json.dumps({"layout": _LAYOUT, "queries": kept}, separators=(",", ":"))

    @staticmethod
    def from_json(program: str, text: str | bytes) -> KnownQueries:
        """What a record says, nothing where it is not one of this layout.

        >>> KnownQueries.from_json("1", "[]").find("model.p.m", "a" * 64) is None
        True
        """
        try:
            stored = json.loads(text)
        except (ValueError, RecursionError):
            return KnownQueries(program)
        queries = stored.get("queries") if isinstance(stored, dict) and stored.get("layout") == _LAYOUT else None
        entries = queries.items() if isinstance(queries, dict) else ()
        known = {unique_id: (entry[0], entry[1]) for unique_id, entry in entries if _is_entry(entry)}
        return KnownQueries(program, known)


def _is_entry(entry: object) -> bool:
    match entry:
        case [str() as key, str() as print_]:
            return bool(_KEY.fullmatch(key) and _FINGERPRINT.fullmatch(print_))
    return False
