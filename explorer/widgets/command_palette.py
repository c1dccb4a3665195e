"""A command palette: any command by a few letters of its name."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Final

from msgspec import Struct
from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QAction, QPainter
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.accessible import present
from explorer.widgets.item_list import ITEM_ROLE, Index
from explorer.widgets.overlay import Overlay
from explorer.widgets.refusal import refusal_of
from explorer.widgets.search_list import SearchList

LEAST_INSIDE: Final = 3
"""Letters typed from which on they may stand in the midst of a word."""
ROWS_SHOWN: Final = 10
ROWS_AROUND: Final = 5
"""Rows of a low window that the line and the gaps above and below need."""
SENTENCE: Final = 32
"""Letters from which on another name is a sentence, such as the question of a chart."""
COMMAND: Final = "command"
"""Property of an action: its name among those of all views, where its text says only in its menu what it does."""
WHOLE_NAME: Final = 3.0
"""What a command gains whose own name or other name is exactly what is typed."""


def score(typed: str, text: str) -> float | None:
    """Return how well `typed` matches `text`, higher is better; None if its letters do not occur in order.

    Letters that follow each other and letters at the start of a word count most; among equals the shorter text wins.
    """
    letters = [c for c in typed.casefold() if not c.isspace()]
    inside = text.casefold()
    if not letters:
        return 0.0
    best: float | None = None
    for start in (i for i, c in enumerate(inside) if c == letters[0]):
        total = _from(start, letters, inside)
        if total is not None and (best is None or total > best):
            best = total
    return None if best is None else best - len(text) / 1000


def good_score(typed: str, text: str) -> float | None:
    """Return `score`, or None where letters are scattered: each run of them begins a word, or all stand together."""
    letters, inside = [letter for letter in typed.casefold() if not letter.isspace()], text.casefold()
    if len(letters) >= LEAST_INSIDE and "".join(letters) in inside:
        return score(typed, text)
    begins = {i for i in range(len(inside)) if inside[i].isalnum() and not (i and inside[i - 1].isalnum())}
    # Where the letters so far may end. A pattern with `.*` for each letter would try every way to spread them.
    ends = begins
    for number, letter in enumerate(letters):
        if number:
            ends = {end + 1 for end in ends} | {i for i in begins if i > min(ends)}
        ends = {i for i in ends if inside[i : i + 1] == letter}
        if not ends:
            return None
    return score(typed, text)


def _from(start: int, letters: list[str], inside: str) -> float | None:
    total, position, previous = 0.0, start, -2
    for letter in letters:
        position = inside.find(letter, position)
        if position < 0:
            return None
        starts_word = position == 0 or not inside[position - 1].isalnum()
        total += 3.0 if position == previous + 1 else 2.5 if starts_word else 0.5
        previous, position = position, position + 1
    return total


class PaletteEntry(Struct, frozen=True):
    """One line of the palette."""

    group: str
    action: QAction
    synonyms: tuple[str, ...] = ()  # Other names that find it.
    name: str = ""  # Shown instead of the action's text.
    keys: str = ""  # Shown instead of the action's own.
    # Opens the view that the action acts on; None where it acts on what is open.
    go_first: Callable[[], object] | None = None

    @property
    def key(self) -> str:
        """What it is counted by when it is used."""
        return f"{self.group}/{self.action.objectName() or self.words}"

    @property
    def words(self) -> str:
        """Its name: the action's text without mnemonics where it has none of its own."""
        return self.name or self.action.property(COMMAND) or self.action.text().replace("&", "")

    @property
    def refusal(self) -> str:
        """Why it cannot be done in the open view now; empty if it can."""
        return refusal_of(self.action) if self.go_first is None else ""


class CommandPalette(Overlay):
    """A search field above the matching commands; arrows move, Enter runs, Esc closes.

    Attributes:
        entries: What it was opened with.
    """

    used = Signal(str)  # `PaletteEntry.key` of the command that was run.

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, name="palette", width=600, top=True)
        present(self, "Dialog", "Command palette")
        self.body.setContentsMargins(theme.INSIDE, theme.SPACE, theme.INSIDE, theme.INSIDE)
        self.body.setSpacing(theme.SPACE)
        roles = dict.fromkeys((Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole), attrgetter("words"))
        labels = "Search commands", "Matching commands"
        self._search = SearchList(self, "palette", labels, "What do you want to do?", roles)
        self.line, self.list = self._search.line, self._search.list
        self.list.setItemDelegate(_EntryCell(self.list))
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._none = layouts.text("No command matches. Try fewer letters.", "secondary")
        self._none.setContentsMargins(theme.INSIDE, theme.SPACE, theme.INSIDE, theme.INSIDE)
        for widget in (self.line, self.list, self._none):
            self.body.addWidget(widget)
        self.entries: list[PaletteEntry] = []
        self._uses: Mapping[str, int] = {}
        self.line.textChanged.connect(self._filter)
        self.list.clicked.connect(lambda _index: self._search.pick())
        self._search.picked.connect(self._do)
        self._search.left.connect(self.close_panel)

    def ask(self, entries: Sequence[PaletteEntry], uses: Mapping[str, int] | None = None) -> None:
        """Open with these commands, the most used first, without hidden ones; refused ones stand last."""
        visible = [entry for entry in entries if entry.action.isVisible()]
        self.entries = [
            entry for entry in visible if entry.action.isEnabled() or entry.go_first is not None or entry.refusal
        ]
        self._uses = uses or {}
        self.line.clear()
        self._filter("")
        self.open(self.line)

    def _filter(self, typed: str) -> None:
        matches = matching(typed, self.entries, self._uses)
        self._search.model.show(matches)
        count = len(matches)
        self.list.setVisible(count > 0)
        self._none.setVisible(count == 0)
        room = self.window().height() // theme.ROW_PX - ROWS_AROUND
        self.list.setFixedHeight(min(count, ROWS_SHOWN, max(1, room)) * theme.ROW_PX + 2)
        self._search.choose(0)
        if self.isVisible():
            self._cover()

    def _do(self, entry: PaletteEntry | None) -> None:
        if entry is not None and entry.refusal:
            return  # the line says why; the palette stays for another one
        self.close_panel()
        if entry is not None:
            self.used.emit(entry.key)
            if entry.go_first is not None:
                entry.go_first()
            # What is on in another view is only looked at there.
            if entry.go_first is None or not entry.action.isChecked():
                entry.action.trigger()


def matching(typed: str, entries: Sequence[PaletteEntry], uses: Mapping[str, int] | None = None) -> list[PaletteEntry]:
    """Return the entries that match the typed letters, best first; all of them if nothing is typed.

    Among commands that match about equally well, the one of the open view and the one used more often come first;
    those that cannot be done now come last.
    British spelling finds what is spelled as in America.
    """
    counts = uses or {}
    typed = re.sub("(?i)(col|neighb)our", r"\1or", typed)
    scored = [
        (None if (fit := _score(typed, entry)) is None else fit + _habit(counts.get(entry.key, 0), entry), index, entry)
        for index, entry in enumerate(entries)
    ]
    ranked = sorted((bool(entry.refusal), -fit, index) for fit, index, entry in scored if fit is not None)
    return [entries[index] for *_, index in ranked]


def _score(typed: str, entry: PaletteEntry) -> float | None:
    """Return how well the best of an entry's names matches; synonyms count a little less than its own words."""
    names = (entry.words, entry.action.text()) if entry.action.property(COMMAND) else (entry.words,)
    fits = ((name, good_score(typed, f"{name} {entry.group}")) for name in names)
    scores = [fit + _whole_name_gain(typed, name) for name, fit in fits if fit is not None]
    others = [fit - 1 for name in entry.synonyms if (fit := _synonym_score(typed, name)) is not None]
    return max([*scores, *others], default=None)


def _synonym_score(typed: str, name: str) -> float | None:
    """Return how well another name matches: best as a whole; in a sentence only letters that stand together count."""
    if len(name) > SENTENCE and typed.strip().casefold() not in name.casefold():
        return None
    fit = good_score(typed, name)
    return None if fit is None else fit + _whole_name_gain(typed, name)


def _whole_name_gain(typed: str, name: str) -> float:
    return WHOLE_NAME if typed.strip().casefold() in (name.casefold(), name.casefold().rpartition(": ")[2]) else 0.0


def _habit(used: int, entry: PaletteEntry) -> float:
    """Return what a command gains by its uses, at most as much as one letter, and by opening or acting on a view."""
    nearness = 0.25 if entry.group == "Go to" else -0.25 if entry.go_first is not None else 0.0
    return min(2.5, 0.75 * math.log2(1 + used)) + nearness


class _EntryCell(QStyledItemDelegate):
    """Text on the left; whether it is on, group and shortcut on the right."""

    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        return QSize(200, theme.ROW_PX)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        entry: PaletteEntry = index.data(ITEM_ROLE)
        chosen = bool(option.state & option.state.__class__.State_Selected)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if chosen:
            theme.fill_with(painter, theme.color("selection"))
            painter.drawRoundedRect(option.rect, theme.RADIUS, theme.RADIUS)
        room = QRect(option.rect).adjusted(theme.INSIDE, 0, -theme.INSIDE, 0)
        state = "on" if entry.action.isChecked() else ""
        about = (state, entry.group, entry.keys or entry.action.shortcut().toString())
        right = entry.refusal or "   ".join(filter(None, about))
        theme.text_pen(painter, theme.SMALL_PX, "selection_text" if chosen else "secondary")
        painter.drawText(room, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, right)
        room.setRight(room.right() - painter.fontMetrics().horizontalAdvance(right) - theme.BETWEEN)
        theme.text_pen(painter, theme.BODY_PX, "secondary" if entry.refusal else "selection_text" if chosen else "text")
        text = painter.fontMetrics().elidedText(entry.words, Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)
        painter.restore()
