"""What can be chosen about both maps: the projection, the colours, what is shown, how the mouse selects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QDoubleSpinBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QMenu,
    QProgressBar,
    QPushButton,
    QSpinBox,
    QToolButton,
    QWidget,
    QWidgetAction,
)

from explorer import theme
from explorer.views.map.colouring import MODALITY, words
from explorer.views.map.tools import Tools
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.pickers import Choice, Picker

TYPING_MS = 600


@dataclass(frozen=True)
class Projection:
    """How points are placed; the last three matter for UMAP only."""

    method: str = "pca"
    neighbours: int = 15
    min_dist: float = 0.1
    seed: int = 0

    @property
    def words(self) -> str:
        """As it is written above a map."""
        if self.method == "pca":
            return "PCA"
        return f"UMAP, {self.neighbours} neighbours, min. distance {self.min_dist:g}"


class Toolbar(QWidget):
    """One line of controls above the maps.

    Signals:
        projection_changed: `projection` is another.
        colour_changed: `colour_by` is another.
        cancel_asked: The projection that is under way is not wanted any more.
    """

    projection_changed = Signal()
    colour_changed = Signal()
    cancel_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.pca, self.umap = _choice("map-pca", "PCA"), _choice("map-umap", "UMAP")
        self._methods = QButtonGroup(self)
        for button in (self.pca, self.umap):
            self._methods.addButton(button)
        self.pca.setChecked(True)
        self.neighbours = _Count(
            objectName="map-neighbours", accessibleName="Neighbours of UMAP", minimum=2, maximum=200
        )
        self.min_dist = _Share(objectName="map-min-dist", accessibleName="Minimal distance of UMAP", maximum=0.99)
        self.min_dist.setSingleStep(0.05)
        self.form = _tool("map-umap-form", "sliders-horizontal", "Neighbours and distance of UMAP")
        self.form.setMenu(self._form_menu())
        self.form.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.colour = Picker(name="map-colour", words="Colour by", width=192)
        self.tools = Tools()
        self.progress = _Progress()
        self._typing = QTimer(self, singleShot=True, interval=TYPING_MS)
        self.set_projection(Projection())
        self._lay_out()
        self._connect()

    @property
    def projection(self) -> Projection:
        """What is chosen."""
        method = "umap" if self.umap.isChecked() else "pca"
        return Projection(method, self.neighbours.value(), round(self.min_dist.value(), 2))

    def set_projection(self, projection: Projection) -> None:
        """Chooses this without telling anybody."""
        blocked = [QSignalBlocker(w) for w in (self.pca, self.umap, self.neighbours, self.min_dist)]
        (self.umap if projection.method == "umap" else self.pca).setChecked(True)
        self.neighbours.setValue(projection.neighbours)
        self.min_dist.setValue(projection.min_dist)
        self._show_form()
        del blocked

    @property
    def colour_by(self) -> str:
        """`modality`, `label` or a column of the items."""
        return self.colour.key or MODALITY

    def offer_colours(self, choices: Sequence[str], by: str) -> None:
        """Offers these colourings and chooses `by`, or the first if it is none of them."""
        self.colour.show_choices(
            [Choice(c, f"Colour: {words(c)}") for c in choices], by if by in choices else choices[0]
        )

    def _show_form(self) -> None:
        self.form.setVisible(self.umap.isChecked())

    def _form_menu(self) -> QMenu:
        """A small form in a menu: at 1280 pixels the line has no room for it."""
        panel = QWidget()
        form = QFormLayout(panel)
        form.setContentsMargins(theme.INSIDE, theme.INSIDE, theme.INSIDE, theme.INSIDE)
        form.setSpacing(theme.INSIDE)
        for words_, box in (("Neighbours", self.neighbours), ("Minimal distance", self.min_dist)):
            box.setAlignment(Qt.AlignmentFlag.AlignRight)
            form.addRow(words_, box)
        note = QLabel("More neighbours show the whole,\nfewer show the small groups.")
        theme.set_role(note, "small")
        form.addRow(note)
        menu = QMenu(self)
        holder = QWidgetAction(menu)
        holder.setDefaultWidget(panel)
        menu.addAction(holder)
        return menu

    def _lay_out(self) -> None:
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.SPACE)
        for widget in (self.pca, self.umap, self.form):
            row.addWidget(widget)
        row.addSpacing(theme.INSIDE)
        row.addWidget(self.progress, 1)
        row.addStretch(0)
        row.addWidget(self.tools)
        row.addSpacing(theme.SPACE)
        row.addWidget(self.colour)
        self.colour.setSizePolicy(self.neighbours.sizePolicy())

    def _connect(self) -> None:
        self._methods.buttonToggled.connect(lambda _button, on: on and self._on_method())
        self._typing.timeout.connect(self.projection_changed)
        for box in (self.neighbours, self.min_dist):
            box.valueChanged.connect(lambda _value: self._typing.start())
        self.colour.picked.connect(lambda _key: self.colour_changed.emit())
        self.progress.cancel.clicked.connect(self.cancel_asked)

    def _on_method(self) -> None:
        self._show_form()
        self.projection_changed.emit()


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


class _Count(QSpinBox):
    """A spin box that scrolling past does not change."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class _Share(QDoubleSpinBox):
    """A spin box of hundredths that scrolling past does not change."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


def _choice(name: str, text: str) -> QToolButton:
    return QToolButton(objectName=name, text=text, accessibleName=text, checkable=True)


def _tool(name: str, sign: str, tip: str, *, checkable: bool = False) -> QToolButton:
    button = QToolButton(objectName=name, toolTip=tip, accessibleName=tip, checkable=checkable)
    theme.keep_icon(button, sign, 16, "text")
    return button
