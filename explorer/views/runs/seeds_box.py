"""A number box for the seeds of CLIP and CLOOB, in New run and in the import dialog."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QWidget

from explorer.widgets.number_box import NumberBox
from trainer import config
from trainer.experiments.experiment import MOST_SEEDS
from trainer.scheduling.paces import SEEDS_RULE, Pace, proposed_seeds


class SeedsBox(NumberBox):
    """Seeds of each; until somebody sets another number, as many as are proposed."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(integer=True, low=1, high=MOST_SEEDS, parent=parent)
        self.setObjectName(name)
        self.setAccessibleName("Seeds of each")
        self.setToolTip(SEEDS_RULE)
        self._proposed = 1
        self.set_value(self._proposed)

    @property
    def count(self) -> int:
        """The number of seeds; 1 while what is typed is none."""
        value = self.value()
        return value if isinstance(value, int) and 1 <= value <= MOST_SEEDS else 1

    def propose(self, run: config.Run, pairs: int | None, paces: Sequence[Pace]) -> None:
        """Show how many seeds are proposed for a training on `pairs` pairs, at the paces of earlier runs."""
        before, self._proposed = self._proposed, proposed_seeds(run, pairs, paces)
        if self.value() == before != self._proposed:
            self.set_value(self._proposed)
