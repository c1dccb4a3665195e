"""The Probe strip view: probes are typed, dropped, pinned in the inspector, shown and removed."""

from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from explorer.views.probes import ProbesView
from tests.explorer.widgets import show_widget
from trainer.charts.probes import MOST, PinnedProbe, pin, pinned
from trainer.store import read_snapshot


def shown(view: ProbesView) -> list[str]:
    return [chip.toolTip().removesuffix(": click to remove") for chip in view.chips if chip.isVisibleTo(view)]


def test_probes_are_pinned_shown_and_removed(
    qtbot: QtBot, make_context: Any, two_runs: tuple[int, int], tmp_path: Path
):
    context = make_context()
    context.selection.select_runs(*two_runs)
    view = show_widget(qtbot, ProbesView(context), 1200, 800)
    qtbot.waitUntil(lambda: view.pane.area.findChild(object, "stateButton") is not None or not context.background.busy)
    snapshot = read_snapshot(context.workspace.results.snapshots(two_runs[0])[0].folder)
    caption, picture = snapshot.items.caption[0], snapshot.items.path[1]
    QTest.keyClicks(view.line, f"  {caption} ")
    QTest.keyClick(view.line, Qt.Key.Key_Return)
    view.take([picture])
    qtbot.waitUntil(lambda: pinned(context.workspace) == (PinnedProbe("text", caption), PinnedProbe("image", picture)))
    assert shown(view) == [caption, picture]
    qtbot.waitUntil(lambda: view.pane.answer is not None and not view.busy)
    assert {frame.run for frame in view.pane.answer.data.frames} == {*two_runs}
    assert all(len(hits.rows) for frame in view.pane.answer.data.frames for hits in frame.hits)
    command = view.command()
    assert command[:2] == ["export", "probe-strip"]
    assert caption in command
    refused: list[str] = []
    view.failed.connect(lambda words, _next: refused.append(words))
    view.pin(PinnedProbe("text", str(number)) for number in range(MOST))
    assert refused == ["At most 10 probes can be pinned."]
    view.chips[0].click()
    qtbot.waitUntil(lambda: pinned(context.workspace) == (PinnedProbe("image", picture),))
    assert shown(view) == [picture]
    pin(context.workspace, [PinnedProbe("text", "of the inspector")])
    context.selection.facts_changed.emit()
    qtbot.waitUntil(lambda: shown(view) == [picture, "of the inspector"])
    for _ in range(2):
        view.chips[0].click()
    qtbot.waitUntil(lambda: pinned(context.workspace) == () and not context.background.busy)
    assert view.command() is None
