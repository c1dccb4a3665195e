"""The dialog of places: other computers that train runs, kept in this user's settings."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPlainTextEdit,
    QPushButton,
    QWidget,
)

from explorer import theme
from explorer.event_loop.background import Background
from explorer.widgets import layouts
from explorer.widgets.form import LABEL_WIDTH
from explorer.widgets.min_size_scroll import MinSizeScroll
from explorer.widgets.refusal import set_refusal
from explorer.widgets.still import StillComboBox
from trainer.errors import UserError, reason_words
from trainer.places import bindings
from trainer.places.doctor import findings
from trainer.places.packages import install
from trainer.places.remote_host import RemoteHost, parse

_ABOUT = (
    "Computers that train runs: choose one in the New run form under Run on. They are reached by ssh with your keys, "
    "through SLURM or as a Ray cluster; the list is in your settings, never in a workspace."
)
_BUILDS: Final = ("auto", "cpu", "cu126", "cu128", "cu130", "rocm6.4", "index")
"""Builds of torch that are offered; others may be typed."""


class PlacesSheet(QDialog):
    """A dialog that lists places, adds, edits and removes them, tests one, and installs training there."""

    changed = Signal()  # The list is another now.
    progressed = Signal(float, str)  # Share of an installation, and a note on it.

    def __init__(self, background: Background, workspace: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="places-sheet", windowTitle="Compute targets", modal=True)
        layouts.resize_within_screen(self, 720, 600)
        self._background, self._workspace = background, workspace
        self.list = QListWidget(self, objectName="places-list", accessibleName="Compute targets")
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.list.currentItemChanged.connect(lambda *_: self._allow())
        self.name = QLineEdit(self, objectName="places-name", placeholderText="gpu-box")
        self.name.setAccessibleName("Name of the target")
        self.address = QLineEdit(self, objectName="places-address", accessibleName="Address of the target")
        self.address.setPlaceholderText("ssh://me@host/home/me/venv/bin/python")
        self.prologue = QPlainTextEdit(self, objectName="places-prologue", tabChangesFocus=True)
        self.prologue.setPlaceholderText("module load cuda/12.8\nconda activate clip")
        self.prologue.setAccessibleName("Lines of bash before every command there")
        self.prologue.setFixedHeight(3 * self.fontMetrics().lineSpacing() + theme.BETWEEN)
        self.container = QLineEdit(self, objectName="places-container", placeholderText="~/images/torch.sif")
        self.container.setAccessibleName("Image of apptainer in which jobs of SLURM train")
        self.add = self._button("Add", "places-add", self._add)
        self.edit = self._button("Edit", "places-edit", self._edit)
        self.install = self._button("Install", "places-install", self._install)
        self.install.setToolTip("Installs training there by uv, into a folder of its own, and uses that Python")
        self.build = StillComboBox(self)
        self.build.setObjectName("places-build")
        self.build.setAccessibleName("Build of torch")
        self.build.setToolTip("The build of torch: auto asks the driver there; a login computer without card cannot")
        self.build.setEditable(True)
        self.build.addItems(_BUILDS)
        self.build.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.remove = self._button("Remove", "places-remove", self._remove)
        self.test = self._button("Test", "places-test", self._test)
        self.test.setToolTip("Connects, brings this version there, and shows its doctor")
        self.note = layouts.text(role="small", name="places-note", wrap=True)
        self.progressed.connect(lambda share, note: self.note.setText(f"{note} ({100 * share:.0f} %)"))
        self.report = QPlainTextEdit(self, objectName="places-report", readOnly=True)
        self.report.setAccessibleName("Report of the tested target")
        self.address.returnPressed.connect(self._add)
        self._lay_out()
        self._show()

    def _lay_out(self) -> None:
        torch = layouts.text("Torch", "secondary", buddy=self.build)
        content = layouts.column(
            layouts.text(_ABOUT, "secondary", wrap=True),
            (self.list, 1),
            layouts.row(self.test, self.edit, self.remove, (layouts.STRETCH, 1), torch, self.build, self.install),
            self.note,
            layouts.hairline(),
            layouts.row((self.name, 1), (self.address, 3), self.add),
            self._labeled("Prologue", self.prologue),
            self._labeled("Container", self.container),
            (self.report, 2),
            gap=theme.BETWEEN,
        )
        foot = layouts.row((layouts.STRETCH, 1), self._button("Close", "places-close", self.reject), gap=None)
        body = MinSizeScroll(layouts.panel(content))
        layouts.column((body, 1), foot, gap=theme.BETWEEN, margins=theme.AROUND, of=self)

    def _labeled(self, name: str, field: QWidget) -> Any:
        label = layouts.text(name, buddy=field)
        label.setFixedWidth(LABEL_WIDTH)
        return layouts.row((label, 0, Qt.AlignmentFlag.AlignTop), (field, 1), gap=theme.BETWEEN)

    def _button(self, label: str, name: str, handler: Any) -> QPushButton:
        return QPushButton(label, self, objectName=name, autoDefault=False, clicked=lambda: handler())

    def _show(self, chosen: str = "") -> None:
        self.list.clear()
        try:
            listed = bindings.hosts()
        except UserError as problem:
            listed = []
            self.note.setText(str(problem))
        for host in listed:
            item = QListWidgetItem(f"{host.name}   {host.address.partition('?')[0]}")
            item.setData(Qt.ItemDataRole.UserRole, host.name)
            item.setToolTip(host.address)
            self.list.addItem(item)
            if host.name == chosen or self.list.currentItem() is None:
                self.list.setCurrentItem(item)
        self._allow()

    def _allow(self) -> None:
        for button in (self.test, self.edit, self.remove, self.install):
            set_refusal(button, "" if self.list.currentItem() is not None else "Add a computer first, or choose one.")

    def _chosen(self) -> str:
        item = self.list.currentItem()
        return str(item.data(Qt.ItemDataRole.UserRole)) if item is not None else ""

    def _add(self) -> None:
        try:
            host = parse(self.name.text().strip(), self.address.text().strip())
            lines = {"prologue": self.prologue.toPlainText().strip(), "container": self.container.text().strip()}
            if any(lines.values()):
                host = host.changed(**{name: value for name, value in lines.items() if value})
            bindings.add(host)
        except UserError as problem:
            self.note.setText(str(problem))
            return
        for field in (self.name, self.address, self.prologue, self.container):
            field.clear()
        self.note.setText(f"{host.name} was added. Test it before you train there.")
        self._show(host.name)
        self.changed.emit()

    def _edit(self) -> None:
        """Show the chosen place in the fields; *Add* replaces the one of that name."""
        host = bindings.host_of(self._chosen())
        self.name.setText(host.name)
        self.address.setText(host.changed(**dict.fromkeys(("prologue", "container") & host.options.keys(), "")).address)
        self.prologue.setPlainText(host.options.get("prologue", ""))
        self.container.setText(host.options.get("container", ""))
        self.address.setFocus()

    def _remove(self) -> None:
        name = self._chosen()
        try:
            bindings.remove(name)
        except UserError as problem:
            self.note.setText(str(problem))
            return
        self.note.setText(f"{name} was removed. Runs that train there continue.")
        self._show()
        self.changed.emit()

    def _install(self) -> None:
        """Install training at the chosen place, as long as the dialog is open."""
        build, say = self.build.currentText().strip(), self.progressed.emit

        def installed(host: RemoteHost) -> None:
            self.note.setText(f"Training is installed: {host.name} uses {host.python}. Test it.")
            self._show(host.name)
            self.changed.emit()

        try:
            call = partial(install, bindings.host_of(self._chosen()), say, build=build)
        except UserError as problem:
            self.note.setText(str(problem))
            return
        set_refusal(self.install, "It is being installed.")
        self._background.run(self, call, done=installed, failed=self._fail, key="install")

    def _test(self) -> None:
        name = self._chosen()
        self.note.setText(f"Connecting to {name}…")
        self.report.clear()
        set_refusal(self.test, "The computer is being asked.")
        self._background.run(
            self,
            findings,
            name,
            self._workspace,
            done=lambda rows: self._show_message(name, rows),
            failed=self._fail,
            key="test",
        )

    def _show_message(self, name: str, rows: list[dict[str, Any]]) -> None:
        broken = sum(row.get("state") == "broken" for row in rows)
        findings = f"{broken} finding is broken" if broken == 1 else f"{broken} findings are broken"
        self.note.setText(f"{name} answers; {findings}." if broken else f"{name} can train.")
        lines = []
        for row in rows:
            sign = "!" if row.get("state") == "broken" else " "
            lines.append(
                f"{sign} {row.get('group')}: {row.get('name')}: {row.get('value')} {row.get('next', '')}".rstrip()
            )
        self.report.setPlainText("\n".join(lines))
        self._allow()

    def _fail(self, error: Exception) -> None:
        self.note.setText(reason_words(error))
        self._allow()
