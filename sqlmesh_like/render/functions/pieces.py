"""A text made of parts of another one and of new parts. Owns the source map of the result."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from sqlmesh_like.render.rendered import RepeatedArgument, SourceMap


@dataclass(frozen=True)
class Piece:
    """A part of a text. `at` is an offset in the text that it stands in: of its first character where it was copied,
    else of the call in whose place it stands."""

    text: str
    at: int
    is_copied: bool = False


@dataclass(frozen=True)
class Hole:
    """The place of an argument in a function's expression.

    `bound`: lower-case names of the variables of lambdas around it, which an argument's text must not mean.
    """

    parameter: int
    at: int
    bound: frozenset[str] = frozenset()


def join_pieces(source: SourceMap, pieces: Iterable[Piece], repeated: Iterable[RepeatedArgument] = ()) -> SourceMap:
    """The text of the pieces, each of whose characters is where its piece came from in the raw file of `source`.

    >>> source = SourceMap("select f(a)", "select f(a)")
    >>> new = join_pieces(source, [Piece("select ", 0, True), Piece("(", 7), Piece("a", 9, True), Piece(" + 1)", 7)])
    >>> new.compiled, new.locate(8), new.locate(10)
    ('select (a + 1)', (1, 10), (1, 8))
    """
    anchors: dict[int, tuple[int, int, bool]] = {}
    length, texts = 0, []
    starts = [anchor[0] for anchor in source.anchors]
    for piece in pieces:
        if not piece.text:
            continue
        for offset, raw, is_template in _anchors(source, starts, piece):
            anchors[length + offset] = (length + offset, raw, is_template)
        texts.append(piece.text)
        length += len(piece.text)
    kept = tuple(anchors[at] for at in sorted(anchors)) or source.anchors
    return replace(source, compiled="".join(texts), anchors=kept, repeated=(*source.repeated, *repeated))


def _anchors(source: SourceMap, starts: list[int], piece: Piece) -> Iterator[tuple[int, int, bool]]:
    """Where the characters of a piece came from, with offsets within the piece."""
    first = max(bisect_right(starts, piece.at) - 1, 0)
    start, raw, is_template = source.anchors[first]
    here = raw if is_template else raw + piece.at - start
    yield 0, here, is_template or not piece.is_copied
    if piece.is_copied:
        for start, raw, is_template in source.anchors[first + 1 :]:
            if start >= piece.at + len(piece.text):
                break
            yield start - piece.at, raw, is_template
