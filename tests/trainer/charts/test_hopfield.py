"""Charts of Hopfield retrieval show the analyses of the snapshot, sampled or not."""

import math
from typing import Any

import numpy as np
import pytest

from trainer import config
from trainer.analysis.hopfield import effective_number, four_retrievals, retrieval_shares
from trainer.charts import (
    ChartError,
    hopfield_beta,
    hopfield_patterns,
    hopfield_retrieval,
    hopfield_spectrum,
    opened_snapshot,
    registry,
)
from trainer.charts.hopfield_patterns import StoredSettings, patterns
from trainer.charts.marks import Panel, run_tone
from trainer.charts.settings import checked
from trainer.charts.spec import Request, Target, targets_of
from trainer.store import Items, RunLog, Workspace, read_snapshot


def panel(workspace, name: str, runs: tuple[int, ...] = (1,), vectors=(), **settings: Any) -> Panel:
    chart = registry.load(f"hopfield-{name}")
    chosen = checked(chart.settings(**settings))
    data = chart.result(workspace, Request(targets_of(runs), vectors=vectors), chosen, lambda *_: None)
    return chart.panel(data, chosen)


def stored(workspace, plane="stored", **settings: Any):
    return patterns(workspace, Target(1), Request((Target(1),)), StoredSettings(**settings), plane)


def snapshot(charted, run: int):
    rows = [s for s in charted.results.snapshots(run) if s.split == "renderings"]
    return read_snapshot(max(rows, key=lambda s: s.step).folder)


def line(numbers, words: str):
    return next(row for row in numbers.lines if row.words == words).values


@pytest.mark.parametrize(("side", "asks"), [("images", "image"), ("images", "text"), ("texts", "image")])
def test_retrieval(charted, side: str, asks: str):
    board = panel(charted, "retrieval", (1, 2), stored=side, asks=asks, query=17, beta=12.0)
    for place, run in enumerate((1, 2)):
        shot = snapshot(charted, run)
        state = getattr(shot, asks)[17].astype(float)
        # A caption that several pictures share is stored once, and is the own one of all of them.
        names = shot.items.content if side == "images" else list(shot.items.caption)
        rows = [row for row in range(shot.n) if not names or row == list(names).index(names[row])]
        kept = retrieval_shares(state, (shot.image if side == "images" else shot.text)[rows], 12.0)
        shares = np.full(shot.n, np.nan)
        shares[rows] = kept
        numbers = board.mark("numbers")
        assert line(numbers, "Effective patterns")[place] == pytest.approx(effective_number(kept), rel=1e-5)
        own = 17 if not names else list(names).index(names[17])
        assert line(numbers, "Weight of its own pair")[place] == pytest.approx(float(shares[own]), rel=1e-5)
        cells = board.mark(f"retrieved-{place}").cells
        assert [cell.share for cell in cells] == pytest.approx(np.sort(kept)[:-13:-1].tolist(), rel=1e-4)
        assert [float(shares[cell.row]) for cell in cells] == pytest.approx([cell.share for cell in cells], rel=1e-4)
        energy = board.mark("energy").curves[place].y
        assert (np.diff(energy) <= 1e-6).all()  # float32, as stored
        trail = board.mark(f"map-{place}").curves[0]
        assert len(trail.x) == len(energy)


def test_a_path_that_was_cut_off_claims_no_limit(charted, monkeypatch):
    whole = hopfield_retrieval.updates
    monkeypatch.setattr(hopfield_retrieval, "updates", lambda *args, **named: whole(*args, **named | {"most": 1}))
    board = panel(charted, "retrieval", query=17, beta=12.0)
    assert line(board.mark("numbers"), "Updates") == ("> 1",)
    assert "has not converged after 1 update" in board.mark("retrieved-0").note


@pytest.fixture
def apart(tmp_path) -> Workspace:
    """Two runs whose snapshots have the same pairs in another order, without the first three of A in B."""
    workspace = Workspace(tmp_path / "workspace")
    for dataset, names in (("one", range(12)), ("two", reversed(range(3, 12)))):
        kept = list(names)
        run = workspace.runs.create(config.Run(name=dataset))
        captions = [f"a caption {name}" for name in kept]
        items = Items(np.array([f"pair {n}" for n in kept]), [""] * len(kept), captions, [""] * len(kept),
                      ["val"] * len(kept), {})  # fmt: skip
        rows = np.random.default_rng(run).normal(size=(2, len(kept), 6)).astype(np.float32)
        image, text = rows / np.linalg.norm(rows, axis=2, keepdims=True)
        with RunLog.claim(workspace, run) as log:
            log.write_snapshot(step=4, dataset=dataset, split="val", image=image, text=text, items=items)
            log.status("finished")
    return workspace


@pytest.mark.parametrize("name", ["retrieval", "pair"])
def test_a_run_of_other_data_is_asked_with_the_same_pair_or_has_none(apart, name: str):
    board = panel(apart, name, (1, 2), query=5)
    cells = [[cell for strip in board.marks if getattr(strip, "tone", "") == run_tone(place) for cell in
              getattr(strip, "cells", ())] for place in (0, 1)]  # fmt: skip
    assert {cell.caption for cell in cells[1] if cell.strong} == {"a caption 5"}
    assert {cell.row for cell in cells[0] if cell.strong} == {5}
    assert {cell.row for cell in cells[1]} == {-1}, "its rows are no rows of A"
    without = panel(apart, name, (1, 2), query=1)
    assert any("has no such pair" in note for note in without.warnings)
    with pytest.raises(ChartError, match="no pair 40"):
        panel(apart, name, (1, 2), query=40)


def test_a_class_and_selected_pairs_are_stored(charted):
    labels = np.array(snapshot(charted, 1).items.label)
    assert stored(charted, only="star").rows.tolist() == np.flatnonzero(labels == "star").tolist()
    assert stored(charted, pairs=(4, 9, 4, 100_000)).rows.tolist() == [4, 9]
    with pytest.raises(ChartError, match="no pair of the class 'cat'"):
        stored(charted, only="cat")


def test_selected_pairs_of_a_run_of_other_data_are_the_same_pairs_or_none(apart):
    request = Request(targets_of((1, 2)))
    one, two = (patterns(apart, Target(run), request, StoredSettings(pairs=(1, 5, 7))) for run in (1, 2))
    assert [one.items.caption[row] for row in one.rows] == ["a caption 1", "a caption 5", "a caption 7"]
    assert [two.items.caption[row] for row in two.rows] == ["a caption 7", "a caption 5"]
    with pytest.raises(ChartError, match="none of the selected pairs"):
        patterns(apart, Target(2), request, StoredSettings(pairs=(0, 1)))


def test_patterns_that_are_held_are_not_read_again(charted, monkeypatch):
    held = stored(charted)
    monkeypatch.setattr(opened_snapshot, "read_snapshot", lambda _folder: pytest.fail("read again"))
    assert stored(charted) is held
    with pytest.raises(pytest.fail.Exception):
        stored(charted, only="star")


def test_a_query_from_outside(charted):
    vector = (tuple(snapshot(charted, 1).text[3].tolist()),)
    board = panel(charted, "retrieval", vectors=(vector,), query_text="mine")
    assert "query: “mine”" in board.head[1]
    assert np.isnan(line(board.mark("numbers"), "Weight of its own pair")[0])
    assert not any(cell.strong for cell in board.mark("retrieved-0").cells)
    pair = panel(charted, "retrieval", query=3, asks="text")
    assert line(board.mark("numbers"), "Entropy (nats)") == line(pair.mark("numbers"), "Entropy (nats)")
    with pytest.raises(ChartError, match="not embedded yet"):
        panel(charted, "retrieval", query_text="mine")


def test_pair(charted):
    board = panel(charted, "pair", (1, 2), query=5)
    shot = snapshot(charted, 2)
    captions = list(shot.items.caption)
    # Neither a picture nor a caption is stored twice; the query's own pair stands for all with its caption.
    rows = [
        row
        for row in range(shot.n)
        if row == 5 or (captions.index(captions[row]) == row and captions[row] != captions[5])
    ]
    four = four_retrievals(shot.image[rows], shot.text[rows], rows.index(5), 8.0)
    numbers = board.mark("pair")
    found = [line(numbers, words)[1] for words in ("cos(x, y)", "cos(U_x, U_y)", "cos(V_x, V_y)")]
    assert found == pytest.approx([four.before, four.images, four.texts], rel=1e-5)
    for place, name in enumerate(("U_x", "U_y", "V_x", "V_y")):
        assert line(numbers, f"own weight in {name}")[1] == pytest.approx(four.own[place], rel=1e-5)
        own = next(cell for cell in board.mark(f"pair-1-{name}").cells if cell.row == 5)
        assert own.strong
        assert own.share == pytest.approx(four.own[place], rel=1e-4)
    for curve in board.mark("matched-0").curves:
        assert curve.y.sum() == pytest.approx(100)


def test_effective_numbers_are_ordered_and_fall_with_beta(charted):
    grid = panel(charted, "beta", beta=10.0).mark("beta-0")
    betas = hopfield_patterns.BETAS
    assert grid.values.shape == (hopfield_beta.MOST_QUERIES, len(betas))
    assert (np.diff(np.log(grid.values).mean(1)) >= 0).all()
    assert betas[round(grid.cursor)] == pytest.approx(10, rel=0.06)
    row = grid.row_ids[0]
    shot = snapshot(charted, 1)
    numbers = [effective_number(retrieval_shares(shot.image[row].astype(float), shot.image, b)) for b in betas]
    assert np.allclose(grid.values[0], numbers, rtol=1e-4)


def test_the_spectrum_of_a_narrow_cone_is_not_rounding(charted, monkeypatch):
    rng = np.random.default_rng(0)
    center, main = rng.normal(size=(2, 32))
    cones = [center + 3e-3 * rng.normal(size=(60, 1)) * main + 3e-4 * rng.normal(size=(60, 32)) for _ in range(2)]
    image, text = ((rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32) for rows in cones)
    monkeypatch.setattr(hopfield_spectrum, "both_of", lambda run, unit: (image, text, np.arange(60)))
    table = panel(charted, "spectrum", beta=8.0).mark("spectra")
    after = []
    for state in image.astype(np.float64):
        weights = np.exp(8.0 * np.array([math.fsum(state * one) for one in image.astype(np.float64)]))
        retrieved = (weights[:, None] * image.astype(np.float64)).sum(0)
        after.append(retrieved / np.linalg.norm(retrieved))
    found = np.linalg.svd(np.array(after) - np.mean(after, axis=0), compute_uv=False) ** 2 / 60
    assert line(table, "Total variance")[1] == pytest.approx(found.sum(), rel=1e-6, abs=0)
    assert line(table, "Variance in the first direction (%)")[1] == pytest.approx(
        100 * found[0] / found.sum(), rel=1e-6
    )


def test_samples_say_so_and_hold_the_pair(charted, monkeypatch):
    monkeypatch.setattr(hopfield_patterns, "MOST_PAIRS", 50)
    monkeypatch.setattr(hopfield_patterns, "MOST_MAPPED", 40)
    for query in (0, 239):
        board = panel(charted, "pair", query=query)
        assert line(board.mark("pair"), "n stored") == (50.0,)
        assert any("50 of 240" in note for note in board.notes)
    # Patterns are shared while somebody holds them: a choice of pairs that no other test makes reads them anew.
    assert "40 of 240 drawn" in panel(charted, "retrieval", pairs=tuple(range(240))).mark("map-0").note
    assert "50 pairs of 240, sampled" in panel(charted, "spectrum").mark("spectrum-0").note


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("retrieval", {"beta": 1000.0}, "Beta β 1000.0 is too large"),
        ("retrieval", {"query": 9999}, "no pair 9999"),
        ("pair", {"query": 9999}, "no pair 9999"),
        ("beta", {"pairs": (9999,)}, "no such pair"),
    ],
)
def test_refusals(charted, name: str, settings: dict[str, Any], words: str):
    with pytest.raises(ChartError, match=words):
        panel(charted, name, **settings)


def test_the_path_on_the_maps_plane(charted):
    from trainer.analysis.projection import pca
    from trainer.projection.layouts import unit_rows

    shot = snapshot(charted, 1)
    expected = pca(unit_rows(shot), 2)[: shot.n]
    on_map = stored(charted, "map").points
    assert np.allclose(on_map, expected, atol=1e-5), "images stand where the Map's PCA puts them"
    plot = panel(charted, "retrieval", plane="map", query=5).mark("map-0")
    assert "as on the Map" in plot.note
    assert (plot.dots[0].x, plot.dots[0].y) == pytest.approx(tuple(expected[5].tolist()), abs=1e-5)


@pytest.mark.parametrize("name", [name for name in registry.BUILT_IN["hopfield"] if name != "retrieval-share"])
def test_three_runs_have_three_colors(charted, name: str):
    chart = registry.load(name)
    request = Request((Target(1), Target(2), Target(1, 80)))
    drawn = chart.panel(chart.result(charted, request, chart.settings(), lambda *_: None), chart.settings())
    tones = {getattr(part, "tone", None) for mark in drawn.marks for part in (mark, *getattr(mark, "curves", ()))}
    assert {*map(run_tone, range(3))} <= tones
    assert "step 80" in str([(mark.title, getattr(mark, "columns", "")) for mark in drawn.marks])
