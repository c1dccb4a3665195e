"""The window: places the views, collects their actions, shows failures."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QMainWindow, QMenu, QToolButton, QVBoxLayout, QWidget

from explorer import theme
from explorer.event_loop.background import Background
from explorer.event_loop.exception_hooks import Hooks
from explorer.event_loop.idle_scheduler import turns
from explorer.event_loop.stall_detector import Watchdog
from explorer.state.selection import Selection
from explorer.state.settings import Settings
from explorer.views import VIEWS, Place
from explorer.widgets import banner
from explorer.widgets.banner import Banner
from explorer.widgets.cheat_sheet import CheatSheet, MethodPanel
from explorer.widgets.command_palette import CommandPalette, PaletteEntry
from explorer.widgets.deferred_paint import Exposures, frame
from explorer.window import close_dialog
from explorer.window.actions import Actions, Command
from explorer.window.bar import Bar
from explorer.window.drop_handler import Intake
from explorer.window.error_dialog import ErrorDialog
from explorer.window.notifications import Notifications
from explorer.window.pages import Pages
from explorer.window.preload_qt_types import types_of_qt
from explorer.window.rail import Rail
from explorer.window.services import Loaded, Services, build, load
from explorer.window.single_instance import answer_the_bell
from explorer.window.status import Status
from explorer.window.welcome import tell_how_it_starts
from trainer.errors import UserError

if TYPE_CHECKING:
    from explorer.views.view import View
    from explorer.window.exports import Exports

GEOMETRY_KEY: Final = "window/geometry"
SELECTION_KEY: Final = "selection"
THEME_KEY: Final = "window/theme"
SIZE: Final = (1280, 800)
CLASSIFY: Final = "classify"
"""The view that takes dropped images."""
_MODES: Final = {"system": "As the system", "light": "Light", "dark": "Dark"}
_EXPORTS: Final = {
    "svg": "figure as SVG",
    "pdf": "figure as PDF",
    "png": "figure as PNG",
    "csv": "data as CSV",
    "parquet": "data as Parquet",
}


class Window(QMainWindow):
    """Paints its frame at once; views and store follow after the first paint.

    Attributes:
        rooms: What the views work with; None until `ready`.
        watchdog: Measures how long the event loop is busy at a stretch; tests read it.

    Signals:
        painted: The frame is on the screen.
        ready: Every view is built.
    """

    painted = Signal()
    ready = Signal()

    def __init__(self, folder: Path, hooks: Hooks, *, places: Sequence[Place] = VIEWS, safe: bool = False) -> None:
        """Builds the frame; `safe`: nothing remembered is restored or written, and nothing is started unasked."""
        super().__init__(objectName="window")
        self.folder, self.hooks, self._places, self._safe = folder, hooks, tuple(places), safe
        self.settings = Settings(folder, self, remember=not safe)
        self.selection = Selection(self)
        self.background = Background(self)
        self.rooms: Services | None = None
        self._exports: Exports | None = None
        self._was_painted = self._may_go = self._is_ready = False
        self._news: Notifications | None = None
        self._waiting_images: list[Path] = []
        self._waiting_data: str | None = None
        self._build()
        self._restore()
        self._connect()
        self._save_soon = QTimer(self, singleShot=True, interval=1_000, timeout=self._save)
        self._failure = ErrorDialog(hooks, self)
        self.watchdog = Watchdog(self)

    # -- building ----------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self.setWindowTitle("Contrastive Explorer")
        self.setMinimumSize(880, 560)
        self._exposures = Exposures(self)
        self.rail = Rail(self._places)
        self.bar = Bar(self.selection)
        self.pages = Pages(self.settings)
        self.status = Status(self.folder)
        self.setStatusBar(self.status)
        right = QVBoxLayout()
        right.setContentsMargins(0, 0, 0, 0)
        right.setSpacing(0)
        right.addWidget(self.bar)
        right.addWidget(self.pages, 1)
        middle = QWidget()
        row = QHBoxLayout(middle)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.rail)
        row.addLayout(right, 1)
        self.setCentralWidget(middle)
        theme.theme().divide(self, middle)
        self.banner = Banner(middle)
        self.palette_panel = CommandPalette(self)
        self.cheat_sheet = CheatSheet(self)
        self.method_panel = MethodPanel(self)
        self.intake = Intake(self, self.folder, self.background)
        self._looks = self.rail.add_at_foot("themeMenu", "sun-moon", "Theme")
        self._looks.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        keys = self.rail.add_at_foot("showKeys", "keyboard", "Keys")
        keys.clicked.connect(self.show_keys)
        self.actions_by_group = self._make_actions()

    def _make_actions(self) -> Actions:
        actions = Actions(self)
        for number, place in enumerate(self._places, start=1):
            key = f"Ctrl+{number}" if number < 10 else ""
            go = functools.partial(self.go_to, place.name)
            actions.add(Command("Go to", place.title, key, go, f"goTo-{place.name}"))
        undo = self.selection.undo
        for action, key, name in (
            (undo.createUndoAction(self, "Undo"), "Ctrl+Z", "undo"),
            (undo.createRedoAction(self, "Redo"), "Ctrl+Shift+Z", "redo"),
        ):
            action.setShortcut(key)
            action.setObjectName(name)
            actions.adopt("Selection", action)
        commands = [
            Command("Selection", "Clear the selection", "Esc", self._escape, "clearSelection"),
            Command("Selection", "Swap A and B", "Ctrl+T", self.selection.swap, "swapAB"),
            Command("Selection", "Paste an image to classify", "Ctrl+V", self.intake.paste, "paste"),
            Command("This view", "How this is computed", "F1", self._show_method, "showMethod"),
            Command("This view", "Copy as command", "Ctrl+Shift+C", self._copy_command, "copyCommand"),
            Command("Window", "Open a pretrained model…", "Ctrl+O", self.open_model, "openModel"),
            Command("Window", "Import data…", "Ctrl+Shift+O", self.import_data, "importData"),
            Command("Share", "Export evidence bundle…", "Ctrl+Shift+E", self._export_bundle, "exportBundle"),
        ]
        for suffix, words in _EXPORTS.items():
            key = "Ctrl+E" if suffix == "svg" else ""
            export = functools.partial(self._export, suffix)
            commands.append(Command("This view", f"Export {words}", key, export))
        commands += [
            Command("Window", "Command palette", "Ctrl+Shift+P", self.show_palette, "showPalette"),
            Command("Window", "Keys", "?", self.show_keys, "showKeysAction"),
            Command("Window", "Start the demo runs", "", self._start_demo, "startDemo"),
            Command("Window", "Close the window", "Ctrl+Q", self.leave, "closeWindow"),
            Command("Window", "Ask again what becomes of runs when closing", "", self._ask_again, "askAgain"),
        ]
        for command in commands:
            actions.add(command)
        self._add_theme_menu(actions)
        return actions

    def _add_theme_menu(self, actions: Actions) -> None:
        menu = QMenu(self._looks)
        for mode, words in _MODES.items():
            choose = functools.partial(self._choose_theme, mode)
            action = actions.add(Command("Window", f"Theme: {words.lower()}", "", choose, f"theme-{mode}"))
            entry = menu.addAction(words)
            entry.setCheckable(True)
            entry.triggered.connect(action.trigger)
            menu.aboutToShow.connect(lambda e=entry, m=mode: e.setChecked(theme.theme().mode == m))
        self._looks.setMenu(menu)

    def _connect(self) -> None:
        self.rail.opened.connect(self.go_to)
        self.bar.palette_asked.connect(self.show_palette)
        self.status.jobs_clicked.connect(lambda: self.go_to(self._places[0].name))
        self.intake.arrived.connect(self.take_images)
        self.intake.model_arrived.connect(self.open_model)
        self.intake.data_arrived.connect(self.import_data)
        self.intake.refused.connect(lambda words: self.banner.tell(words, tone="warn"))
        self.background.failed.connect(self._show_failure)
        self.hooks.caught.connect(self._show_bug)
        selection = self.selection
        selection.view_changed.connect(self._show_view)
        for signal in (
            selection.runs_changed,
            selection.step_changed,
            selection.dataset_changed,
            selection.pairs_changed,
            selection.queries_changed,
            selection.view_changed,
        ):
            signal.connect(self._remember_soon)

    # -- starting ----------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._was_painted:
            self._was_painted = True
            # After this event has run its course the picture is handed to the screen.
            QTimer.singleShot(0, self._begin)

    def _begin(self) -> None:
        self.painted.emit()
        tell_how_it_starts(self.banner, self.hooks, self.settings, safe=self._safe)
        self._load_after(types_of_qt())

    def _load_after(self, steps: Iterator[None]) -> None:
        for _ in steps:
            if turns().is_full:
                turns().later(self, lambda: self._load_after(steps))
                return
        self.background.run(self, load, self._places, done=self._move_in)

    def _move_in(self, loaded: Loaded) -> None:
        from explorer.window.exports import Exports

        self.rooms = rooms = build(self.folder, self.selection, self.background, self.settings, self)
        self._exports = Exports(self, rooms.exporter, self.settings, self.banner, self.folder)
        self._exports.count_changed.connect(self.status.show_exports)
        self._news = Notifications(rooms, self.bar, self.status, self.banner, self, warm=not self._safe)
        rooms.asker.died.connect(self.hooks.hear)
        self.status.watch_load()
        answer_the_bell(self.folder, self.come_forward, self)
        open_first = sorted(self._places, key=lambda place: place.name != self._view_name())
        turns().later(self, lambda: self._build_views(loaded, open_first))

    def _build_views(self, loaded: Loaded, places: list[Place]) -> None:
        """Builds one view a turn of the event loop, the open one first, so that the window stays alive."""
        if not places:
            assert self.rooms is not None
            assert self._news is not None
            self.rooms.jobs.watch()
            self._news.read_facts()
            if self._waiting_images:
                self.classify(self._waiting_images)
            self._is_ready = True
            if self._waiting_data is not None:
                self.import_data(self._waiting_data)
            self.ready.emit()
            return
        place, *rest = places
        view = self._new_view(loaded, place)
        self._go_on_building(loaded, place, view, rest)

    def _go_on_building(self, loaded: Loaded, place: Place, view: View | None, rest: list[Place]) -> None:
        """Goes on with a view for the rest of this turn."""
        try:
            for _ in view.building if view is not None else ():
                if turns().is_full:
                    turns().later(self, lambda: self._go_on_building(loaded, place, view, rest))
                    return
        except Exception as error:  # the other views must still open
            self.hooks.report(error)
            view = None
        turns().later(self, lambda: self._place_view(loaded, place, view, rest))

    def _place_view(self, loaded: Loaded, place: Place, view: View | None, rest: list[Place]) -> None:
        """In a turn of its own: its stylesheet takes half as long as the view itself."""
        if view is None:
            self.pages.add_broken(place.name, place.title)
        else:
            self._listen(view)
            self.pages.add(place.name, view)
        if place.name == self._view_name():
            self._show_view()
        turns().later(self, lambda: self._build_views(loaded, rest))

    def _new_view(self, loaded: Loaded, place: Place) -> View | None:
        assert self.rooms is not None
        if place.name in loaded.broken:
            self._show_bug(f"{place.title} could not be loaded.", loaded.broken[place.name])
            return None
        try:
            return loaded.views[place.name](self.rooms.context, at_once=False)
        except Exception as error:  # the other views must still open
            self.hooks.report(error)
            return None

    def _listen(self, view: View) -> None:
        view.failed.connect(lambda message, step: self.banner.tell(message, step))
        view.export_asked.connect(self._export)
        view.copy_asked.connect(self._copy_command)
        view.method_asked.connect(self._show_method)
        if (asked := getattr(view, "import_asked", None)) is not None:
            asked.connect(self.import_data)

    # -- what the person does ----------------------------------------------------------------------------------

    def go_to(self, name: str) -> None:
        """Opens a view; can be undone."""
        self.selection.view = name
        self.rail.mark(self._view_name())

    def take_images(self, paths: Sequence[Path]) -> None:
        """Gives images to the open view if it takes any (Search), else to Classify."""
        view = self.pages.open_view
        if getattr(view, "takes_images", False):
            view.take(list(paths))  # type: ignore[union-attr]
        else:
            self.classify(paths)

    def classify(self, paths: Sequence[Path]) -> None:
        """Opens Classify with these images; before the view is there, they wait for it."""
        view = self.pages.views.get(CLASSIFY)
        if view is None:
            self._waiting_images = list(paths)
            return
        self._waiting_images = []
        self.go_to(CLASSIFY)
        view.take(list(paths))  # type: ignore[attr-defined]

    def open_model(self, model: Path | None = None) -> None:
        """Asks what to look at with a published model, and makes it a run."""
        if self.rooms is not None:
            from explorer.window import open_model_sheet

            open_model_sheet.ask(
                self.folder,
                self.rooms.jobs,
                self.background,
                model=model,
                chosen=self.selection.run_a,
                go_to=self.go_to,
                import_data=self.import_data,
                parent=self,
            )

    def import_data(self, path: str = "") -> None:
        """Says what a folder, table or tar holds, and trains on it; before the views are there, it waits for them."""
        if self.rooms is None or not self._is_ready:
            self._waiting_data = path
            return
        from explorer.window import open_import_sheet

        self._waiting_data = None
        open_import_sheet.ask(
            self.folder,
            self.rooms.asker,
            self.background,
            path,
            open_view=self._opened_view,
            classify=self.classify,
            parent=self,
        )

    def _opened_view(self, name: str) -> View | None:
        self.go_to(name)
        return self.pages.views.get(name)

    def show_palette(self) -> None:
        """Opens the command palette."""
        view = self.pages.open_view
        here = [PaletteEntry(view.title, action) for action in view.actions_for_palette()] if view is not None else []
        known = {id(entry.action) for entry in here}
        for group, actions in self.actions_by_group.groups.items():
            here += [PaletteEntry(group, a) for a in actions if id(a) not in known and a.objectName() != "showPalette"]
        self.palette_panel.ask(here)

    def show_keys(self) -> None:
        """Opens the cheat sheet."""
        keys = self.actions_by_group.keys()
        keys["Window"] = [*keys["Window"], (banner.KEY, "To a message and back")]
        view = self.pages.open_view
        if view is not None:
            own = [(a.shortcut().toString(), a.text()) for a in view.actions_for_palette()]
            keys[view.title] = [line for line in own if line[0]]
        self.cheat_sheet.tell({group: lines for group, lines in keys.items() if lines})

    def come_forward(self) -> None:
        """Shows the window above the others."""
        self.showNormal() if self.isMinimized() else self.show()
        self.raise_()
        self.activateWindow()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.UpdateRequest:
            with frame():
                return super().event(event)
        if event.type() == QEvent.Type.WinIdChange and self.windowHandle() is not None:
            self.windowHandle().installEventFilter(self._exposures)
        return super().event(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        self.intake.greet(event, self._drop_words())

    def dropEvent(self, event: QDropEvent) -> None:
        """A drop so quick that the overlay had no turn to take it."""
        self.intake.overlay.dropEvent(event)

    def _drop_words(self) -> str:
        view = self.pages.open_view
        if getattr(view, "takes_images", False):
            return getattr(view, "drop_words", "Drop to search by this picture")
        both = self.selection.run_a is not None and self.selection.run_b is not None
        if both:
            return "Drop to classify with A and B"
        return "Drop to classify" if not self.selection.runs else "Drop to classify with the chosen run"

    def _escape(self) -> None:
        if self.banner.isVisible():
            self.banner.hide()
        self.selection.clear()

    def _show_method(self) -> None:
        view = self.pages.open_view
        if view is not None:
            self.method_panel.tell(view.title, view.question, view.method)

    def _export(self, suffix: str) -> None:
        if self._exports is not None and self.pages.open_view is not None:
            self._exports.ask(self.pages.open_view, suffix)

    def _export_bundle(self) -> None:
        if self._exports is not None:
            self._exports.ask_bundle(self.pages.views.values(), self.selection.runs)

    def _copy_command(self) -> None:
        if self._exports is not None and self.pages.open_view is not None:
            self._exports.copy(self.pages.open_view)

    def _start_demo(self) -> None:
        if self.rooms is not None:
            self.rooms.jobs.start_demo()
            self.go_to(self._places[0].name)

    def _choose_theme(self, mode: theme.Mode) -> None:
        theme.theme().mode = mode
        self.settings.set(THEME_KEY, mode)

    # -- failures ----------------------------------------------------------------------------------------------

    def _show_failure(self, error: Exception) -> None:
        if isinstance(error, UserError):
            self.banner.tell(str(error))
        else:
            self.hooks.report(error)

    def _show_bug(self, summary: str, details: str) -> None:
        self._failure.tell(summary, details)

    # -- remembering -------------------------------------------------------------------------------------------

    def _view_name(self) -> str:
        names = [place.name for place in self._places]
        return self.selection.view if self.selection.view in names else names[0]

    def _show_view(self) -> None:
        self.rail.mark(self._view_name())
        self.pages.show_view(self._view_name())

    def _restore(self) -> None:
        self.selection.restore(self.settings.value(SELECTION_KEY, {}))
        self.rail.mark(self._view_name())
        if not self.restoreGeometry(self.settings.state(GEOMETRY_KEY)):
            room = QGuiApplication.primaryScreen().availableGeometry()
            self.resize(min(SIZE[0], room.width()), min(SIZE[1], room.height()))
            self.move(room.center() - self.rect().center())

    def forget(self) -> None:
        """Starts as if this workspace had never been opened: size, view and selection as on the first day."""
        backup = self.settings.forget()
        self._restore()
        words = f"What was remembered is kept as {backup.name}." if backup else "There was nothing to forget."
        self.painted.connect(lambda: self.banner.tell("This window starts as on the first day.", words, tone="info"))

    def _remember_soon(self) -> None:
        self._save_soon.start()

    def _save(self) -> None:
        self._note()
        self.settings.write_beside()

    def _note(self) -> None:
        self.settings.set(SELECTION_KEY, self.selection.remember())
        self.settings.set_state(GEOMETRY_KEY, self.saveGeometry())

    def close(self) -> bool:
        """Closes without a question; trainers go on. What a person does is `leave`."""
        self._may_go = True
        return super().close()

    def leave(self) -> None:
        """Closes, after asking what becomes of the runs that train or wait."""
        if self.rooms is None:
            self.close()
        else:
            close_dialog.ask(self, self.rooms.jobs, self.settings, self.close)

    def _ask_again(self) -> None:
        self.settings.set(close_dialog.KEY, None)
        self.banner.tell("Closing the window asks again what becomes of runs.", tone="good")

    def closeEvent(self, event: QCloseEvent) -> None:
        """Remembers and leaves; by the window's own button a person is asked first, by the end of the session not."""
        session_ends = bool(getattr(QGuiApplication.instance(), "isSavingSession", lambda: False)())
        if not self._may_go and not session_ends and self.rooms is not None:
            event.ignore()
            QTimer.singleShot(0, self.leave)
            return
        self._save_soon.stop()
        self.watchdog.close()
        self._note()
        self.settings.flush()
        if self.rooms is not None:
            self.rooms.close()
        self.background.close()
        super().closeEvent(event)
