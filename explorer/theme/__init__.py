"""How the window looks: tokens, palette, stylesheet, fonts and icons. Nothing else names a color or a size.

`theme()` is the application's one theme; widgets that paint themselves read `theme().tokens` when they paint and
repaint on `theme().changed`. Ordinary widgets need nothing: the stylesheet reaches them. A widget asks for a look by
its dynamic property `role` (see `set_role`): labels `title`, `secondary`, `small`, `strong`, `number`; buttons
`primary`, `quiet`, `danger`, `icon`; frames `card`, `well`, `line`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QIcon, QPalette
from PySide6.QtWidgets import QApplication, QWidget

from explorer.theme import icons, stylesheet, tokens
from explorer.theme.dressing import Dressing
from explorer.theme.marks import MarkFiles
from explorer.theme.tokens import (
    AROUND,
    BETWEEN,
    BODY_PX,
    CONTROL_PX,
    DARK,
    INSIDE,
    LIGHT,
    RADIUS,
    ROW_PX,
    SMALL_PX,
    SPACE,
    TITLE_PX,
    TRANSITION_MS,
    Tokens,
    contrast,
)

__all__ = [
    "AROUND",
    "BETWEEN",
    "BODY_PX",
    "CONTROL_PX",
    "DARK",
    "INSIDE",
    "LIGHT",
    "RADIUS",
    "ROW_PX",
    "SMALL_PX",
    "SPACE",
    "TITLE_PX",
    "TRANSITION_MS",
    "Theme",
    "Tokens",
    "class_colors",
    "color",
    "contrast",
    "icon",
    "keep_icon",
    "pixel_font",
    "run_color",
    "set_role",
    "theme",
]

Mode = Literal["system", "light", "dark"]

_FAMILY: Final = "Inter"
# Where Inter has no sign (Chinese captions, emoji), Qt looks on in these and then in the rest of the system.
_FALLBACKS: Final = ("Noto Sans", "DejaVu Sans", "Segoe UI", "Helvetica Neue", "sans-serif")


class Theme(QObject):
    """The one look of the application, light or dark.

    Signals:
        changed: The tokens are others now; what paints itself must repaint. What takes longer than `update` is not
            connected to this, but handed to `follow`.
    """

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._mode: Mode = "system"
        self._application: QApplication | None = None
        self._marks = MarkFiles()
        self._dressing = Dressing(self)
        self._worn: Tokens = LIGHT
        self.tokens: Tokens = LIGHT

    @property
    def mode(self) -> Mode:
        """What the person asked for; `system` follows the desktop."""
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._mode = mode
        self._refresh()

    @property
    def dark(self) -> bool:
        """Whether the dark tokens are shown."""
        return self.tokens is DARK

    def follow(self, slot: Callable[[], object]) -> None:
        """Calls a method of a widget (or of its child) when the theme has changed, as long as both live.

        At once if the widget is seen, else in a later turn of the event loop, at the latest when it is shown.
        """
        self._dressing.follow(slot)

    def divide(self, *wholes: QWidget) -> None:
        """When the theme changes, children of these are dressed one by one, and those that nobody sees later.

        They themselves get no sheet: they paint their ground, or are covered.
        """
        for whole in wholes:
            self._dressing.divide(whole)

    def apply(self, application: QApplication, mode: Mode | None = None) -> None:
        """Dresses the application: Fusion, fonts, palette, stylesheet; and follows the desktop from here on."""
        if self._application is not application:
            self._application = application
            application.setStyle("Fusion")
            _load_fonts()
            application.setFont(pixel_font(BODY_PX))
            application.styleHints().colorSchemeChanged.connect(self._refresh)
        self._mode = mode or self._mode
        self._refresh(force=True)

    def _refresh(self, _scheme: object = None, *, force: bool = False) -> None:
        if self._application is None:
            return
        wanted = DARK if self._wants_dark(self._application) else LIGHT
        if wanted is self.tokens and not force:
            return
        self.tokens = wanted
        application = self._application
        self._dressing.freeze(application)
        try:
            self._dress(application, wanted, force=force)
        finally:
            self._dressing.thaw()

    def _dress(self, application: QApplication, wanted: Tokens, *, force: bool) -> None:
        application.setPalette(_palette(wanted))
        self._write_marks(wanted)
        sheet = stylesheet.stylesheet(wanted, dark=self.dark)
        if force or not application.topLevelWidgets():
            # A new sheet of the application dresses each widget again for every widget above it: ten times the work.
            application.setStyleSheet(sheet)
            self._worn = wanted
        self.changed.emit()
        if wanted is self._worn:
            self._dressing.change(application, "", "")
        else:
            self._dressing.change(application, "dark" if self.dark else "light", sheet)

    def _wants_dark(self, application: QApplication) -> bool:
        if self._mode == "system":
            return application.styleHints().colorScheme() == Qt.ColorScheme.Dark
        return self._mode == "dark"

    def _write_marks(self, wanted: Tokens) -> None:
        """Puts the arrows and ticks where the stylesheet looks for them; without them it shows none."""
        drawn = [
            {file: icons.svg(*mark, 2.25) for file, mark in stylesheet.marks(now, dark=now is DARK).items()}
            for now in (LIGHT, DARK)
        ]
        self._marks.write(drawn[0] | drawn[1], drawn[wanted is DARK])


_theme: Theme | None = None


def theme() -> Theme:
    """The application's one theme; made at the first call."""
    global _theme
    if _theme is None:
        _theme = Theme()
    return _theme


def color(token: str) -> QColor:
    """The color of a token now, e.g. `color("secondary")`; a `#rrggbb` is taken as it is."""
    return QColor(token if token.startswith("#") else getattr(theme().tokens, token))


def run_color(index: int) -> str:
    """The color of the run shown in place `index`: 0 is A (blue), 1 is B (orange), then Okabe-Ito."""
    colors = tokens.run_colors(theme().dark)
    return colors[index % len(colors)]


def class_colors(n: int) -> list[str]:
    """`n` colors told apart, also by color-blind people up to 8."""
    return list(tokens.class_colors(n, theme().dark))


def icon(name: str, size: int = 16, role: str = "text", checked: str = "") -> QIcon:
    """A Lucide icon in the color of the token `role`, or of `checked` where its button is checked.

    It keeps its colors when the theme changes; see `keep_icon` for one that follows.
    """
    normal, active = color(role).name(), color(checked or role).name()
    return icons.tinted(name, size, normal=normal, disabled=theme().tokens.disabled, active=active)


def keep_icon(target: QObject, name: str, size: int = 16, role: str = "text", checked: str = "") -> None:
    """Gives a button or action an icon that follows the theme as long as it lives."""
    setter: Callable[[QIcon], None] = target.setIcon  # type: ignore[attr-defined]
    setter(icon(name, size, role, checked))
    previous = target.property("_icon_follows")
    target.setProperty("_icon", [name, size, role, checked])
    if not previous:
        target.setProperty("_icon_follows", True)
        follower = _IconFollower(target)
        theme().follow(follower.refresh)


class _IconFollower(QObject):
    """Retints its parent's icon; as the parent's child it dies, and is disconnected, with it."""

    def refresh(self) -> None:
        target = self.parent()
        name, size, role, checked = target.property("_icon")
        target.setIcon(icon(name, int(size), role, checked))  # type: ignore[attr-defined]


def pixel_font(pixels: int, *, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
    """Inter at a size in pixels, with figures of equal width so that numbers stand in columns and do not jump."""
    font = QFont([_FAMILY, *_FALLBACKS])
    font.setPixelSize(pixels)
    font.setWeight(weight)
    font.setFeature(QFont.Tag("tnum"), 1)
    font.setStyleStrategy(QFont.StyleStrategy.PreferAntialias)
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    return font


def set_role(widget: QWidget, role: str) -> None:
    """Gives a widget one of the stylesheet's looks, also when it is shown already."""
    widget.setProperty("role", role)
    # Before it is first shown, what it wears would only be taken off again.
    if widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):
        widget.style().unpolish(widget)
        widget.style().polish(widget)


def _load_fonts() -> None:
    for file in sorted((icons.assets() / "fonts").glob("*.ttf")):
        QFontDatabase.addApplicationFont(str(file))


def _palette(now: Tokens) -> QPalette:
    """The tokens as Qt's palette, for everything a stylesheet does not reach."""
    palette = QPalette()
    roles = {
        QPalette.ColorRole.Window: now.background,
        QPalette.ColorRole.WindowText: now.text,
        QPalette.ColorRole.Base: now.surface,
        QPalette.ColorRole.AlternateBase: now.background,
        QPalette.ColorRole.ToolTipBase: now.raised,
        QPalette.ColorRole.ToolTipText: now.text,
        QPalette.ColorRole.PlaceholderText: now.secondary,
        QPalette.ColorRole.Text: now.text,
        QPalette.ColorRole.Button: now.surface,
        QPalette.ColorRole.ButtonText: now.text,
        QPalette.ColorRole.BrightText: now.bad,
        QPalette.ColorRole.Highlight: now.selection,
        QPalette.ColorRole.HighlightedText: now.selection_text,
        QPalette.ColorRole.Accent: now.accent,
        QPalette.ColorRole.Link: now.accent,
        QPalette.ColorRole.Mid: now.line,
        QPalette.ColorRole.Midlight: now.hover,
        QPalette.ColorRole.Dark: now.outline,
        QPalette.ColorRole.Light: now.surface,
    }
    for role, value in roles.items():
        palette.setColor(role, QColor(value))
    for role in (QPalette.ColorRole.WindowText, QPalette.ColorRole.Text, QPalette.ColorRole.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(now.disabled))
    return palette
