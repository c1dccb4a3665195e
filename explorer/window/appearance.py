"""Theme, motion and zoom of the window, as the person chooses them for every workspace."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Final

from explorer import theme
from explorer.state.settings import Settings
from explorer.widgets.banner import Banner
from explorer.window.actions import Actions, Command
from explorer.window.zoom import STEPS, ZOOM_KEY, next_zoom, rescale, zoom_of
from trainer.untrusted import confined

THEME_KEY: Final = "window/theme"
MOTION_KEY: Final = "window/reducedMotion"
MODES: Final[dict[theme.Mode, str]] = {"system": "System", "light": "Light", "dark": "Dark"}
_ZOOMS: Final = (
    ("Zoom in", "Ctrl++", 1, "zoomIn", "Ctrl+="),
    ("Zoom out", "Ctrl+-", -1, "zoomOut", ""),
    ("Zoom to 100 %", "Ctrl+0", 0, "zoomReset", ""),
)


class Appearance:
    """Changes the appearance and remembers it; where Qt cannot zoom at once, `restart` opens the window again."""

    def __init__(self, settings: Settings, banner: Banner, restart: Callable[[], object]) -> None:
        self._settings, self._banner, self._restart = settings, banner, restart

    def _keep(self, key: str, value: object) -> None:
        # Where the folder cannot be made, the choice holds for this window.
        with contextlib.suppress(OSError):
            confined.make_folder(self._settings.file.parent.parent, self._settings.file.parent.name)
        self._settings.set(key, value)

    def choose_theme(self, mode: theme.Mode) -> None:
        """Use this theme from now on."""
        theme.theme().mode = mode
        self._keep(THEME_KEY, mode)

    def switch_motion(self) -> None:
        """Reduce the motion, or allow it again."""
        theme.theme().reduced_motion = not theme.theme().reduced_motion
        self._keep(MOTION_KEY, theme.theme().reduced_motion)

    @property
    def zoom_percent(self) -> int:
        """The zoom that the person has chosen."""
        return zoom_of(self._settings.value(ZOOM_KEY))

    def zoom(self, direction: int) -> None:
        """Show and remember the next (1) or previous (-1) zoom, or 100 % (0)."""
        self.zoom_to(next_zoom(self.zoom_percent, direction) if direction else 100)

    def zoom_to(self, zoom: int, *, quiet: bool = False) -> None:
        """Show and remember this zoom in percent; `quiet`: the number is seen anyway."""
        before = self.zoom_percent
        self._keep(ZOOM_KEY, zoom)
        if zoom == before or rescale(zoom):
            if not quiet:
                self._banner.show_message(f"Zoom {zoom} %.", tone="good")
        else:
            self._banner.show_message(
                f"Zoom {zoom} % after a restart of the window. Runs continue.",
                tone="good",
                action=("Restart the window", self._restart),
            )

    def add_actions(self, actions: Actions) -> None:
        """Add the commands of the appearance."""
        for text, keys, direction, name, second_keys in _ZOOMS:
            actions.add(Command("Window", text, keys, partial(self.zoom, direction), name, second_keys))
        for zoom in (step for step in STEPS if step != 100):
            actions.add(Command("Window", f"Zoom to {zoom} %", "", partial(self.zoom_to, zoom), f"zoomTo{zoom}"))
        for mode, text in MODES.items():
            choose = partial(self.choose_theme, mode)
            actions.add(Command("Window", f"Theme: {text.lower()}", "", choose, f"theme-{mode}"))
        actions.add(Command("Window", "Reduced motion", "", self.switch_motion, "reducedMotion"))
