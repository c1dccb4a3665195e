"""What may be wrong with data."""

from __future__ import annotations

from collections.abc import Sequence

from trainer.problem import Problem


class DataError(Problem):
    """Data that cannot be trained on; the message names the cause and the next step.

    Attributes:
        problems: (path or line, reason) of every item that was looked at and cannot be used.
    """

    def __init__(self, message: str, problems: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.problems = list(problems)
