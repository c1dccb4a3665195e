"""The chart of the matrix against naive computations over a snapshot."""

import numpy as np
import pytest

from trainer.analysis.progress import silent
from trainer.charts.matrix import CHART, MatrixChart, MatrixSettings, draw, records
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import Request, targets_of
from trainer.render_mpl import panel as figure
from trainer.store import read_snapshot


def _snapshot(workspace, run: int):
    return read_snapshot(choose_snapshot(workspace, workspace.runs.get(run)).folder)


def _matrix(workspace, *runs: int, **settings) -> MatrixChart:
    return CHART.result(workspace, Request(targets_of(runs)), MatrixSettings(**settings), silent)


def test_the_matrix_is_the_dense_one(charted):
    chart = _matrix(charted, 1, 2, by="label", window=(10, 30, 50, 200), blocks=15)
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
    cell = _matrix(charted, 1, by="clusters", window=(3, 4, 7, 8))
    snapshot = _snapshot(charted, 1)
    assert cell.runs[0].tile.single
    expected = float(snapshot.image[cell.order[3]] @ snapshot.text[cell.order[7]])
    assert cell.runs[0].tile.means[0, 0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_the_figure_and_its_rows(charted):
    cells = records(_matrix(charted, 1, blocks=6), MatrixSettings())[1]
    assert len(cells) == 36
    assert (cells[-1][6], cells[-1][8]) == (240, 240)
    few = _matrix(charted, 1, window=(0, 9, 0, 9))
    drawn = draw(few, MatrixSettings())
    (heat,) = drawn.marks
    assert [name for _, name in heat.x_ticks] == [few.captions[pair] for pair in few.order[:9]]
    assert np.array_equal(figure.draw(drawn).axes[0].images[0].get_array(), few.runs[0].tile.means)
