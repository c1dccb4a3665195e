"""The similarity chart against naive loops over a snapshot."""

import math
from dataclasses import replace

import numpy as np
import pytest

from explorer.views.changes.view import own_caption_first
from tests.cancelled import cancelled
from trainer.analysis.separation import bar_count
from trainer.analysis.similarity import auc
from trainer.charts import ChartError
from trainer.charts.changes import CHART as CHANGES
from trainer.charts.facets import facet_columns
from trainer.charts.measures import similarity as module
from trainer.charts.measures.changes import ChangesSettings
from trainer.charts.measures.similarity import SimilaritySettings
from trainer.charts.settings import checked
from trainer.charts.similarity import CHART
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import PerRun, Request, targets_of
from trainer.config import default_paths
from trainer.store import Workspace, read_snapshot

pytestmark = pytest.mark.slow


def similarity(workspace: Workspace, *runs: int, steps=(), progress=lambda share, note: None, **settings) -> PerRun:
    return CHART.result(workspace, Request(targets_of(runs, steps)), SimilaritySettings(**settings), progress)


def snapshot_of(workspace: Workspace, run: int):
    return read_snapshot(choose_snapshot(workspace, workspace.runs.get(run)).folder)


def test_numbers_equal_naive_loops(charted):
    settings = SimilaritySettings(k=3, bins=20)
    data = similarity(charted, 1, 2, k=3, bins=20)
    snapshot = snapshot_of(charted, 2)
    image, text, captions = snapshot.image, snapshot.text, snapshot.items.caption
    cosine = [[float(image[i] @ text[j]) for j in range(snapshot.n)] for i in range(snapshot.n)]
    first = {caption: place for place, caption in reversed(list(enumerate(captions)))}
    hard = [
        sorted((cosine[i][j] for j in first.values() if captions[j] != captions[i]), reverse=True)[:3]
        for i in range(snapshot.n)
    ]
    run = data.found[1]
    assert (run.n, run.pairs, run.n_unmatched) == (240, 240, 720)
    matched = [cosine[i][i] for i in range(snapshot.n)]
    assert run.mean_matched == pytest.approx(np.mean(matched), abs=1e-5)
    assert run.mean_unmatched == pytest.approx(np.mean(hard), abs=1e-5)
    assert run.recall1 == np.mean([cosine[i][i] > hard[i][0] for i in range(snapshot.n)])
    assert set(run.intervals) == {"auc", "d_prime"}
    assert run.shuffled["auc"] < 0.2 < run.auc, "what knows nothing is far below .5 against the most similar texts"
    told = CHART.numbers(data, settings)[1]
    assert told["auc_hard3_shuffled"] == run.shuffled["auc"]
    assert "overlap_hard3_low" not in told
    assert 0.5 < run.auc <= 1
    recall = charted.results.last_values(2)["val/image_to_text_R@1"]
    assert run.recall1 == pytest.approx(recall), "the chart and the training log tell the same recall"
    margins = [cosine[i][i] - hard[i][0] for i in range(snapshot.n)]
    assert run.margin.tolist() == pytest.approx(margins, abs=1e-5)
    assert run.confused == sum(margin <= 0 for margin in margins) > 0
    header, rows = CHART.records(data, settings)
    of_run = [dict(zip(header, row, strict=True)) for row in rows if row[0] == 2]
    assert [of["margin"] for of in of_run] == pytest.approx(sorted(margins), abs=1e-5), "the hardest first"
    assert [margins[row] for row in run.smallest_margins(20)] == pytest.approx(sorted(margins)[:20], abs=1e-5)
    of = next(of for of in of_run if of["row"] == 7)
    assert (of["matched"], of["hardest"]) == (pytest.approx(matched[7], abs=1e-5), pytest.approx(hard[7][0], abs=1e-5))


def bars_by_hand(values, room: float) -> int:
    low, high = np.quantile(values, (0.25, 0.75))
    return math.ceil(max(room / (2 * (high - low) / len(values) ** (1 / 3)), math.sqrt(len(values))))


@pytest.mark.parametrize(("n", "bars"), [(26, 9), (14_065, 60)])
def test_few_pairs_have_few_bars_and_many_as_many_as_are_asked_for(n, bars):
    values = np.random.default_rng(0).normal(0.5, 0.1, n)
    assert bar_count(values, (0.2, 0.8), 60) == bars == min(60, bars_by_hand(values, 0.6))
    assert bar_count(np.full(26, 0.5), (0.2, 0.8), 60) == 6, "equal cosines have no spread"


def test_each_run_has_its_own_axis_until_one_is_asked_for(charted):
    data = similarity(charted, 1, 2)
    panel, widths = CHART.draw(data, SimilaritySettings(bins=20)), []
    for place, run in enumerate(data.found):
        plot = panel.mark(f"cosines-{place}")
        every = np.concatenate([run.matched, run.unmatched])
        assert plot.x.low == every.min() <= every.max() <= plot.x.high
        matched, unmatched = (curve for curve in plot.curves if curve.stepped)
        edges = np.linspace(plot.x.low, plot.x.high, len(matched.y) + 1)
        widths.append(edges[1] - edges[0])
        assert matched.y == pytest.approx(100 * np.histogram(run.matched, edges)[0] / 240)
        assert unmatched.y == pytest.approx(100 * np.histogram(run.unmatched, edges)[0] / 2400)
        assert [curve.x[0] for curve in plot.curves if curve.dashed] == [run.mean_matched, run.mean_unmatched]
    assert widths[0] == pytest.approx(widths[1]), "heights may be compared"
    same = CHART.draw(data, SimilaritySettings(same_axis=True, density=True))
    first, second = (same.mark(f"cosines-{place}") for place in (0, 1))
    assert (first.x, first.y) == (second.x, second.y)
    smooth = next(curve for curve in first.curves if curve.name == "matched, density")
    width = np.diff(next(curve for curve in first.curves if curve.stepped).x)[0]
    assert np.trapezoid(smooth.y, smooth.x) == pytest.approx(100 * width, rel=0.1)
    assert "not comparable across runs" in panel.notes[0]
    assert panel.mark("differences").lines[0].values == (data.found[1].auc - data.found[0].auc,)
    assert len(CHART.draw(similarity(charted, 1), SimilaritySettings()).rows[1]) == 1, "one run differs from none"


def test_one_run_at_two_steps(charted):
    data = similarity(charted, 1, steps=(80, 240))
    assert [run.step for run in data.found] == [80, 240]
    assert [column.split(", ")[1] for column in CHART.draw(data, SimilaritySettings()).mark("numbers").columns] == [
        "step 80",
        "step 240",
    ]


def test_a_sample_of_a_split_says_of_how_many(charted):
    data = similarity(charted, 1)
    (run,) = data.found
    shown = replace(data, found=(replace(run, of_split=1_024),))
    panel = CHART.draw(shown, SimilaritySettings())
    assert panel.mark("cosines-0").note.startswith("step 240 · 240 of 1,024 pairs, ")
    table = panel.mark("numbers")
    line = next(line for line in table.lines if "R@1" in line.words)
    assert line.words.endswith("n = 240 of 1,024")
    lines = {row.words: row for row in panel.mark("numbers").lines}
    assert "AUC vs. 10 hardest, n = 240 of 1,024" in lines
    assert line.text(0) == f"{100 * run.recall1:.1f} %"
    assert "Pictures" not in [line.words for line in table.lines], "as many as n matched"


def test_large_snapshots_are_sampled_and_say_so(charted, monkeypatch):
    (whole,) = similarity(charted, 1).found
    monkeypatch.setattr(module, "most_asking", lambda texts: 100)
    data = similarity(charted, 1)
    (run,) = data.found
    assert (run.n, run.pairs) == (100, 240)
    assert any("drawn at random" in note for note in CHART.draw(data, SimilaritySettings()).notes)
    assert np.isin(run.matched, whole.matched).all()
    assert run.unmatched.max() <= whole.unmatched.max()


def test_senseless_questions_are_refused(charted):
    with pytest.raises(ChartError, match="too small: choose at least 1"):
        checked(SimilaritySettings(k=0))
    with pytest.raises(ChartError, match="--facet COLUMN"):
        similarity(charted, 1, only="ring")


def test_the_work_can_be_cancelled(charted):
    with cancelled() as cancel:
        similarity(charted, 1, compared="all", progress=cancel)


def test_all_unmatched_and_sampled(charted, monkeypatch):
    snapshot = snapshot_of(charted, 1)
    dense = (snapshot.image @ snapshot.text.T).astype(np.float64)
    caption = list(snapshot.items.caption)
    first = [caption.index(one) for one in dict.fromkeys(caption)]
    others = np.array([dense[i, j] for i in range(len(caption)) for j in first if caption[i] != caption[j]])
    (run,) = similarity(charted, 1, compared="all").found
    assert run.n_unmatched == len(others)
    assert run.auc == pytest.approx(auc(np.diag(dense), others), abs=1e-3)
    assert run.mean_unmatched == pytest.approx(others.mean(), abs=1e-3)
    low, high = run.intervals["auc"]
    assert low <= run.auc + 1e-3
    assert run.auc <= high + 1e-3
    monkeypatch.setattr(module.counting, "SAMPLE", 24_000)
    data = similarity(charted, 1, compared="sampled")
    (run,) = data.found
    assert run.mean_unmatched == pytest.approx(others.mean(), abs=0.02)
    assert any("drawn at random" in note for note in CHART.draw(data, SimilaritySettings(compared="sampled")).notes)
    for values in run.densities:
        assert np.trapezoid(values, run.grid) == pytest.approx(1, abs=0.1)


def test_facets(charted):
    snapshot = snapshot_of(charted, 1)
    every = {"label": snapshot.items.label, **snapshot.items.metadata}
    sizes = {name: len({str(value) for value in values}) for name, values in every.items()}
    assert facet_columns(snapshot.items) == tuple(name for name, size in sizes.items() if 2 <= size <= 60)
    assert facet_columns(snapshot.items)[0] == "label"
    whole = similarity(charted, 1, 2, facet="label")
    assert sum(facet.n for facet in whole.found[0].facets) == 240
    first = whole.found[0].facets[0]
    part = similarity(charted, 1, facet="label", only=first.value)
    assert part.found[0].n == first.n
    assert part.found[0].auc == pytest.approx(first.auc)
    assert part.found[0].facets == whole.found[0].facets
    drawn = CHART.draw(whole, SimilaritySettings(facet="label")).mark("facets")
    assert drawn.rows[0] == f"{first.value}, n = {first.n}"
    assert drawn.values[0].tolist() == [
        next(one.auc for one in run.facets if one.value == first.value) for run in whole.found
    ]
    with pytest.raises(ChartError, match="its columns are"):
        similarity(charted, 1, facet="color")
    with pytest.raises(ChartError, match="Choose another value"):
        similarity(charted, 1, facet="label", only="whale")


def test_the_sample_names_the_auc_of_the_report_beside_that_of_its_stored_pairs() -> None:
    workspace = Workspace(default_paths.sample_workspace())
    panel = CHART.draw(similarity(workspace, 1, 2), SimilaritySettings())
    rows = {row.words: row.values for row in panel.mark("numbers").lines}
    stored = [each.metrics.get("auc_hard10") for each in workspace.results.evaluations(1)]
    assert rows["AUC vs. 10 hardest, n = 1,024"][0] in stored
    assert rows["AUC vs. 10 hardest, n = 360 of 1,024"][0] != rows["AUC vs. 10 hardest, n = 1,024"][0]


def test_as_many_are_closer_to_another_caption_as_compare_lists() -> None:
    workspace = Workspace(default_paths.sample_workspace())
    a, b = similarity(workspace, 1, 2).found
    first, second = (snapshot_of(workspace, run) for run in (1, 2))
    for run, snapshot in ((a, first), (b, second)):
        image, text, captions = snapshot.image.astype(float), snapshot.text.astype(float), snapshot.items.caption
        cosine = image @ text.T
        wrong = [
            i
            for i in range(snapshot.n)
            if max(cosine[i][j] for j in range(snapshot.n) if captions[j] != captions[i]) >= cosine[i][i]
        ]
        assert run.confused == len(wrong)
        assert sorted(run.rows[run.smallest_margins(len(wrong))].tolist()) == wrong
    assert a.confused_words == "5 of 360 images are closer to another caption"
    listed = CHANGES.result(workspace, Request(targets_of((1, 2))), ChangesSettings(), lambda share, note: None)
    groups = own_caption_first(listed.found[0])
    assert len(groups["only-b"]) + len(groups["neither"]) == a.confused
    assert len(groups["only-a"]) + len(groups["neither"]) == b.confused
