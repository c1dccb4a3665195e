"""What every objective says of itself, and checks before a run starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

if TYPE_CHECKING:
    from trainer.config.run import Run

Towers = Literal["both", "image", "words", "source"]


class SourceRun(NamedTuple):
    """The run whose frozen towers a run starts from.

    Attributes:
        run: Its number, name or folder.
        step: Of its checkpoint; -1: its newest.
    """

    run: str
    step: int


class ObjectiveBase:
    """The base class of objectives.

    Attributes:
        kind: In configurations.
        label: For people.
        towers: Which towers a run has: `both` (images against texts), `image`, `words` (captions alone) or `source`
            (those of another run, frozen).
        labeled: Whether pairs need a class.
    """

    kind: ClassVar[str]
    label: ClassVar[str]
    towers: ClassVar[Towers]
    labeled: ClassVar[bool] = False

    @property
    def compares_pairs(self) -> bool:
        """Whether images are compared with texts."""
        return self.towers == "both"

    @property
    def source(self) -> SourceRun | None:
        """The run whose frozen towers are those of this one; None where the towers are trained."""
        return None

    def check(self, run: Run) -> None:
        """Check the rest of a run against the objective; its fields are in their bounds.

        Raises:
            ConfigError: Names the field, the cause, and what to choose instead.
        """


def nearest_divisor(total: int, near: int) -> int:
    """Return the divisor of `total` nearest to `near`, the larger of two."""
    return min((d for d in range(1, total + 1) if total % d == 0), key=lambda d: (abs(d - near), -d))
