"""Show the waiting queue for a while after a window opens before it starts."""

from __future__ import annotations


class Notice:
    """Delays the queue's start until the user has had time to see and pause it.

    Args:
        seconds: How long what waits is shown first.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: float | None = None

    @property
    def begun(self) -> bool:
        """Whether the waiting runs are known."""
        return self._until is not None

    def begin(self, waiting: bool, now: float) -> None:
        """Start the notice period if runs are waiting; later calls have no effect."""
        if self._until is None:
            self._until = now + self._seconds if waiting else now

    def left(self, now: float) -> float:
        """Return the seconds until the queue may start; the full period until `begin`."""
        return self._seconds if self._until is None else max(0.0, self._until - now)

    def is_over(self, now: float) -> bool:
        """Return whether the queue may start runs."""
        return self._until is not None and now >= self._until
