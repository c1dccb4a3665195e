"""A row of controls that wraps to a second line if it does not fit."""

from __future__ import annotations

from itertools import pairwise

from msgspec import Struct
from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer import theme
from explorer.widgets import layouts


class _Part(Struct, frozen=True):
    widget: QWidget
    gap: int
    stretch: bool
    right: bool

    @property
    def least(self) -> int:
        return max(self.widget.minimumSizeHint().width(), self.widget.minimumWidth())

    @property
    def preferred(self) -> int:
        return self.least if self.stretch else max(self.least, min(self.widget.sizeHint().width(), self.most))

    @property
    def high(self) -> int:
        # A sheet's `min-height` is how high buttons and fields of a line are; what is made of several has a hint only.
        return self.widget.minimumHeight() or self.widget.sizeHint().height()

    @property
    def most(self) -> int:
        return self.widget.maximumWidth()


class FlowRow(QWidget):
    """A wrapping row of widgets at their preferred widths; no button shrinks below its text."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._parts: list[_Part] = []

    def add(
        self,
        widget: QWidget,
        *,
        gap: int = theme.SPACE,
        stretch: bool = False,
        right: bool = False,
        before: QWidget | None = None,
    ) -> None:
        """Add a widget.

        Args:
            gap: Pixels to what stands before it in its line.
            stretch: It takes what room its line leaves.
            right: It and all after it stand at the right end of a line that begins with others.
            before: The part that it is put in front of; None: it is the last.
        """
        widget.setParent(self)
        at = [part.widget for part in self._parts].index(before) if before is not None else len(self._parts)
        self._parts.insert(at, _Part(widget, gap, stretch, right))
        if before is not None:
            widget.stackUnder(before)  # children are in the order of the row
            # Not behind the widget: `before`, and what follows it, would go with it to the end of the window.
            for last in layouts.focus_chain(before, back=True):
                if last is not widget and last.focusPolicy() != Qt.FocusPolicy.NoFocus:
                    QWidget.setTabOrder(last, widget)
                    break
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        parts = self._seen()
        return QSize(sum(part.preferred for part in parts) + sum(part.gap for part in parts[1:]), self._high(parts))

    def minimumSizeHint(self) -> QSize:
        return QSize(max((part.least for part in self._seen()), default=0), self.minimumHeight())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.arrange()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.arrange()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
            self.arrange()
        return super().event(event)

    def _seen(self) -> list[_Part]:
        return [part for part in self._parts if not part.widget.isHidden()]

    def arrange(self) -> None:
        """Place the parts at once, as for one that is shown now: until its event comes it would be over another."""
        y = 0
        for line in self._lines():
            high = self._high(line)
            self._place(line, y, high)
            y += high + theme.SPACE
        self.setFixedHeight(max(0, y - theme.SPACE))

    def _lines(self) -> list[list[_Part]]:
        lines: list[list[_Part]] = []
        x = 0
        seen = self._seen()
        for index, part in enumerate(seen):
            # What stands at the right stays together, if it can.
            first = part.right and index > 0 and not seen[index - 1].right
            tail = sum(p.gap + p.preferred for p in seen[index + 1 :]) if first else 0
            tail = tail if part.preferred + tail <= self.width() else 0
            end = x + part.gap + part.preferred
            if lines and end + tail <= self.width():
                lines[-1].append(part)
                x = end
            else:
                lines.append([part])
                x = part.preferred
        return lines

    def _place(self, line: list[_Part], y: int, high: int) -> None:
        free = self.width() - sum(part.preferred for part in line) - sum(part.gap for part in line[1:])
        pushed = next((b for a, b in pairwise(line) if b.right and not a.right), None)
        more: dict[_Part, int] = {}
        growing = sorted((part for part in line if part.stretch), key=lambda part: part.most)
        for left, part in zip(range(len(growing), 0, -1), growing, strict=True):
            more[part] = max(0, min(free // left, part.most - part.preferred))
            free -= more[part]
        x = 0
        for part in line:
            wide = min(part.preferred, max(self.width(), part.least)) + more.get(part, 0)
            x += 0 if part is line[0] else part.gap
            x += max(free, 0) if part is pushed else 0
            tall = part.high
            part.widget.setGeometry(x, y + (high - tall) // 2, wide, tall)
            x += wide

    def _high(self, parts: list[_Part]) -> int:
        return max((part.high for part in parts), default=0)
