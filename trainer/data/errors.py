"""Errors of data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainer.errors import UserError


class DataError(UserError):
    """Data that cannot be trained on; the message names the cause and the next step.

    Attributes:
        problems: (path or line, reason) of every item that was looked at and cannot be used.
        pairs: Split -> how many there would be; one of them is empty. Nothing where it did not come so far.
    """

    def __init__(
        self, message: str, problems: Sequence[tuple[str, str]] = (), pairs: Mapping[str, int] | None = None
    ) -> None:
        super().__init__(message)
        self.problems = list(problems)
        self.pairs = dict(pairs or {})
