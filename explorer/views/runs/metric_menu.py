"""A menu of metrics in groups that stays open during multiple selections."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction, QMouseEvent
from PySide6.QtWidgets import QMenu, QWidget

from explorer.widgets.command_palette import COMMAND
from trainer.metrics import METRICS, metric


class MetricMenu(QMenu):
    """Checkable metrics, one submenu per group of the catalog."""

    changed = Signal()  # Other metrics are chosen.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="metric-menu")
        self._actions: dict[str, QAction] = {}
        self._groups: dict[str, _StaysOpen] = {}

    @property
    def chosen(self) -> tuple[str, ...]:
        """The names of the selected metrics: validation first, then catalog order, unknown ones last."""
        order = {name: rank for rank, name in enumerate(METRICS)}
        names = [name for name, action in self._actions.items() if action.isChecked()]
        return tuple(sorted(names, key=lambda n: (not n.startswith("val/"), order.get(n, len(order)), n)))

    def offer(self, names: Iterable[str]) -> None:
        """Add the metrics that are not in the menu yet."""
        for name in names:
            if name not in self._actions:
                self._add(name)

    def choose(self, names: Iterable[str]) -> None:
        """Select exactly these."""
        selected = set(names)
        self.offer(selected)
        self.blockSignals(True)
        for name, action in self._actions.items():
            action.setChecked(name in selected)
        self.blockSignals(False)
        self.changed.emit()

    def metric_actions(self) -> list[QAction]:
        """Return all actions, for the command palette."""
        return list(self._actions.values())

    def _add(self, name: str) -> None:
        entry = metric(name)
        if entry.group not in self._groups:
            group = _StaysOpen(entry.group, self)
            self._groups[entry.group] = group
            self.addMenu(group)
        action = QAction(entry.label, self, objectName=f"metric-{name}", checkable=True, toolTip=name)
        action.setProperty(COMMAND, f"Show curve: {entry.label}")
        action.toggled.connect(lambda _: self.changed.emit())
        self._groups[entry.group].addAction(action)
        self._actions[name] = action


class _StaysOpen(QMenu):
    """A menu that stays open when a checkable action is clicked."""

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        action = self.activeAction()
        if action is not None and action.isCheckable() and action.isEnabled():
            action.toggle()
            event.accept()
            return
        super().mouseReleaseEvent(event)
