"""Find pairs on the maps by text: those whose caption, class or file has every word stay in color."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from operator import is_
from typing import Final

import numpy as np
from jaxtyping import Bool, Int
from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QLineEdit

from explorer import theme
from explorer.event_loop.background import Background
from explorer.views.map.load import MapSide
from explorer.views.map.panel import MapPanel
from explorer.views.map.selecting import Selecting
from explorer.widgets import layouts
from explorer.widgets.accessible import announce
from trainer.store.columns import containing, taken
from trainer.store.snapshot_files import Items

FIELD_PX, LEAST_FIELD_PX = 360, 120
HINT: Final = (
    "Finds pairs whose caption, class or file name has every word, in any order (/ or Ctrl+F). Enter selects them, Esc "
    "shows all again"
)


class SearchField(QLineEdit):
    """A line to type words in, with the number of matches at its end."""

    entered = Signal()  # Enter was pressed.
    left = Signal()  # Esc was pressed.

    def __init__(self) -> None:
        super().__init__(objectName="map-find", accessibleName="Find pairs by text", placeholderText="Find pairs")
        self.setToolTip(HINT)
        self.setMinimumWidth(LEAST_FIELD_PX)
        self.setMaximumWidth(FIELD_PX)
        theme.keep_icon(self.addAction(theme.icon("search"), QLineEdit.ActionPosition.LeadingPosition), "search")
        self.count = layouts.text(role="small", name="map-find-count")
        self.count.setParent(self)
        self.count.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def show_count(self, text: str, sentence: str) -> None:
        """Write the number of matches; the sentence is for those who cannot see it."""
        self.count.setText(text)
        self.setAccessibleDescription(sentence)
        self._place()
        announce(self, sentence)

    def event(self, event: QEvent) -> bool:
        is_escape = isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape
        if is_escape and event.type() == QEvent.Type.ShortcutOverride:
            event.accept()  # it is no shortcut of the window here
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.entered.emit()
        elif event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def _place(self) -> None:
        self.count.adjustSize()
        wide = self.count.width() if self.count.text() else 0
        self.count.move(self.width() - wide - theme.INSIDE, (self.height() - self.count.height()) // 2)
        self.setTextMargins(0, 0, wide + theme.SPACE if wide else 0, 0)


class TextSearch(QObject):
    """Finds pairs in both maps as words are typed.

    Attributes:
        field: The line to type in, which the view lays out.
    """

    changed = Signal()  # `rows` are others.

    def __init__(
        self, panels: Sequence[MapPanel], selecting: Selecting, background: Background, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._panels, self._selecting, self._background = panels, selecting, background
        self._matches: dict[int, Bool[np.ndarray, " n"]] = {}
        self._sides: tuple[MapSide, ...] = ()
        self.field = SearchField()
        self.field.textChanged.connect(self._find)
        self.field.entered.connect(self._select)
        self.field.left.connect(self._leave)
        selecting.marked.connect(self._show_count)

    @property
    def rows(self) -> Int[np.ndarray, " k"]:
        """The matching pairs of the side whose pairs are selected; none where nothing is sought."""
        owner = self._selecting.owner
        index = next((panel.index for panel in self._panels if panel.side is owner), -1)
        return np.flatnonzero(self._matches.get(index, np.empty(0, bool)))

    def begin(self) -> None:
        """Put the caret into the line, with its text selected."""
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()

    def refresh(self) -> None:
        """Find again where other points are shown."""
        if not self._is_current(self._sides):
            self._find()

    def _is_current(self, sides: Sequence[MapSide]) -> bool:
        current = self._selecting.sides
        return len(sides) == len(current) and all(map(is_, sides, current))

    def _find(self) -> None:
        sides = self._sides = tuple(self._selecting.sides)
        terms = self.field.text().split()
        if not terms or not sides:
            self._background.forget(self, "find")
            self._show({}, sides)
            return
        sides_of = {panel.index: panel.side for panel in self._panels if panel.side is not None}
        self._background.run(
            self, matches_of, sides_of, terms, done=partial(self._show, sides=sides), key="find", urgent=True
        )

    def _show(self, masks: dict[int, Bool[np.ndarray, " n"]], sides: tuple[MapSide, ...]) -> None:
        if not self._is_current(sides):
            return
        self._matches = masks
        for panel in self._panels:
            mask, side = masks.get(panel.index), panel.side
            points = None if mask is None or side is None else np.concatenate([mask[: side.images], mask[: side.texts]])
            panel.map.set_matches(points)
        self._show_count()
        self.changed.emit()

    def _show_count(self) -> None:
        if self._words() != (self.field.count.text(), self.field.accessibleDescription()):
            self.field.show_count(*self._words())

    def _words(self) -> tuple[str, str]:
        """Return the number of matches, and a sentence of it."""
        if not self._matches:
            return "", ""
        rows, owner = self._selecting.rows, self._selecting.owner
        owned = [panel.index for panel in self._panels if panel.side is owner and len(rows)]
        counts = [
            _selected_words(mask, rows) if index in owned else f"{np.count_nonzero(mask):,} of {len(mask):,}"
            for index, mask in self._matches.items()
        ]
        if self._selecting.linked:
            counts = counts[:1]
        elif len(counts) > 1:
            counts = [f"{'AB'[index]} {count}" for index, count in zip(self._matches, counts, strict=True)]
        short = " · ".join(counts)
        return short, f"{short} pairs match"

    def _select(self) -> None:
        """Select the matches, in the first map that has some."""
        for index, mask in self._matches.items():
            if mask.any():
                self._selecting.select_in(index, np.flatnonzero(mask))
                break

    def _leave(self) -> None:
        self.field.clear()
        first = next((panel for panel in self._panels if panel.side is not None), None)
        if first is not None:
            first.map.setFocus()


def matches_of(sides: Mapping[int, MapSide], terms: Sequence[str]) -> dict[int, Bool[np.ndarray, " n"]]:
    """Return which pairs of each side have every word; pairs of both sides are searched once."""
    by_identity: dict[str, Bool[np.ndarray, " n"]] = {}
    for side in sides.values():
        if side.identity not in by_identity:
            by_identity[side.identity] = matching(side.items, terms)
    return {index: by_identity[side.identity] for index, side in sides.items()}


def matching(items: Items, terms: Sequence[str]) -> Bool[np.ndarray, " n"]:
    """Return which pairs have every word in their caption or class, or in the name of a file without a caption."""
    left = np.arange(len(items))
    has_captions = any(items.caption[:1000])
    for term in terms:
        first = items.caption if has_captions else items.path
        hit = containing(taken(first, left) if len(left) < len(items) else first, term)
        hit |= containing(items.label, term, repeated=True)[left]
        left = left[hit]
    mask = np.zeros(len(items), bool)
    mask[left] = True
    return mask


def _selected_words(mask: Bool[np.ndarray, " n"], rows: Int[np.ndarray, " k"]) -> str:
    """Return how many of the selected pairs match, and of how many matches where others match, too."""
    count, every = np.count_nonzero(mask[rows]), np.count_nonzero(mask)
    if not count:
        return f"{every:,} of {len(mask):,}"
    chosen = f"{count:,} selected" if count == len(rows) else f"{count:,} of {len(rows):,} selected"
    return chosen if count == every else f"{chosen} ({every:,} in all)"
