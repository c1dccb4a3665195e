"""Actions of the Map view with shortcuts: for keys, the palette and the sheet of shortcuts."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QAbstractButton, QWidget

from explorer.views.map.selecting import Selecting
from explorer.views.map.text_search import TextSearch
from explorer.views.map.toolbar import MapToolbar

_Switch = QAction | QAbstractButton
"""What is on or off: the entry of a menu has its check mark."""


def make_actions(
    view: QWidget,
    toolbar: MapToolbar,
    selecting: Selecting,
    text_search: TextSearch,
    *,
    fit: Callable[[], object],
    resize_brush: Callable[[int], object],
    show_classes: Callable[[], object],
) -> list[QAction]:
    """Return the actions of the Map view, added to it so that their shortcuts work there.

    Those with a section stand behind the bar's `...`; the others have buttons that are always seen.
    """
    tools = toolbar.tools
    rows: list[tuple[str, str, str, str, Callable[[], object] | _Switch]] = [
        ("", "Move the map", "V", "hand", lambda: tools.buttons["pan"].setChecked(True)),
        ("", "Lasso", "L", "lasso", lambda: tools.choose("lasso")),
        ("", "Rectangle", "R", "square-dashed", lambda: tools.choose("rectangle")),
        ("", "Brush", "B", "brush", lambda: tools.choose("brush")),
        ("", "Larger brush", "]", "brush", lambda: resize_brush(1)),
        ("", "Smaller brush", "[", "brush", lambda: resize_brush(-1)),
        ("", "Color by…", "", "palette", toolbar.color.showPopup),
        ("", "Show PCA", "", "chart-scatter", lambda: toolbar.pca.setChecked(True)),
        ("", "Show UMAP", "", "chart-scatter", lambda: toolbar.umap.setChecked(True)),
        ("", "Show t-SNE", "", "chart-scatter", lambda: toolbar.methods.choose("tsne")),
        ("", "Find pairs by text", "Ctrl+F /", "search", text_search.begin),
        ("Selection", "Select all pairs", "Ctrl+A", "list-checks", selecting.select_all),
        ("Selection", "Invert the selection", "Ctrl+I", "list-checks", selecting.invert),
        ("Selection", "Grow to nearest neighbors", "G", "waypoints", selecting.grow),
        ("Display", "Contours", "C", "eye", tools.shown["contours"]),
        ("Display", "Thumbnails", "T", "eye", tools.shown["sprites"]),
        ("Display", "Cluster labels", "W", "eye", tools.shown["labels"]),
        ("Display", "Show all classes", "", "eye", show_classes),
        ("Maps", "3-D", "D", "box", tools.space),
        ("Maps", "Move both maps together", "K", "link", tools.lock),
        ("Maps", "Show all points", "F", "maximize", fit),
    ]
    made = []
    for section, label, keys, sign, do in rows:
        action = QAction(label, view, objectName=f"map-action-{label.lower().rstrip('…').replace(' ', '-')}")
        action.setProperty("icon-name", sign)
        action.setProperty("section", section)
        action.setShortcuts([QKeySequence(each) for each in keys.split()])
        action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        if isinstance(do, _Switch):
            action.setCheckable(True)
            action.setChecked(do.isChecked())
            do.toggled.connect(action.setChecked)
            action.toggled.connect(do.setChecked)
        else:
            action.triggered.connect(lambda _checked=False, do=do: do())
        view.addAction(action)
        made.append(action)
    return made
