"""`target` of templates, whose type is different within some macros. Owns within which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class TemplateTarget(dict[str, object]):
    """`target` of one node's templates. Its type is `spark` within a macro `spark__…`, also on a `duckdb` target.

    Authors of packages rely on dispatch and `target.type` to agree.
    """

    def __init__(self, words: Mapping[str, object]) -> None:
        super().__init__(words)
        self._calls = 0

    def __getitem__(self, key: str) -> object:
        return "spark" if key == "type" and self._calls else super().__getitem__(key)

    def get(self, key: str, default: object = None) -> object:
        return self.__getitem__(key) if key in self else default

    @contextmanager
    def within(self, macro: str) -> Iterator[None]:
        """The context in which a macro of this name is called."""
        is_spark = macro.startswith("spark__")
        self._calls += is_spark
        try:
            yield
        finally:
            self._calls -= is_spark
