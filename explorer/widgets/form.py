"""A form made from a frozen dataclass: its fields' metadata give the labels, the bounds, the units and the help."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args, get_origin, get_type_hints

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)

from explorer.theme import BETWEEN, INSIDE, SPACE, keep_icon, set_role
from explorer.widgets.collapsible import Fold
from explorer.widgets.number_box import NumberBox
from explorer.widgets.switch import Switch

Browse = Literal["folder", "file"]

LABEL_WIDTH = 160
EDITOR_WIDTH = 208


class Form(QWidget):
    """One row per field of a dataclass: label, editor, unit, and what the field means; advanced ones folded.

    The form holds no opinion on what is valid: `set_problems` writes a sentence under the field it belongs to.

    Attributes:
        kind: The dataclass.

    Signals:
        changed: `value()` may be another now.
    """

    changed = Signal()

    def __init__(
        self,
        kind: type,
        *,
        browse: Mapping[str, Browse] | None = None,
        skip: frozenset[str] = frozenset(),
        choosable: frozenset[str] = frozenset(),
        parent: QWidget | None = None,
    ) -> None:
        """Builds the rows.

        Args:
            kind: A dataclass whose fields all have defaults and types int, float, bool, str or Literal.
            browse: Text fields that name a folder or a file, and so get a button to choose one.
            skip: Fields that have no row; they keep the value of the instance last given to `set_value`.
            choosable: Text fields for which `set_choices` names likely values; any other may be typed.
            parent: Qt's parent.
        """
        super().__init__(parent)
        self.kind = kind
        self._skip = skip
        self._shown = kind()
        self._rows: dict[str, FormRow] = {}
        hints = get_type_hints(kind)
        plain, advanced = _Rows(self), _Rows(self)
        for field in dataclasses.fields(kind):
            if field.name in skip:
                continue
            row = FormRow(field, hints[field.name], (browse or {}).get(field.name), self, field.name in choosable)
            row.edited.connect(self.changed)
            self._rows[field.name] = row
            (advanced if field.metadata.get("advanced") else plain).add(row)
        self._fold = self._make_fold(advanced) if advanced.count else None
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(INSIDE)
        layout.addWidget(plain)
        if self._fold is not None:
            layout.addWidget(self._fold, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(advanced)
        self._advanced = advanced
        advanced.hide()
        self.set_value(self._shown)

    def value(self) -> Any:
        """An instance of the dataclass with what is in the editors.

        A number that cannot be read is there as its text, for the checker to name.
        """
        return dataclasses.replace(self._shown, **{name: row.value() for name, row in self._rows.items()})

    def set_value(self, instance: Any) -> None:
        """Shows the fields of `instance`; emits `changed` once."""
        self._shown = instance
        with QSignalBlocker(self):
            for name, row in self._rows.items():
                row.set_value(getattr(instance, name))
        self.changed.emit()

    def set_problems(self, problems: Mapping[str, str]) -> None:
        """Writes each sentence under its field, and clears the others; unfolds what would hide one."""
        for name, row in self._rows.items():
            row.set_problem(problems.get(name, ""))
        hidden = self._fold is not None and not self._fold.isChecked()
        if hidden and any(name in problems and self._advanced.holds(row) for name, row in self._rows.items()):
            self._fold.setChecked(True)

    def editor(self, name: str) -> QWidget:
        """The widget that edits the field, e.g. for the focus."""
        return self._rows[name].editor

    def set_choices(self, name: str, choices: Sequence[str]) -> None:
        """Offers these values for a choosable field, whose own value stays."""
        self._rows[name].set_choices(choices)

    def set_note(self, name: str, note: str) -> None:
        """Replaces the help beside a field; empty brings its own help back."""
        self._rows[name].set_note(note)

    def _make_fold(self, advanced: QWidget) -> Fold:
        fold = Fold("Advanced", parent=self)
        fold.setObjectName(f"{self.kind.__name__.lower()}-advanced")
        fold.setAccessibleName(f"Advanced fields of {self.kind.__name__}")
        fold.toggled.connect(advanced.setVisible)
        return fold


class _Rows(QWidget):
    """Rows of a form under each other, their columns in line."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.count = 0
        self._held: list[FormRow] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(BETWEEN)
        self._grid.setVerticalSpacing(SPACE)
        self._grid.setColumnMinimumWidth(0, LABEL_WIDTH)
        self._grid.setColumnStretch(2, 1)

    def add(self, row: FormRow) -> None:
        """Appends a row: label, editor and help on a line, the problem under the editor."""
        line = 2 * self.count
        self._grid.addWidget(row.label, line, 0)
        self._grid.addWidget(row.field, line, 1, Qt.AlignmentFlag.AlignLeft)
        self._grid.addWidget(row.help, line, 2)
        self._grid.addWidget(row.problem, line + 1, 1, 1, 2)
        self._held.append(row)
        self.count += 1

    def holds(self, row: FormRow) -> bool:
        """Whether the row is one of these."""
        return row in self._held


class FormRow(QWidget):
    """The widgets of one field; only a holder, its parts are placed by the grid.

    Signals:
        edited: The editor holds another value now.
    """

    edited = Signal()

    def __init__(
        self, field: dataclasses.Field, hint: Any, browse: Browse | None, parent: QWidget, choosable: bool = False
    ) -> None:
        super().__init__(parent)
        self.hide()
        self._choosable = choosable
        self.name, self._hint, self._help_text = field.name, hint, str(field.metadata.get("help", ""))
        label = str(field.metadata.get("label") or field.name)
        self.editor = self._make_editor(field)
        self.editor.setObjectName(f"field-{field.name}")
        self.editor.setAccessibleName(label)
        self.editor.setToolTip(self._help_text)
        self.label = QLabel(label, parent)
        self.label.setTextFormat(Qt.TextFormat.PlainText)
        self.label.setBuddy(self.editor)
        self.label.setToolTip(self._help_text)
        self.help = _small_label(self._help_text, parent)
        self.problem = _small_label("", parent)
        self.problem.setObjectName(f"problem-{field.name}")
        set_role(self.problem, "bad")
        self.problem.hide()
        self.field = self._placed(str(field.metadata.get("unit", "")), label, browse, parent)

    def value(self) -> Any:
        """What the editor holds, in the field's type where it can be read so."""
        if isinstance(self.editor, NumberBox):
            return self.editor.value()
        if isinstance(self.editor, Switch):
            return self.editor.isChecked()
        if isinstance(self.editor, QComboBox):
            return self.editor.currentText() if self._choosable else self.editor.currentData()
        return self.editor.text()

    def set_value(self, value: Any) -> None:
        """Shows `value` in the editor."""
        if isinstance(self.editor, NumberBox):
            self.editor.set_value(value)
        elif isinstance(self.editor, Switch):
            self.editor.setChecked(value)
        elif isinstance(self.editor, QComboBox) and self._choosable:
            self.editor.setCurrentIndex(self.editor.findText(value))
            self.editor.setEditText(value)
        elif isinstance(self.editor, QComboBox):
            self.editor.setCurrentIndex(self.editor.findData(value))
        else:
            self.editor.setText(value)

    def set_choices(self, choices: Sequence[str]) -> None:
        """Lists these values; what is in the editor stays."""
        assert isinstance(self.editor, QComboBox)
        now = self.editor.currentText()
        with QSignalBlocker(self.editor):
            self.editor.clear()
            self.editor.addItems(list(choices))
            # At none of them while it is none of them: Down then goes to the first.
            self.editor.setCurrentIndex(self.editor.findText(now))
            self.editor.setEditText(now)

    def set_problem(self, sentence: str) -> None:
        """Shows the sentence under the editor and marks the editor; empty takes both away."""
        if sentence and isinstance(self.editor, NumberBox) and isinstance(self.editor.value(), str):
            sentence = f"{self.label.text()}: type a {'whole ' * (self._hint is int)}number."
        self.problem.setText(sentence)
        self.problem.setVisible(bool(sentence))
        if bool(self.editor.property("invalid")) != bool(sentence):
            self.editor.setProperty("invalid", bool(sentence))
            self.editor.style().unpolish(self.editor)
            self.editor.style().polish(self.editor)
        # A screen reader says the sentence with the field.
        self.editor.setAccessibleDescription(sentence or self._help_text)

    def set_note(self, note: str) -> None:
        """Shows `note` instead of the help."""
        self.help.setText(note or self._help_text)

    def _make_editor(self, field: dataclasses.Field) -> QWidget:
        if self._hint is bool:
            switch = Switch(self)
            switch.toggled.connect(self.edited)
            return switch
        if get_origin(self._hint) is Literal:
            combo = QComboBox(self)
            for choice in get_args(self._hint):
                combo.addItem(str(choice), choice)
            combo.currentIndexChanged.connect(self.edited)
            return combo
        if self._hint in (int, float):
            low, high = field.metadata.get("low"), field.metadata.get("high")
            box = NumberBox(whole=self._hint is int, low=low, high=high, parent=self)
            box.edited.connect(self.edited)
            return box
        if self._choosable:
            words = QComboBox(self, editable=True, insertPolicy=QComboBox.InsertPolicy.NoInsert)
            words.editTextChanged.connect(self.edited)
            return words
        line = QLineEdit(self)
        line.textChanged.connect(self.edited)
        return line

    def _placed(self, unit: str, label: str, browse: Browse | None, parent: QWidget) -> QWidget:
        """The editor with its unit or its browse button beside it, all rows equally wide."""
        holder = QWidget(parent)
        holder.setFixedWidth(EDITOR_WIDTH)
        layout = QHBoxLayout(holder)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(INSIDE)
        layout.addWidget(self.editor, 0 if isinstance(self.editor, Switch) else 1)
        if unit:
            layout.addWidget(_small_label(unit, holder))
        if isinstance(self.editor, Switch):
            layout.addStretch(1)
        if browse and isinstance(self.editor, QLineEdit):
            action = QAction(f"Choose the {browse}", self.editor)
            keep_icon(action, "folder-open", role="secondary")
            action.setObjectName(f"browse-{self.name}")
            action.triggered.connect(lambda: self._choose(label, browse))
            self.editor.addAction(action, QLineEdit.ActionPosition.TrailingPosition)
        return holder

    def _choose(self, label: str, browse: Browse) -> None:
        ask = QFileDialog.getExistingDirectory if browse == "folder" else QFileDialog.getOpenFileName
        chosen = ask(self.editor.window(), label, self.editor.text())
        path = chosen if isinstance(chosen, str) else chosen[0]
        if path:
            self.editor.setText(path)


def _small_label(text: str, parent: QWidget) -> QLabel:
    label = QLabel(text, parent)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    set_role(label, "small")
    return label
