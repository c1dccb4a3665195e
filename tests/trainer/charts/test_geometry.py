"""The geometry of a run is that of its snapshot."""

from __future__ import annotations

import pytest

from trainer.analysis.geometry import uniformity
from trainer.charts import geometry as module
from trainer.charts.geometry import geometry
from trainer.charts.snapshots import choose_snapshot
from trainer.store import read_snapshot


def test_measures_are_those_of_the_snapshot(charted, monkeypatch):
    clip, cloob = geometry(charted, [1, 2])
    assert clip.modality_gap == pytest.approx(charted.results.last_values(1)["val/modality_gap"], abs=1e-6)
    assert clip.modality_gap > cloob.modality_gap, "the fixture gives CLIP the larger gap"
    text = read_snapshot(choose_snapshot(charted, charted.runs.get(2)).folder).text
    assert cloob.uniformity[1] == pytest.approx(uniformity(text))
    monkeypatch.setattr(module, "MOST_PAIRS", 50)
    (sampled,) = geometry(charted, [1])
    assert (sampled.n, sampled.pairs) == (50, 240)
