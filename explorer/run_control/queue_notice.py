"""What waits when a window opens is shown for a while before it starts."""

from __future__ import annotations


class Notice:
    """Whether the queue may start runs: not before the person could see, and hold, what waits.

    Args:
        seconds: How long what waits is shown first.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: float | None = None

    @property
    def begun(self) -> bool:
        """Whether it is known what waits."""
        return self._until is not None

    def begin(self, waiting: bool, now: float) -> None:
        """Takes what the window saw first: where nothing waits, there is nothing to show. Later calls change nothing.

        Args:
            waiting: Whether a run waits for its turn.
            now: Seconds of the monotonic clock.
        """
        if self._until is None:
            self._until = now + self._seconds if waiting else now

    def left(self, now: float) -> float:
        """Seconds until the queue may start; all of them as long as nothing was seen."""
        return self._seconds if self._until is None else max(0.0, self._until - now)

    def is_over(self, now: float) -> bool:
        """Whether the queue may start runs."""
        return self._until is not None and now >= self._until
