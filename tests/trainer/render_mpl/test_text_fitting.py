"""No figure clips, overlaps or squeezes anything: two and six runs with long names, measured as drawn."""

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from PIL import Image

from tests.nightly import few_plain, nightly_except
from trainer import config
from trainer.__main__ import main
from trainer.charts.calibration import CHART as CALIBRATION
from trainer.charts.class_task import ClassTexts, class_task
from trainer.charts.figure_choices import FigureChoices
from trainer.charts.marks import NumberRow, NumberTable, Panel
from trainer.charts.measures.calibration import calibration
from trainer.charts.measures.prompts import prompts
from trainer.charts.opened_snapshot import open_target
from trainer.charts.prompts import CHART as PROMPTS
from trainer.charts.search import CHART as SEARCH
from trainer.charts.search import SearchSettings, search
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import PerRun, Request, Target
from trainer.render_mpl import files
from trainer.render_mpl import panel as panel_figure
from trainer.render_mpl.style import heading, in_style, new_figure
from trainer.render_mpl.text_fitting import align_titles, shortened, wrapped
from trainer.store import Question, Workspace
from trainer.store.question import retrieval_question
from trainer.store.snapshot_files import read_snapshot
from trainer.store.task_records import TaskRecord, evaluation_folder, write_task

pytestmark = pytest.mark.slow

NAMES = tuple(
    f"{objective}-clothing-catalog of the second season, learning rate 0.00{seed + 1}, seed {seed}"
    for seed, objective in enumerate(("clip", "cloob", "infoloob", "clip", "cloob", "hopfield-infonce"))
)
LABELS = ("circle", "square", "star", "ring", "heart")
RELIABLE = {
    "ece": 0.1,
    "ece_calibrated": 0.04,
    "edges": [0, 0.5, 1],
    "counts": [20, 20],
    "confidence": [0.3, 0.8],
    "accuracy": [0.4, 0.9],
}
KINDS = ("curves", "similarity", "map", "gap", "geometry", "hubness", "matrix", "timeline")
LAID_OUT = [*([kind, 6] for kind in KINDS), ["map", 2], ["matrix", 2], ["timeline", 2]]
"""Six runs crowd every kind; two stand beside each other, which the kinds of one panel a run lay out in another way."""


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory, fill_runs: Callable[..., None]) -> Workspace:
    workspace = Workspace(tmp_path_factory.mktemp("named"))
    fill_runs(workspace, pairs=60, names=NAMES, steps=(0, 240), splits=("renderings",))
    return workspace


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory, fill_runs: Callable[..., None]) -> Workspace:
    """Return six runs called after a folder, without a space in their names."""
    workspace = Workspace(tmp_path_factory.mktemp("unbroken"))
    names = tuple(name.replace(" ", "_") for name in NAMES)
    fill_runs(workspace, pairs=60, names=names, steps=(0, 240), splits=("renderings",))
    return workspace


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Return every figure written, after its layout."""
    kept: list[Figure] = []

    @in_style
    def keep(figure: Figure, path: Path, **_: object) -> None:
        _lay_out(figure)
        path.write_bytes(b"drawn")
        kept.append(figure)

    monkeypatch.setattr(files, "_save", keep)
    return kept


@few_plain(1, ("kind", "runs"), nightly_except(LAID_OUT, ["similarity", 6], ["timeline", 2]))
def test_nothing_is_cut_or_covered(named: Workspace, drawn: list[Figure], tmp_path: Path, kind: str, runs: int):
    assert _export(named, tmp_path, kind, runs) == 0
    assert complaints(drawn[0]) == []


@pytest.mark.parametrize(
    ("kind", "runs", "more"),
    nightly_except([["changes", 2, []], ["representation-similarity", 6, ["--steps", "2"]]], ["changes", 2, []]),
)
def test_figures_of_pairs_and_spaces(named, drawn, tmp_path, kind: str, runs: int, more: list[str]):
    assert _export(named, tmp_path, kind, runs, *more) == 0
    assert complaints(drawn[0]) == []


@few_plain(1, "runs", nightly_except([2, 6], 6))
@few_plain(1, "curved", [False, True])
def test_evaluations(drawn: list[Figure], tmp_path: Path, runs: int, curved: bool):
    workspace = Workspace(tmp_path / "evaluated")
    paths = np.array([f"{n}.png" for n in range(40)])
    for place, name in enumerate(NAMES[:runs]):
        run = workspace.runs.create(config.Run(name=name, seed=place), status="finished")
        right = np.arange(40) % (place + 2) > 0
        for task, n in (("zero_shot", 40), ("zero_shot", 39), ("knn", 40)):
            # The newest of B was asked of other images: a diagram of its own.
            asked = Question(task, n if place else 40, 5, protocol="20 neighbors" if task == "knn" else "")
            metrics = {f"{task}_acc1": float(right.mean())}
            details = {"classes": list(LABELS), "reliability": {"own": RELIABLE} if curved else {}}
            arrays = {"path": paths, "right": right}
            folder = evaluation_folder(workspace.runs.get(run).folder, "clothing-catalog", "heldout", 10)
            write_task(folder, TaskRecord(task, metrics, asked.n, 40, details, arrays, asked))
            workspace.results.add_evaluation(run, 10, "clothing-catalog", "heldout", metrics, {task: asked})
    assert _export(workspace, tmp_path, "evaluation-scores", runs) == 0
    assert complaints(drawn[0]) == []
    if not curved:
        assert _export(workspace, tmp_path, "evaluation-scores", runs, "--width", "1") == 0
        assert complaints(drawn[1]) == []
        plots = [
            [dot.get_offsets()[0][1] for dot in axes.collections if isinstance(dot, PathCollection)]
            for axes in drawn[0].axes
        ]
        for heights in filter(None, plots):
            assert len(set(np.round(heights, 6))) == len(heights), "no two runs lie upon each other"
        assert sum(map(len, plots)) >= 2 * runs


@few_plain(1, "runs", nightly_except([2, 6], 6))
@few_plain(1, "kind", nightly_except(["gap", "comparison", "hubness"], "comparison"))
def test_names_without_spaces(unbroken: Workspace, drawn: list[Figure], tmp_path: Path, kind: str, runs: int):
    assert _export(unbroken, tmp_path, kind, runs) == 0
    assert complaints(drawn[0]) == []


def test_names_without_spaces_beside_long_names_of_questions(drawn: list[Figure], tmp_path: Path):
    workspace = Workspace(tmp_path / "evaluated")
    for place, name in enumerate(NAMES[:2]):
        run = workspace.runs.create(config.Run(name=name.replace(" ", "_"), seed=place))
        for learned in ("84 training pairs, 20 nearest", "26 others of the split, 20 nearest"):
            asked = Question("knn", 40, 5, protocol=f"learned from {learned}")
            right = np.arange(40) % (place + 2) > 0
            arrays = {"path": np.array([f"{n}.png" for n in range(40)]), "right": right}
            metrics = {"knn_acc1": float(right.mean())}
            folder = evaluation_folder(workspace.runs.get(run).folder, "clothing-catalog", "heldout", 10)
            write_task(folder, TaskRecord("knn", metrics, 40, 40, {"classes": list(LABELS)}, arrays, asked))
            workspace.results.add_evaluation(run, 10, "clothing-catalog", "heldout", metrics, {"knn": asked})
    assert _export(workspace, tmp_path, "evaluation-scores", 2) == 0
    assert complaints(drawn[0]) == []


@few_plain(1, "groups", nightly_except([2, 6], 6))
def test_groups(drawn: list[Figure], tmp_path: Path, groups: int):
    workspace = Workspace(tmp_path / "groups")
    for place, name in enumerate(NAMES[:groups]):
        for seed in range(3):
            run = workspace.runs.create(config.Run(name=f"{name} ({seed})", seed=seed), status="finished")
            values = {"image_to_text_R@1": 0.4 + 0.02 * place + 0.01 * seed, "modality_gap": 0.3}
            workspace.results.add_evaluation(run, 10, "clothing-catalog", "heldout", values)
    patterns = itertools.chain.from_iterable(("--group", f"{name}*") for name in NAMES[:groups])
    words = ["export", "groups", *patterns, "--out", str(tmp_path / "g.png"), "--workspace", str(workspace.folder)]
    assert main(words) == 0
    assert complaints(drawn[0]) == []


@few_plain(1, "kind", ["comparison", "groups"])
def test_long_questions_and_intervals_of_six_runs(drawn: list[Figure], tmp_path: Path, kind: str):
    """No number lies on another one: what is too wide for the page is drawn in parts, each with its runs' colors."""
    workspace = Workspace(tmp_path / "asked")
    shares = {f"{way}_R@{k}": 0.3 + 0.04 * k for way in ("image_to_text", "text_to_image") for k in (1, 5, 10)}
    asked = {"retrieval": retrieval_question(1_720, texts=1_600, images=440)}
    asked["knn"] = Question("knn", 1_720, 102, protocol="learned from 84,000 of 90,000 training pairs, 20 nearest")
    for place, name in enumerate(NAMES):
        run = workspace.runs.create(config.Run(name=name, seed=place), status="finished")
        numbers = {key: value + place / 100 for key, value in shares.items()} | {"knn_acc1": 0.5}
        other = dataclasses.replace(asked["knn"], protocol="learned from 26,000 others of the split, 20 nearest")
        workspace.results.add_evaluation(run, 10, "clothing-catalog", "heldout", numbers, asked)
        workspace.results.add_evaluation(run, 10, "clothing-catalog", "heldout", {"knn_acc1": 0.4}, {"knn": other})
    named_runs = map(str, range(1, 7)) if kind == "comparison" else ("--group", "clip*", "--group", "*loob*")
    words = ["export", kind, *named_runs, "--out", str(tmp_path / "g.png"), "--workspace", str(workspace.folder)]
    assert main(words) == 0
    assert complaints(drawn[0]) == []
    drawn[0].canvas.draw()
    for axes in drawn[0].axes:
        boxes = [text.get_window_extent() for text in axes.texts if text.get_text() and text.get_visible()]
        for one, other in itertools.combinations(boxes, 2):
            assert one.x1 <= other.x0 or other.x1 <= one.x0 or one.y1 <= other.y0 + 1 or other.y1 <= one.y0 + 1
    if kind == "comparison":
        heads = [text for axes in drawn[0].axes for text in axes.texts if text.get_label() == "column"]
        assert len(heads) == 6
        assert len({text.get_color() for text in heads}) == 6


@few_plain(1, "runs", nightly_except([2, 6], 2))
def test_words_of_the_classes(named: Workspace, runs: int):
    texts = [_class_texts(named, run) for run in range(1, runs + 1)]
    for figure in (
        panel_figure.draw(CALIBRATION.panel(_each(calibration, named, texts), CALIBRATION.settings())),
        panel_figure.draw(PROMPTS.panel(_each(prompts, named, texts), PROMPTS.settings())),
    ):
        _lay_out(figure)
        assert complaints(figure) == []


@pytest.mark.parametrize("runs", nightly_except([2, 6], 2))
def test_hits_have_a_picture_each_and_no_hole(named: Workspace, monkeypatch, tmp_path: Path, runs: int):
    Image.new("RGB", (64, 64), "teal").save(tmp_path / "hit.png")
    monkeypatch.setattr(panel_figure, "read_square", lambda _: np.asarray(Image.open(tmp_path / "hit.png")))
    query = np.eye(32)[0]
    opened = [open_target(named, Target(run), Request()) for run in range(1, runs + 1)]
    found = PerRun(tuple(search(each, query) for each in opened), tuple(range(runs)))
    figure = panel_figure.draw(SEARCH.panel(found, SearchSettings(query_text="a red circle")))
    _lay_out(figure)
    assert complaints(figure) == []
    assert [len(axes.images) for axes in figure.axes] == [*[panel_figure.MOST_PICTURES] * runs, 0]


@in_style
def test_the_test_finds_what_was_wrong():
    figure = Figure(figsize=(4, 2), layout="constrained")
    for axes in figure.subplots(1, 2):
        axes.set_title(NAMES[0])
    _lay_out(figure)
    assert any("covers" in complaint for complaint in complaints(figure))
    assert any("cut" in complaint for complaint in complaints(figure))
    fitted = new_figure(4, 2)
    for axes in fitted.subplots(1, 2):
        heading(axes, NAMES[0])
    _lay_out(fitted)
    assert complaints(fitted) == []
    titles = [text.get_text() for axes in fitted.axes for text in axes.texts]
    assert [" ".join(title.split()) for title in titles] == [NAMES[0]] * 2, "a title is broken, not shortened"


def test_names_of_rows_are_broken_before_a_table_is_parted():
    lines = [NumberRow("Image to text R@1, unseen renderings, n = 360 of 1,024", "", (0.98, 0.99))] * 3
    table = NumberTable("numbers", "Numbers", ("CLIP", "CLOOB"), tuple(lines))
    assert panel_figure.parted(table, 3.3) == [table]
    figure = panel_figure.draw(Panel(title="", rows=((table,),)), FigureChoices(("all",), width="1"))
    _lay_out(figure)
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) == 3 * 3 + 2  # rows and two heads; a lone table has no title
    for one, other in itertools.combinations(boxes, 2):
        assert not _overlap(one, other)


def test_a_further_part_of_a_table_has_only_rows_with_a_value_there():
    none = float("nan")
    heads = [NumberRow(words, "", ()) for words in ("Retrieval, unseen renderings", "Calibration")]
    rows = [NumberRow(words, "", (0.9, 0.8, low, 0.1)) for words, low in (("R@1", 0.2), ("R@5", 0.3))]
    only = NumberRow("Calibration error", "", (0.1, 0.2, none, none))
    columns = ("CLIP", "CLOOB", "B against A", "p")
    table = NumberTable("scores", "Scores", columns, (heads[0], *rows, heads[1], only))
    first, second = panel_figure.parted(table, 2.5)
    assert [line.words for line in first.lines] == [line.words for line in table.lines]
    assert [line.words for line in second.lines] == [heads[0].words, "R@1", "R@5"]


def test_a_column_is_broken_where_a_name_allows_it():
    assert panel_figure.head_lines("CLIP on Scenes, seed 0", 14) == ["CLIP on", "Scenes, seed 0"]
    assert panel_figure.head_lines("clip-101_ObjectCategories", 14) == ["clip-101_", "ObjectC…gories"]
    assert panel_figure.head_lines("", 14) == [""]


def test_what_is_shortened_keeps_both_ends():
    assert shortened("cloob, seed 12", lambda text: len(text) <= 20) == "cloob, seed 12"
    assert shortened("cloob of the catalog, seed 12", lambda text: len(text) <= 15) == "cloob o…seed 12"
    assert wrapped("one two three four", lambda text: len(text) <= 9) == "one two\nthree\nfour"
    assert wrapped("a\nb", lambda text: len(text) <= 9) == "a\nb"


def complaints(figure: Figure) -> list[str]:
    """Return texts that are clipped, overlap or are squeezed; empty for a figure that can be printed."""
    page = figure.bbox
    words = _words(figure)
    found = [f"cut: {text!r}" for text, box in words if not _inside(box, page)]
    for (first, a), (second, b) in itertools.combinations(words, 2):
        if _overlap(a, b):
            found.append(f"{first!r} covers {second!r}")
    for legend in figure.findobj(Legend):
        if legend.get_texts() and not _inside(legend.get_window_extent(), page):
            found.append("cut: a legend")
    found += [f"squeezed: {box.width:.0f} x {box.height:.0f}" for box in _boxes(figure) if min(box.size) < 30]
    return found


def _lay_out(figure: Figure) -> None:
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()


def _boxes(figure: Figure) -> list[Bbox]:
    bars = {axes for axes in figure.axes if axes.get_label() == "<colorbar>"}
    return [axes.get_window_extent() for axes in figure.axes if axes.axison and axes not in bars]


def _words(figure: Figure) -> list[tuple[str, Bbox]]:
    """Return every visible text other than tick labels and texts among the data."""
    ticks = {label for axes in figure.axes for label in _ticks(axes)}
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    among = {text for axes in figure.axes for text in axes.texts if text.get_label() not in ("heading", "column")}
    shown = [text for text in texts if text not in ticks and text not in among]
    return [(text.get_text(), Text.get_window_extent(text)) for text in shown if _is_shown(text)]


def _is_shown(text: Text) -> bool:
    axes = text.axes
    return axes is None or axes.axison or text in axes.texts or (isinstance(text.figure, Figure) and axes.get_visible())


def _ticks(axes: Axes) -> list[Text]:
    both = [*axes.get_xticklabels(which="both"), *axes.get_yticklabels(which="both")]
    return [*both, axes.xaxis.offsetText, axes.yaxis.offsetText]


def _inside(box: Bbox, page: Bbox) -> bool:
    return box.x0 >= page.x0 - 1 and box.y0 >= page.y0 - 1 and box.x1 <= page.x1 + 1 and box.y1 <= page.y1 + 1


def _overlap(a: Bbox, b: Bbox) -> bool:
    return min(a.x1, b.x1) - max(a.x0, b.x0) > 1.5 and min(a.y1, b.y1) - max(a.y0, b.y0) > 3


def _export(workspace: Workspace, folder: Path, kind: str, runs: int, *more: str) -> int:
    numbers = [str(run) for run in range(1, runs + 1)]
    out = ["--out", str(folder / "f.png"), "--workspace", str(workspace.folder)]
    return main(["export", kind, "--runs", *numbers, *more, *out])


def _each(compute: Any, workspace: Workspace, texts: list[ClassTexts]) -> PerRun[Any]:
    found = tuple(compute(workspace, one, index=place) for place, one in enumerate(texts))
    return PerRun(found, tuple(range(len(found))))


def _class_texts(workspace: Workspace, run: int) -> ClassTexts:
    snapshot = read_snapshot(choose_snapshot(workspace, workspace.runs.get(run)).folder)
    task = class_task(snapshot, LABELS)
    means = np.stack([snapshot.text[task.rows[task.truth == c]].mean(axis=0) for c in range(len(LABELS))])
    vectors = np.repeat((means / np.linalg.norm(means, axis=1, keepdims=True))[None], 2, axis=0)
    templates = ("a photograph of a {} from the catalog of the second season", "{}")
    return dataclasses.replace(ClassTexts(run, snapshot.step, 14.0, LABELS, templates, vectors))


@in_style
def test_titles_side_by_side_stand_on_one_line() -> None:
    figure = new_figure(7.0, 2.5)
    left, right = figure.subplots(1, 2)
    heading(left, "With a legend", above_pt=14)
    heading(right, "With a note", "1 seed, n = 986")
    align_titles((left, right))
    figure.canvas.draw()
    texts = {text.get_text(): text.get_window_extent() for axes in (left, right) for text in axes.texts}
    assert texts["With a legend"].y0 == pytest.approx(texts["With a note"].y0, abs=0.5)
    assert texts["1 seed, n = 986"].y1 < texts["With a note"].y0, "the note rises with its title"
