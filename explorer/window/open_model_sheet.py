"""A dialog that opens a published model: which one, with which data, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLineEdit, QPushButton, QWidget

from explorer import theme
from explorer.event_loop.background import Background
from explorer.import_sheet.dropped_files import is_data
from explorer.widgets import layouts
from explorer.widgets.still import StillComboBox
from explorer.window.open_sheet import OpenSheet
from trainer.distribution.model_folders import WEIGHTS
from trainer.distribution.published_models import PUBLISHED

if TYPE_CHECKING:
    from trainer.store import RunRow

_SCENES: Final = "scenes"
_OTHER: Final = "other"
_MISSING: Final = "Name a model, and the data to show it with, first."
_WORDS: Final = (
    "No training. The model becomes a run whose held-out embeddings every view can show; duplicate it with epochs to "
    "fine-tune it."
)


class OpenModelSheet(OpenSheet):
    """A dialog for a model and the data to inspect it with."""

    data_asked = Signal(str)  # It is data that the person wants; what was typed, if it looks like data, else empty.

    def __init__(
        self,
        workspace: Path,
        background: Background,
        *,
        model: str = "",
        like: RunRow | None = None,
        parent: QWidget | None = None,
    ) -> None:
        """Build the dialog; `like` is a run whose data the model can be used with, too."""
        super().__init__("open-model", "Open a pretrained model", workspace, background, parent)
        self._build(like)
        self.model.setText(model)
        self._choose_data()
        if (index := self.published.findData(model)) > 0:
            self.published.setCurrentIndex(index)
        (self.name if model else self.model).setFocus()

    def command(self) -> list[str]:
        arguments = ["open", self.model.text().strip()]
        chosen = self.data.currentData()
        if chosen == _OTHER:
            arguments += ["--data", self.path.text().strip()]
        elif chosen != _SCENES:
            arguments += ["--like", chosen]
        name = self.name.text().strip()
        return arguments + (["--name", name] if name else [])

    def check(self) -> None:
        named = self.model.text().strip()
        missing = not named or (self.data.currentData() == _OTHER and not self.path.text().strip())
        self.refuse(_MISSING if missing else "")
        chosen = next((published for published in PUBLISHED if published.specification == named), None)
        self.say(
            _WORDS
            if chosen is None
            else f"{chosen.source}. License: {chosen.license}. {chosen.megabytes:,} MB are downloaded once from "
            f"{chosen.address}. An interrupted download continues later. The model then classifies dropped pictures."
        )

    def _choose_published(self) -> None:
        if chosen := self.published.currentData():
            self.model.setText(chosen)

    def _choose_data(self) -> None:
        for part in self._path_row:
            part.setVisible(self.data.currentData() == _OTHER)
        self.check()

    def _build(self, like: RunRow | None) -> None:
        self.published = StillComboBox(self, objectName="open-model-published")
        self.published.addItem("Choose one, or name another below", "")
        for published in PUBLISHED:
            self.published.addItem(published.words, published.specification)
            self.published.setItemData(self.published.count() - 1, published.source, Qt.ItemDataRole.ToolTipRole)
        self.published.currentIndexChanged.connect(self._choose_published)
        self.model = QLineEdit(self, objectName="open-model-model")
        self.model.setPlaceholderText("open_clip:ViT-B-32/laion2b_s34b_b79k")
        self.data = StillComboBox(self, objectName="open-model-data")
        if like is not None:
            self.data.addItem(f"The data of {like.short_name}", str(like.id))
        self.data.addItem("256 Scenes, drawn for it", _SCENES)
        self.data.addItem("A folder, table or tar", _OTHER)
        self.path = QLineEdit(self, objectName="open-model-path")
        self.path.setPlaceholderText("A folder of images, a table or a tar")
        self.name = QLineEdit(self, objectName="open-model-name", placeholderText="As the model")
        hint = layouts.text("open_clip:NAME/TAG, hf-hub:OWNER/NAME, a folder or a file.", "small", wrap=True)
        self.grid.addWidget(hint, 2, 1)
        rows = {
            0: ("Published", self.published),
            1: ("Model", self.model),
            3: ("Data", self.data),
            4: ("Images", self.path),
            5: ("Name", self.name),
        }
        for row, (text, editor) in rows.items():
            editor.setAccessibleName(text)
            label = self.add_field(row, text, editor)
            if editor is self.path:
                self._path_row = (label, editor)
        weights = f"Weights ({' '.join(f'*{suffix}' for suffix in WEIGHTS)})"
        self.add_browse(self.model, "folder", "Choose the folder of a model")
        self.add_browse(self.model, "file", "Choose a file of weights", weights)
        self.add_browse(self.path, "folder", "Choose a folder of images")
        self.add_browse(self.path, "file", "Choose a table or tar")
        data = QPushButton("Import data instead…", self, objectName="open-model-import", autoDefault=False)
        data.clicked.connect(self._import)
        theme.set_role(data, "quiet")
        self.lay_out(data)
        for line in (self.model, self.path):
            line.textChanged.connect(self.check)
        self.data.currentIndexChanged.connect(self._choose_data)

    def _import(self) -> None:
        typed = self.model.text().strip()
        self.reject()
        self.data_asked.emit(typed if typed and is_data(Path(typed).expanduser()) else "")
