"""One gray line under the bar of a view that compares A with B: what is known over seeds, linked to the experiment."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFocusEvent, QFontMetrics, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from explorer import theme

if TYPE_CHECKING:
    from trainer.experiments.seed_truth import SeedTruth

HEIGHT: Final = 28
RING_PX: Final = 2
ADD_SEEDS: Final = "Add seeds…"
EVALUATE: Final = "Evaluate both on one data set"
ASKS: Final = "/"
"""Target of the link that asks for more, which is no name of an experiment."""


class TruthLine(QLabel):
    """What is known over seeds; hidden where nothing is compared, and where there is no room without its first part."""

    opened = Signal(str)  # The name of the experiment whose link was followed.
    asked = Signal()  # The link to what would tell more was followed.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="truth-line")
        self._truth: SeedTruth | None = None
        self._ask = self._plain = self.said = ""
        theme.set_role(self, "small")
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.LinksAccessibleByMouse | Qt.TextInteractionFlag.LinksAccessibleByKeyboard
        )
        self.setFixedHeight(HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.linkActivated.connect(lambda name: self.asked.emit() if name == ASKS else self.opened.emit(name))
        theme.theme().changed.connect(self._write)
        self.hide()

    def show_truth(self, truth: SeedTruth, *, ask: str = "") -> None:
        """Show this, with a link of these words that asks for more; what is cut is in the tool tip."""
        self._truth, self._ask = truth, ask if truth.text else ""
        self.setAccessibleName(truth.text)
        self._write()
        has_link = truth.experiment or self._ask
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if has_link else Qt.FocusPolicy.NoFocus)
        self.setVisible(bool(truth.text))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._write()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Go to the first link, or the last one: the line itself is no stop."""
        super().focusInEvent(event)
        if event.reason() is not Qt.FocusReason.MouseFocusReason and not self.hasSelectedText():
            self.focusNextPrevChild(event.reason() is not Qt.FocusReason.BacktabFocusReason)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if theme.theme().has_ring(self) and self.hasSelectedText():
            metrics = self.fontMetrics()
            before = metrics.horizontalAdvance(self._plain[: self.selectionStart()])
            wide, high = metrics.horizontalAdvance(self.selectedText()), metrics.height()
            painter = QPainter(self)
            painter.setPen(QPen(theme.color("focus"), RING_PX))
            painter.drawRect(before, (self.height() - high) // 2, wide + 1, high)  # over the dots that Qt draws there

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
        rest = metrics.elidedText(truth.rest, Qt.TextElideMode.ElideRight, max(left, 0))
        self.said = dot.join(filter(None, (begun, rest)))
        self.setToolTip("" if self.said == truth.text else truth.text)
        linked = [
            self._link(truth.experiment, part) if truth.experiment and part == truth.verdict else html.escape(part)
            for part in begins
        ]
        self._plain = f"{self.said}\u00a0\u00a0 {self._ask}"
        added = f"&nbsp;&nbsp; {self._link(ASKS, self._ask)}" if self._ask else ""
        self.setText(dot.join(filter(None, (*linked, html.escape(rest)))) + added)

    def _link(self, target: str, text: str) -> str:
        ink = theme.theme().tokens.text
        return f'<a href="{html.escape(target)}" style="color: {ink}">{html.escape(text)}</a>'
