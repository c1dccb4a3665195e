"""Untrusted captions, labels, columns and names are plain text in the window, never HTML."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from corpus.words import fill
from PySide6.QtCore import QModelIndex, QPoint
from PySide6.QtGui import Qt, QTextDocument
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QGraphicsTextItem,
    QGraphicsView,
    QLabel,
    QTextEdit,
    QToolTip,
    QWidget,
)

from explorer.views import VIEWS
from explorer.widgets.truth_line import ADD_SEEDS, EVALUATE, TruthLine
from explorer.window import Window
from tests.real_window import real_window
from trainer.store import Workspace

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

FEW = ("runs", "similarity", "inspect")


@pytest.fixture
def window(qtbot, tmp_path: Path, faults) -> Iterator[Window]:
    """Return the real window on a workspace of such texts, with both runs selected; no model is opened in advance."""
    folder = tmp_path / "workspace"
    workspace = Workspace(folder)
    fill(workspace, tmp_path / "pictures")
    workspace.close()
    entries = [entry for entry in VIEWS if faults.whole or entry.name in FEW]
    with real_window(folder, entries, size=(1280, 800), hooked=False) as made:
        qtbot.waitUntil(lambda: len(made.services.jobs.runs) == 2, timeout=30_000)
        made.selection.select_runs(1, 2)
        yield made


def test_no_markup_is_alive_in_the_window(window: Window, faults, qtbot) -> None:
    places = [place for place in VIEWS if faults.whole or place.name in FEW]
    marked, live = 0, {}
    for place in places:
        window.navigation.go_to(place.name)
        window.selection.pairs = range(15, 26)
        qtbot.wait(1_000)
        for shown, alive_ in (*labels(window), *documents(window), *tips(window)):
            marked += 1
            if alive_:
                live.setdefault(place.name, shown)
    QToolTip.hideText()
    faults.row(12, "markup in captions is shown in a view", "as words, 0 HTML", len(places), len(places) - len(live))
    assert marked > 5, "no caption with markup was shown anywhere"
    assert not live


def is_markup(text: str) -> bool:
    return any(part in text for part in ("<b>", "<img", "<script", "<table", "<a "))


def labels(window: QWidget) -> Iterator[tuple[str, bool]]:
    """Yield (text, whether it is shown as HTML) of every label with markup, or that could show some."""
    for label in window.findChildren(QLabel):
        plain = label.textFormat() == Qt.TextFormat.PlainText or label.objectName() == "curve-readout"
        plain = plain or (isinstance(label, TruthLine) and _is_escaped(label))
        if is_markup(label.text()) or (label.isVisible() and not plain):
            yield f"label {label.text()[:60]!r} {label.textFormat()}", not plain


def _is_escaped(line: TruthLine) -> bool:
    """Return whether the line, which holds links of its own, shows every sign of its text."""
    document = QTextDocument()
    document.setHtml(line.text())
    text = document.toPlainText().removesuffix(ADD_SEEDS).removesuffix(EVALUATE).rstrip("\u00a0 ")
    return text == line.said and "<img" not in document.toHtml()


def documents(window: QWidget) -> Iterator[tuple[str, bool]]:
    """Yield the same for editors and texts in scenes."""
    for editor in window.findChildren(QTextEdit):
        body = editor.toHtml().partition("<body")[2]
        yield f"text {editor.toPlainText()[:60]!r}", "<img" in body or "<table" in body
    for view in window.findChildren(QGraphicsView):
        for item in view.scene().items() if view.scene() else ():
            if isinstance(item, QGraphicsTextItem) and (is_markup(item.toPlainText()) or "<img" in item.toHtml()):
                yield f"item {item.toPlainText()[:60]!r}", "<img" in item.toHtml()


def tips(window: QWidget) -> Iterator[tuple[str, bool]]:
    """Yield the same for tool tips, each actually shown."""
    words = {widget.toolTip() for widget in window.findChildren(QWidget)}
    for table in window.findChildren(QAbstractItemView):
        model = table.model()
        for row in range(min(30, model.rowCount(QModelIndex())) if model is not None else 0):
            told = (model.index(row, column).data(Qt.ItemDataRole.ToolTipRole) for column in range(2))
            words |= {tip for tip in told if isinstance(tip, str)}
    for tip in sorted(filter(Qt.mightBeRichText, words)):
        QToolTip.showText(QPoint(5, 5), tip, window)
        there = [w for w in QApplication.topLevelWidgets() if w.inherits("QTipLabel") and w.isVisible()]
        yield f"tip {tip[:60]!r}", not there or any(w.textFormat() != Qt.TextFormat.PlainText for w in there)
