"""The gap of a run, and the effect of closing it, against the snapshot closed here."""

from dataclasses import replace

import numpy as np
import pytest

from tests.cancelled import cancelled
from trainer.analysis.gap import close_gap
from trainer.analysis.geometry import modality_gap
from trainer.analysis.losses import cloob, info_nce
from trainer.analysis.retrieval import ranks
from trainer.charts import ChartError, opened_snapshot
from trainer.charts.gap import CHART, PUBLISHED
from trainer.charts.matching import matching_of, units_of
from trainer.charts.measures import gap as module
from trainer.charts.measures.gap import SHARES, GapSettings, objective_of
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import PerRun, Request, targets_of
from trainer.store import Workspace, read_snapshot


def gap(workspace: Workspace, *runs: int, steps=(), progress=lambda share, note: None, **settings) -> PerRun:
    return CHART.result(workspace, Request(targets_of(runs, steps)), GapSettings(**settings), progress)


def snapshot_of(workspace: Workspace, run: int):
    return read_snapshot(choose_snapshot(workspace, workspace.runs.get(run)).folder)


def test_the_gap_is_that_of_the_snapshot(charted):
    settings = GapSettings(share=50)
    data = gap(charted, 1, 2, share=50)
    panel = CHART.draw(data, settings)
    for place, (run, loss) in enumerate(zip(data.found, (info_nce, cloob), strict=True)):
        snapshot, measures = snapshot_of(charted, run.run), run.measures
        assert measures.sizes[-1] == pytest.approx(
            modality_gap(snapshot.image, snapshot.text, matching_of(snapshot))[1]
        )
        assert measures.sizes[-1] == pytest.approx(charted.results.last_values(run.run)["val/modality_gap"], abs=1e-5)
        vector = modality_gap(snapshot.image, snapshot.text, matching_of(snapshot))[0]
        image, text = close_gap(snapshot.image, snapshot.text, 0.5, gap=vector)
        objective = objective_of(charted, charted.runs.get(run.run), run.step)
        beta = (objective.beta,) if objective.kind == "cloob" else ()
        point = measures.at("shift", 50)
        alone = units_of(snapshot).alike()
        assert point.loss == pytest.approx(loss(image[alone], text[alone], objective.inv_tau, *beta))
        right = ranks(image, text, matching_of(snapshot).texts) == 1
        assert point.image_to_text == pytest.approx(right.mean())
        shown = {line.words: line.values[place] for line in panel.mark("now").lines}
        assert (shown["Loss"], shown["Image to text R@1, unseen renderings, n = 240"], shown["n pairs"]) == (
            point.loss,
            right.mean(),
            len(set(snapshot.items.caption)),
        )
        curve = panel.mark("recall").curves[2 * place]
        assert curve.y[SHARES.index(50)] == pytest.approx(100 * right.mean())
        assert len(panel.mark(f"loss-{place}").curves[0].x) == len(SHARES)
        mean = panel.mark(f"clouds-{place}").dots[0]
        moved = (image.astype(np.float64).mean(0) - measures.live.mean) @ measures.live.axes
        assert (mean.x, mean.y) == pytest.approx(tuple(moved), abs=1e-6)
    assert objective_of(charted, charted.runs.get(2), 240).inv_tau == 30
    assert any("compare recall" in note for note in panel.notes)
    assert all(f"gap {one.gap:.4f}, loss {one.loss:.4f}" in panel.notes[0] for one in PUBLISHED)


def test_what_was_measured_is_kept_while_it_is_shown(charted, monkeypatch):
    shown = gap(charted, 1)
    before = shown.found[0].measures
    measured = []
    plain = module.GapSample.measure
    monkeypatch.setattr(module.GapSample, "measure", lambda *args: (measured.append(args[2]), plain(*args))[1])
    monkeypatch.setattr(module, "read_snapshot", None)
    monkeypatch.setattr(opened_snapshot, "read_snapshot", None)
    again = gap(charted, 1, share=65)
    assert again.found[0].measures is before
    assert measured == [0.65], "all other shares and the snapshot are known"
    drawn = CHART.draw(again, GapSettings(share=66))
    assert measured == [0.65, 0.66], "a preview measures the live pairs at once"
    assert drawn.mark("now").title == "66 % closed"
    assert ("shift", 66) not in before.points


def test_a_sample_says_so(charted, monkeypatch):
    monkeypatch.setattr(module, "LIVE", 50)
    data = gap(charted, 1, most=100)
    (run,) = data.found
    assert (len(run.measures.sample.rows), run.measures.pairs, len(run.measures.live.rows)) == (100, 240, 50)
    captions = [run.measures.sample.rows[place] for place in run.measures.sample.batch]
    assert (
        run.n == len(captions) == len({snapshot_of(charted, 1).items.caption[row] for row in run.measures.sample.rows})
    )
    assert np.isin(run.measures.live.rows, run.measures.sample.rows).all()
    assert any("100 pairs are measured, drawn at random" in note for note in CHART.draw(data, GapSettings()).notes)


def test_one_run_at_two_steps_has_one_course(charted):
    data = gap(charted, 1, steps=(80, 240))
    sizes = CHART.draw(data, GapSettings()).mark("sizes")
    assert sizes.title == "Size of the gap over training, n = 240"
    assert [(curve.tone, curve.x.tolist()) for curve in sizes.curves] == [("run_a", [0, 80, 160, 240])]
    assert [(dot.tone, dot.x) for dot in sizes.dots] == [("run_a", 80), ("run_b", 240)]


def test_the_work_can_be_cancelled(charted):
    with cancelled() as cancel:
        gap(charted, 1, way="project", most=33, progress=cancel)


def test_a_run_without_texts_is_refused(charted, monkeypatch):
    whole = read_snapshot
    monkeypatch.setattr(opened_snapshot, "read_snapshot", lambda folder: replace(whole(folder), text=None))
    with pytest.raises(ChartError, match="only one modality"):
        gap(charted, 1, most=44)
