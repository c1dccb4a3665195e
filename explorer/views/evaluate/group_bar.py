"""Two groups of runs, named by patterns."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QPushButton, QWidget

from explorer.widgets import layouts


class GroupBar(QWidget):
    """Patterns of groups A and B, and a button that compares them."""

    wanted = Signal(str, str)  # Both patterns are to be compared.
    edited = Signal()  # A person changed one of them.

    def __init__(self, name: str, action: str, parent: QWidget | None = None) -> None:
        """Create the bar; `name` is the prefix of the object names, `action` is the button's text."""
        super().__init__(parent)
        self.patterns = [QLineEdit(objectName=f"{name}-group-{letter}") for letter in "ab"]
        self.compare = QPushButton(action, objectName=f"{name}-compare")
        self.row = layouts.row(of=self)
        for index, edit in enumerate(self.patterns):
            edit.setAccessibleName(f"Names of the runs of group {'AB'[index]}")
            edit.setPlaceholderText("clip-*" if index == 0 else "cloob-*")
            edit.returnPressed.connect(self.ask)
            edit.textEdited.connect(lambda _text: self.edited.emit())
            edit.textChanged.connect(
                lambda text, edit=edit: edit.setToolTip(f"{text}\nThe runs with such names; * stands for any text")
            )
            label = layouts.text(f"Names of group {'AB'[index]}", "secondary", buddy=edit)
            layouts.add(self.row, label, (edit, 1))
        self.row.addWidget(self.compare)
        self.compare.clicked.connect(self.ask)

    @property
    def named(self) -> tuple[str, ...]:
        """The patterns entered, without empty ones."""
        return tuple(pattern for edit in self.patterns if (pattern := edit.text().strip()))

    def propose(self, a: str, b: str) -> None:
        """Fill in patterns where the user has entered none."""
        for edit, pattern in zip(self.patterns, (a, b), strict=True):
            if not edit.isModified():
                edit.setText(pattern)

    def follow(self, other: GroupBar) -> None:
        """Copy the patterns of the other bar."""
        for edit, theirs in zip(self.patterns, other.patterns, strict=True):
            if edit.text() != theirs.text():
                edit.setText(theirs.text())
            edit.setModified(theirs.isModified())

    def ask_proposed(self, drawn: tuple[str, ...]) -> None:
        """Compare the proposed groups unless they are drawn; edited ones are compared on request."""
        if not any(edit.isModified() for edit in self.patterns) and self.named != drawn:
            self.ask()

    def ask(self) -> None:
        """Compare the groups if both patterns are set."""
        if len(self.named) == 2:
            self.wanted.emit(*self.named)
