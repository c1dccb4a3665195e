"""The import dialog: real drops on the real window, read by the real process; keyboard, cancel, refusals."""

from __future__ import annotations

import csv
import dataclasses
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from PIL import Image
from PySide6.QtCore import QMimeData, QObject, QPointF, Qt, QTimer, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QComboBox, QLabel, QListView, QPushButton, QTabWidget, QWidget
from pytestqt.qtbot import QtBot

from explorer.event_loop.background import Background
from explorer.import_sheet import summary_text
from explorer.import_sheet.both_row import BothRow
from explorer.import_sheet.report import ReportTable
from explorer.import_sheet.result_tabs import ResultTabs
from explorer.import_sheet.sheet import ImportSheet, survey_result
from explorer.intents import OpenImport, OpenNewRun, ShowRuns
from explorer.model_client.one_shot import WAITS
from explorer.views import VIEWS
from explorer.views.first_start import FirstStart
from explorer.views.runs import RunsView
from explorer.views.runs.new_run import NewRun, on_data
from explorer.widgets.disclosure_button import DisclosureButton
from explorer.widgets.state_area import StatePage
from explorer.window import Window
from explorer.window.open_model_sheet import OpenModelSheet
from tests.explorer.widgets import add_widget, show_widget
from tests.nightly import few_plain, nightly_except
from trainer import config
from trainer.__main__ import main
from trainer.analysis.quantities import about
from trainer.config import presets
from trainer.data.survey import survey
from trainer.distribution.published_models import FIRST
from trainer.experiments.held_out import few_captions
from trainer.messages import Failure, ReadData
from trainer.scheduling import queue
from trainer.scheduling.paces import Pace, estimated_steps
from trainer.store import RunLog, Workspace

VIEW_OF = {view.name: view for view in VIEWS}
PLACES = tuple(place for place in VIEWS if place.name in ("runs", "classify"))
CAPTION = "<b>gray</b> & <img src=x>"


def test_every_kind_of_data_on_the_disk_can_be_shown() -> None:
    assert {*survey_result.KINDS} == {*get_args(config.Data)} - {config.Scenes}


@pytest.mark.parametrize(
    ("data", "label"),
    [
        (config.ClassFolder(path="pets"), "Train on these classes anyway"),
        (config.Folder(path="boxes"), "Train on these texts anyway"),
        (config.Table(path="hub/en/train-*.parquet"), "Read en"),
    ],
)
def test_the_button_that_keeps_what_was_recognized_says_what_that_is(data: config.Data, label: str) -> None:
    assert summary_text.keep_label(data) == label


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return 24 valid pairs with HTML-like captions, one damaged, one with alpha, one without caption."""
    from PIL import Image

    root = tmp_path / "pictures"
    root.mkdir()
    for number in range(24):
        Image.new("RGB", (24, 16), (number, number, number)).save(root / f"{number:02}.png")
        (root / f"{number:02}.txt").write_text(f"{CAPTION} {number}")
    (root / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    (root / "broken.txt").write_text("a broken one")
    Image.new("RGBA", (9, 9), (255, 0, 0, 9)).save(root / "thin.png")
    (root / "thin.txt").write_text("a thin red")
    Image.new("RGB", (9, 9)).save(root / "silent.png")
    return root


@pytest.fixture
def table(folder: Path, tmp_path: Path) -> Path:
    file = tmp_path / "pairs.csv"
    file.write_text("bild;satz\n" + "".join(f"{folder}/{n:02}.png;picture-{n}\n" for n in range(24)), encoding="utf-8")
    return file


@pytest.fixture
def window(window_of, tmp_path: Path) -> Window:
    (tmp_path / "workspace").mkdir()
    return window_of(tmp_path / "workspace", PLACES)


@pytest.fixture
def home(window_of, tmp_path: Path) -> Window:
    (tmp_path / "workspace").mkdir()
    return window_of(tmp_path / "workspace", (VIEW_OF["experiments"], *PLACES))


def _drop(window: Window, *paths: Path) -> str:
    """Drag over the window and drop; return the overlay's text meanwhile."""
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    where, keys = QPointF(window.rect().center()), Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(where.toPoint(), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, keys)
    QApplication.sendEvent(window, enter)
    assert enter.isAccepted()
    said = window.drop_handler.overlay.words
    drop = QDropEvent(where, Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, keys)
    QApplication.sendEvent(window.drop_handler.overlay, drop)
    return said


def _sheet(window: Window) -> ImportSheet:
    return next(sheet for sheet in window.findChildren(ImportSheet) if sheet.isVisible())


def _button(widget: QWidget, name: str) -> QPushButton:
    found = widget.findChild(QPushButton, name)
    assert isinstance(found, QPushButton)
    return found


def words(sheet: ImportSheet) -> str:
    state = sheet.findChild(StatePage)
    assert isinstance(state, StatePage)
    return f"{state.title.text()} {state.text.text()}"


# -- the real process ------------------------------------------------------------------------------------------------


def test_a_dropped_folder_is_read_shown_and_trained_on(
    window: Window, qtbot: QtBot, folder: Path, tmp_path: Path
) -> None:
    assert _drop(window, folder) == "Drop to import these pairs"
    sheet = _sheet(window)
    assert not sheet.start.isEnabled()
    qtbot.waitUntil(lambda: sheet.reading is not None and sheet.reading.opened, timeout=90_000)
    assert sheet.focusWidget() is sheet.start, "Enter goes on"
    assert sheet.note.text().startswith("25 pairs found, 1 with a warning; 2 items not used.")
    held, whole = sheet.reading.pairs["heldout"], sum(sheet.reading.pairs.values())
    notes = [label.text() for label in sheet.options.form.findChildren(QLabel)]
    assert any(f"{held} of {whole} pairs" in note for note in notes)
    assert "about 10 % of the pictures" in sheet.split.text()
    assert not any("%" in note for note in notes), "one share in the sheet, that of the field"
    assert sheet.grid.pairs.rowCount() == 10
    captions = [sheet.grid.pairs.index(row).data() for row in range(10)]
    assert captions[0].startswith(CAPTION)
    # Tips are plain texts by the stylesheet: what looks like a tag stays as it is.
    assert CAPTION in sheet.grid.pairs.index(0).data(Qt.ItemDataRole.ToolTipRole)
    first = sheet.grid.pairs.index(0)
    qtbot.waitUntil(lambda: first.data(Qt.ItemDataRole.DecorationRole) is not None)
    tabs = sheet.findChild(QTabWidget, "import-tabs")
    assert tabs.tabText(1) == "Import report (3)"
    tabs.setCurrentIndex(1)
    lines = sheet.report.table.report
    shown = {lines.index(row, 0).data(): lines.index(row, 1).data() for row in range(lines.rowCount())}
    assert shown == {"silent.png": "Not used", "broken.png": "Not used", "thin.png": "Used with a warning"}
    only = sheet.findChild(QComboBox, "import-only")
    only.setCurrentIndex(2)
    assert [lines.index(row, 0).data() for row in range(lines.rowCount())] == ["thin.png"]
    sheet.report.write(tmp_path / "report.csv")
    qtbot.waitUntil(lambda: "3 lines written" in sheet.report.outcome.text())
    with (tmp_path / "report.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.reader(file))) == 4, "all of them, whatever is shown"
    sheet.cost.size_box.set_value(32)
    qtbot.mouseClick(sheet.start, Qt.MouseButton.LeftButton)
    form = window.findChild(NewRun)
    assert isinstance(form, NewRun)
    run = form.run()
    assert run.data == config.Folder(path=str(folder))
    assert run.model.image_size == 32
    assert run.name == "clip-pictures"
    form.preset.setCurrentIndex(form.preset.findData("cloob-folder"))
    form.preset.activated.emit(form.preset.currentIndex())
    assert form.run().data == run.data, "the data stay whichever preset is chosen"
    assert form.run().objective.kind == "cloob"
    qtbot.waitUntil(form.isVisible)  # it is opened in a later turn of the event loop
    qtbot.keyClick(form, Qt.Key.Key_Escape)


def test_columns_are_chosen_by_keyboard_and_read_again(window: Window, qtbot: QtBot, table: Path) -> None:
    _drop(window, table)
    sheet = _sheet(window)
    with qtbot.waitSignal(sheet.shown, timeout=90_000):
        pass
    assert "Which columns?" in words(sheet)
    assert "'bild', 'satz'" in words(sheet)
    image, caption = (sheet.options.form.editor(name) for name in ("image_column", "caption_column"))
    assert image.currentText() == "bild", "its values look like paths of pictures"
    assert not image.property("invalid")
    assert caption.property("invalid")
    assert not sheet.start.isEnabled()
    assert [image.itemText(place) for place in range(image.count())] == ["bild", "satz"]
    assert QApplication.focusWidget() in (caption, caption.lineEdit())
    for _ in range(2):
        qtbot.keyClick(caption, Qt.Key.Key_Down)
    assert (image.currentText(), caption.currentText()) == ("bild", "satz")
    qtbot.waitUntil(lambda: sheet.reading is not None and sheet.reading.opened, timeout=90_000)
    assert sheet.note.text().startswith("24 pairs found.")
    assert sheet.start.isEnabled()
    assert not image.property("invalid")
    qtbot.keyClick(sheet, Qt.Key.Key_Escape)
    assert sheet.isHidden()


# -- a process that answers at once ----------------------------------------------------------------------------------


def test_reading_goes_on_in_the_background_and_is_shown_again(window: Window, qtbot: QtBot, folder: Path) -> None:
    _drop(window, folder)
    sheet = _sheet(window)
    qtbot.mouseClick(sheet.foot.later, Qt.MouseButton.LeftButton)
    assert sheet.isHidden()
    jobs = window.job_center.jobs
    qtbot.waitUntil(lambda: sheet.reading is not None and sheet.reading.opened, timeout=90_000)
    qtbot.waitUntil(lambda: not jobs.active)
    assert ("Import", folder.name, "finished") in [(job.kind, job.title, job.state) for job in jobs.past]
    window.job_panel.toggle()
    qtbot.mouseClick(next(iter(window.job_panel.rows.values())).button, Qt.MouseButton.LeftButton)
    assert sheet.isVisible()
    assert sheet.start.isEnabled()
    assert not sheet.foot.later.isVisible()


def test_the_footer_stays_on_a_small_screen(sheet: ImportSheet, qtbot: QtBot) -> None:
    _opened(sheet, qtbot)
    for button in sheet.findChildren(DisclosureButton):
        button.click()
    assert sheet.minimumSizeHint().height() <= 520
    sheet.resize(760, 520)
    assert sheet.rect().contains(sheet.start.mapTo(sheet, sheet.start.rect().bottomRight()))


def test_reading_is_cancelled_from_the_jobs(open_sheet, qtbot: QtBot, folder: Path, client: FakeClient) -> None:
    client.holding, client.failing = True, Failure("cancelled", "Cancelled.")
    sheet = open_sheet(folder)
    client.waiting[0]()
    assert "cancelled" in words(sheet)
    assert not sheet.working.busy


class FakeClient(QObject):
    """Responds with the trainer's own function in this process; or fails, or never responds."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.asked: list[ReadData] = []
        self.cancelled: list[int] = []
        self.waiting: list[Callable[[], None]] = []
        self.told: list[Callable[[float, str], None]] = []
        self.failing: Failure | None = None
        self.holding = False

    def ask(self, question: ReadData, *, done: Any, failed: Any, progress: Any, owner: Any) -> int:
        from trainer.data.survey import answer_read_data
        from trainer.errors import UserError

        def reply() -> None:
            progress(0.5, "half")
            try:
                done(answer_read_data(question, self.folder, lambda share, note: None))
            except UserError as problem:
                failed(Failure("unreadable", str(problem)))

        self.asked.append(question)
        self.told.append(progress)
        failing = self.failing
        act = reply if failing is None else lambda: failed(failing)
        if self.holding:
            self.waiting.append(act)
        else:
            QTimer.singleShot(0, self, act)
        return len(self.asked)

    def cancel(self, number: int) -> None:
        self.cancelled.append(number)


@pytest.fixture
def client(tmp_path: Path) -> FakeClient:
    return FakeClient(tmp_path / "workspace")


@pytest.fixture
def open_sheet(
    dressed: QApplication, background: Background, qtbot: QtBot, client: FakeClient
) -> Callable[[str], ImportSheet]:
    def open_one(path: Path | str = "", more_pairs: tuple[int, int] | None = None) -> ImportSheet:
        made = ImportSheet(client.folder, client, background, path=str(path), more_pairs=more_pairs)  # type: ignore[arg-type]
        qtbot.addWidget(made)
        made.show()
        return made

    return open_one


@pytest.fixture
def sheet(open_sheet, folder: Path) -> ImportSheet:
    return open_sheet(folder)


def _opened(sheet: ImportSheet, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: sheet.reading is not None and sheet.reading.opened and sheet.pending is None)


def test_the_keyboard_opens_the_sheet_and_reads_what_is_typed(open_sheet, qtbot: QtBot, folder: Path) -> None:
    sheet = open_sheet()
    assert "Which pairs?" in words(sheet)
    assert sheet.focusWidget() is sheet.path
    qtbot.keyClicks(sheet.path, str(folder))
    qtbot.keyClick(sheet.path, Qt.Key.Key_Return)
    assert sheet.isVisible(), "Enter reads before it trains"
    _opened(sheet, qtbot)
    with qtbot.waitSignal(sheet.requested) as sent:
        qtbot.keyClick(sheet, Qt.Key.Key_Return)
    (intent,) = sent.args
    assert (intent.data.path, intent.image_size) == (str(folder), 64)
    assert intent.pairs == sheet.reading.pairs["train"]


def test_leaving_the_field_reads_what_is_typed(sheet: ImportSheet, qtbot: QtBot, folder: Path, client) -> None:
    _opened(sheet, qtbot)
    asked = len(client.asked)
    qtbot.keyClick(sheet.path, Qt.Key.Key_Tab)
    assert len(client.asked) == asked, "the path is the same"
    told = "No split is stated: about 10 % of the pictures are held out, chosen by their paths."
    assert sheet.split.text().endswith(told)
    other = folder.with_name("other")
    shutil.copytree(folder, other / "train")
    (folder.parent / "other" / "val").mkdir()
    for name in ("00.png", "00.txt"):
        shutil.copy(folder / name, other / "val" / name)
    sheet.path.setFocus()
    sheet.path.selectAll()
    qtbot.keyClicks(sheet.path, str(other))
    assert not sheet.start.isEnabled()
    qtbot.keyClick(sheet.path, Qt.Key.Key_Tab)
    assert sheet.reading is None, "no pairs of the first folder stay below the path of the other"
    _opened(sheet, qtbot)
    assert sheet.reading.pairs == {"train": 25, "heldout": 1}
    assert sheet.split.text().endswith("The folders 'train' and 'val' state the split: 'val' is held out.")


def test_the_key_and_the_palette_know_it(window: Window, qtbot: QtBot) -> None:
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    both = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    qtbot.keyClick(window, Qt.Key.Key_O, both)
    sheet = _sheet(window)
    assert "Which pairs?" in words(sheet)
    assert sheet.start.text() == "Train both on these pairs", "the dialog of Home"
    qtbot.keyClick(sheet, Qt.Key.Key_Escape)
    window.menus.show_palette()
    assert any("Import data" in action.text() for action in window.actions())
    window.palette_panel.close_panel()


def _first_start(window: Window, qtbot: QtBot) -> FirstStart:
    """Return Home of a workspace without runs, once it is known that there is none."""
    start = window.navigation.view("experiments").findChild(FirstStart)
    qtbot.waitUntil(start.ways["pairs"].isVisible, timeout=90_000)
    return start


def test_clip_and_cloob_are_compared_on_data_from_the_first_start(
    home: Window, qtbot: QtBot, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "due", lambda *_: [])  # what waits does not start
    start = _first_start(home, qtbot)
    assert [way.accessibleName() for way in start.ways.values()] == [
        "Try it on drawn scenes", "Use my pairs…", "Open a pretrained model…"]  # fmt: skip
    qtbot.mouseClick(start.ways["pairs"], Qt.MouseButton.LeftButton)
    sheet = _sheet(home)
    assert "Which pairs?" in words(sheet)
    sheet.path.setText(str(folder))
    sheet.read_path()
    qtbot.waitUntil(lambda: sheet.reading is not None and sheet.reading.opened, timeout=90_000)
    assert sheet.start.text() == "Train both on these pairs"
    pairs, run, said = sheet.reading.pairs["train"], sheet.both.run, sheet.both.trains
    assert run is not None
    batch, epochs = run.optimizer.batch_size, run.optimizer.epochs
    assert sheet.both.epochs_box.value() == epochs
    assert said.text() == (
        f"Trains CLIP and CLOOB, {pairs // batch * epochs:,} steps of {batch} pairs, 3 seeds each. "
        "Their time is not known yet: no run like these has finished on this computer."
    )
    assert sheet.split.text().startswith(f"{pairs} to train on, {sheet.reading.pairs['heldout']} held out: each is ")
    assert f"with batches of {batch}: choose 32" in sheet.both.small.text.text()
    assert sheet.both.small.button.isVisible() == (pairs >= 32)
    slow = Pace("CLIP · s9", run, 2.0)
    sheet.both.set_paces((slow,))
    sheet.both.epochs_box.set_value(30)
    sheet.both.seeds_box.set_value(2)
    steps = pairs // batch * 30
    assert said.text() == (
        f"Trains CLIP and CLOOB, {steps:,} steps of {batch} pairs, 2 seeds each "
        f"(a verdict needs 3, about {about(3 * 2 * steps * 2.0)}). "
        f"Estimated time: about {about(2 * 2 * steps * 2.0)} in all, at the speed of CLIP · s9."
    )
    command = sheet.command()
    qtbot.mouseClick(sheet.start, Qt.MouseButton.LeftButton)
    workspace = home.services.context.workspace
    qtbot.waitUntil(lambda: len(workspace.runs.all()) == 4, timeout=30_000)
    (row,) = workspace.experiments.all()
    runs = workspace.runs.all()
    assert [(run.label, run.experiment, run.arm) for run in runs] == [
        (f"{arm} · s{seed}", row.name, arm) for seed in (0, 1) for arm in ("CLIP", "CLOOB")
    ]
    for run_config in (workspace.runs.config_of(run.id) for run in runs):
        assert run_config.data.path == str(folder)
        assert (run_config.optimizer.batch_size, run_config.optimizer.epochs) == (batch, 30)
        assert run_config.optimizer.warmup_steps <= steps / 10
    qtbot.waitUntil(lambda: home.navigation.view_name == "experiments")
    headless = Workspace(tmp_path / "headless")
    assert main(["--workspace", str(headless.folder), *command, "--queue"]) == 0
    assert [(each.name, each.definition) for each in headless.experiments.all()] == [(row.name, row.definition)]


def test_a_published_model_is_opened_from_the_first_start(home: Window, qtbot: QtBot) -> None:
    qtbot.mouseClick(_first_start(home, qtbot).ways["published"], Qt.MouseButton.LeftButton)
    (sheet,) = home.findChildren(OpenModelSheet)
    assert sheet.model.text() == FIRST.specification
    sheet.reject()


def test_a_new_run_that_is_cancelled_leaves_the_open_view(home: Window, qtbot: QtBot) -> None:
    window = home
    window.navigation.go_to("experiments")
    window.router.send(OpenNewRun())
    qtbot.waitUntil(lambda: any(form.isVisible() for form in window.findChildren(NewRun)))
    (form,) = window.findChildren(NewRun)
    qtbot.keyClick(form, Qt.Key.Key_Escape)
    assert not form.isVisible()
    assert window.navigation.view_name == "experiments"
    window.pages.views["runs"].requested.emit(ShowRuns((1,)))
    assert window.navigation.view_name == "runs"


def test_a_new_run_starts_with_the_own_data_that_were_trained_on_last(
    window: Window, qtbot: QtBot, folder: Path
) -> None:
    run = config.replace(presets.preset("cloob-folder"), "model.image_size", "96")
    trained(window, dataclasses.replace(run, data=config.Folder(path=str(folder))), "cloob-folder")
    view = window.pages.views["runs"]
    qtbot.waitUntil(lambda: opened_on(view, folder))
    form = view.open_new_run()
    assert (form.preset_name, form.run().model.image_size) == ("cloob-folder", 96)
    assert form.run().optimizer.batch_size <= 640 // 8
    assert form.origins.text() == f"Data of the last run: {folder.name}"
    qtbot.waitUntil(form.isVisible)
    assert form.origins.isVisible()
    form.reject()
    trained(window, presets.preset("clip-scenes"), "clip-scenes")
    qtbot.waitUntil(lambda: not opened_on(view, folder))


def test_pairs_of_a_run_that_begins_after_a_newer_one_was_made_are_read_again(
    window: Window, qtbot: QtBot, folder: Path
) -> None:
    workspace, view = Workspace(window.folder), window.pages.views["runs"]
    own = dataclasses.replace(presets.preset("clip-folder"), data=config.Folder(path=str(folder)))
    waits = workspace.runs.create(own, preset="clip-folder", status="queued")
    workspace.runs.create(config.Run(name="log of another program"))
    window.services.jobs.poll()
    qtbot.waitUntil(lambda: opened_on(view, folder))
    with RunLog.claim(workspace, waits) as log:
        log.facts(train_pairs=640)
        log.status("finished")
    window.services.jobs.poll()

    def estimate() -> str:
        form = view.open_new_run()
        form.reject()
        return form.estimate.text()

    qtbot.waitUntil(lambda: estimate().startswith("500 steps (10 per epoch, 640 pairs)"))


def trained(window: Window, run: config.Run, preset: str) -> None:
    workspace = Workspace(window.folder)
    with RunLog.claim(workspace, workspace.runs.create(run, preset=preset)) as log:
        log.facts(train_pairs=640)
        log.status("finished")
    window.services.jobs.poll()


def opened_on(view: RunsView, folder: Path) -> bool:
    form = view.open_new_run()
    form.reject()
    return getattr(form.run().data, "path", "") == str(folder)


def test_the_form_of_a_new_run_opens_it_and_keeps_its_preset(window: Window, qtbot: QtBot, folder: Path) -> None:
    form = window.pages.views["runs"].open_new_run()
    qtbot.waitUntil(form.isVisible)
    form.preset.setCurrentIndex(form.preset.findData("cloob-folder"))
    form.preset.activated.emit(form.preset.currentIndex())
    form.section("data").form.editor("path").setText(str(folder))
    qtbot.mouseClick(_button(form, "new-run-import"), Qt.MouseButton.LeftButton)
    assert not form.isVisible()
    sheet = _sheet(window)
    qtbot.waitUntil(lambda: sheet.reading is not None and sheet.reading.opened, timeout=90_000)
    qtbot.mouseClick(sheet.start, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: any(form.isVisible() for form in window.findChildren(NewRun)))
    again = next(form for form in window.findChildren(NewRun) if form.isVisible())
    assert (again.preset_name, again.run().data.path) == ("cloob-folder", str(folder))
    qtbot.keyClick(again, Qt.Key.Key_Escape)


def test_the_sheet_says_what_it_waits_for(open_sheet, qtbot: QtBot, folder: Path, client: FakeClient) -> None:
    client.holding = True
    sheet = open_sheet(folder)
    told = client.told[0]
    told(0.0, f"{WAITS} while an evaluation runs")
    assert "Queued" in words(sheet)
    assert "a slot is free: an evaluation runs." in words(sheet)
    qtbot.waitUntil(lambda: sheet.working.note.text().startswith("waiting for its turn"))
    told(0.2, "Reading captions: 500 of 2,500")
    assert "Reading…" in words(sheet)
    qtbot.waitUntil(lambda: "500 of 2,500" in sheet.working.note.text())


def test_data_dropped_before_the_views_are_there_waits_for_them(
    window_of: Callable[..., Window], qtbot: QtBot, tmp_path: Path, folder: Path
) -> None:
    window = window_of(tmp_path, PLACES, ready=False)
    window.router.send(OpenImport(str(folder)))
    assert not window.findChildren(ImportSheet)
    with qtbot.waitSignal(window.ready, timeout=20_000):
        window.show()
    assert _sheet(window).path.text() == str(folder)


def test_a_click_on_use_my_pairs_does_not_wait_for_the_other_views(
    window_of: Callable[..., Window], qtbot: QtBot, tmp_path: Path
) -> None:
    window, opened = window_of(tmp_path, PLACES, ready=False), []
    window.view_builder.first_built.connect(lambda: window.router.send(OpenImport(compare=True)))
    window.view_builder.first_built.connect(lambda: opened.extend(window.findChildren(ImportSheet)))
    with qtbot.waitSignal(window.ready, timeout=20_000):
        window.show()
    assert len(opened) == 1


def test_pictures_without_captions_can_be_classified(open_sheet, qtbot: QtBot, folder: Path) -> None:
    for caption in folder.glob("*.txt"):
        caption.unlink()
    sheet = open_sheet(folder)
    with qtbot.waitSignal(sheet.shown):
        pass
    assert "Pictures without captions" in words(sheet)
    assert not sheet.start.isEnabled()
    state = sheet.findChild(StatePage)
    assert state.button.text() == "Classify these 27 files"
    with qtbot.waitSignal(sheet.requested) as sent:
        qtbot.mouseClick(state.button, Qt.MouseButton.LeftButton)
    assert sorted(sent.args[0].paths) == sorted(folder.glob("*.png"))
    assert sheet.isHidden()


def test_pairs_can_be_classified_too(sheet: ImportSheet, qtbot: QtBot) -> None:
    _opened(sheet, qtbot)
    button = _button(sheet, "import-classify")
    assert button.isVisible()
    with qtbot.waitSignal(sheet.requested) as sent:
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert len(sent.args[0].paths) == 27


def test_an_option_is_read_again_and_until_then_nothing_is_trained(
    sheet: ImportSheet, qtbot: QtBot, client: FakeClient
) -> None:
    _opened(sheet, qtbot)
    before = dict(sheet.reading.pairs)
    box = sheet.options.form.editor("heldout_share")
    box.selectAll()
    qtbot.keyClicks(box, "7")
    assert not sheet.start.isEnabled()
    qtbot.waitUntil(lambda: bool(box.property("invalid")))
    assert not sheet.start.isEnabled()
    assert len(client.asked) == 2, "what cannot be is not read"
    box.selectAll()
    qtbot.keyClicks(box, "0.5")
    qtbot.waitUntil(lambda: len(client.asked) == 4)
    _opened(sheet, qtbot)
    assert client.asked[-1].data["heldout_share"] == 0.5
    assert sheet.reading.pairs["heldout"] > before["heldout"]
    assert sheet.start.isEnabled()


@pytest.mark.parametrize(("enough", "share"), [(5, 0.2), (11, 0.5), (50, 0.3)])
def test_more_held_out_pairs_are_a_larger_share(
    open_sheet, qtbot: QtBot, folder: Path, client: FakeClient, enough: int, share: float
) -> None:
    sheet = open_sheet(folder, more_pairs=(2, enough))
    _opened(sheet, qtbot)
    form = sheet.options.form
    qtbot.waitUntil(sheet.start.isEnabled)
    assert (form.value().heldout_share, client.asked[-1].data["heldout_share"], len(client.asked)) == (share, share, 2)
    assert sheet.focusWidget() is form.editor("heldout_share")
    points = 100 / sheet.reading.pairs["heldout"]
    note = f"One held-out pair would be {points:.1f} points instead of 50.0"
    assert note in [label.text() for label in form.findChildren(QLabel)]


def test_another_kind_is_read_from_the_same_place(sheet: ImportSheet, qtbot: QtBot) -> None:
    _opened(sheet, qtbot)
    kinds = sheet.options.kinds
    kinds.setFocus()
    qtbot.keyClick(kinds, Qt.Key.Key_Down)
    qtbot.waitUntil(lambda: sheet.reading is not None and isinstance(sheet.reading.data, config.ClassFolder))
    assert "Nothing to train on" in words(sheet)
    assert "has no folder with images" in words(sheet)
    assert "data=classes" in sheet.command()
    qtbot.keyClick(kinds, Qt.Key.Key_Up)
    _opened(sheet, qtbot)
    assert sheet.reading.used == 25


def test_reading_is_cancelled_and_begun_again(open_sheet, qtbot: QtBot, folder: Path, client: FakeClient) -> None:
    client.holding = True
    sheet = open_sheet(folder)
    assert "Reading…" in words(sheet)
    cancel = _button(sheet, "import-working-cancel")
    qtbot.waitUntil(cancel.isVisible)
    qtbot.mouseClick(cancel, Qt.MouseButton.LeftButton)
    assert client.cancelled == [1]
    assert "cancelled" in words(sheet)
    client.waiting[0]()
    assert sheet.reading is None, "an answer that comes too late is no answer"
    client.holding = False
    qtbot.mouseClick(sheet.findChild(StatePage).button, Qt.MouseButton.LeftButton)
    _opened(sheet, qtbot)


def test_opening_is_cancelled_and_offered_again(sheet: ImportSheet, qtbot: QtBot, client: FakeClient) -> None:
    qtbot.waitUntil(lambda: len(client.asked) == 1)
    client.holding = True
    qtbot.waitUntil(lambda: len(client.asked) == 2)
    assert client.asked[1].opened
    assert "have not been decoded" in sheet.note.text()
    assert sheet.start.isEnabled(), "what is listed can be trained on"
    cancel = _button(sheet, "import-working-cancel")
    qtbot.waitUntil(cancel.isVisible)
    qtbot.mouseClick(cancel, Qt.MouseButton.LeftButton)
    again = _button(sheet, "import-open")
    assert again.isVisible()
    client.holding = False
    qtbot.mouseClick(again, Qt.MouseButton.LeftButton)
    _opened(sheet, qtbot)
    assert "25 pairs found" in sheet.note.text()


def test_closing_ends_the_question(open_sheet, qtbot: QtBot, folder: Path, client: FakeClient) -> None:
    client.holding = True
    sheet = open_sheet(folder)
    qtbot.keyClick(sheet, Qt.Key.Key_Escape)
    assert sheet.isHidden()
    assert client.cancelled == [1]


def test_what_cannot_be_read_is_said_with_a_next_step(open_sheet, qtbot: QtBot, tmp_path: Path, client) -> None:
    sheet = open_sheet(tmp_path / "nowhere")
    with qtbot.waitSignal(sheet.shown):
        pass
    assert "nowhere cannot be read" in words(sheet)
    assert "does not exist. Choose a folder, a table or a tar." in words(sheet)
    client.failing = Failure("ended", "The process of this request ended: <i>killed</i>.", "Ask again.")
    qtbot.mouseClick(sheet.findChild(StatePage).button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "killed" in words(sheet))
    assert sheet.findChild(StatePage).text.textFormat() == Qt.TextFormat.PlainText
    assert not sheet.start.isEnabled()


def test_a_process_that_dies_while_opening_leaves_what_was_listed(
    open_sheet, qtbot: QtBot, folder: Path, client: FakeClient
) -> None:
    client.holding = True
    sheet = open_sheet(folder)
    client.failing = Failure("memory", "There is not enough memory for this.", "Close something.")
    client.waiting[0]()
    qtbot.waitUntil(lambda: len(client.waiting) == 2)
    client.waiting[1]()
    assert sheet.note.text() == "There is not enough memory for this. Close something."
    assert sheet.grid.pairs.rowCount() == 10
    assert sheet.start.isEnabled()


def test_much_data_is_opened_only_when_asked(open_sheet, qtbot: QtBot, folder: Path, client, monkeypatch) -> None:
    monkeypatch.setattr(survey_result, "_OPENED_AT_ONCE", (20, 512 * 2**20))
    sheet = open_sheet(folder)
    with qtbot.waitSignal(sheet.shown):
        pass
    assert len(client.asked) == 1
    assert _button(sheet, "import-open").isVisible()
    assert "0.3 MiB" in sheet.cost.words.text()
    sheet.cost.size_box.set_value(128)
    assert "1.2 MiB" in sheet.cost.words.text()
    assert sheet.start.isEnabled()


def test_a_report_that_comes_too_late_is_not_shown(
    open_sheet, qtbot: QtBot, folder: Path, table: Path, client: FakeClient
) -> None:
    client.holding = True
    sheet = open_sheet(folder)
    client.waiting[0]()  # its report is still read when the next path is asked for
    sheet.path.setText(str(table))
    sheet.read_path()
    qtbot.waitUntil(lambda: not sheet._background.busy)
    assert sheet.reading is None
    assert len(client.asked) == 2
    client.waiting[1]()
    qtbot.waitUntil(lambda: sheet.reading is not None)
    assert isinstance(sheet.reading.data, config.Table)


def test_a_held_out_part_of_its_own_is_told(open_sheet, qtbot: QtBot, tmp_path: Path) -> None:
    from PIL import Image

    for split in ("train", "test"):
        for number in range(12):
            file = tmp_path / "kinds" / split / "ab"[number % 2] / f"{number}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8), (number, 0, 0)).save(file)
    sheet = open_sheet(tmp_path / "kinds")
    _opened(sheet, qtbot)
    split = "The folders 'train' and 'test' state the split: 'test' is held out."
    counts = f"12 to train on, 12 held out: each is 8.3 points of R@1. {split}"
    assert (sheet.split.text(), sheet.about.text()) == (counts, "2 classes.")
    assert sheet.reading.captions_repeat
    fitted = on_data(presets.preset("clip-folder"), sheet.reading.data, 32, 12, captions_repeat=True)
    assert (fitted.name, fitted.optimizer.batch_size, fitted.objective.mask_duplicates) == ("clip-kinds", 4, True)
    assert estimated_steps(fitted, 12) >= 500
    assert fitted.optimizer.warmup_steps <= estimated_steps(fitted, 12) / 10
    note = sheet.options.form._rows["heldout_share"].help.text()
    assert "its own held-out part" in note


@few_plain(1, "captions", nightly_except([1, 3, 24], 3))
@few_plain(1, "kind", ["folder", "table"])
def test_equal_captions_are_masked_in_the_window_as_by_fit(
    open_sheet, qtbot: QtBot, tmp_path: Path, kind: str, captions: int
) -> None:
    from PIL import Image

    from trainer.data.fitting_run import fitting_run
    from trainer.format_detection import recognize

    root = tmp_path / "kept"
    root.mkdir()
    said = [f"caption {number % captions}" for number in range(24)]
    for number, words in enumerate(said):
        Image.new("RGB", (8, 8), (9 * number, 0, 0)).save(root / f"{number}.png")
        if kind == "folder":
            (root / f"{number}.txt").write_text(words)
    place = root
    if kind == "table":
        place = root / "captions.csv"
        lines = [f"{number}.png,{words}" for number, words in enumerate(said)]
        place.write_text("\n".join(["filepath,title", *lines]))
    sheet = open_sheet(place)
    _opened(sheet, qtbot)
    with qtbot.waitSignal(sheet.requested) as sent:
        sheet.start.click()
    (intent,) = sent.args
    begun = presets.preset("clip-folder")
    made = NewRun(
        {"clip-folder": begun},
        sheet._background,
        data=intent.data,
        pairs=intent.pairs,
        captions_repeat=intent.captions_repeat,
    )
    qtbot.addWidget(made)
    wanted = fitting_run(dataclasses.replace(begun, data=recognize(place)), tmp_path / "w", lambda share, note: None)
    assert made.run().objective.mask_duplicates == wanted.objective.mask_duplicates == (captions < 24)


def test_one_class_is_a_question_before_anything_trains(
    open_sheet, qtbot: QtBot, tmp_path: Path, client: FakeClient, capsys
) -> None:
    from PIL import Image

    from trainer.__main__ import main

    root = tmp_path / "holiday" / "Images"
    root.mkdir(parents=True)
    for number in range(8):
        Image.new("RGB", (16, 16), (number, 0, 0)).save(root / f"red_fox-{number}.png")
    sheet = open_sheet(root.parent)
    with qtbot.waitSignal(sheet.shown):
        pass
    assert "one folder, 'Images': a single class" in words(sheet)
    assert sheet.about.text() == "1 class."
    assert not sheet.start.isEnabled()
    assert len(client.asked) == 1, "no picture is opened before it is known how the data are meant"
    sheet.options.form.editor("template").setText("a picture of {}")
    qtbot.waitUntil(lambda: len(client.asked) == 2 and sheet.pending is None)
    assert not sheet.start.isEnabled(), "an option is no answer"
    state = sheet.findChild(StatePage)
    assert (state.button.text(), state.other.text()) == (
        "Use the file names as captions",
        "Train on these classes anyway",
    )
    qtbot.mouseClick(state.button, Qt.MouseButton.LeftButton)
    _opened(sheet, qtbot)
    assert sheet.reading.data == config.Folder(path=str(root.parent), captions="names")
    assert {example.caption for example in sheet.reading.examples} == {"red fox"}
    assert sheet.start.isEnabled()
    assert main(sheet.command()) == 0
    assert "8 pairs used." in capsys.readouterr().out
    sheet.read_path()
    qtbot.waitUntil(lambda: sheet.reading is not None)
    qtbot.waitUntil(lambda: "a single class" in words(sheet))
    assert not sheet.start.isEnabled()
    qtbot.mouseClick(state.other, Qt.MouseButton.LeftButton)
    _opened(sheet, qtbot)
    assert sheet.reading.data == config.ClassFolder(path=str(root.parent))
    assert sheet.start.isEnabled()
    assert main(sheet.command()) == 0


def test_a_caption_file_beside_the_pictures_comes_first(window: Window, qtbot: QtBot, tmp_path: Path) -> None:
    from PIL import Image

    root = tmp_path / "flickr8k"
    (root / "Images").mkdir(parents=True)
    rows = ["image,caption"]
    for number in range(8):
        Image.new("RGB", (16, 16), (number, 0, 0)).save(root / "Images" / f"{number}.jpg")
        rows += [f'{number}.jpg,"caption {k} of {number}, here"' for k in range(5)]
    (root / "captions.txt").write_text("\n".join(rows), encoding="utf-8")
    _drop(window, root)
    sheet = _sheet(window)
    qtbot.waitUntil(lambda: sheet.reading is not None and sheet.reading.opened, timeout=90_000)
    assert sheet.reading.data.path == str(root / "captions.txt")
    assert sheet.note.text().startswith("40 pairs found.")
    qtbot.mouseClick(sheet.start, Qt.MouseButton.LeftButton)
    form = window.findChild(NewRun)
    assert form.run().name == "clip-flickr8k"
    pairs = sheet.reading.pairs["train"]
    assert form.run().optimizer.batch_size == max(size for size in (4, 8, 16, 32) if size <= max(4, pairs / 8))
    qtbot.waitUntil(form.isVisible)
    qtbot.keyClick(form, Qt.Key.Key_Escape)


def test_too_little_room_is_said(open_sheet, qtbot: QtBot, folder: Path, monkeypatch) -> None:
    from trainer.data import survey

    monkeypatch.setattr(survey, "_free", lambda _folder: 65 * 2**20)
    sheet = open_sheet(folder)
    _opened(sheet, qtbot)
    assert sheet.cost.words.text() == "px; cache 0.3 MiB (65.0 MiB free)."
    sheet.cost.size_box.set_value(1_000)
    assert sheet.cost.words.text().endswith("too large to cache, so images are decoded in every epoch.")


def test_data_can_be_dropped_on_the_sheet(open_sheet, qtbot: QtBot, folder: Path) -> None:
    sheet = open_sheet()
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(folder))])
    where, keys = QPointF(sheet.rect().center()), Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(where.toPoint(), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, keys)
    QApplication.sendEvent(sheet, enter)
    assert enter.isAccepted()
    assert not sheet.path.acceptDrops()
    drop = QDropEvent(where, Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, keys)
    QApplication.sendEvent(sheet, drop)
    _opened(sheet, qtbot)
    assert sheet.reading.data.path == str(folder)


def test_the_command_reads_the_same(open_sheet, qtbot: QtBot, table: Path, capsys) -> None:
    from trainer.__main__ import main

    sheet = open_sheet(table)
    with qtbot.waitSignal(sheet.shown):
        pass
    for name, column in (("image_column", "bild"), ("caption_column", "satz")):
        sheet.options.form.editor(name).setEditText(column)
    _opened(sheet, qtbot)
    qtbot.mouseClick(_button(sheet, "import-copy"), Qt.MouseButton.LeftButton)
    words = shlex.split(QGuiApplication.clipboard().text())
    command = words[words.index("data") :]
    assert main(command) == 0
    assert "24 pairs used." in capsys.readouterr().out


class Lines(list):
    """A list that counts how often an item is read."""

    read = 0

    def __getitem__(self, place):
        self.read += 1
        return super().__getitem__(place)


def test_a_long_report_costs_what_is_in_sight(dressed: QApplication, qtbot: QtBot) -> None:
    lines = Lines(
        (f"{n}.png", survey_result.NOT_USED if n < 150_000 else "used with a warning", "<b>why</b>")
        for n in range(200_000)
    )
    table = show_widget(qtbot, ReportTable(), 700, 400)
    table.report.show(lines)
    table.grab()
    table.report.show(lines, survey_result.NOT_USED)
    table.grab()
    assert 0 < lines.read < 2_000
    assert table.report.rowCount() == 150_000
    assert table.report.index(149_999, 1).data() == "Not used"
    assert table.report.index(0, 2).data(Qt.ItemDataRole.ToolTipRole) == "<b>why</b>"


def test_cloob_is_offered_batches_in_which_it_does_not_collapse(dressed: QApplication, qtbot: QtBot) -> None:
    row = add_widget(qtbot, BothRow())
    reading = SimpleNamespace(pairs={"train": 214}, captions_repeat=False, to_train_on=lambda: 214)
    reading.data = config.Folder(path="mine")
    row.show_data(reading, 32)
    row.show()
    assert "steps of 16 pairs" in row.trains.text()
    assert row.small.text.text().startswith("CLOOB may collapse with batches of 16")
    assert row.small.button.text() == "Use batches of 32"
    row.small.button.click()
    assert (row.run.optimizer.batch_size, row.epochs_box.value()) == (32, 84)
    assert "504 steps of 32 pairs" in row.trains.text(), "the epochs follow the batch"
    assert not row.small.isVisible()
    assert "optimizer.batch_size=32" in row.command()
    row.show_data(SimpleNamespace(**vars(reading) | {"data": config.Folder(path="other")}), 32)
    assert row.small.button.isVisible(), "other data begin anew"
    step_s = 3_700 / (3 * 2 * 507)
    row.set_paces((Pace("CLIP · s9", row.run, step_s),))
    assert (row.seeds, "1 seed each (a verdict needs 3, about 62 min)" in row.trains.text()) == (1, True)
    row.set_paces((Pace("CLIP · s9", row.run, step_s / 2),))
    assert row.seeds == 3, "half an hour is short enough"
    row.seeds_box.set_value(2)
    row.set_paces((Pace("CLIP · s9", row.run, step_s),))
    assert row.seeds == 2, "what somebody chose stays"


@pytest.mark.parametrize(
    ("pairs", "warning"),
    [
        ({"train": 20, "heldout": 2}, "2 held-out pairs: too few to compare runs. So few pairs show no difference."),
        ({"train": 180, "heldout": 15}, "15 held-out pairs: too few to compare runs. So few pairs show only"),
        ({"train": 300, "heldout": 24}, ""),
        ({}, ""),
    ],
)
def test_too_few_held_out_pairs_are_told_before_anything_trains(pairs, warning):
    reading = SimpleNamespace(pairs=pairs, used=sum(pairs.values()), captions=sum(pairs.values()), has_own_split=False)
    reading.data, reading.to_train_on = config.Folder(path="mine"), lambda: pairs["train"]
    said = summary_text.warning_of(reading)
    assert said.startswith(warning)
    step = "Hold out 24 pairs or more: add pairs or raise the held-out share."
    assert bool(said) == bool(warning) == (step in said)


def test_few_different_captions_are_told_with_their_chance_level(tmp_path):
    rows = "".join(f"{n}.png,a photo of a {['hat', 'shoe', 'dress'][n % 3]}\n" for n in range(240))
    for n in range(240):
        Image.new("RGB", (8, 8), (n, 0, 0)).save(tmp_path / f"{n}.png")
    (tmp_path / "pairs.csv").write_text(f"picture,caption\n{rows}", encoding="utf-8")
    data = config.Table(path=str(tmp_path / "pairs.csv"), image_column="picture", caption_column="caption")
    for opened in (False, True):
        surveyed = survey(data, image_size=8, workspace_folder=tmp_path, opened=opened, progress=lambda *_: None)
        assert (surveyed.captions, surveyed.used) == (3, 240)
    reading = SimpleNamespace(pairs={"train": 216, "heldout": 24}, used=240, captions=3, has_own_split=False)
    reading.not_used, reading.opened, reading.odd = 0, True, 0
    reading.data, reading.to_train_on = data, lambda: 256
    warning = (
        "Equal captions count as one answer: guessing is right in 33.3 % of the "
        "first answers, in 100.0 % among the first 10. Compare R@1 only, or write captions that differ."
    )
    assert summary_text.warning_of(reading) == warning
    assert summary_text.counted(reading) == "240 pairs with 3 different captions found."
    assert few_captions(3, 240) == f"240 pairs with 3 different captions. {warning}"
    assert "nothing to retrieve" in few_captions(1, 240)
    assert [few_captions(*many) for many in ((31, 240), (12, 12), (0, 240))] == ["", "", ""]


def test_the_lists_take_what_is_left_so_that_no_sheet_scrolls_around_them(qtbot: QtBot, background: Background):
    tabs = add_widget(qtbot, ResultTabs(background, {}))
    tabs.pages.setCurrentWidget(tabs.grid)
    assert tabs.sizeHint().height() < QListView().sizeHint().height()
