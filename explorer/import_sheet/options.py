"""Parts of the import dialog: how the data are read, and what preparing them costs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QComboBox, QFileDialog, QLabel, QLineEdit, QPushButton, QWidget

from explorer import theme
from explorer.import_sheet import survey_result
from explorer.import_sheet.survey_result import KINDS, Kind
from explorer.widgets import layouts
from explorer.widgets.drop_overlay import refuse_drops
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.form import EDITOR_WIDTH, LABEL_WIDTH, Browse, Form
from explorer.widgets.number_box import NumberBox
from explorer.widgets.progress_row import ProgressRow
from explorer.widgets.still import StillComboBox
from trainer import config

IMAGE_SIZE: Final = 64
SMALLEST, LARGEST = 16, 1_024
_ORDERED: Final = ("image_column", "caption_column")
_USUAL: Final = {
    "separator": ("auto", ",", "tab", ";", "|"),
    "encoding": ("auto", "utf-8", "cp1252", "cp1251", "shift_jis", "euc_kr", "gb18030"),
}
"""Values that are offered; any other may be typed."""
_FILES: Final = (
    "Tables and tars (*.csv *.tsv *.txt *.token *.json *.jsonl *.ndjson *.parquet *.gz *.bz2 *.xz *.tar *.tgz);;"
    "All files (*)"
)
_LISTS: Final = ("train_list", "heldout_list", "class_list", "queries")
"""Fields that name a text file."""
_HELDOUT: Final[dict[type, Browse]] = {config.Table: "file"}


class PathLine(QLineEdit):
    """A field for the path of the data: typed, or chosen with one of its two buttons."""

    chosen = Signal()  # A folder or file was chosen, and is in the line.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="import-path", accessibleName="Data")
        self.setPlaceholderText("A folder, a table, or tars such as shards/{000..150}.tar")
        browse = (("folder", "folder-open", "Choose a folder"), ("file", "box", "Choose a table or tar"))
        for what, icon, label in browse:
            action = QAction(label, self)
            theme.keep_icon(action, icon, role="secondary")
            action.setObjectName(f"browse-{what}")
            action.triggered.connect(partial(self.choose, what))
            self.addAction(action, QLineEdit.ActionPosition.TrailingPosition)

    def choose(self, what: str, _checked: bool = False) -> None:
        """Open a dialog to choose a `folder` or a `file`."""
        if what == "folder":
            path = QFileDialog.getExistingDirectory(self.window(), "Choose a folder", self.text())
        else:
            path = QFileDialog.getOpenFileName(self.window(), "Choose a table or tar", self.text(), _FILES)[0]
        if path:
            self.setText(path)
            self.chosen.emit()


class Options(QWidget):
    """The type of the data and the options of that type."""

    kind_chosen = Signal()  # The person has chosen another kind.
    changed = Signal()  # The person has changed an option.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="import-options")
        self._forms: dict[type, Form] = {}
        self.kinds = StillComboBox(self, objectName="import-kind", accessibleName="Kind of data")
        self.kinds.setMinimumWidth(EDITOR_WIDTH)
        self.kinds.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        for kind in KINDS:
            self.kinds.addItem(kind.label, kind)
        self.kinds.activated.connect(lambda _place: self.kind_chosen.emit())
        hint = ElidedLabel("Detected from names and layout; change it if wrong.", self)
        theme.set_role(hint, "small")
        head = layouts.row(labeled("Format", self.kinds), self.kinds, (hint, 1), gap=theme.BETWEEN)
        self._column = layouts.column(head, of=self)

    @property
    def kind(self) -> Kind:
        """The selected type."""
        return self.kinds.currentData()

    @property
    def form(self) -> Form:
        """The options form of that type; call it only after `show_data`."""
        return self._forms[self.kind]

    def show_data(self, data: config.Data) -> None:
        """Show the type and options of `data` without emitting signals."""
        kind = type(data)
        form = self._forms.get(kind) or self._make(kind)
        with QSignalBlocker(form), QSignalBlocker(self.kinds):
            form.set_value(data)
            form.set_problems({})
            self.kinds.setCurrentIndex(KINDS.index(kind))
        for each in self._forms.values():
            each.setVisible(each is form)

    def offer_columns(self, columns: Sequence[str]) -> None:
        """List a table's columns in the column pickers and mark selections that do not exist."""
        data = self.form.value()
        if not isinstance(data, config.Table) or not columns:
            return
        wrong = {name: value for name in _ORDERED if (value := getattr(data, name)) not in columns}
        for name in _ORDERED:
            self.form.set_choices(name, columns)
        self.form.set_problems({n: f"There is no column {value!r}; choose another." for n, value in wrong.items()})
        for name in [*wrong][:1]:
            self.form.editor(name).setFocus()

    def preset_share(self, pairs: int, before: int, enough: int) -> bool:
        """Set and focus the smallest round share of `pairs` that holds out `enough`; return whether there is a share.

        Where none of at most a half does, it is a larger one than that of `before`.
        """
        data = self.form.value()
        if not hasattr(data, "heldout_share") or "heldout_share" in config.unused_fields(data):
            return False
        larger = 0.3 if before < 0.3 * pairs else 0.5
        share = next((share for share in (0.2, 0.3, 0.4, 0.5) if pairs * share >= enough), larger)
        self.show_data(dataclasses.replace(data, heldout_share=share))
        self.form.editor("heldout_share").setFocus()
        return True

    def show_split(self, pairs: Mapping[str, int], has_own_split: bool, before: int = 0) -> None:
        """Show next to the held-out share how many pairs it comes to, or that the data have a split of their own.

        With `before`, how many pairs an experiment held out, show what one pair is instead.
        """
        if not hasattr(self.form.value(), "heldout_share"):
            return
        unused = {"heldout_share": "Not used: the data has its own held-out part."} if has_own_split else {}
        self.form.set_unused(unused | config.unused_fields(self.form.value()))
        if unused:
            return
        note, held = "", sum(count for split, count in pairs.items() if split != "train")
        if held:
            # No second percentage: of few pairs the hash holds out more or less than the share beside it.
            note = f"{held:,} of {sum(pairs.values()):,} pairs, by a hash of each path: adding data moves no pair"
        if held and before:
            note = f"One held-out pair would be {100 / held:.1f} points instead of {100 / before:.1f}"
        self.form.set_note("heldout_share", note)

    def _make(self, kind: type) -> Form:
        names = {field.name for field in dataclasses.fields(kind)}
        form = Form(
            kind,
            browse={"heldout_path": _HELDOUT.get(kind, "folder"), **dict.fromkeys(_LISTS, "file")},
            skip=frozenset({survey_result.path_field(kind)}),
            choosable=frozenset((*_ORDERED, *_USUAL)) & names,
            unused=config.unused_fields,
            parent=self,
        )
        for name in _USUAL.keys() & names:
            form.set_choices(name, _USUAL[name])
        form.changed.connect(self.changed)
        refuse_drops(form)
        self._column.addWidget(form)
        self._forms[kind] = form
        return form


class Cost(QWidget):
    """The disk space that prepared images take at the chosen size, and the progress of preparing them."""

    edited = Signal()  # Another size was typed.
    opened = Signal()  # Every picture is to be opened.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.size_box = NumberBox(integer=True, low=SMALLEST, high=LARGEST, parent=self)
        self.size_box.setObjectName("import-size")
        self.size_box.setAccessibleName("Side length of the prepared images in pixels")
        self.size_box.setFixedWidth(72)
        self.size_box.set_value(IMAGE_SIZE)
        self.size_box.edited.connect(self.edited)
        before, self.words = QLabel("Resize to", self), QLabel(self, objectName="import-cost")
        for label in (before, self.words):
            theme.set_role(label, "secondary")
        before.setBuddy(self.size_box)
        self.open_all = QPushButton("Decode every image", self, objectName="import-open", autoDefault=False)
        self.open_all.setToolTip("Decode every image now, as a run would, and report unreadable or unusual ones")
        self.open_all.clicked.connect(self.opened)
        self.working = ProgressRow("import-working", self)
        # The sheet has a Cancel of its own, which closes it.
        self.working.button.setText("Stop")
        self.working.button.setAccessibleName("Stop reading")
        self._about = (before, self.size_box, self.words)
        layouts.row(*self._about, (self.working, 1), layouts.STRETCH, self.open_all, of=self)
        self.show_cost("", can_open=False)

    def show_cost(self, text: str, *, can_open: bool) -> None:
        """Show the disk space, or nothing; with `can_open`, offer to open every image."""
        self.words.setText(text)
        for part in self._about:
            part.setVisible(bool(text))
        self.open_all.setVisible(can_open)

    @property
    def size_px(self) -> int:
        """The side of the prepared images; the default while the field has no valid number."""
        value = self.size_box.value()
        return value if isinstance(value, int) and SMALLEST <= value <= LARGEST else IMAGE_SIZE


def labeled(text: str, buddy: QWidget) -> QLabel:
    """Return a label as wide as those of the forms."""
    label = layouts.text(text, buddy=buddy)
    label.setFixedWidth(LABEL_WIDTH)
    return label
