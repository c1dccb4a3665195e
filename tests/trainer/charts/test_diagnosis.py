"""Charts of Explaining away: spectra, saturation, batches and probes of real snapshots."""

import dataclasses
import math
import types

import numpy as np
import pytest

from trainer.analysis.batches import batch
from trainer.analysis.losses import hopfield_retrieval
from trainer.analysis.probes import probe
from trainer.charts import ChartError, registry
from trainer.charts.batch_negatives import batch_rows
from trainer.charts.marks import run_tone
from trainer.charts.matching import units_of
from trainer.charts.panel_rows import panel_rows
from trainer.charts.settings import checked
from trainer.charts.snapshot_measures import choose_batch, temperatures
from trainer.charts.snapshots import BATCH
from trainer.charts.spec import Request, Target, targets_of
from trainer.data.pairs import BATCH as KEPT_BATCH
from trainer.store import read_snapshot

NOT_OF_SNAPSHOTS = {"replayed-step", "generative-classes"}
"""They draw results that are stored."""
CHARTS = tuple(name for name in registry.BUILT_IN["explaining"] if name not in NOT_OF_SNAPSHOTS)


def computed(workspace, name: str, runs=(1, 2), steps=(), progress=lambda *_: None, **settings):
    chart = registry.load(name)
    chosen = checked(chart.settings(**settings))
    data = chart.result(workspace, Request(targets_of(runs, steps)), chosen, progress)
    return data, chart.panel(data, chosen)


def panel(*args, **settings):
    return computed(*args, **settings)[1]


def snapshot(charted, run: int, step: int | None = None):
    rows = [s for s in charted.results.snapshots(run) if s.split == "renderings" and step in (None, s.step)]
    return read_snapshot(max(rows, key=lambda s: s.step).folder)


def line(numbers, words: str):
    return next(row for row in numbers.lines if row.words == words).values


def test_saturation_is_that_of_the_runs_own_batches(charted):
    board = panel(charted, "gradient-saturation")
    table = board.mark("saturation")
    means = line(table, "Mean of 1 − p")
    shot = snapshot(charted, 1)
    warm = temperatures(charted, charted.runs.get(1), shot.step)
    assert warm.inv_tau == pytest.approx(1 / 0.07)
    assert warm.beta is None
    assert temperatures(charted, charted.runs.get(2), 0).beta == 8.0
    order = np.sort(np.random.default_rng(0).permutation(240)[:128])
    image, text = shot.image[order], shot.text[order]
    both = [batch(x, y, warm.inv_tau).unsaturated for x, y in ((image, text), (text, image))]
    assert means[0] == pytest.approx(float(np.mean(both)))
    assert line(table, "Anchors") == (256.0, 256.0)
    for place in (0, 1):
        assert line(table, "Mean pull, InfoNCE")[place] < line(table, "Mean pull, InfoLOOB")[place]


def test_batch_weights_are_of_what_the_objective_sees(charted):
    data, board = computed(charted, "batch-negatives", size=16, number=1, anchor=3)
    shot = snapshot(charted, 2)
    rows = batch_rows(shot, units_of(shot), 16, 1)
    image, text = shot.image[rows], shot.text[rows]
    seen = hopfield_retrieval(image, image, 8.0), hopfield_retrieval(text, image, 8.0)
    found = batch(*seen, 30.0)
    assert np.allclose(board.mark("infoloob-1").values, found.infoloob)
    assert np.allclose(board.mark("logits-1").values, found.logits)
    assert data.found[0].rows.tolist() == batch_rows(snapshot(charted, 1), units_of(shot), 16, 1).tolist()
    labels = [shot.items.label[row] for row in rows]
    assert labels == sorted(labels)
    strip = board.mark("negatives-1")
    assert strip.cells[0].row == rows[3]
    assert strip.cells[1].share == pytest.approx(float(found.infoloob[3].max()))
    for bad in (1, 1000):
        with pytest.raises(ChartError, match=r"is too (small|large)"):
            panel(charted, "batch-negatives", size=bad)


def test_attributes_are_the_probes(charted):
    board = panel(charted, "attribute-probes")
    shot = snapshot(charted, 1)
    table = board.mark("table-images")
    assert table.columns == ("color",)  # `relation` has one value only in these runs
    expected = probe(shot.image, shot.items.metadata["subject_color"])
    assert table.values[0, 0] == pytest.approx(100 * expected.accuracy)
    assert table.rows[2:] == ("guessing", "from the others, co-occurrence 0")
    assert math.isnan(table.values[3, 0])
    assert [row.words for row in board.mark("runs").lines] == ["CLIP · s0", "CLOOB · s0"]


def test_progress_is_told_and_can_cancel(charted):
    told = []
    panel(charted, "attribute-probes", (1,), progress=lambda share, note: told.append(share))
    assert told
    assert all(0 <= share <= 1 for share in told)

    def cancel(_share: float, _note: str) -> None:
        raise InterruptedError

    for name in CHARTS:
        with pytest.raises(InterruptedError):
            panel(charted, name, (1,), progress=cancel)


@pytest.mark.parametrize("name", [name for name in CHARTS if name != "attribute-probes"])  # its table says them
def test_numbers_of_runs_at_different_steps_say_the_steps(charted, name: str):
    at_two, at_one = (panel(charted, name, (1, 2), steps) for steps in ((80, 240), (80, 80)))
    said = [row for row in panel_rows(at_two, name) if row[1] == "steps"]
    assert [(row[3], row[5]) for row in said] == [
        (charted.runs.get(1).short_name, 80),
        (charted.runs.get(2).short_name, 240),
    ]
    assert not at_one.steps


@pytest.mark.parametrize("name", CHARTS)
def test_three_snapshots_have_three_colors(charted, name: str):
    board = panel(charted, name, (1, 2, 1), (None, None, 80))
    parts = [part for mark in board.marks for part in (mark, *getattr(mark, "curves", ()), *getattr(mark, "dots", ()))]
    assert {*map(run_tone, range(3))} <= {getattr(part, "tone", None) for part in parts}
    assert "step 80" in str([(mark.title, getattr(mark, "columns", ""), parts) for mark in board.marks])


def test_a_run_at_two_steps_has_one_course(charted):
    board = panel(charted, "embedding-spectrum", (1, 1), (80, 160))
    assert [curve.name for curve in board.mark("steps-rank").curves] == ["CLIP · s0, images", "CLIP · s0, texts"]


def test_negatives_are_listed(charted):
    data, _ = computed(charted, "batch-negatives", anchor=2)
    told = registry.load("batch-negatives").numbers(data, registry.load("batch-negatives").settings(anchor=2))
    assert [row["Mean of 1 − p"] for row in told] == [one.batch.unsaturated.mean() for one in data.found]
    assert told[0]["Its weight in InfoLOOB"] == data.found[0].batch.infoloob[2].max()
    assert told[0]["Anchor"] == data.found[0].rows[2]


def test_batches_are_training_pairs_where_they_were_kept(charted):
    held = [row for row in charted.results.snapshots(1) if row.split == "renderings"]
    kept = [dataclasses.replace(row, split=BATCH) for row in held if row.step > 0]
    results = types.SimpleNamespace(snapshots=lambda _run: [*held, *kept])
    workspace = types.SimpleNamespace(results=results)
    run = charted.runs.get(1)
    assert choose_batch(workspace, run, Target(1, 80), Request()) in kept
    assert choose_batch(workspace, run, Target(1, 80), Request()).step == 80
    assert choose_batch(workspace, run, Target(1, 80), Request(), held_out=True) in held
    assert choose_batch(workspace, run, Target(1, 0), Request()) in held
    assert BATCH == KEPT_BATCH
