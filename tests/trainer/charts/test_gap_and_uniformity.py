"""Charts of the gap, of the matrix and of words against naive computations over a snapshot."""

from __future__ import annotations

import numpy as np
import pytest

from trainer.analysis.gap import close_gap
from trainer.analysis.geometry import modality_gap
from trainer.analysis.losses import cloob, info_nce
from trainer.analysis.retrieval import ranks
from trainer.analysis.similarity import auc
from trainer.charts import ChartError
from trainer.charts import similarity as similarity_module
from trainer.charts.facets import facet_columns
from trainer.charts.gap import gap, objective_of
from trainer.charts.matching import matching_of
from trainer.charts.matrix import MatrixWindow, matrix
from trainer.charts.similarity import similarity
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.words import AxisText, axes, words
from trainer.store import read_snapshot


def _snapshot(workspace, run: int):
    return read_snapshot(choose_snapshot(workspace, workspace.runs.get(run)).folder)


def test_the_gap_is_that_of_the_snapshot(charted):
    chart = gap(charted, [1, 2], shares=(0.0, 0.5))
    for run, loss in zip(chart.runs, (info_nce, cloob), strict=True):
        snapshot = _snapshot(charted, run.run)
        assert run.sizes[-1] == pytest.approx(modality_gap(snapshot.image, snapshot.text)[1])
        assert run.sizes[-1] == pytest.approx(charted.results.last_values(run.run)["val/modality_gap"], abs=1e-5)
        image, text = close_gap(snapshot.image, snapshot.text, 0.5)
        objective = objective_of(charted, charted.runs.get(run.run), run.step)
        beta = (objective.beta,) if objective.kind == "cloob" else ()
        assert run.points[1].loss == pytest.approx(loss(image, text, objective.inv_tau, *beta))
        right = ranks(image, text, matching_of(snapshot).texts) == 1
        assert run.points[1].image_to_text == pytest.approx(right.mean())
    assert objective_of(charted, charted.runs.get(2), 240).inv_tau == 30
    assert "share no axis" in chart.note or "compare recall" in chart.note


def test_a_sample_of_the_gap_says_so(charted):
    chart = gap(charted, [1], shares=(0.0,), most=100)
    assert (chart.runs[0].n, chart.runs[0].pairs) == (100, 240)
    assert "100 pairs are measured, drawn at random" in chart.note


def test_the_work_can_be_cancelled(charted):
    class Stop(Exception):
        pass

    def cancel(share: float, note: str) -> None:
        raise Stop

    for chart in (gap, lambda *a, **k: similarity(*a, compared="all", **k)):
        with pytest.raises(Stop):
            chart(charted, [1], progress=cancel)


@pytest.mark.slow
def test_all_unmatched_and_sampled(charted, monkeypatch):
    snapshot = _snapshot(charted, 1)
    dense = (snapshot.image @ snapshot.text.T).astype(np.float64)
    caption = list(snapshot.items.caption)
    first = [caption.index(one) for one in dict.fromkeys(caption)]
    others = np.array([dense[i, j] for i in range(len(caption)) for j in first if caption[i] != caption[j]])
    (run,) = similarity(charted, [1], compared="all").runs
    assert run.n_unmatched == len(others)
    assert run.auc == pytest.approx(auc(np.diag(dense), others), abs=1e-3)
    assert run.mean_unmatched == pytest.approx(others.mean(), abs=1e-3)
    low, high = run.intervals["auc"]
    assert low <= run.auc + 1e-3
    assert run.auc <= high + 1e-3
    monkeypatch.setattr(similarity_module, "SAMPLE", 24_000)
    chart = similarity(charted, [1], compared="sampled")
    assert chart.runs[0].mean_unmatched == pytest.approx(others.mean(), abs=0.02)
    assert "drawn at random" in chart.note
    for values in chart.runs[0].densities:
        assert np.trapezoid(values, chart.grid) == pytest.approx(1, abs=0.1)


@pytest.mark.slow
def test_facets(charted):
    snapshot = _snapshot(charted, 1)
    assert facet_columns(snapshot.items)[0] == "label"
    whole = similarity(charted, [1], facet="label")
    assert sum(facet.n for facet in whole.runs[0].facets) == 240
    first = whole.runs[0].facets[0]
    part = similarity(charted, [1], facet="label", only=first.value)
    assert part.runs[0].n == first.n
    assert part.runs[0].auc == pytest.approx(first.auc)
    assert part.runs[0].facets == whole.runs[0].facets
    with pytest.raises(ChartError, match="its columns are"):
        similarity(charted, [1], facet="color")
    with pytest.raises(ChartError, match="Choose another value"):
        similarity(charted, [1], facet="label", only="whale")


def test_the_matrix_is_the_dense_one(charted):
    chart = matrix(charted, [1, 2], by="label", window=MatrixWindow(10, 30, 50, 200), blocks=15)
    order = chart.order
    for run in chart.runs:
        snapshot = _snapshot(charted, run.run)
        dense = (snapshot.image @ snapshot.text.T)[np.ix_(order, order)][10:30, 50:200]
        parts = [np.array_split(np.arange(length), 15) for length in dense.shape]
        naive = [[dense[np.ix_(r, c)].mean() for c in parts[1]] for r in parts[0]]
        assert np.allclose(run.tile.means, naive, atol=1e-5)
    labels = np.array(_snapshot(charted, 1).items.label)[order]
    assert (labels[1:] != labels[:-1]).sum() == len(set(labels)) - 1, "each class stands together"
    assert "means of blocks" in chart.note
    cell = matrix(charted, [1], by="clusters", window=MatrixWindow(3, 4, 7, 8))
    snapshot = _snapshot(charted, 1)
    assert cell.runs[0].tile.single
    expected = float(snapshot.image[cell.order[3]] @ snapshot.text[cell.order[7]])
    assert cell.runs[0].tile.means[0, 0] == pytest.approx(expected, abs=1e-6)


def _embed(run: int, step: int, texts) -> np.ndarray:
    rows = np.stack([np.random.default_rng(run + sum(map(ord, t))).normal(size=32) for t in texts]).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_words_and_axes(charted):
    chart = words(charted, [1, 2], _embed, pair=4)
    snapshot = _snapshot(charted, 2)
    said = _snapshot(charted, 1).items.caption[4]  # the first run's words are put to all of them
    assert chart.words == tuple(said.split())
    run, whole = chart.runs[1], _embed(2, 240, (said,))[0]
    assert run.cosine == pytest.approx(float(whole @ snapshot.image[4]), abs=1e-6)
    assert run.rank == 1 + int((snapshot.image @ whole >= snapshot.image[4] @ whole).sum()) - 1
    with pytest.raises(ChartError, match="no pair 999"):
        words(charted, [1], _embed, pair=999)
    line = AxisText.parse("a red ring; a red disc - a blue ring")
    assert (line.plus, line.minus) == (("a red ring", "a red disc"), ("a blue ring",))
    found = axes(charted, [2], _embed, x=line, y=AxisText.parse("a ring"))
    plus = _embed(2, 0, line.plus).mean(0) - _embed(2, 0, line.minus).mean(0)
    expected = snapshot.image @ (plus / np.linalg.norm(plus))
    assert np.allclose(found.runs[0].images[:, 0], expected, atol=1e-5)
    with pytest.raises(ChartError, match="are the same"):
        axes(charted, [2], _embed, x=AxisText.parse("a ring - a ring"), y=line)
    with pytest.raises(ChartError, match="needs a sentence"):
        AxisText.parse(" - a ring")


@pytest.mark.slow
def test_figures_and_rows_tell_the_same(charted):
    from trainer.render_mpl import gap as gap_figure
    from trainer.render_mpl import matrix as matrix_figure
    from trainer.render_mpl import words as words_figure

    chart = gap(charted, [1, 2], shares=(0.0, 1.0))
    rows = list(gap_figure.rows(chart).rows)
    losses = [row[-1] for row in rows if row[-2] == "loss" and row[0] == 2]
    assert losses == [point.loss for point in chart.runs[1].points]
    assert 1.1248 in [row[-1] for row in rows]
    cells = list(matrix_figure.rows(matrix(charted, [1], blocks=6)).rows)
    assert len(cells) == 36
    assert (cells[-1][6], cells[-1][8]) == (240, 240)
    said = words(charted, [1, 2], _embed, pair=0)
    axis = AxisText.parse("a ring - a star")
    placed = axes(charted, [1], _embed, x=axis, y=AxisText.parse("red"))
    for figure in (
        gap_figure.draw(chart),
        matrix_figure.draw(matrix(charted, [1], window=MatrixWindow(0, 9, 0, 9))),
        words_figure.draw(said),
        words_figure.draw_axes(placed),
    ):
        assert figure.get_axes()
    assert len(list(words_figure.rows(said).rows)) == 2 * (1 + len(said.words))
    assert len(list(words_figure.axes_rows(placed).rows)) == 480
