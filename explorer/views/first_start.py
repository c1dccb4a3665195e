"""The page of a workspace without an experiment: what this is, three ways to begin, and a result."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QStyle, QVBoxLayout, QWidget

from explorer import theme
from explorer.intents import ChooseModel, OpenImport, OpenSample, OpenVectors, WatchTraining
from explorer.widgets import layouts
from explorer.widgets.min_size_scroll import MinSizeScroll
from explorer.widgets.still_map import StillMap
from explorer.widgets.way_button import WayButton
from trainer.analysis.chance import chance_text
from trainer.config import default_paths
from trainer.distribution.published_models import FIRST
from trainer.distribution.sample_card import SampleCard, read_card
from trainer.metrics import recall_name

LEFT_PX: Final = 372
READING_PX: Final = 480
"""How wide the left column becomes where the card is as wide as it may be."""
CARD_PX: Final = (1360, 860)
LEAST_CARD_PX: Final = 280
CARD_BELOW_PX: Final = 440
"""How high the card is at least where it is below the buttons."""
GAP_PX: Final = 48
SENTENCE: Final = "Train two models on the same pairs and see what each one learns."
METHODS: Final = (
    "CLIP pulls each image towards its own caption and away from all others. CLOOB first replaces each embedding by an "
    "average of similar ones (Hopfield retrieval), so that features which occur together count more."
)

SCENES_COST: Final = "CLIP and CLOOB, 3 to 5 seeds · 10 to 16 min"
"""On two cores without a GPU: the README's 81 to 103 s a run."""
LOOK: Final = "Look at finished runs"
SCENES: Final = "Try it on drawn scenes"
PAIRS: Final = "A folder, table or tar of images and captions"


class FirstStart(QWidget):
    """Three ways in; Tab goes through them, then to the finished runs.

    Attributes:
        ways: The three, by name: `scenes`, `pairs` and `published`.
    """

    requested = Signal(object)  # An intent for another part of the window.
    tried = Signal()  # The person wants to train on drawn scenes.

    def __init__(self) -> None:
        super().__init__(objectName="first-start", focusPolicy=Qt.FocusPolicy.NoFocus)
        published = f"Classify your images without training · {FIRST.megabytes:,} MB"
        self.ways = {
            "scenes": WayButton("first-experiment", "play", SCENES, SCENES_COST, primary=True),
            "pairs": WayButton("first-import", "folder-open", "Use my pairs…", PAIRS),
            "published": WayButton("first-published", "globe", "Open a pretrained model…", published),
        }
        self.watch = QPushButton("Watch a training…", objectName="first-watch")
        self.vectors = QPushButton("Open vectors…", objectName="first-vectors", toolTip="Embeddings of another program")
        theme.keep_icon(self.watch, "activity")
        theme.keep_icon(self.vectors, "waypoints")
        self._primary: QPushButton = self.ways["scenes"]
        self.sample = QPushButton(
            "Look at the sample", objectName="first-sample", toolTip="Two finished runs, read-only"
        )
        theme.set_role(self.sample, "link")
        self.look = QPushButton(LOOK, objectName="first-look")
        theme.keep_icon(self.look, "eye")
        self._connect()
        self._lay_out()
        self.setFocusProxy(self.ways["scenes"])

    def _connect(self) -> None:
        ask = self.requested.emit
        self.ways["scenes"].clicked.connect(self.tried)
        self.ways["pairs"].clicked.connect(lambda: ask(OpenImport(compare=True)))
        self.ways["published"].clicked.connect(lambda: ask(ChooseModel(FIRST.specification)))
        self.watch.clicked.connect(lambda: ask(WatchTraining()))
        self.vectors.clicked.connect(lambda: ask(OpenVectors()))
        for button in (self.sample, self.look):
            button.clicked.connect(lambda: ask(OpenSample()))

    def _lay_out(self) -> None:
        self._left_side = left = layouts.scroll(layouts.panel(self._left()), "first-ways")
        self._row = row = layouts.row(layouts.STRETCH, left, gap=GAP_PX, margins=theme.BETWEEN)
        layouts.column(MinSizeScroll(layouts.panel(row)), of=self)
        self.card: QFrame | None = None
        if (card := read_card(default_paths.sample_workspace())) is not None:
            self.card = self._card(card)
            layouts.add(row, (self.card, 20))
        else:
            self.look.setParent(self)
            self.look.hide()
        self._result = self.card
        self.sample.hide()
        layouts.add(row, layouts.STRETCH)
        order = (*self.ways.values(), self.watch, self.vectors, self.sample, self.look)
        for first, second in pairwise(order):
            QWidget.setTabOrder(first, second)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._arrange()
        super().resizeEvent(event)

    def _arrange(self) -> None:
        """Place the result next to the buttons, or below them where both do not fit; then the page scrolls."""
        room = self.width() - 2 * theme.BETWEEN
        is_narrow = room < LEFT_PX + GAP_PX + LEAST_CARD_PX
        layouts.stack(self._row, is_narrow)
        bar = self.style().pixelMetric(QStyle.PixelMetric.PM_ScrollBarExtent)
        spare = room - bar if is_narrow else max(LEFT_PX, room - CARD_PX[0] - GAP_PX)
        width = min(spare, READING_PX)
        self._left_side.setFixedWidth(width)
        self._left_side.setMinimumHeight(self._column.totalHeightForWidth(width) if is_narrow else 0)
        if self._result is not None:
            self._result.setMinimumHeight(CARD_BELOW_PX if is_narrow else 0)

    def show_training(self, widget: QWidget) -> None:
        """Show this above the ways to begin."""
        self._column.insertWidget(1, widget)
        self._column.insertSpacing(2, theme.BETWEEN)

    def show_result(self, card: QFrame) -> None:
        """Show this result in place of the one before; that of the sample stays within reach of a link."""
        if self._row.indexOf(card) < 0:
            card.setMinimumWidth(LEAST_CARD_PX)
            card.setMaximumSize(*CARD_PX)
            self._row.insertWidget(2, card, 20)
        if self._result is not None and self._result is not card:
            self._result.hide()
        card.show()
        self.sample.setVisible(self.card is not None and card is not self.card)
        self._result = card
        self._arrange()

    def show_primary(self, button: QPushButton) -> None:
        """Make this button the primary one of the page, in place of drawn scenes, which are without runs."""
        if button is not self._primary:
            theme.set_role(self._primary, "way" if self._primary is self.ways["scenes"] else "")
            theme.set_role(button, "primary")
            theme.color_icon(self._primary, "text")
            theme.color_icon(button, "accent_text")
            self._primary = button

    def _left(self) -> QVBoxLayout:
        sentence = layouts.text(SENTENCE, "hero", wrap=True)
        methods = layouts.text(METHODS, "secondary", wrap=True)
        drop = layouts.text("You can also drop a folder, a model or vectors on this window.", "small")
        others = layouts.row((self.watch, 1), (self.vectors, 1))
        ways = layouts.column(*self.ways.values(), others)
        self._column = layouts.column(
            *(
                (layouts.STRETCH, 1),
                sentence,
                theme.SPACE,
                methods,
                theme.INSIDE,
                ways,
                theme.SPACE,
                drop,
                layouts.row(self.sample, layouts.STRETCH),
                (layouts.STRETCH, 1),
            )
        )
        return self._column

    def _card(self, card: SampleCard) -> QFrame:
        frame = QFrame(objectName="first-result")
        theme.set_role(frame, "card")
        frame.setMinimumWidth(LEAST_CARD_PX)
        frame.setMaximumSize(*CARD_PX)
        recall = recall_name("image_to_text", split="renderings", n=card.samples)
        measured = f"{recall} · {chance_text(1, card.samples)}"
        about = f"{measured} · 1 seed each: undecided"
        verdict = layouts.text(card.verdict, "title", name="first-verdict", wrap=True)
        heads = (layouts.text(f"Sample: Scenes, {card.steps:,} steps", "heading"), verdict, _small(about))
        legend = _small(f"●  image     ◆  caption     Colored by {card.colored_by} · {card.method}")
        note = layouts.elided("Two finished runs open at once, read-only. Nothing is trained.", "small")
        maps = [StillMap(index, drawn, card.classes) for index, drawn in enumerate(card.maps)]
        inset = (theme.BETWEEN, 12, theme.BETWEEN, 12)
        layouts.column(
            layouts.column(*heads, gap=theme.SPACE, margins=inset),
            layouts.hairline(),
            (layouts.row((maps[0], 1), layouts.hairline(upright=True), (maps[1], 1), gap=0), 1),
            layouts.hairline(),
            layouts.row(legend, margins=inset),
            layouts.hairline(),
            layouts.row(self.look, theme.SPACE, (note, 1), margins=inset),
            gap=0,
            of=frame,
        )
        return frame


def _small(text: str) -> QLabel:
    return layouts.text(text, "small", wrap=True)
