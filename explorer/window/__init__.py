"""The main window: places the views, collects their actions, shows failures."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QRect, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QAction, QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication, QKeySequence, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QMainWindow, QMenu, QVBoxLayout, QWidget

from explorer import theme
from explorer.event_loop.background import Background
from explorer.event_loop.exception_hooks import Hooks
from explorer.event_loop.idle_scheduler import idle_scheduler
from explorer.event_loop.stall_detector import StallDetector
from explorer.state.selection import Selection
from explorer.state.settings import Settings
from explorer.state.view_history import ViewHistory
from explorer.views import VIEWS, ViewEntry, places_of
from explorer.widgets import banner
from explorer.widgets.banner import Banner
from explorer.widgets.cheat_sheet import CheatSheet, MethodPanel
from explorer.widgets.command_palette import CommandPalette, PaletteEntry
from explorer.widgets.deferred_paint import ExposeFilter, frame
from explorer.widgets.overlay import Shade
from explorer.window import close_dialog
from explorer.window.actions import Actions, Command
from explorer.window.bar import Bar
from explorer.window.drop_handler import Intake
from explorer.window.error_dialog import ErrorDialog
from explorer.window.job_panel import JobPanel
from explorer.window.key_bindings import KeyBindings
from explorer.window.key_sheet import KeySheet
from explorer.window.notifications import Notifications
from explorer.window.pages import Pages
from explorer.window.place_tabs import PlaceTabs
from explorer.window.preload_qt_types import types_of_qt
from explorer.window.rail import Rail
from explorer.window.saved_views import SavedViews
from explorer.window.services import Loaded, Services, build, load, load_readers
from explorer.window.single_instance import answer_the_bell
from explorer.window.status import Status
from explorer.window.welcome import show_how_it_starts
from explorer.window.zoom import ZOOM_KEY, next_zoom, zoom_of
from trainer import catalog
from trainer.distribution import training_part
from trainer.errors import UserError

if TYPE_CHECKING:
    from explorer.views.selected.inspector import PairInspector
    from explorer.views.view import View
    from explorer.window.exports import Exports
    from explorer.window.job_center import JobCenter
    from explorer.window.training_page import TrainingOffer
    from trainer import config

GEOMETRY_KEY: Final = "window/geometry"
SELECTION_KEY: Final = "selection"
THEME_KEY: Final = "window/theme"
MOTION_KEY: Final = "window/reducedMotion"
SIZE: Final = (1280, 800)
FRAME: Final = (16, 48)
"""Pixels left for the borders and the title bar, which a desktop draws around a first window."""
CLASSIFY: Final = "classify"
"""The view that takes dropped images where the open one does not."""
INSTALL_PAGE: Final = "install-torch"
"""The page in front while torch is missing."""
_MODES: Final = {"system": "System", "light": "Light", "dark": "Dark"}
_EXPORTS: Final = {
    "svg": "figure as SVG",
    "pdf": "figure as PDF",
    "png": "figure as PNG",
    "csv": "data as CSV",
    "parquet": "data as Parquet",
}


def first_geometry(room: QRect) -> QRect:
    """Return the size of a first window and the place of its frame in the available part of a screen."""
    width, height = min(SIZE[0], room.width() - FRAME[0]), min(SIZE[1], room.height() - FRAME[1])
    left, top = (room.width() - width - FRAME[0]) // 2, (room.height() - height - FRAME[1]) // 2
    return QRect(room.left() + left, room.top() + top, width, height)


class Window(QMainWindow):
    """Paints its frame at once; views and store are loaded after the first paint.

    Attributes:
        places: What the rail offers: each holds one view or several as tabs.
        rooms: What the views work with; None until `ready`.
        watchdog: Measures how long the event loop is busy at a stretch; tests read it.

    Signals:
        painted: The frame is on the screen.
        ready: Every view is built.
    """

    painted = Signal()
    ready = Signal()

    def __init__(self, folder: Path, hooks: Hooks, *, entries: Sequence[ViewEntry] = VIEWS, safe: bool = False) -> None:
        """Build the frame; `safe` restores and saves no settings and starts nothing automatically."""
        super().__init__(objectName="window")
        self.folder, self.hooks, self._entries, self._safe = folder, hooks, tuple(entries), safe
        self.places = places_of(self._entries)
        self.settings = Settings(folder, self, remember=not safe)
        self.selection = Selection(self)
        self.history = ViewHistory(self.selection, self)
        self.background = Background(self)
        self.rooms: Services | None = None
        self.offer: TrainingOffer | None = None
        self._exports: Exports | None = None
        self._was_painted = self._may_go = self._is_ready = self._reads_runs = False
        self._news: Notifications | None = None
        self.job_center: JobCenter | None = None
        self.inspector: PairInspector | None = None
        self._waiting_images: list[Path] = []
        self._waiting_data: str | None = None
        self._waiting_link = ""
        self._build()
        self._restore()
        self._connect()
        self._save_soon = QTimer(self, singleShot=True, interval=1_000, timeout=self._save)
        self._failure = ErrorDialog(hooks, self)
        self.watchdog = StallDetector(self)

    # -- building ----------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self.setWindowTitle("Contrastive Explorer")
        self.setMinimumSize(880, 560)
        self._exposures, self._shade = ExposeFilter(self), Shade(self, "shade")
        self.rail = Rail(self.places)
        self.bar = Bar(self.selection)
        self._zoom_at_start = zoom_of(self.settings.value(ZOOM_KEY))
        self.tabs = PlaceTabs(self.places, self.settings)
        self.pages = Pages(self.settings, self.selection)
        self.status = Status(self.folder)
        self.setStatusBar(self.status)
        right = QVBoxLayout()
        right.setContentsMargins(0, 0, 0, 0)
        right.setSpacing(0)
        right.addWidget(self.bar)
        right.addWidget(self.tabs)
        right.addWidget(self.pages, 1)
        middle = QWidget()
        row = QHBoxLayout(middle)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.rail)
        row.addLayout(right, 1)
        self.setCentralWidget(middle)
        theme.theme().divide(self, middle)
        self.job_panel = JobPanel(middle)
        self.banner = Banner(middle)
        self.banner.stand_above(self.job_panel)
        self.palette_panel = CommandPalette(self)
        self.cheat_sheet = CheatSheet(self)
        self.method_panel = MethodPanel(self)
        self.key_sheet = KeySheet(self)
        self.intake = Intake(self, self.folder, self.background)
        self.saved_views = SavedViews(self, self.selection, self.banner, lambda: self.pages.views)
        self._looks = self.rail.add_at_foot("themeMenu", "sun-moon", "Theme")
        keys = self.rail.add_at_foot("showKeys", "keyboard", "Keys")
        keys.clicked.connect(self.show_keys)
        self.actions_by_group = self._make_actions()
        every = [action for actions in self.actions_by_group.groups.values() for action in actions]
        self.bindings = KeyBindings(every, catalog.user_folder(), self, remember=not self._safe)
        self._name_keys()

    opens_again = False
    """Whether another window is to be opened when this one is closed, with another zoom."""

    def _make_actions(self) -> Actions:
        actions = Actions(self)
        self._synonyms: dict[str, tuple[str, ...]] = {}
        for place in self.places:
            go = functools.partial(self.go_to_place, place.name)
            actions.add(Command("Go to", place.title, place.keys, go, f"goToPlace-{place.name}"))
            self._synonyms[f"goToPlace-{place.name}"] = place.synonyms
            for entry in place.views if len(place.views) > 1 else ():
                go = functools.partial(self.go_to, entry.name)
                actions.add(Command("Go to", f"{place.title}: {entry.label}", "", go, f"goTo-{entry.name}"))
                self._synonyms[f"goTo-{entry.name}"] = entry.synonyms
        commands = [
            Command("Go to", "Back to the previous view", "Alt+Left", self.history.back, "goBack"),
            Command("Go to", "Forward to the next view", "Alt+Right", self.history.forth, "goForth"),
            Command("Go to", "Next tab", "Ctrl+Tab", lambda: self.tabs.walk(1), "nextTab", "Ctrl+PgDown"),
            Command("Go to", "Previous tab", "Ctrl+Shift+Tab", lambda: self.tabs.walk(-1), "previousTab", "Ctrl+PgUp"),
            Command("Selection", "Undo", "Ctrl+Z", self._undo, "undo"),
            Command("Selection", "Redo", "Ctrl+Shift+Z", self._redo, "redo"),
            Command("Selection", "Clear the selection", "Esc", self._escape, "clearSelection"),
            Command("Selection", "Swap A and B", "Ctrl+T", self.selection.swap, "swapAB"),
            Command("Selection", "Paste an image into this view", "Ctrl+V", self.intake.paste, "paste"),
            Command("This view", "Method", "F1", self.show_method, "showMethod"),
            Command("This view", "Copy as command", "Ctrl+Shift+C", self.copy_command, "copyCommand"),
            Command("Window", "Open a pretrained model…", "Ctrl+O", self.open_model, "openModel"),
            Command("Window", "Show or hide the inspector", "Ctrl+Shift+I", self.toggle_inspector, "toggleInspector"),
            Command("Window", "Open vectors…", "", self.open_vectors, "openVectors"),
            Command("Window", "Places…", "", self.show_places, "showPlaces"),
            Command("Window", "Import curves…", "", self.import_curves, "importCurves"),
            Command("Window", "About…", "", self.show_about, "showAbout"),
            Command("Window", "Jobs", "Ctrl+J", self.job_panel.toggle, "showJobs"),
            Command("Window", "Import data…", "Ctrl+Shift+O", self.import_data, "importData"),
            Command("Share", "Copy the link to this view", "", self.saved_views.copy, "copyLink"),
            Command("Share", "Save this view…", "", self.saved_views.ask, "saveView"),
            Command("Share", "Saved views…", "", self.saved_views.manage, "savedViews"),
            Command("Share", "Export evidence bundle…", "Ctrl+Shift+E", self._export_bundle, "exportBundle"),
        ]
        for suffix, words in _EXPORTS.items():
            key = "Ctrl+E" if suffix == "svg" else ""
            export = functools.partial(self._export, suffix)
            commands.append(Command("This view", f"Export {words}", key, export))
        commands += [
            Command("Window", "Command palette", "Ctrl+Shift+P", self.show_palette, "showPalette"),
            Command("Window", "Keys", "?", self.show_keys, "showKeysAction"),
            Command("Window", "Change keys…", "", self.change_keys, "changeKeys"),
            Command("Window", "Start the demo runs", "", self._start_demo, "startDemo"),
            Command("Window", "Close the window", "Ctrl+Q", self.leave, "closeWindow"),
            Command("Window", "Ask again before closing with active runs", "", self._ask_again, "askAgain"),
        ]
        for command in commands:
            actions.add(command)
        for words, keys, way, name in (
            ("Zoom in", "Ctrl++", 1, "zoomIn"),
            ("Zoom out", "Ctrl+-", -1, "zoomOut"),
            ("Zoom to 100 %", "Ctrl+0", 0, "zoomReset"),
        ):
            action = actions.add(Command("Window", words, keys, functools.partial(self._zoom, way), name))
            if way > 0:
                action.setShortcuts([QKeySequence(keys), QKeySequence("Ctrl+=")])
        self._add_theme_menu(actions)
        return actions

    def _add_theme_menu(self, actions: Actions) -> None:
        menu = QMenu(self._looks)
        for mode, words in _MODES.items():
            choose = functools.partial(self.choose_theme, mode)
            action = actions.add(Command("Window", f"Theme: {words.lower()}", "", choose, f"theme-{mode}"))
            entry = menu.addAction(words)
            entry.setCheckable(True)
            entry.triggered.connect(action.trigger)
            menu.aboutToShow.connect(lambda e=entry, m=mode: e.setChecked(theme.theme().mode == m))
        menu.addSeparator()
        still = actions.add(Command("Window", "Reduced motion", "", self._switch_motion, "reducedMotion"))
        entry = menu.addAction(still.text())
        entry.setCheckable(True)
        entry.triggered.connect(still.trigger)
        menu.aboutToShow.connect(lambda: entry.setChecked(theme.theme().reduced_motion))
        menu.addSeparator()
        for name in ("zoomIn", "zoomOut", "zoomReset"):
            menu.addAction(next(a for a in actions.groups["Window"] if a.objectName() == name))
        self.rail.show_menu(self._looks, menu)

    def _connect(self) -> None:
        self.rail.opened.connect(self.go_to_place)
        self.tabs.opened.connect(self.go_to)
        self.bindings.changed.connect(self._name_keys)
        self.bar.palette_asked.connect(self.show_palette)
        self.bar.inspector_asked.connect(self.toggle_inspector)
        self.bar.inspector.setChecked(self.pages.shows_inspector)
        self.status.jobs_clicked.connect(self.job_panel.toggle)
        self.intake.arrived.connect(self.take_images)
        self.intake.model_arrived.connect(self.open_model)
        self.intake.vectors_arrived.connect(self.open_vectors)
        self.intake.curves_arrived.connect(self.import_curves)
        self.intake.data_arrived.connect(self.import_data)
        self.intake.refused.connect(lambda words: self.banner.show_message(words, tone="warn"))
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
            QTimer.singleShot(0, self.begin)

    def begin(self) -> None:
        self.painted.emit()
        show_how_it_starts(self.banner, self.hooks, self.settings, safe=self._safe)
        self._load_after(types_of_qt())

    def _load_after(self, steps: Iterator[None]) -> None:
        for _ in steps:
            if idle_scheduler().is_full:
                idle_scheduler().later(self, lambda: self._load_after(steps))
                return
        self.background.run(self, load, self._open_first(self._entries)[:1], done=self._move_in)

    def _move_in(self, loaded: Loaded) -> None:
        from explorer.window.exports import Exports
        from explorer.window.job_center import JobCenter

        self.rooms = rooms = build(self.folder, self.selection, self.background, self.settings, self)
        self._exports = Exports(self, rooms.exporter, self.settings, self.banner, self.folder)
        self._news = Notifications(rooms, self.bar, self.status, self.banner, self, warm=not self._safe)
        self._news.restart_asked.connect(self._edit_and_restart)
        parts = (self.job_panel, self.status, self.banner, self.pages)
        self.job_center = JobCenter(rooms, *parts, self._show_result, self, folder=self.folder, hooks=not self._safe)
        rooms.client.died.connect(self.hooks.report_output)
        if not training_part.is_there():
            self._offer_torch()
        self.status.watch_load()
        answer_the_bell(self.folder, self._on_bell_link, self)
        self.saved_views.begin(rooms.context.workspace, self.background)
        places = [place for place in self._entries if place.name in loaded.names]
        idle_scheduler().later(self, lambda: self._build_views(loaded, places))

    def _offer_torch(self) -> None:
        """Show the page that installs torch, which is missing; views can still be opened."""
        from explorer.window.training_page import TrainingOffer

        self.offer = TrainingOffer(INSTALL_PAGE, self.pages, self.status, self.settings, self.background, self)
        self.offer.turned.connect(self._show_view)
        self.offer.installed.connect(self._take_torch)
        self._show_view()

    def _take_torch(self) -> None:
        self.banner.show_message("Torch is installed: training and models work now.", tone="good")
        if self._news is not None:
            self._news.read_facts()

    def _open_first(self, places: Sequence[ViewEntry]) -> list[ViewEntry]:
        return sorted(places, key=lambda place: place.name != self._view_name())

    def _load_others(self, built: frozenset[str]) -> None:
        """Read the runs once the open view can show them, before the modules of the other views are imported."""
        assert self.rooms is not None
        self.rooms.jobs.watch()
        others = self._open_first([place for place in self._entries if place.name not in built])
        self.background.run(self, load, others, done=lambda loaded: self._build_others(loaded, others))

    def _build_others(self, loaded: Loaded, places: list[ViewEntry]) -> None:
        self._add_inspector()
        idle_scheduler().later(self, lambda: self._build_views(loaded, places))

    def _build_views(self, loaded: Loaded, places: list[ViewEntry]) -> None:
        """Build one view per event-loop iteration, the open one first, so that the window stays responsive."""
        if not places and not self._reads_runs:
            self._reads_runs = True
            self._load_others(loaded.names)
            return
        if not places:
            assert self.rooms is not None
            assert self._news is not None
            # Views that were built after the runs were read have not heard of them.
            self.rooms.jobs.emit_again()
            self._news.read_facts()
            if self._waiting_images:
                self.classify(self._waiting_images)
            self._is_ready = True
            self._show_plugins()
            if self._waiting_data is not None:
                self.import_data(self._waiting_data)
            if self._waiting_link:
                self.open_link(self._waiting_link)
            if self.selection.run_a is not None:
                self.background.run(self, load_readers, done=lambda _: None)
            self.ready.emit()
            return
        # What a person has opened meanwhile is built next: until then it is gray bars.
        place = self._open_first(places)[0]
        rest = [other for other in places if other is not place]
        self._go_on_building(loaded, place, self._new_view(loaded, place), rest)

    def _add_inspector(self) -> None:
        # Imported here: all that takes long of it has been, with the views.
        from explorer.views.selected.inspector import PairInspector

        assert self.rooms is not None
        self.inspector = PairInspector(self.rooms.context)
        self.inspector.failed.connect(lambda message, step: self.banner.show_message(message, step))
        self.inspector.go.connect(self.go_to)
        self.pages.set_inspector(self.inspector)

    def toggle_inspector(self) -> None:
        """Show the inspector of the selected pair, or hide it."""
        self.pages.toggle_inspector()
        self.bar.inspector.setChecked(self.pages.shows_inspector)

    def _show_plugins(self) -> None:
        """Say which plug-ins could not be loaded: the window opens without them."""
        from trainer import plugins

        if found := plugins.failures():
            self.banner.show_message(found[0], " ".join(found[1:]), tone="warn")

    def _go_on_building(self, loaded: Loaded, place: ViewEntry, view: View | None, rest: list[ViewEntry]) -> None:
        """Continue building a view for the rest of this iteration."""
        try:
            for _ in view.building if view is not None else ():
                if idle_scheduler().is_full:
                    idle_scheduler().later(self, lambda: self._go_on_building(loaded, place, view, rest))
                    return
        except Exception as error:  # the other views must still open
            self.hooks.report(error)
            view = None
        idle_scheduler().later(self, lambda: self._place_view(loaded, place, view, rest))

    def _place_view(self, loaded: Loaded, place: ViewEntry, view: View | None, rest: list[ViewEntry]) -> None:
        """Add a view in its own iteration, because its stylesheet takes half as long as the view itself."""
        if view is None:
            self.pages.add_broken(place.name, place.title)
        else:
            self._listen(place.name, view)
            self.pages.add(place.name, view)
        if place.name == self._view_name():
            self._show_view()
        idle_scheduler().later(self, lambda: self._build_views(loaded, rest))

    def _new_view(self, loaded: Loaded, place: ViewEntry) -> View | None:
        assert self.rooms is not None
        if place.name in loaded.broken:
            self._show_bug(f"{place.title} could not be loaded.", loaded.broken[place.name])
            return None
        try:
            return loaded.views[place.name](self.rooms.context, at_once=False)
        except Exception as error:  # the other views must still open
            self.hooks.report(error)
            return None

    def _listen(self, name: str, view: View) -> None:
        if self.job_center is not None:
            self.job_center.jobs.watch(name, view)
        view.failed.connect(lambda message, step: self.banner.show_message(message, step))
        for answer in view.answers:
            self.banner.stand_above(answer)
        view.export_asked.connect(self._export)
        view.copy_asked.connect(self.copy_command)
        view.method_asked.connect(self.show_method)
        if (asked := getattr(view, "import_asked", None)) is not None:
            asked.connect(self.import_data)
        if (asked := getattr(view, "train_asked", None)) is not None:
            asked.connect(self._train_copy)
        if (asked := getattr(view, "decoder_asked", None)) is not None:
            asked.connect(self._train_decoder)
        if (asked := getattr(view, "direction_asked", None)) is not None:
            asked.connect(self._decode_along)
        if (asked := getattr(view, "comparison_asked", None)) is not None:
            asked.connect(lambda: self.import_data(compare=True))
        if (asked := getattr(view, "open_model_asked", None)) is not None:
            asked.connect(lambda model: self.open_model(model or None))
        if (asked := getattr(view, "replay_asked", None)) is not None:
            asked.connect(self._replay)

    # -- what the person does ----------------------------------------------------------------------------------

    def _train_copy(self, run: int, data: config.Data) -> None:
        """Open the New run form in Runs for a copy of this run with other data."""
        if (view := self._opened_view("runs")) is not None:
            view.train_copy_on(run, data)  # type: ignore[attr-defined]

    def _replay(self, run: int, step: int) -> None:
        """Open the replays and make this update of the run, as run A, again."""
        a, b = self.selection.run_a, self.selection.run_b
        if a != run:
            self.selection.select_runs(run, a if b in (run, None) else b)
        if (view := self._opened_view("explaining")) is not None:
            self.go_to("explaining")
            view.replay(run, step)  # type: ignore[attr-defined]

    def _train_decoder(self, run: int) -> None:
        """Open the New run form in Runs for a decoder of this run."""
        if (view := self._opened_view("runs")) is not None:
            view.train_decoder(run)  # type: ignore[attr-defined]

    def _decode_along(self, direction: int) -> None:
        """Open Decode, and move what it decodes along a principal direction."""
        if (view := self._opened_view("decode")) is not None:
            view.move_along(direction)  # type: ignore[attr-defined]

    def go_to(self, name: str) -> None:
        """Open a view; Alt+Left goes back."""
        if self.offer is not None and self.offer.in_front:
            self.offer.step_back()
            self._show_view()
        self.selection.view = name
        self._mark()

    def go_to_place(self, name: str) -> None:
        """Open the view of this place that was open last."""
        self.go_to(self.tabs.last_view(name))

    def open_link(self, link: str) -> None:
        """Show what a link to a view says, or take the file of a `file:` URL as if dropped, once the views exist."""
        if not self._is_ready:
            self._waiting_link = link
            return
        self._waiting_link = ""
        if link.startswith("file:"):
            self.intake.take_file(QUrl(link))
            return
        self.saved_views.open(link)
        self._mark()

    def _on_bell_link(self, link: str) -> None:
        self.come_forward()
        if link:
            self.open_link(link)

    def change_keys(self) -> None:
        """Open the panel in which shortcuts are changed."""
        self.key_sheet.ask(self.bindings, self._keys_of_views)

    def _keys_of_views(self) -> list[QAction]:
        views = self.pages.views.values()
        return [action for view in views for action in (*view.actions_for_palette(), *view.actions())]

    def _name_keys(self) -> None:
        self.rail.show_keys({p.name: self.bindings.keys_of(f"goToPlace-{p.name}") for p in self.places})

    def _mark(self) -> None:
        view = self._view_name()
        self.tabs.show_view(view)
        self.rail.mark(self.tabs.place_of(view).name)

    def _show_result(self, name: str) -> None:
        """Open the view, or the import dialog running in the background, that shows the result of a job."""
        from explorer.import_sheet.sheet import ImportData
        from explorer.window.job_list import IMPORT

        if name != IMPORT:
            self.go_to(name)
        elif hidden := [sheet for sheet in self.findChildren(ImportData) if sheet.isHidden()]:
            hidden[-1].open()
        else:
            self.import_data()

    def take_images(self, paths: Sequence[Path]) -> None:
        """Pass images to the open view if it accepts any, else to Classify."""
        view = self.pages.open_view
        if view is not None and view.drop_words:
            view.take(list(paths))
        else:
            self.classify(paths)

    def classify(self, paths: Sequence[Path]) -> None:
        """Open Classify with these images, or keep them until the view exists."""
        view = self.pages.views.get(CLASSIFY)
        if view is None:
            self._waiting_images = list(paths)
            return
        self._waiting_images = []
        self.go_to(CLASSIFY)
        view.take(list(paths))

    def open_model(self, model: Path | str | None = None) -> None:
        """Ask how to inspect a published model, and import it as a run."""
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

    def open_vectors(self, files: Sequence[Path] = ()) -> None:
        """Ask which files of vectors to open, and what their rows are."""
        if self.rooms is not None:
            from explorer.window import open_vectors_sheet

            open_vectors_sheet.ask(
                self.folder, self.rooms.jobs, self.background, files=files or (), go_to=self.go_to, parent=self
            )

    def show_places(self) -> None:
        """Show the places: other computers that train runs."""
        from explorer.views.runs.places_sheet import PlacesSheet

        sheet = PlacesSheet(self.background, self.folder, self)
        sheet.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        sheet.open()

    def show_about(self) -> None:
        """Report version, license, and the libraries that are installed."""
        from explorer.window.about_sheet import AboutSheet

        AboutSheet(self.background, self).open()

    def import_curves(self, path: Path | None = None) -> None:
        """Ask which curves of another program to import as runs."""
        if self.rooms is not None:
            from explorer.window import import_curves_sheet

            import_curves_sheet.ask(
                self.folder, self.rooms.jobs, self.background, path=path or None, go_to=self.go_to, parent=self
            )

    def import_data(self, path: str = "", *, compare: bool = False) -> None:
        """Open the import dialog for a folder, table or tar, once the views exist.

        With `compare`, a CLIP and a CLOOB run are queued on its data.
        """
        if self.rooms is None or not self._is_ready:
            self._waiting_data = path
            return
        from explorer.window import open_import_sheet

        self._waiting_data = None
        open_import_sheet.ask(
            self.folder,
            self.rooms.client,
            self.background,
            path,
            open_view=self._opened_view,
            classify=self.classify,
            keep_listed=self._keep_listed,
            compare=compare,
            parent=self,
        )

    def _keep_listed(self, question: int) -> None:
        if self.job_center is not None:
            self.job_center.jobs.keep_question(question)

    def _opened_view(self, name: str) -> View | None:
        self.go_to(name)
        return self.pages.views.get(name)

    def show_palette(self) -> None:
        """Open the command palette."""
        view = self.pages.open_view
        here = [PaletteEntry(view.title, action) for action in view.actions_for_palette()] if view is not None else []
        if self.inspector is not None and self.inspector.isVisible():
            here += [PaletteEntry("Inspector", action) for action in self.inspector.actions_for_palette()]
        here += [PaletteEntry("Views", action) for action in self.saved_views.actions]
        known = {id(entry.action) for entry in here}
        named = self.actions_by_group.by_name()
        # A tab that is called like its place stands for both: the name is shown once.
        twins = {
            f"goTo-{entry.name}": named[f"goToPlace-{place.name}"]
            for place in self.places
            for entry in place.views
            if entry.label == place.title and f"goTo-{entry.name}" in named
        }
        hidden = {"showPalette", *(twin.objectName() for twin in twins.values())}
        for group, actions in self.actions_by_group.groups.items():
            for action in actions:
                name = action.objectName()
                if id(action) not in known and name not in hidden:
                    twin = twins.get(name)
                    both = ("", "") if twin is None else (twin.text(), twin.shortcut().toString())
                    here.append(PaletteEntry(group, action, self._synonyms.get(name, ()), *both))
        self.palette_panel.ask(here)

    def show_keys(self) -> None:
        """Open the cheat sheet."""
        keys = self.actions_by_group.keys()
        keys["Window"] = [*keys["Window"], (banner.KEY, "Focus notification")]
        view = self.pages.open_view
        if view is not None:
            own = [(a.shortcut().toString(), a.text()) for a in view.actions_for_palette()]
            keys[view.title] = [line for line in own if line[0]]
        self.cheat_sheet.show_message({group: lines for group, lines in keys.items() if lines})

    def come_forward(self) -> None:
        """Raise the window above the others."""
        self.showNormal() if self.isMinimized() else self.show()
        self.raise_()
        self.activateWindow()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.UpdateRequest:
            with frame():
                return super().event(event)
        if event.type() in (QEvent.Type.WindowBlocked, QEvent.Type.WindowUnblocked):
            # A dialog is in front: the window is as dim as under the sheets that are drawn in it.
            self._shade.dim(event.type() == QEvent.Type.WindowBlocked)
        if event.type() == QEvent.Type.WinIdChange and self.windowHandle() is not None:
            self.windowHandle().installEventFilter(self._exposures)
        return super().event(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        self.intake.greet(event, self._drop_words())

    def dropEvent(self, event: QDropEvent) -> None:
        """Handle a drop that arrives before the overlay is shown."""
        self.intake.overlay.dropEvent(event)

    def _drop_words(self) -> str:
        view = self.pages.open_view
        if view is not None and view.drop_words:
            return view.drop_words
        if len(self.selection.runs) > 1:
            return "Drop to classify with A and B"
        return "Drop to classify" if not self.selection.runs else "Drop to classify with the chosen run"

    def _undo(self) -> None:
        """Undo the last change and name it, because it may belong to another view."""
        stack = self.selection.undo
        words = stack.undoText()
        stack.undo()
        self._show_undone(f"Undone: {words}." if words else "There is nothing to undo.", "Redo", stack.canRedo())

    def _redo(self) -> None:
        stack = self.selection.undo
        words = stack.redoText()
        stack.redo()
        self._show_undone(f"Redone: {words}." if words else "There is nothing to redo.", "Undo", stack.canUndo())

    def _show_undone(self, words: str, other: str, can: bool) -> None:
        if not self.banner.is_grave:
            act = (other, self._redo if other == "Redo" else self._undo) if can else None
            self.banner.show_message(words, tone="info", action=act)

    def _escape(self) -> None:
        if self.banner.isVisible():
            self.banner.hide()
        self.selection.clear()

    def show_method(self) -> None:
        view = self.pages.open_view
        if view is not None:
            self.method_panel.show_message(view.title, view.question, view.method)

    def _export(self, suffix: str) -> None:
        if self._exports is not None and self.pages.open_view is not None:
            self._exports.ask(self.pages.open_view, suffix)

    def _export_bundle(self) -> None:
        if self._exports is not None:
            self._exports.ask_bundle(self.pages.views.values(), self.selection.runs)

    def copy_command(self) -> None:
        if self._exports is not None and self.pages.open_view is not None:
            self._exports.copy(self.pages.open_view)

    def _edit_and_restart(self, run: int) -> None:
        view = self._opened_view(self._entries[0].name)
        if view is not None:
            view.edit_and_restart(run)  # type: ignore[attr-defined]

    def _start_demo(self) -> None:
        if self.rooms is not None:
            self.rooms.jobs.start_demo()
            self.go_to(self._entries[0].name)

    def choose_theme(self, mode: theme.Mode) -> None:
        theme.theme().mode = mode
        self.settings.set(THEME_KEY, mode)

    def _switch_motion(self) -> None:
        theme.theme().reduced_motion = not theme.theme().reduced_motion
        self.settings.set(MOTION_KEY, theme.theme().reduced_motion)

    def _zoom(self, way: int) -> None:
        """Remember another zoom and offer the restart that shows it."""
        now = zoom_of(self.settings.value(ZOOM_KEY))
        wanted = next_zoom(now, way) if way else 100
        self.settings.set(ZOOM_KEY, wanted)
        if wanted == self._zoom_at_start:
            self.banner.show_message(f"The zoom stays {wanted} %.", tone="good")
        else:
            restart = ("Restart the window", self._open_again)
            self.banner.show_message(
                f"Zoom {wanted} % after a restart of the window. Runs continue.", tone="good", action=restart
            )

    def _open_again(self) -> None:
        self.opens_again = True
        self.close()

    # -- failures ----------------------------------------------------------------------------------------------

    def _show_failure(self, error: Exception) -> None:
        if isinstance(error, UserError):
            self.banner.show_message(str(error))
        else:
            self.hooks.report(error)

    def _show_bug(self, summary: str, details: str) -> None:
        self._failure.show_message(summary, details)

    # -- remembering -------------------------------------------------------------------------------------------

    def _view_name(self) -> str:
        names = [place.name for place in self._entries]
        return self.selection.view if self.selection.view in names else names[0]

    def _show_view(self) -> None:
        self._mark()
        in_front = self.offer is not None and self.offer.in_front
        self.pages.show_view(INSTALL_PAGE if in_front else self._view_name())

    def _restore(self) -> None:
        self.selection.restore(self.settings.value(SELECTION_KEY, {}))
        self.history.forget()
        self._mark()
        if not self.restoreGeometry(self.settings.state(GEOMETRY_KEY)):
            first = first_geometry(QGuiApplication.primaryScreen().availableGeometry())
            self.resize(first.size())
            self.move(first.topLeft())

    def forget(self) -> None:
        """Reset size, view and selection as if this workspace had never been opened."""
        backup = self.settings.forget()
        self._restore()
        words = f"The previous settings are kept as {backup.name}." if backup else "There were no saved settings."
        self.painted.connect(
            lambda: self.banner.show_message("The window uses the default settings.", words, tone="info")
        )

    def _remember_soon(self) -> None:
        self._save_soon.start()

    def _save(self) -> None:
        self._note()
        self.settings.write_beside()

    def _note(self) -> None:
        self.settings.set(SELECTION_KEY, self.selection.remember())
        self.settings.set_state(GEOMETRY_KEY, self.saveGeometry())

    def close(self) -> bool:
        """Close without asking; trainers continue. Users close through `leave`."""
        self._may_go = True
        return super().close()

    def leave(self) -> None:
        """Close, after asking what to do with runs that train or wait."""
        if self.rooms is None:
            self.close()
        else:
            close_dialog.ask(self, self.rooms.jobs, self.settings, self.close)

    def _ask_again(self) -> None:
        self.settings.set(close_dialog.KEY, None)
        self.banner.show_message("The window asks again before closing with active runs.", tone="good")

    def closeEvent(self, event: QCloseEvent) -> None:
        """Save the state and close; the window's close button asks first, the end of the session does not."""
        session_ends = bool(getattr(QGuiApplication.instance(), "isSavingSession", lambda: False)())
        if not self._may_go and not session_ends and self.rooms is not None:
            event.ignore()
            QTimer.singleShot(0, self.leave)
            return
        self._save_soon.stop()
        self.watchdog.close()
        self._note()
        self.settings.flush()
        if self.offer is not None:
            self.offer.close()
        if self.rooms is not None:
            self.rooms.close()
        self.background.close()
        super().closeEvent(event)
