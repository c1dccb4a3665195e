"""A form generated from a frozen dataclass: field metadata provides labels, bounds, units and help."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from PySide6.QtCore import QEvent, QRect, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QAction, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QLabel,
    QLineEdit,
    QPushButton,
    QStyle,
    QStyleOptionFrame,
    QToolButton,
    QToolTip,
    QWidget,
)

from explorer import theme
from explorer.theme import BETWEEN, SPACE, keep_icon, set_invalid, set_role
from explorer.widgets import layouts
from explorer.widgets.disclosure_button import DisclosureButton
from explorer.widgets.number_box import NumberBox
from explorer.widgets.refusal import set_refusal
from explorer.widgets.still import StillComboBox
from explorer.widgets.switch import Switch
from explorer.widgets.wrapped_label import WrappedLabel
from trainer.config.fields import Field, fields_of

INSET_PX = 2
"""Between the frame of a field and its text."""
Browse = Literal["folder", "file"]

LABEL_WIDTH = 160
EDITOR_WIDTH = 208
_NAMES = ("Adam", "LoRA", "Min-SNR", "Sinkhorn")
MOST_NAMED = 3
"""Folded fields that the button over them names, where there are more than one more."""


class ElidedLine(QLineEdit):
    """A field for paths and names: start and end tell them apart."""

    @property
    def elided(self) -> str:
        """The text painted while the field has no focus."""
        return self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideMiddle, self._room().width())

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip and self.elided != self.text():
            QToolTip.showText(event.globalPos(), self.text(), self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.hasFocus() or self.elided == self.text():
            super().paintEvent(event)
            return
        option = QStyleOptionFrame()
        self.initStyleOption(option)
        painter = QPainter(self)
        self.style().drawPrimitive(QStyle.PrimitiveElement.PE_PanelLineEdit, option, painter, self)
        painter.setPen(theme.color("text" if self.isEnabled() else "disabled"))
        painter.drawText(self._room(), Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, self.elided)

    def _room(self) -> QRect:
        option = QStyleOptionFrame()
        self.initStyleOption(option)
        room = self.style().subElementRect(QStyle.SubElement.SE_LineEditContents, option, self)
        buttons = [button.x() for button in self.findChildren(QToolButton) if button.isVisible()]
        return room.adjusted(INSET_PX, 0, min([0, *(x - room.right() for x in buttons)]) - INSET_PX, 0)


class Form(QWidget):
    """One row per field: label, editor, unit and help; advanced fields fold under a button with their names.

    The form holds no opinion on what is valid: `set_problems` writes a sentence under the field it belongs to.

    Attributes:
        kind: The dataclass.
    """

    changed = Signal()  # `value()` may be another now.

    def __init__(
        self,
        kind: type,
        *,
        browse: Mapping[str, Browse] | None = None,
        skip: frozenset[str] = frozenset(),
        choosable: frozenset[str] = frozenset(),
        unused: Callable[[Any], Mapping[str, str]] | None = None,
        parent: QWidget | None = None,
    ) -> None:
        """Create the rows.

        Args:
            kind: A dataclass whose fields all have defaults and types int, float, bool, str or Literal.
            browse: Text fields that name a folder or a file, and so get a button to choose one.
            skip: Fields that have no row; they keep the value of the instance last given to `set_value`.
            choosable: Text fields for which `set_choices` names likely values; any other may be typed.
            unused: Instance -> fields that have no effect in it, each with the reason: they are disabled.
        """
        super().__init__(parent)
        self.kind = kind
        self._shown = kind()
        self._rows: dict[str, FormRow] = {}
        plain, advanced = _Rows(self), _Rows(self)
        for field in fields_of(kind):
            if field.name in skip:
                continue
            row = FormRow(field, (browse or {}).get(field.name), self, field.name in choosable)
            row.edited.connect(self.changed)
            self._rows[field.name] = row
            (advanced if field.advanced else plain).add(row)
        self._fold = self._make_fold(advanced) if advanced.count else None
        fold = [] if self._fold is None else [(self._fold, 0, Qt.AlignmentFlag.AlignLeft)]
        layouts.column(plain, *fold, advanced, of=self)
        self._advanced = advanced
        advanced.hide()
        if unused is not None:
            self.changed.connect(lambda: self.set_unused(unused(self.value())))
        self.set_value(self._shown)

    def value(self) -> Any:
        """Return an instance of the dataclass with the values in the editors.

        A number that cannot be read is there as its text, for the checker to name.
        """
        return dataclasses.replace(self._shown, **{name: row.value() for name, row in self._rows.items()})

    def set_value(self, instance: Any) -> None:
        """Show the fields of `instance`; emits `changed` once."""
        self._shown = instance
        with QSignalBlocker(self):
            for name, row in self._rows.items():
                row.set_value(getattr(instance, name))
        self.changed.emit()

    def set_problems(self, problems: Mapping[str, str], repairs: Mapping[str, Any] | None = None) -> None:
        """Show each message under its field and clear the others; expand collapsed fields with a message.

        Args:
            problems: Field -> what is wrong with it.
            repairs: Field -> a value that mends it, which a button puts into its editor.
        """
        for name, row in self._rows.items():
            row.set_problem(problems.get(name, ""), (repairs or {}).get(name))
        hidden = self._fold is not None and not self._fold.isChecked()
        if hidden and any(name in problems and self._advanced.holds(row) for name, row in self._rows.items()):
            self._fold.setChecked(True)

    def set_unused(self, reasons: Mapping[str, str]) -> None:
        """Disable the fields that have no effect now and say why next to them; enable the others."""
        for name, row in self._rows.items():
            row.set_unused(reasons.get(name, ""))

    def repair_words(self, name: str, value: Any) -> str:
        """Return the label of a button that puts `value` into a field: `Use batch size 32`."""
        return self._rows[name].repair_words(value)

    def editor(self, name: str) -> QWidget:
        """Return the field's editor, for example to focus it."""
        return self._rows[name].editor

    def set_choices(self, name: str, choices: Sequence[str]) -> None:
        """Set the values offered for a field; its current value stays."""
        self._rows[name].set_choices(choices)

    def set_note(self, name: str, note: str) -> None:
        """Replace the help next to a field; an empty note restores the default help."""
        self._rows[name].set_note(note)

    def _make_fold(self, advanced: _Rows) -> DisclosureButton:
        fold = DisclosureButton(advanced.title(), parent=self)
        fold.setObjectName(f"{self.kind.__name__.lower()}-advanced")
        fold.toggled.connect(advanced.setVisible)
        return fold


class _Rows(QWidget):
    """Stacked form rows with aligned columns."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.count = 0
        self._held: list[FormRow] = []
        self._grid = layouts.grid(BETWEEN, SPACE, of=self)
        self._grid.setColumnMinimumWidth(0, LABEL_WIDTH)
        self._grid.setColumnStretch(2, 1)

    def add(self, row: FormRow) -> None:
        """Add a row: label, editor and help on a line, the problem below the editor."""
        line = 2 * self.count
        self._grid.addWidget(row.label, line, 0)
        self._grid.addWidget(row.field, line, 1, Qt.AlignmentFlag.AlignLeft)
        self._grid.addWidget(row.help, line, 2)
        self._grid.addWidget(row.trouble, line + 1, 1, 1, 2)
        self._held.append(row)
        self.count += 1

    def holds(self, row: FormRow) -> bool:
        return row in self._held

    def title(self) -> str:
        """Return the names of the fields, or of a few: `10 more settings, such as captions, lines and encoding`."""
        first, *others = (row.title for row in self._held)
        labels = [first, *map(plain_label, others)]
        if (n := len(labels)) > MOST_NAMED + 1:
            *labels, last = [plain_label(first), *labels[1:MOST_NAMED]]
            return f"{n} more settings, such as {', '.join(labels)} and {last}"
        return " and ".join(filter(None, (", ".join(labels[:-1]), labels[-1])))


class FormRow(QWidget):
    """The widgets of one field; a mere container, because the grid places its parts."""

    edited = Signal()  # The editor holds another value now.

    def __init__(self, field: Field, browse: Browse | None, parent: QWidget, choosable: bool = False) -> None:
        super().__init__(parent)
        self.hide()
        self._choosable, self._unused = choosable, ""
        self.name, self.title, self._kind, self._help_text = field.name, field.label, field.kind, field.help
        self.editor = self._make_editor(field)
        self.editor.setObjectName(f"field-{field.name}")
        self.editor.setAccessibleName(field.label)
        self.editor.setToolTip(self._help_text)
        label = f"{field.label} ({field.unit})" if field.unit else field.label
        self.label = QLabel(label, parent, textFormat=Qt.TextFormat.PlainText)
        self.label.setBuddy(self.editor)
        self.label.setToolTip(self._help_text)
        self.help = _small_label(self._help_text, parent)
        self.problem = _small_label("", parent)
        self.problem.setObjectName(f"problem-{field.name}")
        set_role(self.problem, "bad")
        self.repair = QPushButton(parent, objectName=f"repair-{field.name}", autoDefault=False, clicked=self._mend)
        self._better: Any = None
        self.trouble = _stacked(self.problem, self.repair, parent)
        self.field = self._placed(field, browse, parent)

    def value(self) -> Any:
        """Return the editor's content, converted to the field's type if possible."""
        if isinstance(self.editor, NumberBox):
            return self.editor.value()
        if isinstance(self.editor, Switch):
            return self.editor.isChecked()
        if isinstance(self.editor, QComboBox):
            return self.editor.currentText() if self._choosable else self.editor.currentData()
        return self.editor.text()

    def set_value(self, value: Any) -> None:
        """Show `value` in the editor."""
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
        """Offer these values; the editor's content stays."""
        assert isinstance(self.editor, QComboBox)
        now = self.editor.currentText()
        with QSignalBlocker(self.editor):
            self.editor.clear()
            self.editor.addItems(list(choices))
            # At none of them while it is none of them: Down then goes to the first.
            self.editor.setCurrentIndex(self.editor.findText(now))
            self.editor.setEditText(now)

    def repair_words(self, value: Any) -> str:
        """Return the label of a button that puts `value` into the editor."""
        plain = plain_label(self.title)
        return f"Use {plain} {value:,}" if isinstance(value, int) else f"Use {plain} {value}"

    def set_problem(self, sentence: str, better: Any = None) -> None:
        """Show the message under the editor, with a button that fixes it; empty removes both."""
        if sentence and isinstance(self.editor, NumberBox) and isinstance(self.editor.value(), str):
            sentence = f"{self.title}: type a {'whole ' * (self._kind == 'integer')}number."
        self.problem.setText(sentence)
        self._better = better if sentence else None
        self.repair.setVisible(self._better is not None)
        if self._better is not None:
            self.repair.setText(self.repair_words(self._better))
        self.problem.setVisible(bool(sentence))
        self.trouble.setVisible(bool(sentence))
        set_invalid(self.editor, bool(sentence))
        # A screen reader says the sentence with the field.
        self.editor.setAccessibleDescription(sentence or self._help_text)

    def set_unused(self, reason: str) -> None:
        """Disable the field and show the reason instead of the help; an empty reason enables it."""
        if reason != self._unused:
            self._unused = reason
            for widget in (self.label, self.field):
                set_refusal(widget, reason)
            self.set_note(reason)
            self.editor.setAccessibleDescription(reason or self._help_text)

    def _mend(self) -> None:
        if self._better is not None:
            self.set_value(self._better)
            self.edited.emit()

    def set_note(self, note: str) -> None:
        """Show `note` instead of the help."""
        self.help.setText(note or self._help_text)

    def _make_editor(self, field: Field) -> QWidget:
        if field.kind == "flag":
            switch = Switch(self)
            switch.toggled.connect(self.edited)
            return switch
        if field.kind == "choice":
            combo = StillComboBox(self)
            for choice in field.options:
                combo.addItem(str(choice), choice)
            combo.currentIndexChanged.connect(self.edited)
            return combo
        if field.kind in ("integer", "number"):
            box = NumberBox(integer=field.kind == "integer", low=field.low, high=field.high, parent=self)
            box.edited.connect(self.edited)
            return box
        if self._choosable:
            editable = StillComboBox(self, editable=True, insertPolicy=QComboBox.InsertPolicy.NoInsert)
            editable.editTextChanged.connect(self.edited)
            return editable
        line = ElidedLine(self)
        line.textChanged.connect(self.edited)
        return line

    def _placed(self, field: Field, browse: Browse | None, parent: QWidget) -> QWidget:
        """Return the editor with its browse button, in the same width for all rows."""
        holder = QWidget(parent)
        holder.setFixedWidth(EDITOR_WIDTH)
        layout = layouts.row((self.editor, 0 if isinstance(self.editor, Switch) else 1), of=holder)
        if isinstance(self.editor, Switch):
            layout.addStretch(1)
        if browse and isinstance(self.editor, QLineEdit):
            action = QAction(f"Choose the {browse}", self.editor)
            keep_icon(action, "folder-open", role="secondary")
            action.setObjectName(f"browse-{self.name}")
            action.triggered.connect(lambda: self._choose(field.label, browse))
            self.editor.addAction(action, QLineEdit.ActionPosition.TrailingPosition)
        return holder

    def _choose(self, label: str, browse: Browse) -> None:
        ask = QFileDialog.getExistingDirectory if browse == "folder" else QFileDialog.getOpenFileName
        chosen = ask(self.editor.window(), label, self.editor.text())
        path = chosen if isinstance(chosen, str) else chosen[0]
        if path:
            self.editor.setText(path)


def plain_label(label: str) -> str:
    """Return a label as it stands within a sentence: `batch size`, `LoRA alpha`, `Adam beta 1`."""
    return label if label[:2].isupper() or label.startswith(_NAMES) else label[:1].lower() + label[1:]


def _stacked(problem: QWidget, repair: QWidget, parent: QWidget) -> QWidget:
    holder = QWidget(parent)
    layouts.column(problem, (repair, 0, Qt.AlignmentFlag.AlignLeft), gap=SPACE, margins=(0, 0, 0, SPACE), of=holder)
    problem.hide()
    repair.hide()
    holder.hide()
    return holder


def _small_label(text: str, parent: QWidget) -> QLabel:
    label = WrappedLabel(text, parent)
    set_role(label, "small")
    return label
