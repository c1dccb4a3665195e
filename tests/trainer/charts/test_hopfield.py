"""Charts of the Hopfield lab: what they say is what the analyses say of the snapshot, sampled or not."""

from __future__ import annotations

import numpy as np
import pytest

from trainer.analysis.geometry import effective_eigenvalues
from trainer.analysis.hopfield import effective_number, four_retrievals, retrieval_shares
from trainer.analysis.losses import hopfield_retrieval
from trainer.charts import ChartError
from trainer.charts import hopfield as charts
from trainer.charts.hopfield import PANELS, Asked, hopfield, patterns
from trainer.cli.export import hopfield as command
from trainer.store import read_snapshot


def snapshot(charted, run: int):
    rows = [s for s in charted.results.snapshots(run) if s.split == "renderings"]
    return read_snapshot(max(rows, key=lambda s: s.step).folder)


def line(numbers, words: str):
    return next(row for row in numbers.lines if row.words == words).values


def test_the_command_knows_the_panels():
    assert command.PANELS == PANELS


@pytest.mark.parametrize(("stored", "asks"), [("images", "image"), ("images", "text"), ("texts", "image")])
def test_retrieval(charted, stored: str, asks: str):
    board = hopfield(charted, [1, 2], Asked(stored=stored, asks=asks, query=17, beta=12.0))
    for place, run in enumerate((1, 2)):
        shot = snapshot(charted, run)
        state = getattr(shot, asks)[17].astype(float)
        shares = retrieval_shares(state, shot.image if stored == "images" else shot.text, 12.0)
        numbers = board.piece("numbers")
        assert line(numbers, "Effective number")[place] == pytest.approx(effective_number(shares), rel=1e-5)
        assert line(numbers, "Weight of its own pair")[place] == pytest.approx(float(shares[17]), rel=1e-5)
        cells = board.piece(f"top-{place}").cells
        assert [cell.share for cell in cells] == pytest.approx(np.sort(shares)[:-13:-1].tolist(), rel=1e-4)
        assert [float(shares[cell.row]) for cell in cells] == pytest.approx([cell.share for cell in cells], rel=1e-4)
        energy = board.piece("energy").curves[place].y
        assert (np.diff(energy) <= 1e-6).all()  # float32, as stored
        trail = board.piece(f"map-{place}").curves[0]
        assert len(trail.x) == len(energy)


def test_a_class_and_selected_pairs_are_stored(charted):
    labels = np.array(snapshot(charted, 1).items.label)
    one = patterns(charted, 1, Asked(only="star"))
    assert one.rows.tolist() == np.flatnonzero(labels == "star").tolist()
    assert patterns(charted, 1, Asked(pairs=(4, 9, 4, 100_000))).rows.tolist() == [4, 9]
    with pytest.raises(ChartError, match="no pair of the class 'cat'"):
        patterns(charted, 1, Asked(only="cat"))


def test_a_vector_of_ones_own_asks(charted):
    shot = snapshot(charted, 1)
    board = hopfield(charted, [1], Asked(words="mine"), vectors={0: shot.text[3]})
    assert "asks: mine" in board.head[1]
    assert np.isnan(line(board.piece("numbers"), "Weight of its own pair")[0])
    assert not any(cell.strong for cell in board.piece("top-0").cells)


def test_pair(charted):
    board = hopfield(charted, [1, 2], Asked(query=5), "pair")
    shot = snapshot(charted, 2)
    four = four_retrievals(shot.image, shot.text, 5, 8.0)
    numbers = board.piece("pair")
    found = [line(numbers, words)[1] for words in ("cos(x, y)", "cos(U_x, U_y)", "cos(V_x, V_y)")]
    assert found == pytest.approx([four.before, four.images, four.texts], rel=1e-5)
    for curve in board.piece("matched-0").curves:
        assert curve.y.sum() == pytest.approx(100)


def test_phase_is_ordered_and_falls_with_beta(charted):
    board = hopfield(charted, [1], Asked(beta=10.0), "phase")
    grid = board.piece("phase-0")
    assert grid.values.shape == (charts.MOST_QUERIES, len(charts.BETAS))
    assert (np.diff(np.log(grid.values).mean(1)) >= 0).all()
    assert charts.BETAS[round(grid.cursor)] == pytest.approx(10, rel=0.06)
    row = grid.row_ids[0]
    shot = snapshot(charted, 1)
    numbers = [effective_number(retrieval_shares(shot.image[row].astype(float), shot.image, b)) for b in charts.BETAS]
    assert np.allclose(grid.values[0], numbers, rtol=1e-4)


def test_spectrum_before_and_after(charted):
    board = hopfield(charted, [1], Asked(stored="texts", beta=5.0), "spectrum")
    shot = snapshot(charted, 1)
    after = hopfield_retrieval(shot.text, shot.text, 5.0)
    across = hopfield_retrieval(shot.image, shot.text, 5.0)
    expected = [effective_eigenvalues(rows) for rows in (shot.text, after, across)]
    assert line(board.piece("spectra"), "Effective directions (99 %)") == tuple(expected)


def test_samples_say_so_and_hold_the_pair(charted, monkeypatch):
    monkeypatch.setattr(charts.shared, "MOST_PAIRS", 50)
    monkeypatch.setattr(charts.shared, "MOST_MAPPED", 40)
    for query in (0, 239):
        board = hopfield(charted, [1], Asked(query=query), "pair")
        assert line(board.piece("pair"), "n stored") == (50.0,)
        assert "50 of 240" in board.notes[-1]
    assert "40 of 240 drawn" in hopfield(charted, [1], Asked()).piece("map-0").note
    assert "50 pairs of 240, sampled" in hopfield(charted, [1], Asked(), "spectrum").piece("spectrum-0").note


@pytest.mark.parametrize(
    ("asked", "panel", "words"),
    [
        (Asked(), "nothing", "no panel"),
        (Asked(beta=1000.0), "retrieval", "Beta must be"),
        (Asked(query=9999), "retrieval", "no pair 9999"),
        (Asked(query=9999), "pair", "no pair 9999"),
    ],
)
def test_refusals(charted, asked: Asked, panel: str, words: str):
    with pytest.raises(ChartError, match=words):
        hopfield(charted, [1], asked, panel)


def test_the_path_on_the_maps_plane(charted):
    from trainer.analysis.projection import pca
    from trainer.projection.layouts import unit_rows

    shot = snapshot(charted, 1)
    run = patterns(charted, 1, Asked(plane="map"))
    expected = pca(unit_rows(shot), 2)[: shot.n]
    assert np.allclose(run.points, expected, atol=1e-5), "images stand where the Map's PCA puts them"
    plot = hopfield(charted, [1], Asked(plane="map", query=5)).piece("map-0")
    assert "as on the Map" in plot.note
    assert (plot.dots[0].x, plot.dots[0].y) == pytest.approx(tuple(expected[5].tolist()), abs=1e-5)
