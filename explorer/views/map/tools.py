"""Mouse tools of the maps, 3-D, view lock, and visible parts."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QButtonGroup, QMenu, QToolButton, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.accessible import present
from explorer.widgets.point_map.view_box import Tool

_MODES: Final = "Shift adds, Alt removes"
TOOLS: Final[tuple[tuple[Tool, str, str, str], ...]] = (
    ("pan", "hand", "V", "Pan the map, or rotate it in 3-D: drag. Shift + drag adds a rectangle, Alt removes"),
    ("lasso", "lasso", "L", f"Lasso: drag around points. {_MODES}"),
    ("rectangle", "square-dashed", "R", f"Rectangle: drag over points. {_MODES}"),
    ("brush", "brush", "B", f"Brush: drag over points. {_MODES}; [ and ] change its size"),
)
"""Each tool, its icon, key and tool tip."""

SHOWN: Final = (
    ("images", "Images", ""),
    ("texts", "Texts", ""),
    ("contours", "Contours of dense regions", "C"),
    ("sprites", "Thumbnails in sparse regions", "T"),
    ("labels", "Cluster labels", "W"),
)
"""What can be shown or left away, in words, and its key."""
SPACE: Final = "3-D: three principal components"
AWAY_AT_FIRST: Final = ("contours",)


class Tools(QWidget):
    """Buttons for mouse tools and visible parts.

    Attributes:
        buttons: The button of each tool.
        shown: The checkable action of each thing that can be shown.
    """

    tool_changed = Signal(str)  # `tool` is another.
    grow_asked = Signal()  # The selection is to take its neighbors in.
    space_changed = Signal(bool)  # Whether the maps are turned in space.
    lock_changed = Signal(bool)  # Whether both maps move together.
    shown_changed = Signal(str)  # The name of what was switched on or off.
    fit_asked = Signal()  # Both maps are to show all points.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._group = QButtonGroup(self)
        self.buttons: dict[Tool, QToolButton] = {}
        for tool, sign, key, tip in TOOLS:
            button = _button(f"map-{tool}", sign, f"{tip} ({key})", checkable=True)
            present(button, "RadioButton")
            self._group.addButton(button)
            self.buttons[tool] = button
            button.toggled.connect(lambda on, tool=tool: on and self.tool_changed.emit(tool))
        self.buttons["pan"].setChecked(True)
        self.grow = _button(
            "map-grow", "waypoints", "Grow the selection to its nearest neighbors in the embedding space (G)"
        )
        self.lock = _button("map-lock", "link", "Pan, zoom and rotate both maps together (K)", checkable=True)
        self.show_menu = _button("map-show", "eye", "Display options")
        self.fit = _button("map-fit", "maximize", "Show all points (F)")
        self.shown: dict[str, QAction] = {}
        self.show_menu.setMenu(self._menu())
        self.show_menu.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        layouts.row(
            *self.buttons.values(),
            self.grow,
            theme.INSIDE,
            self.lock,
            self.show_menu,
            self.fit,
            gap=2,
            of=self,
        )
        self.grow.clicked.connect(self.grow_asked)
        self.space.toggled.connect(self.space_changed)
        self.lock.toggled.connect(self.lock_changed)
        self.fit.clicked.connect(self.fit_asked)

    @property
    def tool(self) -> Tool:
        """The tool used for dragging."""
        return next(tool for tool, button in self.buttons.items() if button.isChecked())

    def choose(self, tool: Tool) -> None:
        """Select this tool; selecting it again returns to panning."""
        self.buttons["pan" if self.tool == tool else tool].setChecked(True)

    def is_shown(self, name: str) -> bool:
        """Return whether this item of `SHOWN` is visible."""
        return self.shown[name].isChecked()

    def _menu(self) -> QMenu:
        menu = QMenu(self)
        for name, label, key in SHOWN:
            action = menu.addAction(f"{label}\t{key}" if key else label)
            action.setObjectName(f"map-show-{name}")
            action.setCheckable(True)
            action.setChecked(name not in AWAY_AT_FIRST)
            action.toggled.connect(lambda _on, name=name: self.shown_changed.emit(name))
            self.shown[name] = action
            if name == "texts":
                menu.addSeparator()
        menu.addSeparator()
        self.space = menu.addAction(f"{SPACE}\tD")
        self.space.setObjectName("map-space")
        self.space.setCheckable(True)
        return menu


def _button(name: str, sign: str, tip: str, *, checkable: bool = False) -> QToolButton:
    button = QToolButton(objectName=name, toolTip=tip, accessibleName=tip, checkable=checkable)
    theme.keep_icon(button, sign, 16, "text")
    return button
