"""The commands of the window with their keys, and the lists that show them: palette, shortcuts, keys to change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import structs
from PySide6.QtGui import QAction

from explorer import intents
from explorer.widgets import banner
from explorer.widgets.command_palette import PaletteEntry
from explorer.window import close_dialog
from explorer.window.actions import Actions, Command
from explorer.window.frame import Frame
from explorer.window.key_bindings import KeyBindings
from explorer.window.synonyms import synonyms_of
from trainer.config import default_paths

if TYPE_CHECKING:
    from PySide6.QtWidgets import QToolButton

    from explorer.state.view_history import ViewHistory
    from explorer.views.selected.inspector import PairInspector
    from explorer.views.view import View
    from explorer.window.appearance import Appearance
    from explorer.window.dialogs import Dialogs
    from explorer.window.drop_handler import DropHandler
    from explorer.window.intent_router import IntentRouter
    from explorer.window.more_charts import MoreCharts
    from explorer.window.navigation import Navigation
    from explorer.window.saved_views import SavedViews
    from explorer.window.undo import Undo
    from explorer.window.view_commands import ViewCommands

USES_KEY: Final = "window/palette_uses"


class CommandedFrame(Frame):
    """A frame with what commands act on; `Window` builds it."""

    appearance: Appearance
    back: Callable[[], object] | None
    dialogs: Dialogs
    drop_handler: DropHandler
    help_button: QToolButton
    history: ViewHistory
    inspector: PairInspector | None
    more_charts: MoreCharts
    navigation: Navigation
    router: IntentRouter
    saved_views: SavedViews
    undo: Undo
    view_commands: ViewCommands

    def ask_again(self) -> None:
        """Forget the answer to what happens to active runs when the window closes."""
        self.settings.set(close_dialog.KEY, None)
        self.banner.show_message("The window asks again before closing with active runs.", tone="good")

    def escape(self) -> None:
        """Close the message; without one the panel of the open view; without either, clear the selection."""
        view = self.pages.open_view
        if self.banner.isVisible():
            self.banner.hide()
        elif view is None or not view.close_panel():
            self.selection.clear()

    def leave(self) -> None:
        """Close, after asking what to do with runs that train or wait."""

    def show_settings(self) -> None:
        """Open the page of settings."""

    def start_demo(self) -> None:
        """Queue the demo runs and show them."""


class Menus:
    """All commands of a window.

    Attributes:
        actions: They, by heading.
        bindings: Their keys, as the person changed them.
    """

    def __init__(self, window: CommandedFrame, *, remember: bool) -> None:
        """Create the commands; without `remember` changed keys are neither read nor kept."""
        self._window = window
        self._synonyms: dict[str, tuple[str, ...]] = {}
        self.actions = Actions(window)
        groups = (self._go_to, self._selection, self._this_view, self._dialogs, self._share, self._window_commands)
        for commands in groups:
            for command in commands():
                self.actions.add(command)
        window.appearance.add_actions(self.actions)
        every = [action for actions in self.actions.groups.values() for action in actions]
        self.bindings = KeyBindings(every, default_paths.user_folder(), window, remember=remember)
        self.bindings.changed.connect(self.name_keys)
        self.name_keys()
        window.command_used.connect(self._count_use)

    def name_keys(self) -> None:
        """Name the keys of each place and of help in the rail."""
        names = [rail_place.name for rail_place in self._window.places]
        self._window.rail.show_keys({name: self.bindings.keys_of(f"goToPlace-{name}") for name in names})
        of_page, of_sheet = (self.bindings.keys_of(name) or "no key" for name in ("showMethod", "showKeysAction"))
        self._window.help_button.setToolTip(f"Help on this view ({of_page}). Keyboard shortcuts ({of_sheet})")

    def show_palette(self) -> None:
        """Open the command palette, in which the commands of every view are."""
        entries = [*self._entries_of_views(), *self._entries_of_window()]
        names = Counter(_last_name(entry) for entry in entries)
        # Of several commands with one name, each says which view it acts on.
        for index, entry in enumerate(entries):
            if names[_last_name(entry)] > 1 and ": " not in entry.words:
                entries[index] = structs.replace(entry, name=f"{entry.group}: {entry.words}")
        self._window.palette_panel.ask(entries, self._uses())

    def _uses(self) -> dict[str, int]:
        saved = self._window.settings.value(USES_KEY, {})
        return {key: count for key, count in saved.items() if isinstance(count, int)}

    def _count_use(self, key: str) -> None:
        uses = self._uses()
        self._window.settings.set(USES_KEY, {**uses, key: 1 + uses.get(key, 0)})

    def show_keys(self) -> None:
        """Open the sheet of shortcuts."""
        keys = self.actions.keys()
        keys["Window"] = [*keys["Window"], (banner.KEY, "Focus notification")]
        if (view := self._window.pages.open_view) is not None:
            lines = [(action.shortcut().toString(), action.text()) for action in view.actions_for_palette()]
            keys[view.title] = [line for line in lines if line[0]]
        self._window.shortcut_sheet.show_message({group: lines for group, lines in keys.items() if lines})

    def change_keys(self) -> None:
        """Open the panel in which shortcuts are changed."""
        self._window.shortcut_editor.ask(self.bindings, self._actions_of_views)

    def _actions_of_views(self) -> list[QAction]:
        views: list[View] = list(self._window.pages.views.values())
        return [action for view in views for action in (*view.actions_for_palette(), *view.actions())]

    def _entries_of_views(self) -> Iterator[PaletteEntry]:
        open_view, inspector = self._window.pages.open_view, self._window.inspector
        others = [(name, view) for name, view in self._window.pages.views.items() if view is not open_view]
        for action in open_view.actions_for_palette() if open_view is not None else ():
            yield PaletteEntry(open_view.title, action, synonyms_of(action))  # type: ignore[union-attr]
        for name, view in others:
            go = partial(self._window.navigation.go_to, name)
            for action in view.actions_for_palette():
                yield PaletteEntry(view.title, action, synonyms_of(action), go_first=go)
        if inspector is not None and inspector.isVisible():
            yield from (PaletteEntry("Inspector", action) for action in inspector.actions_for_palette())
        yield from (PaletteEntry("Views", action) for action in self._window.saved_views.actions)

    def _entries_of_window(self) -> Iterator[PaletteEntry]:
        twins = self._twins()
        hidden = {"showPalette", *(twin.objectName() for twin in twins.values())}
        for group, actions in self.actions.groups.items():
            for action in actions:
                name = action.objectName()
                if name not in hidden:
                    twin = twins.get(name)
                    both = ("", "") if twin is None else (twin.text(), twin.shortcut().toString())
                    others = (*self._synonyms.get(name, ()), *synonyms_of(action))
                    yield PaletteEntry(group, action, others, *both)

    def _twins(self) -> dict[str, QAction]:
        """Return the action of a view -> that of a place with the same title: the palette shows both as one entry."""
        by_name = self.actions.by_name()
        return {
            f"goTo-{entry.name}": by_name[f"goToPlace-{rail_place.name}"]
            for rail_place in self._window.places
            for entry in rail_place.views
            if entry.label == rail_place.title and f"goTo-{entry.name}" in by_name
        }

    # -- the commands by heading ---------------------------------------------------------------------------------

    def _go_to(self) -> Iterator[Command]:
        navigation, history, view_menu = self._window.navigation, self._window.history, self._window.view_menu
        for rail_place in self._window.places:
            name = f"goToPlace-{rail_place.name}"
            self._synonyms[name] = rail_place.synonyms
            yield Command(
                "Go to", rail_place.title, rail_place.keys, partial(navigation.go_to_place, rail_place.name), name
            )
            for entry in rail_place.views if len(rail_place.views) > 1 else ():
                name = f"goTo-{entry.name}"
                self._synonyms[name] = entry.synonyms
                yield Command(
                    "Go to", f"{rail_place.title}: {entry.label}", "", partial(navigation.go_to, entry.name), name
                )
        yield Command("Go to", "Back to the previous view", "Alt+Left", history.back, "goBack")
        yield Command("Go to", "Forward to the next view", "Alt+Right", history.forth, "goForth")
        yield Command("Go to", "Views in this group", "Ctrl+M", view_menu.show_choices, "showViews")
        yield Command("Go to", "More charts…", "Ctrl+G", self._window.more_charts.show, "showCharts")
        walk = view_menu.walk
        yield Command("Go to", "Next view in this group", "Ctrl+Tab", partial(walk, 1), "nextTab", "Ctrl+PgDown")
        yield Command(
            "Go to", "Previous view in this group", "Ctrl+Shift+Tab", partial(walk, -1), "previousTab", "Ctrl+PgUp"
        )

    def _selection(self) -> Iterator[Command]:
        window = self._window
        yield Command("Selection", "Undo", "Ctrl+Z", window.undo.undo, "undo")
        yield Command("Selection", "Redo", "Ctrl+Shift+Z", window.undo.redo, "redo", "Ctrl+Y")
        yield Command("Selection", "Clear the selection", "Esc", window.escape, "clearSelection")
        yield Command("Selection", "Swap A and B", "Ctrl+T", window.selection.swap, "swapAB")
        yield Command("Selection", "Paste an image into this view", "Ctrl+V", window.drop_handler.paste, "paste")

    def _this_view(self) -> Iterator[Command]:
        send = self._window.router.send
        yield Command("This view", "Help", "F1", partial(send, intents.ShowMethod()), "showMethod")
        yield Command("This view", "Further controls", "Ctrl+.", self._window.show_more, "showMore")
        copy = partial(send, intents.CopyCommand())
        yield Command("This view", "Copy as command", "Ctrl+Shift+C", copy, "copyCommand")
        export = partial(send, intents.ExportFigure())
        yield Command("This view", "Export figure or data…", "Ctrl+E", export, "exportFigure")

    def _dialogs(self) -> Iterator[Command]:
        window, send, dialogs = self._window, self._window.router.send, self._window.dialogs
        yield Command("Window", "New run…", "Ctrl+N", partial(send, intents.OpenNewRun()), "newRun")
        open_model, open_vectors = partial(send, intents.ChooseModel()), partial(send, intents.OpenVectors())
        import_curves = partial(send, intents.ImportCurves())
        import_data = partial(send, intents.OpenImport(compare=True))
        inspector = window.pages.toggle_inspector
        yield Command("Window", "Open a pretrained model…", "Ctrl+O", open_model, "openModel")
        yield Command("Window", "Show or hide the inspector", "Ctrl+Shift+I", inspector, "toggleInspector")
        yield Command("Window", "Open vectors…", "", open_vectors, "openVectors")
        yield Command("Window", "Compute targets…", "", dialogs.show_places, "showPlaces")
        yield Command("Window", "Import curves…", "", import_curves, "importCurves")
        watch = partial(send, intents.WatchTraining())
        yield Command("Window", "Watch a training…", "", watch, "watchTraining")
        if not default_paths.is_sample(window.folder):
            look = partial(send, intents.OpenSample())
            yield Command("Window", "Look at finished runs", "", look, "openSample")
        yield Command("Window", "About…", "", dialogs.show_about, "showAbout")
        yield Command("Window", "Jobs", "Ctrl+J", window.job_panel.toggle, "showJobs")
        yield Command("Window", "Import data…", "Ctrl+Shift+O", import_data, "importData")

    def _share(self) -> Iterator[Command]:
        views, bundle = self._window.saved_views, self._window.view_commands.export_bundle
        yield Command("Share", "Copy the link to this view", "", views.copy, "copyLink")
        yield Command("Share", "Save this view…", "", views.ask, "saveView")
        yield Command("Share", "Saved views…", "", views.manage, "savedViews")
        yield Command("Share", "Export evidence bundle…", "Ctrl+Shift+E", bundle, "exportBundle")

    def _window_commands(self) -> Iterator[Command]:
        window = self._window
        yield Command("Window", "Command palette", "Ctrl+K", self.show_palette, "showPalette", "Ctrl+Shift+P")
        yield Command("Window", "Keyboard shortcuts", "?", self.show_keys, "showKeysAction", "Ctrl+/")
        yield Command("Window", "Settings…", "Ctrl+,", window.show_settings, "showSettingsAction")
        yield Command("Window", "Change keyboard shortcuts…", "", self.change_keys, "changeKeys")
        yield Command("Window", "Start the demo runs", "", window.start_demo, "startDemo")
        yield Command("Window", "Close the window", "Ctrl+Q", window.leave, "closeWindow")
        yield Command("Window", "Ask again before closing with active runs", "", window.ask_again, "askAgain")


def _last_name(entry: PaletteEntry) -> str:
    """Return a command's name without its view."""
    return entry.words.rpartition(": ")[2].casefold()
