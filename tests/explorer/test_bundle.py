"""The evidence bundle from the window: figures, progress, cancel, and results."""

import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from explorer.export import Export, Exporter
from explorer.state.settings import Settings
from explorer.widgets.banner import Banner
from explorer.widgets.progress_row import ProgressRow
from explorer.window.exports import Exports, drawings
from tests.explorer.widgets import show_widget
from tests.trainer.conftest import fill
from trainer.__main__ import main
from trainer.cli import bundle
from trainer.distribution.bundle_files import USUAL
from trainer.store import Workspace

SCRIPT = """
import sys, time, pathlib
from trainer.cli import _progress
_progress.EVERY_JSON_S = 0.0
words = sys.argv[1:]
out, figures = words[words.index("--out") + 1], words[words.index("--figures") + 1]
_progress.report(0.1, "Rendering 1 of 2: map")
if "hang" in out:
    time.sleep(600)
pathlib.Path(out).write_text(pathlib.Path(figures).read_text())
print(out, flush=True)
"""


@pytest.fixture
def exports(qtbot: QtBot, dressed: QApplication, tmp_path: Path) -> Iterator[Exports]:
    script = tmp_path / "bundle.py"
    script.write_text(SCRIPT, encoding="utf-8")
    window = show_widget(qtbot, QWidget(), 800, 600)
    exporter = Exporter(tmp_path, window, program=(sys.executable, str(script)))
    made = Exports(window, exporter, Settings(tmp_path), Banner(window), ProgressRow("writing", window), tmp_path)
    yield made
    exporter.close()


def view(command: list[str] | None) -> SimpleNamespace:
    return SimpleNamespace(command=lambda: command)


def test_only_what_draws_goes_into_a_bundle() -> None:
    shown = [view(["export", "map"]), view(None), view(["runs", "delete", "1"]), view(["saliency", "1"])]
    assert drawings(shown) == [["export", "map"], ["saliency", "1"]]
    assert {command[0] for command in drawings(shown)} <= set(bundle.DRAWING)


def test_a_bundle_tells_its_progress_and_where_it_is(qtbot: QtBot, exports: Exports, tmp_path: Path) -> None:
    banner, told = exports.banner, []
    exports.exporter.progressed.connect(lambda _export, *progress: told.append(progress))
    exports.write_bundle([["export", "map"]], ["bundle", "--runs", "1", "2"], tmp_path / "e.zip")
    (figures,) = exports.bundles.values()
    assert banner.isHidden(), "an export of minutes covers nothing"
    assert exports.writing.busy
    qtbot.waitUntil(lambda: "Saved e.zip" in banner.message.text())
    assert told == [(0.1, "Rendering 1 of 2: map")], "the name of the file is no progress"
    assert (banner.isVisible(), exports.writing.busy) == (True, False)
    assert json.loads((tmp_path / "e.zip").read_text()) == [["export", "map"]]
    assert not figures.exists()
    assert not exports.bundles


def test_a_bundle_says_which_figures_it_lacks_and_why(exports: Exports, tmp_path: Path) -> None:
    (folder := tmp_path / "evidence").mkdir()
    missing = [{"kind": "map", "problem": "Run B has no snapshot."}, {"kind": "report", "problem": "No evaluation."}]
    facts = {"figures": [{"kind": "curves"}] * 4, "not_drawn": missing}
    (folder / "bundle.json").write_text(json.dumps(facts), encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "evidence.zip", "w") as archive:
        archive.write(folder / "bundle.json", "bundle.json")
    for file in (folder, tmp_path / "evidence.zip"):
        exports.exporter.done.emit(Export(("bundle", "--runs", "1", "2"), file))
        assert "4 of 5 figures. Map left out: Run B has no snapshot." in exports.banner.next.text()


def test_cancel_ends_the_process_and_nothing_is_written(qtbot: QtBot, exports: Exports, tmp_path: Path) -> None:
    banner = exports.banner
    exports.write_bundle([["export", "map"]], ["bundle", "--runs", "1"], tmp_path / "hang.zip")
    qtbot.waitUntil(lambda: exports.writing.note.toolTip() == "hang.zip: Rendering 1 of 2: map")
    qtbot.waitUntil(lambda: exports.writing.note.text() == "Exporting ZIP…")
    qtbot.waitUntil(exports.writing.isVisible)
    qtbot.waitUntil(lambda: exports.writing.bar.value() == 100)
    QTest.mouseClick(exports.writing.button, Qt.MouseButton.LeftButton)
    assert "cancelled" in banner.message.text()
    assert not exports.exporter.running
    qtbot.wait(100)
    assert not (tmp_path / "hang.zip").exists()


def test_without_runs_it_says_what_to_choose(exports: Exports) -> None:
    exports.ask_bundle([view(["export", "toy-batch"])], [])
    assert "Select a run" in exports.banner.message.text()


def test_a_bundle_of_an_experiment_holds_its_verdict_and_has_its_name(
    exports: Exports, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple] = []
    dialog = SimpleNamespace(finished=SimpleNamespace(connect=lambda _: None))
    monkeypatch.setattr(exports, "_open", lambda *arguments: opened.append(arguments) or dialog)
    rows = [
        SimpleNamespace(id=n, experiment="the duel", short_name=f"CLIP s{n}", deleted_at=None, status="running")
        for n in range(5)
    ]
    own = SimpleNamespace(id=1, experiment="", short_name="own", deleted_at=None, status="finished")
    exports.ask_bundle([], [0, 1, 2, 3], rows)
    exports.ask_bundle([], [0, 1], [*rows[:1], own])
    (_, _, _, stem, *_, names), (*_, others) = opened
    assert stem == "evidence-the_duel"
    assert names["experiment-verdict"] == "Home: Verdict"
    assert "experiment-verdict" not in others


def test_the_page_of_a_bundle_is_of_the_runs_whose_curves_are_drawn(
    exports: Exports, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    workspace = Workspace(tmp_path / "runs")
    fill(workspace, pairs=40, names=("drawn first", "drawn second"))
    fill(workspace, pairs=40, names=("drawn earlier",), steps=(20,))
    fill(workspace, pairs=40, names=("hidden",))
    rows = workspace.runs.all()
    commands: list[list[str]] = []
    dialog = SimpleNamespace(finished=SimpleNamespace(connect=lambda _: None))
    monkeypatch.setattr(exports, "_open", lambda *of: commands.append(of[2]("zip")) or dialog)
    shown = SimpleNamespace(command=lambda: ["export", "curves", "--runs", "1", "2", "3"], filter_words="")
    shown.context = SimpleNamespace(workspace=workspace, background=SimpleNamespace(run=lambda *_, **__: None))
    exports.ask_bundle([shown], [1, 2], rows)
    figures, out = tmp_path / "figures.json", tmp_path / "b"
    figures.write_text(json.dumps(exports._figures), encoding="utf-8")
    where = ["--figures", str(figures), "--out", str(out), "--workspace", str(workspace.folder)]
    assert main([*commands[0], "--without", *(kind for kind in USUAL if kind != "curves"), *where]) == 0
    assert json.loads((out / "bundle.json").read_text())["not_drawn"] == []
    page = (out / "report.html").read_text(encoding="utf-8")
    assert [name for row in rows if (name := row.short_name) in page] == [row.short_name for row in rows[:3]]
    assert "--runs 1 2 3 " in (out / "commands.sh").read_text(encoding="utf-8")
