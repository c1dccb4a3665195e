"""One gray line under the bar of a view that compares A with B: what is known over seeds, linked to the experiment."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics, QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from explorer import theme

if TYPE_CHECKING:
    from trainer.experiments.seed_truth import SeedTruth

HEIGHT: Final = 28


class TruthLine(QLabel):
    """What is known over seeds; hidden where nothing is compared, and where there is no room without its first part.

    Signals:
        opened: The name of the experiment whose link was followed.
    """

    opened = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("truth-line")
        self._truth: SeedTruth | None = None
        self.said = ""
        theme.set_role(self, "small")
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.LinksAccessibleByMouse | Qt.TextInteractionFlag.LinksAccessibleByKeyboard
        )
        self.setFixedHeight(HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.linkActivated.connect(self.opened)
        theme.theme().changed.connect(self._write)
        self.hide()

    def show_truth(self, truth: SeedTruth) -> None:
        """Show this; its whole text is the tool tip."""
        self._truth = truth
        self.setToolTip(truth.text)
        self.setAccessibleName(truth.text)
        self._write()
        self.setVisible(bool(truth.text))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._write()

    def _write(self) -> None:
        """Write the parts that fit: the link is never left out, and what does not count is cut at its end."""
        truth = self._truth
        if truth is None:
            return
        metrics, room = QFontMetrics(theme.pixel_font(theme.SMALL_PX)), self.width()
        begins = [part for part in (truth.seeds, truth.verdict) if part]
        if metrics.horizontalAdvance(truth.text) > room and truth.verdict:
            begins = [truth.verdict]
        dot = truth.SEPARATOR
        begun = dot.join(begins)
        left = room - metrics.horizontalAdvance(f"{begun}{dot}")
        rest = metrics.elidedText(truth.not_counted, Qt.TextElideMode.ElideRight, max(left, 0))
        self.said = dot.join(filter(None, (begun, rest)))
        ink = theme.theme().tokens.text
        marked = f'<a href="{html.escape(truth.experiment)}" style="color: {ink}">{html.escape(truth.verdict)}</a>'
        linked = [marked if truth.experiment and part == truth.verdict else html.escape(part) for part in begins]
        self.setText(dot.join(filter(None, (*linked, html.escape(rest)))))
