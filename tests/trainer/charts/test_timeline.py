"""The geometry timeline: one frame for all steps, curves against naive numpy, films that can be opened."""

import dataclasses
import itertools
import json
import subprocess
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.nightly import few_plain, nightly_except
from trainer.charts import ChartError
from trainer.charts.figure_choices import FigureChoices, run_names
from trainer.charts.marks import PairMap
from trainer.charts.pair_changes import changes
from trainer.charts.pair_colors import CHANGED, changed_columns
from trainer.charts.point_placement import PointPlacement
from trainer.charts.snapshot_series import MEASURES
from trainer.charts.timeline import draw, map_at, note_of, pca_frames, point_colors, timeline
from trainer.errors import UserError
from trainer.render_mpl import film
from trainer.render_mpl import timeline_film as figure
from trainer.render_mpl.pair_map import legend_of
from trainer.render_mpl.panel import draw as draw_panel
from trainer.store import Items, Workspace, read_snapshot, write_snapshot

STEPS = (0, 80, 160, 240)
FIGURES = [
    (FigureChoices(), 7.2, (2, 4)),
    (FigureChoices(width="1"), 3.5, (2, 3)),
    (FigureChoices(width="1", arrange="column"), 3.5, (3, 2)),
]


def folder_of(folder: Path, image: np.ndarray, text: np.ndarray, *, first: int = 0) -> Path:
    n = len(image)
    items = Items(np.arange(first, first + n), [""] * n, [""] * n, [""] * n, [""] * n)
    write_snapshot(folder, image=image, text=text, items=items, step=0, dataset="d", split="s", model="m")
    return folder


def unit(seed: int, n: int = 40, d: int = 8) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_a_rotation_of_the_space_is_no_movement(tmp_path: Path):
    """The steps of a run, and the other run, are rotated copies: all have the same positions."""
    rotations = [np.linalg.qr(np.random.default_rng(i).standard_normal((8, 8)))[0].astype("f4") for i in range(4)]
    folders = [folder_of(tmp_path / str(i), unit(0) @ r, unit(1) @ r) for i, r in enumerate(rotations)]
    placed, note = pca_frames([folders[:3], folders[3:]])
    for points in (*placed[0][:2], placed[1][0]):
        assert np.allclose(points, placed[0][2], atol=1e-5)
    assert "aligned to it" in note


def test_distances_in_the_frame_are_those_of_the_projection(tmp_path: Path):
    """A step that moves relative to the last one moves in the image: nothing is rescaled."""
    near = folder_of(tmp_path / "a", unit(0), unit(1))
    narrow = 0.1 * unit(2) + np.float32([1, 0, 0, 0, 0, 0, 0, 0])
    narrow /= np.linalg.norm(narrow, axis=1, keepdims=True)
    placed, _ = pca_frames([[folder_of(tmp_path / "b", narrow, narrow), near]])
    spread = [points.std(0).max() for points in placed[0]]
    assert spread[0] < 0.3 * spread[1]


def test_runs_of_other_pairs_have_axes_of_their_own_and_it_is_said(tmp_path: Path):
    one, other = folder_of(tmp_path / "a", unit(0), unit(1)), folder_of(tmp_path / "b", unit(2), unit(3), first=5)
    placed, note = pca_frames([[one], [other]])
    assert "runs of other pairs have axes of their own" in note
    assert np.array_equal(placed[1][0], pca_frames([[other]])[0][0][0])


def test_placing_very_many_points_copies_no_snapshot(tmp_path: Path):
    """A million pairs of 512 numbers would take 20 GB as a whole in double precision."""
    rows = unit(0, 100_000, 64).astype(np.float16)
    folders = [folder_of(tmp_path / name, rows, rows) for name in "ab"]
    tracemalloc.start()
    placed, _ = pca_frames([folders])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.allclose(placed[0][0], placed[0][1], atol=1e-4)
    assert most < 2 * rows.nbytes * 4


@pytest.mark.slow
def test_curves_are_the_logged_ones_or_naive_numbers_of_the_snapshots(charted: Workspace):
    chart = timeline(charted, [1, 2])
    assert chart.steps == STEPS
    for run in chart.runs:
        steps, logged, _ = charted.results.series(run.run, "val/image_to_text_R@1")
        assert run.curves["recall"].logged
        assert np.allclose(run.curves["recall"].y, 100 * np.asarray(logged))
        assert run.curves["recall"].x.tolist() == list(steps)
        if run.index == 0:
            assert "tau" not in run.curves, "it was learned, and not logged"
        else:
            inv_tau = charted.runs.config_of(run.run).objective.inv_tau
            assert run.curves["tau"].y.tolist() == [1 / inv_tau] * 2, "it is fixed"
            assert run.curves["tau"].x.tolist() == [0, STEPS[-1]]
        for place, folder in enumerate(run.folders):
            image, text = (np.load(folder / f"{name}.npy").astype(np.float64) for name in ("image", "text"))
            n = len(image)
            angles = [np.arccos(np.clip(image[i] @ image[j], -1, 1)) for i in range(n) for j in range(i)]
            squared = [((image[i] - image[j]) ** 2).sum() for i in range(n) for j in range(n) if i != j]
            shares = np.linalg.eigvalsh(np.cov(image.T))
            shares = shares[shares > 0] / shares[shares > 0].sum()
            expected = {
                "alignment": np.mean([((a - b) ** 2).sum() for a, b in zip(image, text)]),
                "uniformity": np.log(np.mean(np.exp(-2 * np.array(squared)))),
                "rank": np.exp(-(shares * np.log(shares)).sum()),
                "ajne": 1 / 4 - np.sum(angles) / (n * np.pi) / n,
            }
            for key, value in expected.items():
                assert not run.curves[key].logged
                assert run.curves[key].y[place] == pytest.approx(value, rel=1e-4, abs=1e-6), key


def test_every_point_is_inside_the_frame_and_pairs_stay_pairs(charted: Workspace):
    chart = timeline(charted, [1, 2], curves=False)
    for run in chart.runs:
        left, bottom, right, top = run.frame
        assert (run.images, run.texts, len(run.points)) == (240, 240, 4)
        for xy in run.points:
            assert (xy >= [left - 1e-6, bottom - 1e-6]).all()
            assert (xy <= [right + 1e-6, top + 1e-6]).all()
        ends = np.concatenate(run.points)
        assert (ends.min(0).tolist(), ends.max(0).tolist()) == ([left, bottom], [right, top]), "it fills its frame"
    assert [chart.runs[0].at(step) for step in (-5, 0, 79, 80, 1000)] == [0, 0, 0, 1, 3]


def test_what_cannot_be_shown_is_refused(charted: Workspace):
    with pytest.raises(ChartError, match="no snapshot of any data, nowhere"):
        timeline(charted, [1], split="nowhere")
    with pytest.raises(ChartError, match="has to place its points"):
        timeline(charted, [1], placement=PointPlacement(method="umap"))


@pytest.fixture(scope="module")
def films(charted: Workspace, tmp_path_factory: pytest.TempPathFactory):
    """Return a small film in every format: three steps of one run."""
    chart = timeline(charted, [1])
    run = chart.runs[0]
    short = dataclasses.replace(run, steps=run.steps[:2], folders=run.folders[:2], points=run.points[:2])
    drawn = list(figure.frames(dataclasses.replace(chart, runs=(short,))))
    return drawn, tmp_path_factory.mktemp("films")


@pytest.mark.slow
@pytest.mark.nightly
def test_a_film_stands_at_each_step_and_glides_between(films):
    drawn, _ = films
    assert [frame.milliseconds for frame in drawn] == [600, *[40] * figure.BETWEEN, 1800]
    assert all((a.pixels != b.pixels).any() for a, b in itertools.pairwise(drawn))


@pytest.mark.slow
def test_titles_of_a_film_are_one_line_and_its_legend_is_read_across(charted: Workspace):
    """The line "renderings, n = 1,024 (%)" lay on the first plot, and colors ran down the columns."""
    chart = timeline(charted, [1])
    drawn = figure.Film(chart)
    titles = [title for axes in drawn.figure.axes if (title := axes.get_title("left") or axes.get_title())]
    assert any(title.startswith("Image to text R@1") for title in titles)
    assert not any("\n" in title for title in titles)
    handles, columns = legend_of([map_at(chart, chart.runs[0], 0)], 7.2, most=4)
    filled = np.array_split([handle.get_label() for handle in handles], columns)
    assert [column[0] for column in filled][:2] == ["image", "caption"], "the first row, as matplotlib fills columns"


@pytest.mark.slow
def test_films_open_with_every_frame_and_what_made_them(films):
    drawn, folder = films
    file = folder / "film.gif"
    film.write_film(file, drawn, command="trainer export timeline --runs 1", title="Geometry timeline")
    with Image.open(file) as opened:
        assert opened.n_frames == len(drawn)
        assert opened.size == drawn[0].pixels.shape[1::-1]
        opened.seek(len(drawn) - 1)
        assert opened.info["duration"] == 1800
        off = np.abs(np.asarray(opened.convert("RGB"), int) - drawn[-1].pixels).mean()
        assert off < 3
    assert b"trainer export timeline --runs 1" in file.read_bytes()


@pytest.mark.slow
def test_a_frame_is_the_last_one_of_the_film(charted: Workspace, films, tmp_path: Path):
    from trainer.__main__ import main

    file = tmp_path / "last.png"
    line = ["export", "timeline", "--workspace", str(charted.folder), "--runs", "1", "--frame", "--out", str(file)]
    assert main(line) == 0
    chart = timeline(charted, [1])
    (run,) = chart.runs
    short = run_names([run.name], FigureChoices())[run.name]
    assert short != run.name, "the labels of a film are those chosen, too"
    (last,) = figure.frames(dataclasses.replace(chart, runs=(dataclasses.replace(run, name=short),)), only_last=True)
    with Image.open(file) as opened:
        assert np.array_equal(np.asarray(opened), last.pixels)
        assert "export timeline --runs 1" in opened.text["Description"]
    drawn, _ = films
    assert last.pixels.shape == drawn[-1].pixels.shape
    assert main([*line[:-1], str(tmp_path / "film.gif")]) != 0, "a film of one frame is none"


def test_an_mp4_has_the_length_of_the_film(films):
    pytest.importorskip("imageio_ffmpeg")
    drawn, folder = films
    film.write_film(folder / "film.mp4", drawn, command="c", title="t")
    told = subprocess.run([film.ffmpeg(), "-i", str(folder / "film.mp4")], capture_output=True, text=True).stderr
    assert "Duration: 00:00:02.6" in told
    assert "25 fps" in told


def test_without_ffmpeg_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setitem(__import__("sys").modules, "imageio_ffmpeg", None)
    monkeypatch.setattr(film.safe_subprocess, "find", lambda _name: None)
    with pytest.raises(UserError, match=r"needs ffmpeg.*--extra film.*\.gif"):
        film.check_film(tmp_path / "x.mp4")
    with pytest.raises(UserError, match=r"\.gif, \.mp4"):
        film.check_film(tmp_path / "x.avi")


@pytest.mark.slow
@pytest.mark.nightly
def test_points_of_figures_and_films_are_colored_as_asked(charted: Workspace):
    chart = timeline(charted, [1, 2], curves=False)
    first = {}
    for by in (None, "modality", "label", "subject_color", "agreement", "rank", "cosine"):
        colored = dataclasses.replace(chart, colors=point_colors(chart, by))
        film = figure.Film(colored)
        marks = [mark for marks in film.marks for mark in marks]
        first[by] = np.concatenate([np.broadcast_to(mark.get_facecolors(), (240, 4)) for mark in marks])
        if by in (None, "rank"):  # a frame without and with a scale; drawing one takes half a second
            assert len(film.at(0, 80, 0.5).shape) == 3
    assert np.array_equal(first[None], first["label"])
    assert len(np.unique(first["modality"], axis=0)) == 2
    assert len(np.unique(first["subject_color"], axis=0)) == 6
    assert len(np.unique(first["label"], axis=0)) == 8
    # An image and its text are one pair; both runs agree or not about it.
    agreement = first["agreement"].reshape(4, 240, 4)
    assert (agreement == agreement[:1]).all()
    # The scales of two runs are their own: the least cosine of each has one color.
    image, text = (getattr(read_snapshot(chart.runs[1].folders[-1]), part) for part in ("image", "text"))
    least = (image * text).sum(1).argmin()
    cosine = first["cosine"].reshape(4, 240, 4)
    assert np.allclose(cosine[2, least, :3], (0.267004, 0.004874, 0.329415), atol=1e-3)
    with pytest.raises(ChartError, match=r"no column .nothing.*subject_color"):
        point_colors(chart, "nothing")


@pytest.mark.slow
@pytest.mark.parametrize("runs", nightly_except([(1, 2), (1,)]))
def test_films_are_colored_by_what_changed(charted: Workspace, runs: tuple[int, ...]):
    chart = timeline(charted, list(runs), curves=False)
    ends = ((1, 240), (2, 240)) if len(runs) == 2 else ((1, chart.steps[0]), (1, 240))
    expected = changed_columns(changes(charted, *ends))
    for by in CHANGED:
        colored = dataclasses.replace(chart, colors=point_colors(chart, by, workspace=charted))
        film = figure.Film(colored)
        for run, one in zip(chart.runs, colored.colors, strict=True):
            values = one.numbers if one.numbers is not None else (one.place == 0).astype(float)
            assert np.array_equal(values, expected[by].numbers, equal_nan=True), by
            colors = film.marks[run.index][0].get_facecolors()
            is_told = len(np.unique(colors, axis=0)) > 1
            assert is_told == (len(np.unique(values[np.isfinite(values)])) > 1), "the points tell the measure"
        named = [handle.get_label() for handle in legend_of(draw(colored).marks, 7.2)[0]]
        assert ("same prediction" in named) == (by == "verdict")
        told = note_of(colored, chart.steps)
        assert "Colored by" in told
        assert f"step {ends[0][1]:,}" in told
        assert "step 240" in told


def test_the_figure_aligns_its_plots_and_its_legend_tells_dashed_lines_from_solid_ones(charted: Workspace):
    drawn = draw_panel(draw(timeline(charted, [1, 2])))
    drawn.draw_without_rendering()
    legend = drawn.subfigs[0].legends[0]
    dashes = [line for line in legend.get_lines() if line.get_linestyle() == "--"]
    assert dashes, "B"
    assert legend.handlelength >= 3
    lefts = [round(axes.get_position().x0, 3) for axes in drawn.axes if axes.get_xlabel() == "Step"]
    assert len(lefts) > len(set(lefts)) == 4, "plots of two rows stand below each other"


@few_plain(2, ("choices", "wide_in", "maps"), FIGURES)
def test_the_figure_is_as_wide_as_chosen_and_says_once_what_maps_share(
    charted: Workspace, choices: FigureChoices, wide_in: float, maps: tuple[int, int]
):
    chart = timeline(charted, [1, 2])
    panel = draw(chart, choices)
    drawn = draw_panel(panel, choices, [run.name for run in chart.runs])
    drawn.draw_without_rendering()
    assert drawn.get_figwidth() == pytest.approx(wide_in)
    rows = [row for row in panel.rows if isinstance(row[0], PairMap)]
    assert (len(rows), len(rows[0])) == maps
    over, left = [mark.title for mark in rows[0]], [row[0].row_label for row in rows]
    steps = [f"Step {step:,}" for step in STEPS]
    names = [run.name for run in chart.runs]
    assert ([*over], left) == ((names, steps[:1] + steps[-2:]) if maps[0] > 2 else (over, names))
    assert set(over) <= {*steps, *names}
    assert not any(mark.title for row in rows[1:] for mark in row)
    assert not any(mark.row_label for row in rows for mark in row[1:])
    sizes = {
        tuple(round(part, 3) for part in axes.get_position().bounds[2:]) for axes in drawn.axes[: maps[0] * maps[1]]
    }
    assert len({height for _, height in sizes}) == 1, "maps of all rows are equally large"
    plots = [axes for axes in drawn.axes if axes.get_title("left")]
    assert {axes.get_title("left").count("\n") for axes in plots} == {1}, "measure, and what it was measured on"


def test_points_are_smaller_on_smaller_maps(charted: Workspace):
    chart = timeline(charted, [1, 2], curves=False)
    areas = []
    for choices in (FigureChoices(), FigureChoices(width="1")):
        figure_of = draw_panel(draw(chart, choices), choices)
        areas.append(figure_of.axes[0].collections[0].get_sizes()[0])
    assert areas[0] > areas[1]


def test_parts_of_the_figure_can_be_left_out(charted: Workspace, tmp_path: Path, capsys):
    from trainer.__main__ import main

    line = ["export", "timeline", "--workspace", str(charted.folder), "--runs", "1", "--json", "--width", "1"]
    assert main([*line, "--panels", "maps", "gap", "--out", str(tmp_path / "t.svg")]) == 0
    figure_of = json.loads(capsys.readouterr().out)["figure"]
    assert figure_of["width_mm"] == pytest.approx(88.9)
    assert figure_of["smallest_pt"] == 7
    assert [part["name"] for part in figure_of["parts"]][:3] == ["maps", "recall", "gap"]
    assert "Alignment" not in (tmp_path / "t.svg").read_text()
    assert main([*line, "--panels", "nothing", "--out", str(tmp_path / "t.svg")]) != 0


def test_what_changed_needs_two_snapshots_to_compare(charted: Workspace):
    chart = timeline(charted, [1], curves=False)
    (run,) = chart.runs
    alone = dataclasses.replace(run, steps=run.steps[-1:], folders=run.folders[-1:], points=run.points[-1:])
    with pytest.raises(ChartError, match="two runs"):
        point_colors(dataclasses.replace(chart, runs=(alone,)), "overlap", workspace=charted)


@pytest.mark.slow
def test_the_command_writes_figure_numbers_and_frames(charted: Workspace, tmp_path: Path, capsys):
    from trainer.__main__ import main

    out = [str(tmp_path / "t.svg"), str(tmp_path / "t.csv")]
    line = ["export", "timeline", "--workspace", str(charted.folder), "--runs", "1", "2", "--json", "--color", "rank"]
    line += ["--out", *out]
    assert main(line) == 0
    assert json.loads(capsys.readouterr().out)["files"] == out
    assert "Step 240" in (tmp_path / "t.svg").read_text()
    assert "rank of caption, of the last step" in (tmp_path / "t.svg").read_text()
    chart = timeline(charted, [1, 2])
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert len(lines) == 1 + sum(len(curve.x) for run in chart.runs for curve in run.curves.values())
    assert {line.split(",")[7] for line in lines[1:]} == {m.key for m in MEASURES}
    for wrong in (["--runs", "1"], ["--runs", "1", "--out", "x.avi"], ["--out", "x.gif"]):
        assert main(["export", "timeline", "--workspace", str(charted.folder), *wrong]) != 0


def test_what_no_run_has_gets_no_axes(charted: Workspace):
    chart = timeline(charted, [1])
    assert "tau" not in chart.runs[0].curves
    assert "tau" not in [mark.key for mark in draw(chart).marks]
    assert "tau" in [mark.key for mark in draw(timeline(charted, [1, 2])).marks]
