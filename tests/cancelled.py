"""What a person's Cancel does to a long computation, for tests."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest


class Cancelled(Exception):
    """Raised by the progress function, as a process does that was asked to stop."""


@contextmanager
def cancelled(where: Callable[[float, str], bool] = lambda _share, _note: True) -> Iterator[Callable[..., None]]:
    """Yield a progress function that cancels where `where` is true of its share and note; the block must end by it."""

    def cancel(share: float, note: str) -> None:
        if where(share, note):
            raise Cancelled

    with pytest.raises(Cancelled):
        yield cancel
