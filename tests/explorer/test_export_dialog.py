"""The export dialog: what is chosen is what is drawn, copied and exported; a preview by the exporter itself."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import shiboken6
from PIL import Image
from PySide6.QtCore import QPoint, QProcess, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QScrollArea, QWidget
from pytestqt.qtbot import QtBot

from explorer.intents import EXPORTS
from explorer.views.runs.drawn_runs import opened_by_sides
from explorer.widgets.refusal import set_refusal
from explorer.window.export_dialog import FORM_PX, HEIGHT, PX_PER_MM, WIDTH, ExportDialog, free_stem
from explorer.window.exports import (
    curve_runs,
    exported_name,
    figure_names,
    figure_problems,
    left_out_words,
    with_usual,
)
from explorer.window.figure_previews import FigurePreviews
from tests.explorer.widgets import add_widget
from trainer import config
from trainer.charts.figure_choices import FigureChoices

COMMAND = ["export", "similarity", "--runs", "1", "2"]
SERVER = """
import json, sys
for line in sys.stdin:
    question = json.loads(line)
    if "letters" in question["command"]:
        print(json.dumps({"number": question["number"], "problem": "No such run. Train it."}), flush=True)
        continue
    part, wide = {"title": "Part", "size": ""}, {"title": "Separation of matched from others " * 3, "size": "table"}
    parts = [part | {"name": "cosines", "is_table": False}, wide | {"name": "numbers", "is_table": True}]
    figure = {"width_mm": 89, "height_mm": 44.5, "smallest_pt": 7, "parts": parts, "command": question["command"]}
    print(json.dumps({"number": question["number"], "file": PICTURE, "figure": figure}), flush=True)
"""


@pytest.fixture
def make(qtbot: QtBot, dressed: QApplication, tmp_path: Path) -> Iterator[Callable[..., ExportDialog]]:
    picture = tmp_path / "figure.png"
    Image.new("RGB", (1050, 525), "red").save(picture)
    script = tmp_path / "server.py"
    script.write_text(f"PICTURE = {str(picture)!r}\n{SERVER}", encoding="utf-8")
    window = add_widget(qtbot, QWidget(), 1280, 800)
    dialogs: list[ExportDialog] = []
    processes: list[FigurePreviews] = []

    def open_dialog(**more: object) -> ExportDialog:
        previews = FigurePreviews(tmp_path, program=(sys.executable, str(script)))
        file = tmp_path / "similarity"
        formats = more.pop("formats", EXPORTS)
        dialog = ExportDialog("Similarity", formats, lambda _: COMMAND, file, previews, parent=window, **more)
        dialogs.append(dialog)
        processes.append(previews)
        dialog.open()
        return dialog

    yield open_dialog
    for dialog in dialogs:
        if shiboken6.isValid(dialog):
            dialog.reject()
    qtbot.waitUntil(lambda: not any(map(shiboken6.isValid, processes)), timeout=20_000)


def drawn(qtbot: QtBot, dialog: ExportDialog) -> None:
    qtbot.waitUntil(lambda: "89 × 44 mm" in dialog.size_note.text(), timeout=20_000)


@pytest.fixture
def dialog(qtbot: QtBot, make: Callable[..., ExportDialog]) -> ExportDialog:
    """Return the dialog with its first preview."""
    drawn(qtbot, made := make())
    return made


def test_a_preview_that_takes_long_says_what_it_waits_for(qtbot: QtBot, dialog: ExportDialog) -> None:
    assert not dialog.busy_bar.isVisible()
    previews = dialog.findChild(FigurePreviews)
    previews.busy_changed.emit(True)
    assert not dialog.busy_bar.isVisible(), "a quick one shows no bar"
    qtbot.waitUntil(dialog.busy_bar.isVisible)
    assert (dialog.busy_bar.minimum(), dialog.busy_bar.maximum()) == (0, 0), "its end is not known"
    assert dialog.size_note.text() == "Rendering: computing the chart again…"
    previews.busy_changed.emit(False)
    assert not dialog.busy_bar.isVisible()


def test_what_is_chosen_is_drawn_copied_and_exported(qtbot: QtBot, make: Callable[..., ExportDialog]) -> None:
    dialog = make()
    assert dialog.size_note.text() == "Rendering…", "while a figure renders there is a sign"
    places = [control.mapTo(dialog, QPoint()) for control in dialog.controls.values()]
    drawn(qtbot, dialog)
    assert [control.mapTo(dialog, QPoint()) for control in dialog.controls.values()] == places, "none jumps"
    assert list(dialog.parts) == ["cosines", "numbers"]
    assert [box.isChecked() for box in dialog.parts.values()] == [True, False], "tables are off"
    form = dialog.findChild(QScrollArea).widget()
    assert form.minimumSizeHint().width() <= FORM_PX, "a long title pushes no choice out of the dialog"
    QTest.mouseClick(dialog.controls["width"].buttons["1"], Qt.MouseButton.LeftButton)
    dialog.parts["numbers"].setChecked(True)
    dialog.also["png"].setChecked(True)
    dialog.also["csv"].setChecked(True)
    assert not dialog.also["pdf"].isEnabled(), "it is the format above"
    chosen = ["--panels", "cosines", "numbers", "--width", "1"]
    beside = [str(dialog.file.with_suffix(suffix)) for suffix in (".png", ".csv")]
    assert dialog.command() == [*COMMAND, *chosen, "--out", *beside]
    with qtbot.waitSignal(dialog.copied) as copied:
        QTest.mouseClick(dialog.findChild(QWidget, "export-copy"), Qt.MouseButton.LeftButton)
    assert copied.args[0] == [*COMMAND, *chosen, "--out", "similarity.pdf", "similarity.png", "similarity.csv"]
    ends: list[tuple[object, ...]] = []
    dialog.chosen.connect(lambda *values: ends.append(values))
    dialog.remembered.connect(lambda *values: ends.append(values))
    QTest.keyClick(dialog, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert ends[0] == ([*COMMAND, *chosen, "--out", *beside], dialog.file)
    assert ends[1] == (FigureChoices(width="1"), ["png", "csv"])


def test_the_preview_has_the_proportion_of_the_figure(qtbot: QtBot, make: Callable[..., ExportDialog]) -> None:
    dialog = make()
    dialog.resize(WIDTH, HEIGHT)  # the screen of the tests is smaller
    drawn(qtbot, dialog)
    image = dialog.sheet.grab().toImage()
    reds = [
        (x, y)
        for x in range(image.width())
        for y in range(image.height())
        if image.pixelColor(x, y).red() > 200 and image.pixelColor(x, y).green() < 60
    ]
    wide, high = (1 + max(point[side] for point in reds) - min(point[side] for point in reds) for side in (0, 1))
    assert wide / high == pytest.approx(2, rel=0.02)
    assert wide / image.devicePixelRatio() == pytest.approx(89 * PX_PER_MM, abs=4)


def test_all_of_it_fits_on_a_screen_of_1280_by_800_at_twice_the_size(make: Callable[..., ExportDialog]) -> None:
    least = make().minimumSizeHint()
    assert least.width() <= 640
    assert least.height() <= 370


def test_a_figure_that_cannot_be_drawn_says_why(qtbot: QtBot, dialog: ExportDialog) -> None:
    dialog.controls["names"].buttons["letters"].click()
    qtbot.waitUntil(lambda: dialog.size_note.text() == "No such run. Train it.", timeout=20_000)


def test_without_a_first_preview_nothing_is_said_to_be_read(qtbot: QtBot, make: Callable[..., ExportDialog]) -> None:
    dialog = make(choices=FigureChoices(names="letters"))
    qtbot.waitUntil(lambda: dialog.size_note.text() == "No such run. Train it.", timeout=20_000)
    texts = [label.text() for label in dialog.findChildren(QLabel)]
    assert "Reading…" not in texts
    assert "The panels are known once there is a preview." in texts


def test_previews_that_have_ended_say_so_at_each_question(qtbot: QtBot, dialog: ExportDialog) -> None:
    dialog.findChild(FigurePreviews).findChild(QProcess).kill()
    qtbot.waitUntil(lambda: "has ended unexpectedly" in dialog.size_note.text(), timeout=20_000)
    dialog.controls["width"].buttons["1"].click()
    assert dialog.size_note.text() == "Rendering…"
    qtbot.waitUntil(lambda: "has ended unexpectedly" in dialog.size_note.text(), timeout=20_000)


def test_numbers_have_no_looks(qtbot: QtBot, dialog: ExportDialog, tmp_path: Path) -> None:
    dialog.take_file(tmp_path / "mine.csv")
    assert dialog.suffix == "csv"
    assert dialog.file == tmp_path / "mine.csv"
    assert dialog.command() == COMMAND
    choices = (*dialog.controls.values(), *dialog.also.values(), *dialog.parts.values())
    assert not any(choice.isVisible() for choice in choices), "none of them acts"
    assert dialog.reason.isVisible()
    assert dialog.reason.text().startswith("CSV holds everything")
    place = dialog.format_buttons["svg"].mapTo(dialog, QPoint())
    dialog.format_buttons["svg"].click()
    QApplication.processEvents()
    assert dialog.format_buttons["svg"].mapTo(dialog, QPoint()) == place, "the formats stay below the pointer"
    assert (dialog.reason.isVisible(), dialog.controls["width"].isVisible()) == (False, True)
    assert "…" in dialog.parts["numbers"].text(), "one line of a long title"


def test_the_preview_of_a_film_is_its_last_frame(qtbot: QtBot, make: Callable[..., ExportDialog]) -> None:
    dialog = make(formats=(("gif", "Film as GIF"), *EXPORTS))
    answers: list[list[str]] = []
    dialog.findChild(FigurePreviews).drawn.connect(lambda _file, figure: answers.append(figure["command"]))
    qtbot.waitUntil(lambda: "1,050 × 525 pixels · last frame" in dialog.size_note.text(), timeout=20_000)
    assert "--frame" in answers[-1]
    assert not any(control.isVisible() for control in dialog.controls.values()), "a film has a layout of its own"
    assert dialog.command() == COMMAND, "the whole film is exported"
    dialog.format_buttons["png"].click()
    drawn(qtbot, dialog)
    assert "--frame" not in answers[-1]


def test_a_bundle_has_the_same_choices(qtbot: QtBot, make: Callable[..., ExportDialog]) -> None:
    figures = {"map": "Map", "curves": "Runs: Curves", "prompts": "Prompts"}
    more = {"contents": "And a report", "figures": figures, "left_out": ["prompts"]}
    dialog = make(formats=(("zip", "Zip archive"), ("folder", "New folder")), example=COMMAND, **more)
    assert dialog.contents.isVisibleTo(dialog)
    assert dialog.contents.text() == "And a report"
    assert {name: (box.accessibleName(), box.isChecked()) for name, box in dialog.parts.items()} == {
        "map": ("Map", True), "curves": ("Runs: Curves", True), "prompts": ("Prompts", False),
    }  # fmt: skip
    with qtbot.waitActive(dialog):
        dialog.activateWindow()
    dialog.format_buttons["zip"].setFocus()
    for name in ("map", "curves", "prompts"):
        qtbot.keyClick(dialog.focusWidget(), Qt.Key.Key_Tab)
        assert dialog.focusWidget() is dialog.parts[name], "Tab goes on where they stand"
        if name != "curves":
            qtbot.keyClick(dialog.parts[name], Qt.Key.Key_Space)
    assert dialog.left_out == ["map"]
    assert dialog.command() == [*COMMAND, "--without", "map"]
    dialog.refuse_part("curves", "Nothing is logged.")
    assert (dialog.left_out, dialog.unwanted) == (["map", "curves"], ["map"])
    assert not dialog.parts["curves"].isEnabled(), "what cannot be drawn is not ticked, so both count alike"
    set_refusal(dialog.parts["curves"], "")
    dialog.parts["curves"].setChecked(True)
    dialog.parts["map"].click()
    qtbot.waitUntil(lambda: dialog.size_note.text().startswith("Example · 89"), timeout=20_000)
    dialog.controls["names"].buttons["seed"].click()
    assert dialog.command() == [*COMMAND, "--names", "seed"]
    assert dialog.file.suffix == ".zip"
    dialog.format_buttons["folder"].click()
    assert dialog.file.suffix == ""


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    (tmp_path / "map.csv").touch()
    (tmp_path / "map-2.pdf").touch()
    assert free_stem(tmp_path, "map", ["pdf", "svg"]).name == "map-3"


def test_a_bundle_holds_the_usual_figures_as_they_are_shown_and_none_of_no_run() -> None:
    shown = [["export", "similarity", "--runs", "1", "--k", "5"], ["export", "softmax-cost"], ["saliency", "1"]]
    figures = with_usual(shown, [1, 2])
    assert ["export", "curves", "--runs", "1", "2"] in figures
    assert ["export", "similarity", "--runs", "1", "2", "--k", "5"] in figures, "of the bundle's own A and B"
    assert not [figure for figure in figures if figure[:2] == ["export", "similarity"] and figure[3:5] != ["1", "2"]]
    assert shown[1] not in figures
    assert figures[-1] == shown[2]
    names = ["Runs: Curves", "Similarity", "Map", "Prompts: Calibration", "Prompts", "Saliency"]
    assert [*figure_names(figures).values()] == names
    assert [*figure_names(figures)] == ["curves", "similarity", "map", "calibration", "prompts", "saliency"]


def test_figures_of_runs_chosen_earlier_are_drawn_of_the_runs_of_the_bundle() -> None:
    map_words = ["export", "map", "--runs", "6", "2", "--dataset", "images", "--split", "vectors", "--method", "pca"]
    one = ["export", "dimensions", "--runs", "6", "--step", "9", "--dataset", "images", "--top", "4"]
    shown = [
        ["export", "curves", "--runs", "3", "4", "1", "6", "--smoothing", "0.6"],
        map_words,
        one,
        ["saliency", "6", "2"],
    ]
    figures = with_usual(shown, [3, 4], [3, 4, 5])
    assert figures[0] == ["export", "curves", "--runs", "3", "4", "5", "--smoothing", "0.6"]
    curves = ["export", "curves", "--runs", "3", "6", "--metrics", "val/image_to_text_R@1", "loss", "lr"]
    assert with_usual([curves], [3, 4])[0] == ["export", "curves", "--runs", "3", "4", "--metrics", curves[6]]
    assert with_usual([curves], [3, 6])[0] == curves, "6 is of another program, with metrics of its own"
    assert ["export", "map", "--runs", "3", "4", "--method", "pca"] in figures
    assert ["export", "dimensions", "--runs", "3", "--top", "4"] in figures, "as many runs as it is of"
    assert figures[-1] == ["saliency", "3", "4"]
    map_words[3:5] = "3", "4"
    assert map_words in with_usual([map_words], [3, 4]), "what is shown of A and B keeps its data"


def test_a_map_is_drawn_whole_unless_its_filter_is_asked_for() -> None:
    whole = ["export", "map", "--runs", "1", "2", "--method", "pca"]
    filtered = [*whole, "--isolate", "a", "--pairs", "0-28"]
    figures = with_usual([filtered], [1, 2])
    assert figures[2] == whole
    assert figures[-1] == filtered
    assert [kind for kind in figure_names(figures) if kind.endswith("map")] == ["map", "filtered-map"]
    others = with_usual([filtered], [3, 4])
    assert [*whole[:3], "3", "4", *whole[5:]] in others
    assert not [each for each in others if "--pairs" in each], "pairs of other runs are others"
    assert exported_name(filtered, "Map") == exported_name(whole, "Map") == "Map"


def test_what_lacks_a_snapshot_or_classes_is_known_before_the_export(context, two_runs: tuple[int, ...]) -> None:
    runs = [*map(str, two_runs)]
    figures = with_usual([], two_runs)
    assert figure_problems(context.workspace, figures) == {}
    elsewhere = ["--runs", *runs, "--dataset", "elsewhere", "--split", "train"]
    problems = figure_problems(
        context.workspace, [["export", kind, *elsewhere] for kind in ("map", "similarity", "curves")]
    )
    assert [*problems] == ["map", "similarity"]
    assert "has no snapshot of elsewhere, train" in problems["map"]
    text = left_out_words({"Map": problems["map"], "Similarity": problems["map"]}, 5)
    assert text.startswith("3 of 5 figures. Map, Similarity left out: Run ")
    assert left_out_words({}, 5) == left_out_words({}) == ""
    assert left_out_words({"Map": "Why."}) == "Map left out: Why.", "ticks count the figures of the dialog"
    plain = context.workspace.runs.create(config.Run(name="img", data=config.Folder(path="none")))
    asks = figure_problems(context.workspace, [["export", "prompts", "--runs", str(plain)]])
    assert left_out_words({"Prompts": asks["prompts"]}, 1) == (
        "0 of 1 figures. Prompts left out: The data of run CLIP · img has fewer than two classes."
    )


def test_the_dialog_is_named_after_the_chart() -> None:
    assert exported_name(["export", "experiment-verdict"], "Home") == "Verdict"
    assert exported_name(["experiment", "verdict", "a"], "Home") == "Home"


def test_formats_fill_their_lines(make: Callable[..., ExportDialog]) -> None:
    """Nine stood in lines of four, four and one, each as wide as its name."""
    dialog = make(formats=[(f"s{number}", f"Format {number}") for number in range(9)])
    buttons = [*dialog.format_buttons.values()]
    assert len({button.width() for button in buttons}) == 1
    tops = [button.mapTo(dialog, QPoint()).y() for button in buttons]
    assert sorted(map(tops.count, {*tops})) == [3, 3, 3]


def test_what_another_program_trained_is_drawn_while_it_is_a_or_b() -> None:
    rows = [SimpleNamespace(id=at, experiment="", is_elsewhere=at > 2) for at in (1, 2, 3)]
    assert opened_by_sides(rows, [3, 1], set()) == {1, 3}
    assert opened_by_sides(rows, [1, 2], {1, 3}) == {1, 2}


def test_curves_are_of_the_experiment_or_of_what_runs_draws() -> None:
    rows = [SimpleNamespace(id=number, experiment="e" * (number < 4), deleted_at=None) for number in range(1, 7)]
    drawn = [["export", "curves", "--runs", "4", "5", "6", "--axis", "step"]]
    assert curve_runs(drawn, [3, 1], rows) == [3, 1, 2], "A and B of one experiment"
    eyes = [["export", "curves", "--runs", "1", "3", "4"]]
    assert curve_runs(eyes, [3, 1], rows) == [3, 1], "the eye of run 2 is closed, and run 4 of no experiment"
    assert curve_runs(drawn, [5, 4], rows) == [5, 4, 6]
    assert curve_runs(drawn, [5, 1], rows) == [5, 1], "Runs draws others"


def test_the_process_of_previews_ends_with_the_dialog(qtbot: QtBot, dialog: ExportDialog) -> None:
    previews = dialog.findChild(FigurePreviews)
    dialog.reject()
    assert previews.parent() is QApplication.instance(), "it is not waited for"
    qtbot.waitUntil(lambda: not shiboken6.isValid(previews), timeout=20_000)


def test_a_newer_question_replaces_an_older_one(qtbot: QtBot, dialog: ExportDialog) -> None:
    answers: list[list[str]] = []
    dialog.findChild(FigurePreviews).drawn.connect(lambda _file, figure: answers.append(figure["command"]))
    for width in ("1", "slide", "1"):
        dialog.controls["width"].buttons[width].click()
    qtbot.waitUntil(lambda: len(answers) > 0, timeout=20_000)
    qtbot.wait(300)
    assert answers == [[*COMMAND, "--width", "1"]]
