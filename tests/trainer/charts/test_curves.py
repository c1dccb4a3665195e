"""Curves come from the store as logged, and losses of two objectives never share a panel."""

from __future__ import annotations

import numpy as np
import pytest

from trainer.analysis.curves import smooth
from trainer.charts import ChartError
from trainer.charts.curves import curves


def test_shared_metrics_share_a_panel_and_losses_do_not(charted):
    chart = curves(charted, [1, 2], ["val/image_to_text_R@1", "train/loss"])
    assert [panel.metric for panel in chart.panels] == ["val/image_to_text_R@1", "train/loss", "train/loss"]
    recall, clip, cloob = chart.panels
    assert [series.name for series in recall.series] == ["clip-scenes", "cloob-scenes"]
    assert (recall.percent, recall.unit, recall.n) == (True, "%", 240)
    assert clip.label == "Training loss, CLIP"
    assert [series.objective for series in clip.series] == ["clip"]
    assert cloob.label == "Training loss, CLOOB"
    assert [series.index for series in cloob.series] == [1], "a run keeps its color in every panel"
    assert clip.n is None


def test_values_are_those_of_the_store(charted):
    (panel,) = curves(charted, ["cloob-scenes"], ["train/loss"], smoothing=0.9).panels
    steps, values, seconds = charted.results.series(2, "train/loss")
    (series,) = panel.series
    assert series.x.tolist() == steps.tolist()
    assert series.raw.tolist() == values.tolist()
    assert np.allclose(series.smooth, smooth(values, 0.9))
    (timed,) = curves(charted, [2], ["train/loss"], axis="time").panels[0].series
    assert timed.x.tolist() == seconds.tolist()
    assert timed.smooth.tolist() == timed.raw.tolist()


def test_what_is_missing_is_named(charted):
    with pytest.raises(ChartError, match=r"No run has logged nothing; choose among .*train/loss"):
        curves(charted, [1], ["nothing"])
    assert len(curves(charted, [1], ["nothing", "train/loss"]).panels) == 1
    with pytest.raises(ChartError, match="Smoothing 1 is out of range"):
        curves(charted, [1], ["train/loss"], smoothing=1.0)
