"""Which of many tables exist. Owns asking a store about few of them: most tests have never stored a failure."""

from __future__ import annotations

from collections.abc import Iterable

from sqlmesh_like.hudi.recovery.store_drop import is_half_dropped
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import is_store
from sqlmesh_like.plan.side_by_side import side_by_side


def existing_tables(uris: Iterable[str], *, half_dropped: bool = False) -> tuple[str, ...]:
    """Those that exist, in their order; with `half_dropped`, those on a store too whose drop was cut short."""

    def exists(uri: str) -> bool:
        return Timeline(uri).exists or (half_dropped and is_store(uri) and is_half_dropped(uri))

    # Those tables on a store that have a file, by a listing of each schema's folder, and all others.
    listed = list(uris)
    parents = sorted({_parent(uri) for uri in listed if is_store(uri)})
    names = dict(zip(parents, side_by_side(lambda parent: set(folder(parent).names()), parents), strict=True))
    wanted = [uri for uri in listed if not is_store(uri) or uri.rstrip("/").rpartition("/")[2] in names[_parent(uri)]]
    answers = side_by_side(exists, wanted) if any(map(is_store, wanted)) else map(exists, wanted)
    return tuple(uri for uri, is_there in zip(wanted, answers, strict=True) if is_there)


def _parent(uri: str) -> str:
    return uri.rstrip("/").rpartition("/")[0]
