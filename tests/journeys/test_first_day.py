"""A user's first day: the real window (offscreen), real trainer processes, real files.

Waits look at the store or at the widgets, never at the clock alone.
"""

import contextlib
import csv
import os
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QAction, QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QDialog, QLabel, QLineEdit, QWidget

from explorer.views import VIEWS
from explorer.window import Window
from tests.nightly import few_plain
from tests.real_window import real_window
from trainer.config.presets import preset
from trainer.scheduling import launch
from trainer.store import RunRow, Workspace

pytestmark = pytest.mark.timeout(1_800)

SMALL = {
    "data": {"train_pairs": 128, "heldout_pairs": 32},
    "model": {"image_size": 32, "image_width": 8, "text_width": 32, "text_layers": 1, "text_heads": 2},
    "optimizer": {"batch_size": 64, "epochs": 4000, "warmup_steps": 10},
    "watching": {"log_every": 1, "evaluate_every": 25, "checkpoint_every": 25, "snapshots": 2},
}
"""What the journeys change in a preset, so that a run goes fast and does not end by itself."""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return a new workspace; none of its trainers outlives the test."""
    from trainer.store import Workspace

    yield tmp_path / "workspace"
    workspace = Workspace(tmp_path / "workspace")
    for run in workspace.runs.all():
        if workspace.is_alive(run.id):
            launch.end(workspace, run.id)
    workspace.close()


@pytest.fixture
def open_window(qapp, folder: Path) -> Iterator[Callable[[], Window]]:
    """Open a window of the workspace, wait until the views of the day are built, and close it at the end."""
    entries = [entry for entry in VIEWS if entry.name in ("runs", "experiments", "map", "classify", "similarity")]
    with contextlib.ExitStack() as opened:

        def make() -> Window:
            folder.mkdir(exist_ok=True)
            return opened.enter_context(real_window(folder, entries))

        yield make


class Person:
    """Operates the window like a user: finds widgets by name, clicks, types, drops, waits."""

    def __init__(self, qtbot, window: Window) -> None:
        self.qtbot, self.window = qtbot, window

    def find(self, kind: type, name: str) -> QWidget | QAction:
        """Return the object with that name, which must exist."""
        found = self.window.findChild(kind, name)
        assert found is not None, f"nothing is called {name}"
        return found

    def click(self, name: str) -> None:
        button = self.find(QAbstractButton, name)
        assert button.isEnabled(), f"{name} cannot be clicked"
        self.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)

    def wait(self, condition: Callable[[], object], seconds: float = 300) -> None:
        self.qtbot.waitUntil(lambda: bool(condition()), timeout=int(1000 * seconds))

    def row(self, name: str) -> RunRow:
        return next(row for row in self.window.services.jobs.runs if row.name == name)

    def start_run(self, name: str, preset: str) -> None:
        """Fill in the New run dialog and start the run with Enter."""
        self.find(QAction, "run-new").trigger()
        sheet = self.find(QDialog, "new-run")
        presets = sheet.preset
        presets.setCurrentIndex(presets.findData(preset))
        presets.activated.emit(presets.currentIndex())
        sheet.name_field.setText(name)
        for section, values in SMALL.items():
            for field, value in values.items():
                sheet.section(section).form.editor(field).set_value(value)
        # Qt ignores Enter for the default button of a dialog that is not open yet.
        self.wait(lambda: sheet.isVisible() and sheet.start.isEnabled(), 10)
        self.qtbot.keyClick(sheet.name_field, Qt.Key.Key_Return)
        self.wait(lambda: any(row.name == name for row in self.window.services.jobs.runs), 20)

    def choose(self, name: str) -> None:
        """Select the run's row in the table."""
        self.window.navigation.go_to("runs")
        view = self.window.pages.views["runs"]
        view.table.choose([self.row(name).id])

    def drop(self, *files: Path) -> None:
        mime = QMimeData()
        mime.setUrls([QUrl.fromLocalFile(str(file)) for file in files])
        where, copy = QPointF(400, 300), Qt.DropAction.CopyAction
        left, plain = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        enter = QDragEnterEvent(where.toPoint(), copy, mime, left, plain)
        QGuiApplication.sendEvent(self.window, enter)
        assert enter.isAccepted()
        QGuiApplication.sendEvent(self.window.drop_handler.overlay, QDropEvent(where, copy, mime, left, plain))

    def export(self, suffix: str, file: Path) -> None:
        """Choose the export of the open view and answer its dialog."""
        view = self.window.pages.open_view
        self.click("viewExport")
        dialog = self.find(QDialog, "exportDialog")
        dialog.take_file(file)
        assert dialog.suffix == suffix, f"{view.title} has no such format"
        self.qtbot.keyClick(dialog, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
        self.wait(file.is_file, 120)
        self.wait(lambda: not self.window.services.exporter.running, 60)


def test_a_grid_from_the_table_is_an_experiment_with_its_own_page(qtbot, open_window, folder: Path):
    from trainer.scheduling import queue

    workspace = Workspace(folder)
    queue.choose_slots(workspace, held=True)
    workspace.runs.create(replace(preset("cloob-scenes"), name="base"), status="stopped")
    workspace.close()
    person = Person(qtbot, open_window())
    person.wait(lambda: person.window.services.jobs.runs, 20)
    person.choose("base")
    person.window.pages.views["runs"].actions_of_runs["repeat"].trigger()
    person.wait(lambda: person.window.findChild(QDialog, "repeat-sheet"), 20)
    qtbot.keyClicks(person.find(QLineEdit, "repeat-beta"), "4, 16")
    dialog = person.find(QDialog, "repeat-sheet")
    qtbot.mouseClick(dialog.confirm, Qt.MouseButton.LeftButton)
    person.wait(lambda: len(person.window.services.jobs.runs) == 3, 20)
    person.window.navigation.go_to("experiments")
    view = person.window.pages.views["experiments"]
    person.wait(lambda: view.chosen is not None and view.chosen.name == "base", 20)
    assert view.chosen.state == "going"
    arms = {run.arm for run in person.window.services.jobs.runs if run.experiment == "base"}
    assert arms == {"beta 4", "beta 16"}


EXPORTED = (("similarity", "csv"), ("map", "png"), ("runs", "svg"), ("classify", "pdf"))


@few_plain(1, "exported", [EXPORTED[:1], EXPORTED])
def test_train_stop_close_reopen_resume_compare_classify_export(
    qtbot, open_window, folder: Path, tmp_path: Path, exported: tuple[tuple[str, str], ...]
):
    person = Person(qtbot, open_window())
    jobs = person.window.services.jobs

    # Start a run from the button, and see the curve move.
    person.start_run("first clip", "clip-scenes")
    person.wait(lambda: person.row("first clip").status == "running" and person.row("first clip").step > 8)
    person.choose("first clip")
    curves = person.window.pages.views["runs"].curves
    person.wait(lambda: drawn_points(curves) > 5, 30)
    before = drawn_points(curves)
    person.wait(lambda: drawn_points(curves) > before, 30)

    # Stop: it ends within a step and leaves a checkpoint.
    person.click("stop-button")
    person.wait(lambda: person.row("first clip").status == "stopped", 30)
    stopped_at = person.row("first clip").step
    workspace = person.window.services.context.workspace
    assert workspace.results.checkpoints(person.row("first clip").id)[-1].step == stopped_at

    # Resume, close the window while it trains, and find it again.
    person.click("resume-button")
    person.wait(lambda: person.row("first clip").step > stopped_at)
    run = person.row("first clip").id
    person.window.close()
    assert jobs is not None
    person = Person(qtbot, open_window())
    workspace = person.window.services.context.workspace
    assert workspace.is_alive(run)
    person.wait(lambda: person.window.services.jobs.run(run), 20)
    assert person.row("first clip").status == "running"
    seen = person.row("first clip").step
    person.wait(lambda: person.row("first clip").step > seen, 30)
    person.choose("first clip")
    person.click("stop-button")
    person.wait(lambda: person.row("first clip").status == "stopped", 30)
    steps = workspace.results.series(run, "train/loss")[0].tolist()
    assert steps == sorted(set(steps)), "a step was logged twice"
    assert steps == list(range(1, steps[-1] + 1)), "the curve has a gap"

    # A second run, with the other objective.
    person.start_run("first cloob", "cloob-scenes")
    person.wait(lambda: person.row("first cloob").status == "running" and person.row("first cloob").step > 8)
    person.choose("first cloob")
    person.click("stop-button")
    person.wait(lambda: person.row("first cloob").status == "stopped", 30)
    selection = person.window.selection
    selection.run_a, selection.run_b = run, person.row("first cloob").id

    # Drop an image: both models answer side by side.
    picture = sorted(folder.glob("data/scenes-*/renderings/*.jpg"))[0]
    person.drop(picture)
    classify = person.window.pages.views["classify"]
    person.wait(lambda: person.window.pages.open_view is classify, 10)
    person.wait(lambda: all(classify.asking.prediction(str(picture), r) for r in selection.runs), 120)
    shares = [classify.asking.prediction(str(picture), r).probabilities for r in selection.runs]
    assert all(abs(sum(map(float, s)) - 1) < 1e-4 for s in shares)
    assert [column.title for column in classify.bars.columns] == ["first clip", "first cloob"]

    # Look at both spaces.
    person.window.navigation.go_to("similarity")
    person.wait(lambda: person.window.pages.open_view.command() is not None, 60)

    # Export views, each in another format, and open the files.
    out = tmp_path / "out"
    out.mkdir()
    for view, suffix in exported:
        person.window.navigation.go_to(view)
        if view == "runs":
            person.choose("first clip")
        person.wait(lambda: person.window.pages.open_view.command() is not None, 60)
        person.export(suffix, out / f"{view}.{suffix}")
    assert len(list(csv.reader((out / "similarity.csv").open(encoding="utf-8")))) > 10
    if exported == EXPORTED:
        assert Image.open(out / "map.png").size[0] > 600
        assert ET.parse(out / "runs.svg").getroot().tag.endswith("svg")
        assert (out / "classify.pdf").read_bytes().startswith(b"%PDF")

    # The copied command works when it is pasted.
    person.window.navigation.go_to("similarity")
    person.find(QAction, "copyCommand").trigger()
    line = QGuiApplication.clipboard().text()
    done = subprocess.run(
        line, shell=True, cwd=out, capture_output=True, text=True, check=False, env=os.environ | {"UV_NO_SYNC": "1"}
    )
    assert done.returncode == 0, done.stderr
    assert list(out.glob("similarity-*.svg"))
    assert not [label.text() for label in person.window.findChildren(QLabel, "bannerMessage") if "bug" in label.text()]


def drawn_points(curves: QWidget) -> int:
    """Return the points of the longest curve in pyqtgraph."""
    import pyqtgraph as pg

    items = [item for plot in curves.findChildren(pg.PlotWidget) for item in plot.listDataItems()]
    return max(
        (len(item.getOriginalDataset()[0]) for item in items if item.getOriginalDataset()[0] is not None), default=0
    )
