"""Actions of the Map view with shortcuts: for keys, the palette and the sheet of shortcuts."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from explorer.views.map.selecting import Selecting
from explorer.views.map.toolbar import MapToolbar


def make_actions(
    view: QWidget,
    toolbar: MapToolbar,
    selecting: Selecting,
    *,
    fit: Callable[[], object],
    resize_brush: Callable[[int], object],
) -> list[QAction]:
    """Return the actions of the Map view, added to it so that their shortcuts work there."""
    tools = toolbar.tools
    rows: list[tuple[str, str, str, Callable[[], object]]] = [
        ("Move the map", "V", "hand", lambda: tools.buttons["pan"].setChecked(True)),
        ("Lasso", "L", "lasso", lambda: tools.choose("lasso")),
        ("Rectangle", "R", "square-dashed", lambda: tools.choose("rectangle")),
        ("Brush", "B", "brush", lambda: tools.choose("brush")),
        ("Larger brush", "]", "brush", lambda: resize_brush(1)),
        ("Smaller brush", "[", "brush", lambda: resize_brush(-1)),
        ("Select all pairs", "Ctrl+A", "list-checks", selecting.select_all),
        ("Invert the selection", "Ctrl+I", "list-checks", selecting.invert),
        ("Grow to nearest neighbors", "G", "waypoints", selecting.grow),
        ("Show all points", "F", "maximize", fit),
        ("3-D", "D", "box", tools.space.toggle),
        ("Move both maps together", "K", "link", tools.lock.toggle),
        ("Contours", "C", "eye", tools.shown["contours"].toggle),
        ("Thumbnails", "T", "eye", tools.shown["sprites"].toggle),
        ("Cluster labels", "W", "eye", tools.shown["labels"].toggle),
        ("Show PCA", "", "chart-scatter", lambda: toolbar.pca.setChecked(True)),
        ("Show UMAP", "", "chart-scatter", lambda: toolbar.umap.setChecked(True)),
    ]
    made = []
    for label, keys, sign, do in rows:
        action = QAction(label, view, objectName=f"map-action-{label.lower().replace(' ', '-')}")
        action.setProperty("icon-name", sign)
        action.setShortcut(QKeySequence(keys))
        action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        action.triggered.connect(lambda _checked=False, do=do: do())
        view.addAction(action)
        made.append(action)
    return made
