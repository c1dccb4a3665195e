"""Saved views of a workspace, and links to them: saved, opened, renamed, deleted and copied."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QDialog, QInputDialog, QListWidget, QListWidgetItem, QPushButton, QWidget

from explorer import theme
from explorer.state.view_link import link_to, read_link
from explorer.widgets import layouts
from explorer.widgets.banner import Banner
from explorer.widgets.refusal import set_refusal
from trainer.errors import UserError, reason_words

if TYPE_CHECKING:
    from explorer.event_loop.background import Background
    from explorer.run_control.jobs import Jobs
    from explorer.state.selection import Selection
    from explorer.views.view import View
    from trainer.store import Workspace

WIDTH, HEIGHT = 460, 400
KEY: Final = "saved_views"
_WRITING: Final = threading.Lock()
"""Views are saved on several threads, and each write has all that were saved before."""
"""Setting of the workspace: name -> link."""
MOST: Final = 200
LONGEST_NAME: Final = 80


class SavedViewsSheet(QDialog):
    """The names of the saved views. Enter opens one, F2 or a double click renames it, Delete deletes it."""

    opened = Signal(str)  # A name whose view is to be shown.
    renamed = Signal(str, str)  # Its name and the new one.
    deleted = Signal(str)  # Its name.

    def __init__(self, names: list[str], parent: QWidget | None = None, reason: str = "") -> None:
        """List the names; with the reason why the workspace is read-only, they stay as they are."""
        super().__init__(parent, objectName="saved-views", windowTitle="Saved views", modal=True)
        self._reason = reason
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        layouts.resize_within_screen(self, WIDTH, HEIGHT)
        about = "Place, runs, step, selection, filter, columns and groups of each are kept in this workspace."
        text = layouts.text(about, "secondary", wrap=True)
        self.names = QListWidget(self, objectName="saved-views-names", accessibleName="Saved views")
        self.names.itemChanged.connect(self._edited)
        self.names.currentRowChanged.connect(lambda _: self._enable())
        self.open_button = QPushButton("Open", self, objectName="saved-views-open", default=True, clicked=self._open)
        self.rename_button = QPushButton("Rename", self, objectName="saved-views-rename", autoDefault=False)
        self.rename_button.clicked.connect(lambda: self.names.editItem(self.names.currentItem()))
        self.delete_button = QPushButton("Delete", self, objectName="saved-views-delete", autoDefault=False)
        self.delete_button.clicked.connect(self._delete)
        QShortcut(QKeySequence(Qt.Key.Key_Delete), self.names, self._delete, context=Qt.ShortcutContext.WidgetShortcut)
        close = QPushButton("Close", self, objectName="saved-views-close", autoDefault=False, clicked=self.reject)
        row = layouts.row(self.rename_button, self.delete_button, (layouts.STRETCH, 1), close, self.open_button)
        layouts.column(text, (self.names, 1), row, gap=theme.BETWEEN, margins=theme.AROUND, of=self)
        self.show_names(names)

    def show_names(self, names: list[str]) -> None:
        """List these names, and keep the place in the list."""
        row = max(0, self.names.currentRow())
        self.names.blockSignals(True)
        self.names.clear()
        for name in names:
            item = QListWidgetItem(name)
            if not self._reason:
                item.setFlags(item.flags() | Qt.ItemFlag.ItemIsEditable)
            item.setData(Qt.ItemDataRole.UserRole, name)
            self.names.addItem(item)
        self.names.setCurrentRow(min(row, len(names) - 1))
        self.names.blockSignals(False)
        self._enable()

    def _enable(self) -> None:
        none = "" if self.names.currentItem() is not None else "No view is saved yet."
        set_refusal(self.open_button, none)
        for button in (self.rename_button, self.delete_button):
            set_refusal(button, self._reason or none)

    def _edited(self, item: QListWidgetItem) -> None:
        name, new_name = item.data(Qt.ItemDataRole.UserRole), item.text()
        if new_name != name:
            self.renamed.emit(name, new_name)

    def _open(self) -> None:
        if (item := self.names.currentItem()) is not None:
            self.opened.emit(item.data(Qt.ItemDataRole.UserRole))
            self.accept()

    def _delete(self) -> None:
        if (item := self.names.currentItem()) is not None and not self._reason:
            self.deleted.emit(item.data(Qt.ItemDataRole.UserRole))


class SavedViews(QObject):
    """Saves, opens, renames, deletes and copies views of a workspace; `views` are those of a window that is ready."""

    def __init__(
        self, window: QWidget, selection: Selection, banner: Banner, views: Callable[[], dict[str, View]]
    ) -> None:
        super().__init__(window)
        self._window, self._selection, self._banner, self._views = window, selection, banner, views
        self._workspace: Workspace | None = None
        self._background: Background | None = None
        self._jobs: Jobs | None = None
        self.links: dict[str, str] = {}
        self.actions: list[QAction] = []

    def begin(self, workspace: Workspace, background: Background, jobs: Jobs) -> None:
        """Read the saved views."""
        self._workspace, self._background, self._jobs = workspace, background, jobs
        self._read()

    def _read(self) -> None:
        if self._background is not None:
            self._background.run(self, read, self._workspace, done=self._show, failed=lambda _: None, key=KEY)

    def link(self) -> str:
        """Return the link to what is shown."""
        view = self._views().get(self._selection.view or "runs")
        text, fields = view.link_state() if view is not None else ("", {})
        return link_to(self._selection.now, text, fields)

    def copy(self) -> None:
        """Copy the link to what is shown."""
        link = self.link()
        QGuiApplication.clipboard().setText(link)
        self._banner.show_message(
            "The link to this view is on the clipboard.", f"explorer --open opens it: {link}", tone="good"
        )

    def open(self, text: str) -> bool:
        """Show what a link says; return whether it could be read."""
        try:
            link = read_link(text)
        except UserError as problem:
            self._banner.show_message(str(problem), tone="warn")
            return False
        self._selection.propose(**link.values)
        view = self._views().get(self._selection.view or "runs")
        if view is not None:
            view.show_link(link)
        return True

    def ask(self) -> None:
        """Ask for a name, and save what is shown."""
        dialog = QInputDialog(self._window, objectName="save-view-dialog", windowTitle="Save this view")
        dialog.setLabelText("Name of the view: place, runs, step, selection, filter, columns and groups are kept.")
        dialog.textValueSelected.connect(self.save)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def save(self, name: str) -> None:
        """Save what is shown under this name, in place of one of that name."""
        name = " ".join(name.split())[:LONGEST_NAME]
        if not name or self._workspace is None or self._background is None:
            return
        self._background.run(
            self,
            write,
            self._workspace,
            name,
            self.link(),
            key=f"{KEY} {name}",  # a call of the same key would replace one that has not begun
            done=functools.partial(self._saved, name),
            failed=lambda error: self._banner.show_message(
                f"The view was not saved: {reason_words(error)}", tone="warn"
            ),
        )

    def manage(self) -> SavedViewsSheet:
        """Show the dialog of all saved views."""
        reason = self._jobs.read_only_reason if self._jobs else ""
        sheet = SavedViewsSheet(list(self.links), self._window, reason)
        sheet.opened.connect(lambda name: self.open(self.links[name]))
        sheet.renamed.connect(lambda name, new_name: self._change(sheet, rename, name, new_name))
        sheet.deleted.connect(lambda name: self._change(sheet, remove, name))
        sheet.open()
        return sheet

    def _change(self, sheet: SavedViewsSheet, change: Callable[..., dict[str, str]], *names: str) -> None:
        assert self._workspace is not None
        assert self._background is not None

        def show(links: dict[str, str]) -> None:
            self._show(links)
            sheet.show_names(list(links))

        def refused(error: Exception) -> None:
            self._banner.show_message(f"The saved views stay as they are: {error}", tone="warn")
            sheet.show_names(list(self.links))

        self._background.run(sheet, change, self._workspace, *names, done=show, failed=refused)

    def _saved(self, name: str, _links: dict[str, str]) -> None:
        self._read()  # it replaces what was read before; answers of several writes come in any order
        self._banner.show_message(f"The view {name} is saved; the command palette opens it.", tone="good")

    def _show(self, links: dict[str, str]) -> None:
        self.links, self.actions = links, []
        for name, link in links.items():
            action = QAction(f"Open view: {name}", self)
            action.triggered.connect(functools.partial(self._open, link))
            self.actions.append(action)

    def _open(self, link: str, _checked: bool = False) -> None:
        self.open(link)


def read(workspace: Workspace) -> dict[str, str]:
    """Return name -> link of the saved views; what is none of both is left out. For a thread."""
    try:
        saved: Any = workspace.setting(KEY, {})
    except ValueError:
        return {}
    if not isinstance(saved, dict):
        return {}
    sound = {name: link for name, link in saved.items() if isinstance(link, str) and 0 < len(name) <= LONGEST_NAME}
    return dict(list(sound.items())[:MOST])


def write(workspace: Workspace, name: str, link: str) -> dict[str, str]:
    """Save a link under a name, and return all that are saved. For a thread.

    Raises:
        StoreError: The workspace is look only.
    """
    with _WRITING:
        links = read(workspace) | {name: link}
        links = dict(list(links.items())[-MOST:])
        workspace.set_setting(KEY, links)
    return links


def rename(workspace: Workspace, name: str, new_name: str) -> dict[str, str]:
    """Give a saved view another name in its place, and return all that are saved. For a thread.

    Raises:
        StoreError: The name is empty or taken, or the workspace is look only.
    """
    from trainer.store import StoreError

    new_name, links = " ".join(new_name.split())[:LONGEST_NAME], read(workspace)
    if not new_name or (new_name != name and new_name in links):
        raise StoreError(
            f"There is a view called {new_name}. Choose another name." if new_name else "A name is needed."
        )
    links = {new_name if old == name else old: link for old, link in links.items()}
    workspace.set_setting(KEY, links)
    return links


def remove(workspace: Workspace, name: str) -> dict[str, str]:
    """Delete a saved view, and return those that are left. For a thread.

    Raises:
        StoreError: The workspace is look only.
    """
    links = {old: link for old, link in read(workspace).items() if old != name}
    workspace.set_setting(KEY, links)
    return links
