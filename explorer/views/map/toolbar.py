"""What can be chosen about both maps: the projection, the colors, what is shown, how the mouse selects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QWidget,
)

from explorer import theme
from explorer.views.map.coloring import MODALITY, words
from explorer.views.map.method_form import MethodForm
from explorer.views.map.tools import Tools
from explorer.widgets.combo_boxes import Choice, Picker
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.flow_row import WrappingRow
from trainer.charts.layout_method import PointPlacement

COLOR_PX: Final = 192


class MapToolbar(WrappingRow):
    """The controls above the maps.

    Signals:
        projection_changed: `projection` is another.
        color_changed: `color_by` is another.
        cancel_asked: The projection that is under way is not wanted any more.
    """

    projection_changed = Signal()
    color_changed = Signal()
    cancel_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.methods = MethodForm()
        self.pca, self.umap, self.form = self.methods.pca, self.methods.umap, self.methods.form
        self.neighbors, self.min_dist = self.methods.neighbors, self.methods.min_dist
        self.color = Picker(name="map-color", words="Color by", width=112)
        self.tools = Tools()
        self.progress = _Progress()
        self._lay_out()
        self._connect()

    @property
    def projection(self) -> PointPlacement:
        """What is chosen."""
        return self.methods.placement

    def set_projection(self, projection: PointPlacement) -> None:
        """Chooses this without telling anybody."""
        self.methods.set_placement(projection)

    @property
    def color_by(self) -> str:
        """`modality`, `label` or a column of the items."""
        return self.color.key or MODALITY

    def offer_colors(self, choices: Sequence[str], by: str) -> None:
        """Offers these colorings and chooses `by`, or the first if it is none of them."""
        self.color.show_choices([Choice(c, f"Color: {words(c)}") for c in choices], by if by in choices else choices[0])

    def _lay_out(self) -> None:
        self.add(self.methods)
        self.add(self.progress, gap=theme.SPACE + theme.INSIDE, stretch=True)
        self.add(self.tools, right=True)
        self.add(self.color, stretch=True, right=True)
        self.color.setMaximumWidth(COLOR_PX)

    def _connect(self) -> None:
        self.methods.changed.connect(self.projection_changed)
        self.color.picked.connect(lambda _key: self.color_changed.emit())
        self.progress.cancel.clicked.connect(self.cancel_asked)


class _Progress(QWidget):
    """A bar, a note and Cancel; takes no room while nothing is under way."""

    def __init__(self) -> None:
        super().__init__()
        self.bar = QProgressBar(maximum=1000, textVisible=False)
        self.bar.setFixedWidth(72)
        self.note = ElidedLabel()
        theme.set_role(self.note, "small")
        self.cancel = QPushButton("Cancel", objectName="map-cancel", accessibleName="Cancel the projection")
        theme.set_role(self.cancel, "quiet")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.INSIDE)
        row.addWidget(self.bar)
        row.addWidget(self.cancel)
        row.addWidget(self.note, 1)
        self.hide()

    def tell(self, share: float | None, note: str) -> None:
        """Shows how far it is; None: nobody knows yet."""
        self.bar.setRange(0, 0 if share is None else 1000)
        if share is not None:
            self.bar.setValue(round(1000 * share))
        self.note.setText(note)
        self.show()
