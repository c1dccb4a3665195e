"""Where a new run trains: this computer, or one of the user's places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QPushButton, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.flow_row import FlowRow
from explorer.widgets.form import LABEL_WIDTH
from explorer.widgets.still import StillComboBox, StillSpinBox
from trainer import config
from trainer.errors import UserError

if TYPE_CHECKING:
    from trainer.places.bindings import Binding

_SENDABLE = (config.Folder, config.ClassFolder, config.Shards)


class WhereRow(QWidget):
    """A row of the New run form."""

    changed = Signal()  # Another place was chosen.
    manage_asked = Signal()  # The places are to be listed.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="new-run-where-row")
        self.place = StillComboBox(self)
        self.place.setObjectName("new-run-where")
        self.place.setAccessibleName("Where the run trains")
        self.place.setMinimumContentsLength(20)
        self.place.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.upload = QCheckBox("Send the data", self, objectName="new-run-upload")
        self.upload.setToolTip("Off: the data lie there under the same path, which is checked first")
        self.nodes = StillSpinBox(self)
        self.nodes.setObjectName("new-run-nodes")
        self.nodes.setAccessibleName("Nodes of SLURM")
        self.nodes.setRange(1, 64)
        self.nodes.setSuffix(" nodes")
        self.nodes.setToolTip("Nodes that share the processes of the run, as many on each")
        manage = QPushButton("Compute targets…", self, objectName="new-run-places", autoDefault=False)
        manage.setToolTip("Add, remove and test other computers that train runs")
        manage.clicked.connect(self.manage_asked)
        label = layouts.text("Run on", buddy=self.place)
        label.setFixedWidth(LABEL_WIDTH)
        row = FlowRow()
        for part in (label, self.place, self.nodes, self.upload, manage):
            row.add(part, gap=theme.BETWEEN, stretch=part is self.place)
        layouts.column(row, of=self)
        self.read()
        self.show_data(None)
        self.place.currentIndexChanged.connect(lambda _: self.changed.emit())
        self.nodes.valueChanged.connect(lambda _: self.changed.emit())

    @property
    def name(self) -> str:
        """The chosen place; empty for this computer."""
        return str(self.place.currentData() or "")

    def binding(self) -> Binding | None:
        """Return where the run trains; None for this computer."""
        if not self.name:
            return None
        from trainer.places.bindings import Binding

        return Binding(self.name, upload=self._sends, nodes=self._nodes)

    def command(self) -> list[str]:
        """Return the words of `trainer fit` that say so."""
        if not self.name:
            return []
        nodes = ["--nodes", str(self._nodes)] if self._nodes else []
        return ["--on", self.name, *nodes, *(["--upload"] if self._sends else [])]

    def read(self) -> None:
        """List the places again; the chosen one stays if it is still there."""
        from trainer.places.bindings import hosts

        chosen = self.name
        with QSignalBlocker(self.place):
            self.place.clear()
            self.place.addItem("This computer", "")
            try:
                listed = hosts()
            except UserError:  # the dialog of places says what is wrong
                listed = []
            self._clusters = {host.name for host in listed if host.kind == "slurm"}
            for host in listed:
                self.place.addItem(f"{host.name}  ({host.kind})", host.name)
            self.place.setCurrentIndex(max(0, self.place.findData(chosen)))
        self.changed.emit()

    def show_data(self, data: config.Data | None) -> None:
        """Offer to send the data where they are files that can be sent."""
        self.upload.setVisible(bool(self.name) and isinstance(data, _SENDABLE))

        self.nodes.setVisible(self.name in self._clusters)

    @property
    def _nodes(self) -> int:
        """How many nodes of SLURM; 0 for what the place says."""
        nodes = self.nodes.value() if self.name in self._clusters else 1
        return nodes if nodes > 1 else 0

    @property
    def _sends(self) -> bool:
        return self.upload.isVisibleTo(self) and self.upload.isChecked()
