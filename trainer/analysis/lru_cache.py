"""A mapping of the entries that were used last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import RLock
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruCache(OrderedDict[K, V]):
    """Holds at most `most` entries: those that were set or read by `[key]` last; `get` and `in` do not count."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._lock = RLock()

    def __getitem__(self, key: K) -> V:
        with self._lock:
            self.move_to_end(key)
            return super().__getitem__(key)

    def __setitem__(self, key: K, value: V) -> None:
        with self._lock:
            super().__setitem__(key, value)
            self.move_to_end(key)
            if len(self) > self._most:
                del self[next(iter(self))]

    def obtain(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key, made if it is not there; other threads are not kept waiting while it is made."""
        with self._lock:
            if key in self:
                return self[key]
        self[key] = value = make()
        return value
