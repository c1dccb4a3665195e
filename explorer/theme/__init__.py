"""The look of the window: tokens, palette, stylesheet, fonts and icons; the only place for colors and sizes.

`theme()` is the application's one theme; widgets that paint themselves read `theme().tokens` when they paint and
repaint on `theme().changed`. Ordinary widgets need nothing: the stylesheet reaches them. A widget asks for a look by
its dynamic property `role` (see `set_role`): labels `hero`, `headline`, `title`, `heading`, `strong`, `secondary`,
`small`, `key`; buttons `primary`, `way`, `link`, `quiet`, `picker`, `entry`; frames `card`, `raised`, `line`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal
from weakref import WeakKeyDictionary

from PySide6.QtCore import QObject, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QFont, QFontDatabase, QGradient, QIcon, QPaintDevice, QPainter, QPalette
from PySide6.QtWidgets import QApplication, QPushButton, QWidget

from explorer.theme import icons, stylesheet, tokens
from explorer.theme.focus_rings import FocusRings
from explorer.theme.lazy_style_sheet import LazyStyleSheet
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
from trainer.analysis import palette
from trainer.analysis.palette import readable

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
    "color_icon",
    "contrast",
    "faint",
    "icon",
    "ink_on",
    "keep_icon",
    "pixel_font",
    "run_color",
    "run_ink",
    "run_shade",
    "set_invalid",
    "set_role",
    "sides_of",
    "take_sides",
    "theme",
]

Mode = Literal["system", "light", "dark"]
_LETTERS: Final = ("run_a", "run_b")

Sides = Sequence[tuple[int, ...]]
"""Hue and tone of what is compared, A first."""


_ICON_GAP_PX: Final = 4
_FAMILY: Final = "Inter"
# Where Inter has no sign (Chinese captions, emoji), Qt looks on in these and then in the rest of the system.
_FALLBACKS: Final = ("Noto Sans", "DejaVu Sans", "Segoe UI", "Helvetica Neue", "sans-serif")


class Theme(QObject):
    """The application's theme, light or dark.

    Attributes:
        reduced_motion: Whether the person wants nothing to move, whatever the desktop says.
    """

    # The tokens are others now; what paints itself must repaint. What takes longer than `update` is not connected
    # to this, but handed to `follow`.
    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._mode: Mode = "system"
        self._application: QApplication | None = None
        self._marks = MarkFiles()
        self._style_sheet = LazyStyleSheet(self)
        self._rings = FocusRings(self)
        self._application_tokens: Tokens = LIGHT
        self.tokens: Tokens = LIGHT
        self.reduced_motion = False

    def redraw(self) -> None:
        """Draw all colors and icons again, for other colors of runs or another scale."""
        self.changed.emit()
        if self._application is not None:
            self._style_sheet.recolor(self._application)

    @property
    def moves(self) -> bool:
        """Whether things may move: neither the person nor the desktop asks for reduced motion."""
        if self.reduced_motion:
            return False
        # Qt 6.10 and later know the preference of the desktop where it has one.
        accessibility = getattr(QApplication.styleHints(), "accessibility", None)
        preference = getattr(accessibility() if accessibility else None, "motionPreference", None)
        return preference is None or "Reduced" not in str(preference())

    @property
    def mode(self) -> Mode:
        """The selected mode; `system` follows the desktop."""
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._mode = mode
        self._refresh()

    @property
    def dark(self) -> bool:
        """Whether the dark tokens are in use."""
        return self.tokens is DARK

    def has_ring(self, widget: QWidget) -> bool:
        """Return whether the widget has the focus, and a key moved it there."""
        return self._rings.by_keys and widget.hasFocus()

    def follow(self, slot: Callable[[], object]) -> None:
        """Call a method of a widget (or of its child) on every theme change while both exist.

        At once if the widget is seen, else in a later turn of the event loop, at the latest when it is shown.
        """
        self._style_sheet.add_listener(slot)

    def divide(self, *containers: QWidget) -> None:
        """Restyle the children of these widgets one by one on a theme change, hidden ones later.

        They themselves get no sheet: they paint their ground, or are covered.
        """
        for container in containers:
            self._style_sheet.add_container(container)

    def apply(self, application: QApplication, mode: Mode | None = None) -> None:
        """Apply the theme to the application: Fusion, fonts, palette, stylesheet; then follow the desktop."""
        if self._application is not application:
            self._application = application
            application.setStyle("Fusion")
            for file in sorted((icons.assets() / "fonts").glob("*.ttf")):
                QFontDatabase.addApplicationFont(str(file))
            application.setFont(pixel_font(BODY_PX))
            self._rings.follow(application)
            application.styleHints().colorSchemeChanged.connect(self._refresh)
        self._mode = mode or self._mode
        self._refresh(force=True)

    def _refresh(self, _scheme: object = None, *, force: bool = False) -> None:
        if self._application is None:
            return
        new_tokens = DARK if self._wants_dark(self._application) else LIGHT
        if new_tokens is self.tokens and not force:
            return
        self.tokens = new_tokens
        self._style_sheet.freeze_windows(self._application)
        try:
            self._apply_tokens(self._application, new_tokens, force=force)
        finally:
            self._style_sheet.unfreeze_windows_later()

    def _apply_tokens(self, application: QApplication, new_tokens: Tokens, *, force: bool) -> None:
        application.setPalette(_palette(new_tokens))
        self._write_marks(new_tokens)
        sheet = stylesheet.stylesheet(new_tokens, dark=self.dark)
        if force or not application.topLevelWidgets():
            # A new sheet of the application restyles each widget again for every widget above it: ten times the work.
            application.setStyleSheet(sheet)
            self._application_tokens = new_tokens
        self.changed.emit()
        if new_tokens is self._application_tokens:
            self._style_sheet.apply(application, "", "")
        else:
            self._style_sheet.apply(application, "dark" if self.dark else "light", sheet)

    def _wants_dark(self, application: QApplication) -> bool:
        if self._mode == "system":
            return application.styleHints().colorScheme() == Qt.ColorScheme.Dark
        return self._mode == "dark"

    def _write_marks(self, new_tokens: Tokens) -> None:
        """Write the arrow and check-mark files that the stylesheet refers to; without them it shows none."""
        drawn = [
            {file: icons.svg(*mark, 2.25) for file, mark in stylesheet.marks(now, dark=now is DARK).items()}
            for now in (LIGHT, DARK)
        ]
        self._marks.write(drawn[0] | drawn[1], drawn[new_tokens is DARK])


_theme: Theme | None = None
_sides: Final[WeakKeyDictionary[QObject, Callable[[], Sides]]] = WeakKeyDictionary()


def theme() -> Theme:
    """Return the application's theme; created on first use."""
    global _theme
    if _theme is None:
        _theme = Theme()
    return _theme


def color(token: str, widget: QObject | None = None) -> QColor:
    """Return the current color of a token such as `secondary`; `#rrggbb` is used as is.

    Also of `run_a` and `run_b`: the color of the run that is A or B where the widget is.
    """
    if token in _LETTERS:
        return QColor(run_color(_LETTERS.index(token), widget))
    return QColor(token if token.startswith("#") else getattr(theme().tokens, token))


def faint(strong: QColor) -> QColor:
    """Return a paler color that is still seen on the ground of tables and plots."""
    return QColor(readable(_over_surface(strong, 0.4).name(), theme().dark))


def stroke(width: float) -> float:
    """Return the width of a line of a plot in pixels of the screen, which its cosmetic pen counts in."""
    return width * icons.device_ratio()


def ink_on(ground: QColor) -> QColor:
    """Return black or white, whichever is more readable on a color, perhaps a translucent one over the surface."""
    mixed = _over_surface(ground, ground.alphaF())
    return QColor(max((LIGHT.surface, DARK.shade), key=lambda ink: contrast(ink, mixed.name())))


def _over_surface(over: QColor, share: float) -> QColor:
    under = color("surface")
    pairs = ((over.red(), under.red()), (over.green(), under.green()), (over.blue(), under.blue()))
    return QColor(*(round(share * a + (1 - share) * b) for a, b in pairs))


def take_sides(owner: QObject, sides: Callable[[], Sides]) -> None:
    """Draw in this window or view, and in all that is in it, what is about A or B in these hues and tones."""
    _sides[owner] = sides


def sides_of(widget: QObject | None) -> Sides:
    """Return hue and tone of A and B in the view or window that a widget is in; empty in neither."""
    while widget is not None:
        if (sides := _sides.get(widget)) is not None:
            return sides()
        widget = widget.parent()
    return ()


def run_color(index: int, widget: QObject | None) -> str:
    """Return the color of the run at position `index` where the widget is: A, B, then hues that these have not."""
    return palette.side_color(index, sides_of(widget), theme().dark)


def run_ink(index: int, widget: QObject) -> str:
    """Return the color of words about the run at position `index`: its `run_color`, with the contrast of text."""
    return readable(run_color(index, widget), theme().dark, palette.LEAST_TEXT)


def run_shade(hue: int, tone: int) -> str:
    """Return the color of a run in this theme: a lightness of a hue, as `trainer.experiments.run_style` gives them."""
    return palette.run_shade(hue, tone, theme().dark)


def class_colors(n: int) -> list[str]:
    """Return `n` distinguishable colors, up to 8 of them safe for color-blind people."""
    return list(tokens.class_colors(n, theme().dark))


def icon(name: str, size: int = 16, role: str = "text", checked: str = "", gap: int = 0) -> QIcon:
    """Return a Lucide icon in the color of the token `role`, or of `checked` if its button is checked.

    It keeps its colors when the theme changes; see `keep_icon` for one that follows.
    """
    normal, active = color(role).name(), color(checked or role).name()
    return icons.tinted(name, size, normal=normal, disabled=theme().tokens.disabled, active=active, gap=gap)


def keep_icon(target: QObject, name: str, size: int = 16, role: str = "text", checked: str = "") -> None:
    """Set an icon on a button or action that follows the theme."""
    # A styled push button draws its text closer to the icon than a tool button does.
    gap = 0
    if isinstance(target, QPushButton) and target.text():
        gap = _ICON_GAP_PX
        target.setIconSize(QSize(size + gap, size))
    setter: Callable[[QIcon], None] = target.setIcon  # type: ignore[attr-defined]
    setter(icon(name, size, role, checked, gap))
    previous = target.property("_icon_follows")
    target.setProperty("_icon", [name, size, role, checked, gap])
    if not previous:
        target.setProperty("_icon_follows", True)
        follower = _IconFollower(target)
        theme().follow(follower.refresh)


def color_icon(target: QObject, role: str) -> None:
    """Give the icon of `keep_icon` another color; what paints its own, or has none, stays."""
    if drawn := target.property("_icon"):
        keep_icon(target, drawn[0], int(drawn[1]), role, drawn[3])


class _IconFollower(QObject):
    """Recolors its parent's icon; as a child object it is deleted and disconnected with the parent."""

    def refresh(self) -> None:
        target = self.parent()
        name, size, role, checked, gap = target.property("_icon")
        target.setIcon(icon(name, int(size), role, checked, int(gap)))  # type: ignore[attr-defined]


def pixel_font(pixels: int, *, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
    """Return Inter at a size in pixels, with tabular figures so that numbers align."""
    font = QFont([_FAMILY, *_FALLBACKS])
    font.setPixelSize(pixels)
    font.setWeight(weight)
    font.setFeature(QFont.Tag("tnum"), 1)
    font.setStyleStrategy(QFont.StyleStrategy.PreferAntialias)
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    return font


def smooth_painter(device: QPaintDevice) -> QPainter:
    """Return a painter of smooth edges."""
    painter = QPainter(device)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    return painter


def fill_with(painter: QPainter, brush: QBrush | QColor | QGradient) -> None:
    """Let a painter fill shapes without an outline."""
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(brush)


def text_pen(painter: QPainter, pixels: int, token: str, *, weight: QFont.Weight = QFont.Weight.Normal) -> None:
    """Let a painter write in this size and weight of the application's font, in a color of the theme."""
    painter.setFont(pixel_font(pixels, weight=weight))
    painter.setPen(color(token))


def set_role(widget: QWidget, role: str) -> None:
    """Set a widget's stylesheet role, even if it is already visible."""
    widget.setProperty("role", role)
    _restyle(widget)


def set_invalid(widget: QWidget, invalid: bool) -> None:
    """Mark a field as one whose value cannot be used, or as sound again."""
    if bool(widget.property("invalid")) != invalid:
        widget.setProperty("invalid", invalid)
        _restyle(widget)


def _restyle(widget: QWidget) -> None:
    # Before it is first shown, Qt has given it no style yet.
    if widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):
        widget.style().unpolish(widget)
        widget.style().polish(widget)


def _palette(now: Tokens) -> QPalette:
    """Return the tokens as a Qt palette, for everything that the stylesheet does not reach."""
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
