"""The frame of a dialog that changes runs or the queue: a form, a status line and buttons."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDialog, QFormLayout, QPushButton, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.refusal import set_refusal

LEAST_WIDTH: Final = 400


class Sheet(QDialog):
    """A dialog with a title, a form whose first field has the focus, a status line and buttons."""

    def __init__(self, title: str, confirm: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, windowTitle=title, modal=True)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.form = QFormLayout()
        self.form.setHorizontalSpacing(theme.BETWEEN)
        self.form.setVerticalSpacing(theme.INSIDE)
        self.form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        self.message = layouts.text(role="small", wrap=True)
        self.message.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self.confirm = QPushButton(confirm, default=True, clicked=self.accept)
        theme.set_role(self.confirm, "primary")
        leave = QPushButton("Cancel", autoDefault=False, clicked=self.reject)
        self.buttons = layouts.row((layouts.STRETCH, 1), leave, self.confirm, gap=None)
        content = layouts.column(
            self.form, (self.message, 1), self.buttons, gap=theme.BETWEEN, margins=theme.AROUND, of=self
        )
        content.addStrut(LEAST_WIDTH)  # a minimum of the dialog would replace that of what is in it

    def show_message(self, text: str, *, wrong: bool = False) -> None:
        """Show what will happen, or an error, which disables the button."""
        self.message.setText(text)
        set_refusal(self.confirm, text if wrong else "")

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        field = self.form.itemAt(0, QFormLayout.ItemRole.FieldRole)
        # Qt focuses what is created first, the button, and typed text would be lost.
        if field is not None and (widget := field.widget()) and self.focusWidget() in (None, self.confirm):
            widget.setFocus()
