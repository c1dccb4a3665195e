"""Curves come from the store as logged, and losses of two objectives never share a panel."""

import dataclasses

import numpy as np
import pytest

from explorer.models.curve_book import CurveBook, read_curves
from trainer.analysis.smoothing import smooth
from trainer.charts import ChartError
from trainer.charts.curves import draw, records
from trainer.charts.figure_choices import parts_of
from trainer.charts.measures.curves import CurveSettings, curves
from trainer.store import RunLog


def test_shared_metrics_share_a_panel_and_losses_do_not(charted):
    chart = curves(charted, [1, 2], ["val/image_to_text_R@1", "train/loss"])
    assert [panel.metric for panel in chart] == ["val/image_to_text_R@1", "train/loss", "train/loss"]
    recall, clip, cloob = chart
    assert [series.name for series in recall.series] == ["CLIP · s0", "CLOOB · s0"]
    assert (recall.percent, recall.unit, recall.n) == (True, "%", 240)
    assert clip.label == "Training loss, CLIP"
    assert [series.objective for series in clip.series] == ["clip"]
    assert cloob.label == "Training loss, CLOOB"
    assert [series.index for series in cloob.series] == [1], "a run keeps its color in every panel"
    assert clip.n is None
    parts = parts_of(draw(chart, CurveSettings()))
    assert [part.name for part in parts] == ["val/image_to_text_R@1", "train/loss:clip", "train/loss:cloob"]
    assert [part.title for part in parts[1:]] == ["Training loss, CLIP", "Training loss, CLOOB"]


def test_an_evaluated_loss_is_called_held_out_and_a_logged_one_by_its_name(charted):
    charted.results.add_evaluation(1, 8, "scenes", "renderings", {"loss": 2.5})
    with RunLog.claim(charted, 2) as log:
        log.scalars(9, {"loss": 3.5})
    labels = {panel.label: panel.series[0].raw.tolist() for panel in curves(charted, [1, 2], ["loss"])}
    assert labels == {"Held-out loss, CLIP": [2.5], "loss, CLOOB": [3.5]}


def test_losses_of_two_batch_sizes_have_an_axis_each(charted):
    run_config = charted.runs.config_of(1)
    small = charted.runs.create(
        dataclasses.replace(
            run_config, name="small", optimizer=dataclasses.replace(run_config.optimizer, batch_size=16)
        )
    )
    with RunLog.claim(charted, small) as log:
        log.scalars(1, {"train/loss": 2.8})
    labels = [panel.label for panel in curves(charted, [1, 2, small], ["train/loss"])]
    size = run_config.optimizer.batch_size
    assert labels == [
        f"Training loss, CLIP, batches of {size}",
        "Training loss, CLOOB",
        "Training loss, CLIP, batches of 16",
    ]
    book = CurveBook()
    book.load(read_curves(charted, [1, 2, small], ["train/loss"]))
    assert [panel.label for panel in curves(book.frozen(), [1, 2, small], ["train/loss"])] == labels


def test_values_are_those_of_the_store(charted):
    (panel,) = curves(charted, ["cloob-scenes"], ["train/loss"], smoothing=0.9)
    steps, values, seconds = charted.results.series(2, "train/loss")
    (series,) = panel.series
    assert series.x.tolist() == steps.tolist()
    assert series.raw.tolist() == values.tolist()
    assert np.allclose(series.smooth, smooth(values, 0.9))
    (timed,) = curves(charted, [2], ["train/loss"], axis="time")[0].series
    assert timed.x.tolist() == seconds.tolist()
    assert timed.smooth.tolist() == timed.raw.tolist()


def test_what_is_missing_is_named(charted):
    with pytest.raises(ChartError, match=r"No run has logged nothing; choose among .*train/loss"):
        curves(charted, [1], ["nothing"])
    assert len(curves(charted, [1], ["nothing", "train/loss"])) == 1
    with pytest.raises(ChartError, match="Smoothing 1 is out of range"):
        curves(charted, [1], ["train/loss"], smoothing=1.0)


def test_training_is_smoothed_and_held_out_values_are_drawn_as_measured(charted):
    settings = CurveSettings(smoothing=0.9)
    often = charted.runs.create(dataclasses.replace(charted.runs.config_of(1), name="evaluated often"))
    with RunLog.claim(charted, often) as log:
        for step in range(1, 41):
            log.scalars(step, {"val/image_to_text_R@1": step % 7 / 7, "val/loss": step % 5, "train/loss": step % 3})
    for panel in curves(charted, [often], ["val/image_to_text_R@1", "val/loss", "train/loss"], smoothing=0.9):
        line = panel.series[0]
        assert np.array_equal(line.smooth, line.raw) == panel.metric.startswith("val/")
    data = curves(charted, [1, 2], ["val/image_to_text_R@1", "train/loss"], smoothing=0.9)
    panel = draw(data, settings)
    recall, clip, cloob = panel.marks
    assert [line.tone for line in recall.curves] == ["run_a", "run_b"]
    assert not any(line.faint for line in recall.curves)
    raw, smoothed = clip.curves
    assert (raw.faint, smoothed.faint, smoothed.name) == (True, False, "CLIP · s0")
    assert np.allclose(raw.y, data[1].series[0].raw)
    assert np.allclose(smoothed.y, data[1].series[0].smooth)
    assert recall.title == "Image to text R@1, held-out, n = 240 (%)"
    assert (recall.note, cloob.title) == ("", "Training loss, CLOOB")
    assert {line.tone for line in cloob.curves} == {"run_b"}
    assert "Training smoothed with weight 0.9" in panel.notes[0]
    assert not draw(data[:1], settings).notes


def test_curves_that_diverge_have_gaps_and_every_value_is_a_record(charted):
    (panel,) = curves(charted, [1], ["train/loss"])
    raw = panel.series[0].raw.copy()
    raw[100:], raw[50] = np.nan, np.inf
    broken = dataclasses.replace(panel, series=(dataclasses.replace(panel.series[0], raw=raw, smooth=raw),))
    line = draw((broken,), CurveSettings()).marks[0].curves[0]
    assert np.isnan(line.y[100:]).all()
    assert np.isnan(line.y[50])
    header, rows = records(curves(charted, [1, 2], ["train/loss"]), CurveSettings())
    assert (len(rows), {len(row) for row in rows}) == (2 * 240, {len(header)})
