"""An attribute that is read once. Owns doing so without a lock: reading many tables side by side would wait for it.

Until Python 3.12 `functools.cached_property` lets one object at a time, of all, compute its value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as kept_property
else:

    class kept_property:
        """As `functools.cached_property`. Two threads may both compute the value of an object."""

        def __init__(self, compute: Any) -> None:
            self._compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: object, owner: type | None = None) -> Any:
            if instance is None:
                return self
            values = instance.__dict__
            if self._name not in values:
                values[self._name] = self._compute(instance)
            return values[self._name]


__all__ = ["kept_property"]
