"""Calibration, templates and saliency as charts and figures, on class vectors made here."""

import io
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from trainer.charts import ChartError
from trainer.charts.calibration import CHART as CALIBRATION
from trainer.charts.calibration import CalibrationSettings
from trainer.charts.class_task import ClassTexts, class_task, class_words, read_class_texts, write_class_texts
from trainer.charts.measures.calibration import at, calibration
from trainer.charts.measures.prompts import mixture, prompts
from trainer.charts.panel_rows import panel_rows
from trainer.charts.prompts import CHART as PROMPTS
from trainer.charts.prompts import PromptSettings
from trainer.charts.saliency import SaliencyChart, SaliencyRun
from trainer.charts.saliency import panel as saliency_panel
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import PerRun
from trainer.render_mpl import panel as panel_figure
from trainer.render_mpl.files import NumberRows, write_figure
from trainer.store import Snapshot, Workspace
from trainer.store.snapshot_files import read_snapshot

pytestmark = pytest.mark.slow

LABELS = ("circle", "square", "star", "a photo of a ring")


def snapshot_of(workspace: Workspace, run: int) -> Snapshot:
    return read_snapshot(choose_snapshot(workspace, workspace.runs.get(run)).folder)


def class_texts(workspace: Workspace, run: int) -> ClassTexts:
    snapshot, rng = snapshot_of(workspace, run), np.random.default_rng(run)
    task = class_task(snapshot, LABELS)
    means = np.stack([snapshot.text[task.rows[task.truth == c]].mean(axis=0) for c in range(len(LABELS))])
    vectors = np.stack([means + noise * rng.normal(size=means.shape) for noise in (0, 0.05, 0.3)])
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    return ClassTexts(run, snapshot.step, 14.0, LABELS, ("a {}", "the {}", "{}"), vectors)


def test_the_class_is_read_from_the_column_that_has_most_labels(charted: Workspace) -> None:
    snapshot = snapshot_of(charted, 1)
    task = class_task(snapshot, LABELS)
    assert task.column == "label"
    names = {"circle": 0, "square": 1, "star": 2, "ring": 3}
    expected = [names.get(label, -1) for label in snapshot.items.label]
    assert task.rows.tolist() == [row for row, place in enumerate(expected) if place >= 0]
    assert task.truth.tolist() == [place for place in expected if place >= 0]
    assert class_task(snapshot, ["red", "blue"]).column == "subject_color"
    with pytest.raises(ChartError, match="None of the labels"):
        class_task(snapshot, ["walrus", "otter"])
    assert class_words(charted, 1)[0][0] == "red"  # the suite of Scenes
    with pytest.raises(ChartError, match="no suite"):
        class_words(charted, 1, suite="nothing")


def test_calibration_of_two_runs(charted: Workspace, tmp_path: Path) -> None:
    texts = [class_texts(charted, run) for run in (1, 2)]
    write_class_texts(tmp_path / "t.npy", texts[0])
    again = read_class_texts(tmp_path / "t.npy")
    np.testing.assert_allclose(again.vectors, texts[0].vectors, atol=1e-6)
    assert again.labels == LABELS
    runs = [calibration(charted, one, index=place) for place, one in enumerate(texts)]
    data, settings = PerRun(tuple(runs), (0, 1)), CalibrationSettings(tau=(1 / 14.0, 0.2))
    told = CALIBRATION.numbers(data, settings)
    assert [1 / one["tau_shown"] for one in told] == pytest.approx([14.0, 5.0])
    for run in runs:
        assert run.fitted.nll <= min(run.own.nll, float(run.curve.min())) + 1e-9
        assert at(run, 1e-6).confidence == pytest.approx(1 / len(LABELS), abs=1e-4)
        assert run.own.reliability.counts.sum() == run.n
    assert told[1]["ece_shown"] == at(runs[1], 5.0).ece
    header, bins = CALIBRATION.records(data, settings)
    assert sum(row[header.index("count")] for row in bins) == sum(run.n for run in runs)
    files = [tmp_path / "c.svg", tmp_path / "c.parquet"]
    write_figure(
        files,
        figure=lambda: panel_figure.draw(CALIBRATION.panel(data, settings)),
        rows=lambda: NumberRows(header, bins),
        command="trainer export calibration",
    )
    assert "mathdefault" not in files[0].read_text(encoding="utf-8"), "powers of ten are written out"


def test_templates_of_two_runs(charted: Workspace) -> None:
    runs = [prompts(charted, class_texts(charted, run), index=run - 1) for run in (1, 2)]
    data, settings = PerRun(tuple(runs), (0, 1)), PromptSettings(weights=(0.0, 0.0, 1.0))
    for run, weighted in ((run, mixture(run, settings.weights)) for run in runs):
        assert weighted.accuracy == pytest.approx(run.overall[2])
        assert weighted.confusion.sum() == run.n
        assert np.trace(run.mean.confusion) == pytest.approx(run.mean.accuracy * run.n)
        np.testing.assert_allclose(run.difference + run.mean.by_class, run.accuracy)
        assert run.mean.accuracy >= run.overall[2]
    with pytest.raises(ChartError, match="weights"):
        mixture(runs[0], [0, 0, 0])
    with pytest.raises(ChartError, match="3 templates and 2 weights"):
        mixture(runs[0], [1, 2])
    panel = PROMPTS.panel(data, settings)
    assert panel.mark("confusion-1").values.shape == (len(LABELS),) * 2
    np.testing.assert_allclose(panel.mark("templates-0").values[:, 1:], 100 * runs[0].difference)
    header, rows = PROMPTS.records(data, settings)
    alone = [row[-2] for row in rows if row[8] == "template" and row[header.index("class")] is None]
    assert alone == pytest.approx([*runs[0].overall, *runs[1].overall])


def test_a_single_template_is_not_compared_with_itself(charted: Workspace) -> None:
    run = prompts(charted, class_texts(charted, 1), index=0)
    single = replace(run, templates=run.templates[:1], overall=run.overall[:1], accuracy=run.accuracy[:1])
    keys = {
        (data.templates, value): [
            mark.key for mark in PROMPTS.panel(PerRun((data,), (0,)), PromptSettings(value=value)).marks
        ]
        for data in (run, single)
        for value in ("difference", "accuracy")
    }
    assert keys[single.templates, "difference"] == ["confusion-0", "numbers"]
    assert keys[single.templates, "accuracy"] == ["templates-0", "confusion-0", "numbers"]
    assert "templates-0" in keys[run.templates, "difference"]


def test_a_figure_writes_templates_whole_and_large_enough_to_be_read(charted: Workspace) -> None:
    """They were cut to 32 letters, "1 × a {} circle left of a turqu…", in 6 pt and less."""
    run = prompts(charted, class_texts(charted, 1), index=0)
    count, long = 24, "a {} circle left of a turquoise square number 00"
    many = replace(
        run,
        templates=tuple(f"{long[:-2]}{at:02d}" for at in range(count)),
        overall=np.resize(run.overall, count),
        accuracy=np.resize(run.accuracy, (count, run.accuracy.shape[1])),
    )
    figure = panel_figure.draw(PROMPTS.panel(PerRun((many,), (0,)), PromptSettings()))
    figure.savefig(io.BytesIO(), format="svg")
    labels = next(axes.get_yticklabels() for axes in figure.axes if len(axes.get_yticklabels()) == count)
    assert [label.get_text() for label in labels] == [*many.templates]
    assert {label.get_fontsize() for label in labels} == {7.0}
    boxes = [label.get_window_extent() for label in labels]
    assert min(box.x0 for box in boxes) > 0
    assert all(upper.y0 >= lower.y1 for upper, lower in pairwise(boxes))


def test_maps_are_compared_by_shape_and_not_by_size() -> None:
    cells = np.random.default_rng(0).normal(size=(4, 4))
    runs = tuple(
        SaliencyRun(index=i, run=i + 1, name=n, objective="clip", step=1, cells=scale * cells, cosine=0.5)
        for i, (n, scale) in enumerate((("one", 1.0), ("two", 7.0)))
    )
    chart = SaliencyChart("a.png", np.zeros((8, 8, 3), np.uint8), "=cat", "occlusion", runs)
    np.testing.assert_allclose(chart.difference, 0, atol=1e-12)
    assert chart.agreement == pytest.approx(1)
    flat = SaliencyChart("a.png", chart.image, "cat", "gradient", (runs[0],))
    assert flat.difference is None
    assert flat.agreement is None
    assert len([*panel_rows(saliency_panel(chart), "saliency")]) == 3 * 16
    drawn = panel_figure.draw(saliency_panel(chart))
    drawn.savefig(io.BytesIO(), format="svg")
    sides = [axes.get_window_extent().width for axes in drawn.axes if axes.get_images()]
    assert len(sides) == 4
    assert max(sides) - min(sides) < 1, "the image is as large as the maps"
