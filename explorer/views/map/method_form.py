"""Controls of the placement: PCA, UMAP or another method, with its parameters in a small form."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtWidgets import QAbstractSpinBox, QFileDialog, QFormLayout, QMenu, QToolButton, QWidget, QWidgetAction

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.accessible import present
from explorer.widgets.still import StillComboBox, StillDoubleSpinBox, StillSpinBox
from trainer.charts.point_placement import LABELS, METRICS, PointPlacement

TYPING_MS: Final = 600
COORDINATES: Final = "Coordinates (*.npy *.csv *.tsv *.parquet)"


class MethodForm(QWidget):
    """A row of buttons with a form in a menu, because the row has no space for it at 1280 pixels."""

    changed = Signal()  # `placement` is another.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._method, self._file, self._is_short = "pca", "", False
        self.pca, self.umap = (
            QToolButton(objectName=f"map-{word.lower()}", text=word, accessibleName=word, checkable=True)
            for word in ("PCA", "UMAP")
        )
        for button in (self.pca, self.umap):
            present(button, "RadioButton")
        self.neighbors = StillSpinBox(objectName="map-neighbors", accessibleName="Neighbors", minimum=2, maximum=200)
        self.min_dist = StillDoubleSpinBox(
            objectName="map-min-dist", accessibleName="Minimum distance of UMAP", maximum=0.99
        )
        self.min_dist.setSingleStep(0.05)
        self.distance = StillComboBox(objectName="map-metric", accessibleName="Distance metric")
        for metric in METRICS:
            self.distance.addItem("Cosine" if metric == "cosine" else "Euclidean", metric)
        self.seed = StillSpinBox(objectName="map-seed", accessibleName="Seed", minimum=0, maximum=9999)
        label = "Parameters of the projection"
        self.form = QToolButton(objectName="map-umap-form", toolTip=label, accessibleName=label)
        theme.keep_icon(self.form, "sliders-horizontal", 16, "text")
        self.form.setMenu(self._form_menu())
        self.form.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.other = QToolButton(objectName="map-other-methods", text="More", checkable=True)
        self.other.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.other.setAccessibleName("More methods")
        self.other.setMenu(self._methods_menu())
        self._typing = QTimer(self, singleShot=True, interval=TYPING_MS)
        self.set_placement(PointPlacement())
        self._lay_out()
        self.shorten(False)
        self._connect()

    @property
    def placement(self) -> PointPlacement:
        return PointPlacement(
            method=self._method,  # type: ignore[arg-type]
            neighbors=self.neighbors.value(),
            min_dist=round(self.min_dist.value(), 2),
            metric=self.distance.currentData(),
            seed=self.seed.value(),
            coordinates=self._file if self._method == "file" else "",
        )

    def set_placement(self, placement: PointPlacement) -> None:
        """Select this placement without emitting `changed`."""
        boxes = (self.neighbors, self.min_dist, self.distance, self.seed)
        blocked = [QSignalBlocker(widget) for widget in (*boxes, self.pca, self.umap, self.other)]
        self.neighbors.setValue(placement.neighbors)
        self.min_dist.setValue(placement.min_dist)
        self.distance.setCurrentIndex(METRICS.index(placement.metric))
        self.seed.setValue(placement.seed)
        self._method, self._file = placement.method, placement.coordinates
        self._show_fields()
        del blocked

    def choose(self, method: str, file: str = "") -> None:
        """Select a method as the user would; `file` holds the coordinates for the method `file`."""
        if (method, file) == (self._method, self._file):
            self._show_fields()
            return
        self._method, self._file = method, file
        self._show_fields()
        self.changed.emit()

    def shorten(self, on: bool) -> None:
        """Offer all methods in the menu, which then says the chosen one; or the first two as buttons again."""
        for button, action in zip((self.pca, self.umap), self._first):
            button.setVisible(not on)
            action.setVisible(on)
        self._is_short = on
        self._show_fields()
        if (row := self.layout()) is not None:
            row.activate()  # the bar measures it at once

    def _ask_file(self) -> None:
        dialog = QFileDialog(self, "Coordinates of the points: x and y, images first, then texts")
        dialog.setObjectName("map-coordinates")
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilter(COORDINATES)
        dialog.fileSelected.connect(lambda file: self.choose("file", file))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _show_fields(self) -> None:
        further = self._is_short or self._method not in ("pca", "umap")
        # Not a QButtonGroup: in one, Tab reaches only the button that is on, and never the menu of the others.
        chosen = self.other if further else {"pca": self.pca, "umap": self.umap}[self._method]
        for button in (self.pca, self.umap, self.other):
            button.setChecked(button is chosen)
        self.other.setText(LABELS[self._method] if further else "More")
        theme.set_role(self.other, "view-menu" if self._is_short else "")  # an arrow says that it has the others
        policy = self.form.sizePolicy()
        policy.setRetainSizeWhenHidden(not self._is_short)  # the methods keep their place
        self.form.setSizePolicy(policy)
        has_parameters = self._method not in ("pca", "file")
        self.form.setVisible(has_parameters and not self._is_short)
        self._in_menu.setVisible(has_parameters and self._is_short)
        self._fields.setRowVisible(self.min_dist, self._method in ("umap", "umap-learn"))
        self._fields.setRowVisible(self.distance, self._method in ("umap", "umap-learn", "tsne"))
        self._fields.labelForField(self.neighbors).setText("Perplexity" if self._method == "tsne" else "Neighbors")

    def _methods_menu(self) -> QMenu:
        menu = QMenu(self)
        for method in ("pca", "umap", "umap-learn", "tsne", "pacmap"):
            action = menu.addAction(LABELS[method])
            action.setObjectName(f"map-method-{method}")
            action.triggered.connect(lambda _on=False, method=method: self.choose(method))
        self._first = menu.actions()[:2]
        self._in_menu = menu.addMenu(self.form.menu())
        self._in_menu.setText(self.form.toolTip())
        menu.addSeparator()
        menu.addAction("Coordinates from a file…", self._ask_file).setObjectName("map-method-file")
        # A menu that is closed without a choice leaves the button as it was.
        menu.aboutToHide.connect(lambda: QTimer.singleShot(0, self, self._show_fields))
        return menu

    def _form_menu(self) -> QMenu:
        panel = QWidget()
        self._fields = form = QFormLayout(panel)
        form.setContentsMargins(theme.INSIDE, theme.INSIDE, theme.INSIDE, theme.INSIDE)
        form.setSpacing(theme.INSIDE)
        fields = {
            "Neighbors": self.neighbors,
            "Minimum distance": self.min_dist,
            "Distance": self.distance,
            "Seed": self.seed,
        }
        for label, box in fields.items():
            if isinstance(box, QAbstractSpinBox):
                box.setAlignment(Qt.AlignmentFlag.AlignRight)
            form.addRow(label, box)
        note = layouts.text("More neighbors show global structure,\nfewer show local structure.", "small")
        form.addRow(note)
        menu = QMenu(self)
        holder = QWidgetAction(menu)
        holder.setDefaultWidget(panel)
        menu.addAction(holder)
        return menu

    def _lay_out(self) -> None:
        layouts.row(self.pca, self.umap, self.other, self.form, gap=theme.SPACE, of=self)

    def _connect(self) -> None:
        self._typing.timeout.connect(self.changed)
        for button, method in ((self.pca, "pca"), (self.umap, "umap")):
            button.toggled.connect(lambda on, method=method: on and self.choose(method))
            button.clicked.connect(self._show_fields)  # a click on the one that is on leaves it on
        for box in (self.neighbors, self.min_dist, self.seed):
            box.valueChanged.connect(lambda _value: self._typing.start())
        self.distance.currentIndexChanged.connect(lambda _place: self._typing.start())
