"""What every objective says of itself, and checks before a run starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

if TYPE_CHECKING:
    from trainer.config.optimizer import Optimizer

Towers = Literal["both", "image", "words", "source"]


class SourceRun(NamedTuple):
    """The run whose frozen towers a run starts from."""

    run: str  # Its number, name or folder.
    step: int  # Of its checkpoint; -1: its newest.


class ObjectiveBase:
    """The base class of objectives."""

    kind: ClassVar[str]  # In configurations.
    label: ClassVar[str]  # For people.
    family: ClassVar[str] = ""  # Heading of the objectives that learn from the same parts of the data.
    # Which towers a run has: `both` (images against texts), `image`, `words` (captions alone) or `source` (those
    # of another run, frozen).
    towers: ClassVar[Towers]
    labeled: ClassVar[bool] = False  # Whether pairs need a class.
    predicts_texts: ClassVar[bool] = False  # Whether words or captions are predicted from images.

    @property
    def compares_pairs(self) -> bool:
        """Whether images are compared with texts."""
        return self.towers == "both"

    @property
    def source(self) -> SourceRun | None:
        """The run whose frozen towers are those of this one; None where the towers are trained."""
        return None

    def headline(self, *, has_classes: bool) -> str:
        """Return the metric by which a run is judged.

        Without both towers it is the accuracy of its neighbors: of the class where there surely is one, else the
        words shared with the nearest caption.

        Args:
            has_classes: Whether the pairs surely have one.
        """
        if self.compares_pairs:
            return "val/image_to_text_R@1"
        return "val/knn_acc1" if self.labeled or has_classes else "val/knn_words"

    def check(self, optimizer: Optimizer, ranks: int) -> None:
        """Check the rest of a run against the objective; its fields are in their bounds.

        Raises:
            ConfigError: Names the field, the cause, and what to choose instead.
        """


def nearest_divisor(total: int, near: int) -> int:
    """Return the divisor of `total` nearest to `near`, the larger of two."""
    return min((d for d in range(1, total + 1) if total % d == 0), key=lambda d: (abs(d - near), -d))
