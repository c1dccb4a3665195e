"""The similarity chart against naive loops over a snapshot."""

from __future__ import annotations

import numpy as np
import pytest

from trainer.charts import ChartError
from trainer.charts import similarity as module
from trainer.charts.similarity import similarity
from trainer.charts.snapshots import choose_snapshot
from trainer.render_mpl.similarity import numbers
from trainer.store import read_snapshot

pytestmark = pytest.mark.slow


def test_numbers_equal_naive_loops(charted):
    chart = similarity(charted, [1, 2], k=3, bins=20)
    snapshot = read_snapshot(choose_snapshot(charted, charted.runs.get(2)).folder)
    image, text, captions = snapshot.image, snapshot.text, snapshot.items.caption
    cosine = [[float(image[i] @ text[j]) for j in range(snapshot.n)] for i in range(snapshot.n)]
    first = {caption: place for place, caption in reversed(list(enumerate(captions)))}
    hard = [
        sorted((cosine[i][j] for j in first.values() if captions[j] != captions[i]), reverse=True)[:3]
        for i in range(snapshot.n)
    ]
    run = chart.runs[1]
    assert (run.n, run.pairs, run.sampled) == (240, 240, False)
    assert run.mean_matched == pytest.approx(np.mean([cosine[i][i] for i in range(snapshot.n)]), abs=1e-5)
    assert run.mean_unmatched == pytest.approx(np.mean(hard), abs=1e-5)
    assert run.recall1 == np.mean([cosine[i][i] > hard[i][0] for i in range(snapshot.n)])
    assert run.matched_counts.sum() == 240
    assert set(run.intervals) == {"auc", "d_prime"}
    assert run.shuffled["auc"] < 0.2 < run.auc, "what knows nothing is far below .5 against the most similar texts"
    told = numbers(run, chart.against)
    assert told["auc_hard3_shuffled"] == run.shuffled["auc"]
    assert "overlap_hard3_low" not in told
    assert run.unmatched_counts.sum() == 720
    assert len(chart.edges) == 21
    assert 0.5 < run.auc <= 1
    recall = charted.results.last_values(2)["val/image_to_text_R@1"]
    assert run.recall1 == pytest.approx(recall), "the chart and the training log tell the same recall"


def test_the_note_warns_only_when_runs_are_compared(charted):
    assert "not on one scale" in similarity(charted, [1, 2]).note
    assert similarity(charted, [1]).note == ""


def test_large_snapshots_are_sampled_and_say_so(charted, monkeypatch):
    whole = similarity(charted, [1]).runs[0]
    monkeypatch.setattr(module, "MOST_IMAGES", 100)
    chart = similarity(charted, [1])
    (run,) = chart.runs
    assert (run.n, run.pairs, run.sampled) == (100, 240, True)
    assert "drawn at random" in chart.note
    assert np.isin(run.matched, whole.matched).all()
    assert run.unmatched.max() <= whole.unmatched.max()


def test_senseless_questions_are_refused(charted):
    with pytest.raises(ChartError, match="at least 1"):
        similarity(charted, [1], k=0)


def test_facets_are_drawn(charted):
    from trainer.render_mpl import similarity as figure

    chart = similarity(charted, [1, 2], facet="label", compared="all")
    drawn = figure.draw(chart)
    axes = drawn.axes[-1]
    values = [facet.value for facet in chart.runs[0].facets]
    assert [tick.get_text().partition(",")[0] for tick in axes.get_yticklabels()] == values
    for run, line in zip(chart.runs, axes.lines, strict=True):
        assert sorted(line.get_xdata()) == pytest.approx(sorted(facet.auc for facet in run.facets))
