"""The importance of a caption's words, against cosines and ranks computed here."""

from dataclasses import replace

import numpy as np
import pytest

from trainer.charts import ChartError
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import Request, targets_of
from trainer.charts.words import CHART, WordsSettings, sentences
from trainer.store import Workspace, read_snapshot


def embedded(run: int, texts: tuple[str, ...]) -> np.ndarray:
    rows = np.stack([np.random.default_rng(run + sum(map(ord, text))).normal(size=32) for text in texts])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def asked(workspace: Workspace, *runs: int, steps=(), **settings) -> tuple[Request, WordsSettings]:
    """Return the request with the vectors that each run's model would return."""
    request, chosen = Request(targets_of(runs, steps)), WordsSettings(**settings)
    texts = sentences(workspace, request, chosen)
    vectors = tuple(tuple(map(tuple, embedded(int(one.run), texts).tolist())) for one in request.targets)
    return replace(request, vectors=vectors), chosen


def compute(workspace: Workspace, request: Request, settings: WordsSettings):
    return CHART.result(workspace, request, settings, lambda share, note: None)


def snapshot_of(workspace: Workspace, run: int):
    return read_snapshot(choose_snapshot(workspace, workspace.runs.get(run)).folder)


def test_falls_and_ranks_are_those_of_the_snapshots(charted):
    request, settings = asked(charted, 1, 2, pair=4)
    data = compute(charted, request, settings)
    said = snapshot_of(charted, 1).items.caption[4]  # the first run's words are put to all of them
    words = said.split()
    bars = CHART.draw(data, settings).mark("falls").bars
    for place, run in enumerate((1, 2)):
        snapshot = snapshot_of(charted, run)
        image, text = snapshot.image.astype(np.float64), snapshot.text.astype(np.float64)
        texts = (said, *(" ".join(words[:at] + words[at + 1 :]) for at in range(len(words))))
        cosines = embedded(run, texts) @ image.T
        ranks = [1 + int((np.delete(row, 4) >= row[4]).sum()) for row in cosines]
        found = data.found[place]
        assert found.words == tuple(words)
        assert found.rank == ranks[0]
        assert found.ranks.tolist() == ranks[1:]
        caption = np.array(snapshot.items.caption)
        unmatched = (image @ text.T)[caption[:, None] != caption[None, :]]
        falls = cosines[0, 4] - cosines[1:, 4]
        assert found.falls == pytest.approx(falls, abs=1e-6)
        assert bars[place].heights == pytest.approx(falls / unmatched.std(), rel=0.02), "100,000 of them are drawn"
    plain = CHART.draw(data, replace(settings, units="cosine"))
    assert plain.mark("falls").bars[1].heights == pytest.approx(data.found[1].falls.tolist())
    assert "compare ranks" in plain.notes[1]
    header, rows = CHART.records(data, settings)
    assert len(rows) == 2 * (1 + len(words))
    assert dict(zip(header, rows[-1], strict=True))["left_out"] == words[-1]


def test_one_run_at_two_steps_and_another_caption(charted):
    request, settings = asked(charted, 1, steps=(80, 240), caption="a blue star")
    data = compute(charted, request, settings)
    assert [(run.run, run.step, run.words) for run in data.found] == [
        (1, 80, ("a", "blue", "star")),
        (1, 240, ("a", "blue", "star")),
    ]
    assert [column.split(", ")[1] for column in CHART.draw(data, settings).mark("ranks").columns] == [
        "step 80",
        "step 240",
    ]


def test_what_cannot_be_taken_apart_is_refused(charted):
    with pytest.raises(ChartError, match="no pair 999"):
        asked(charted, 1, pair=999)
    with pytest.raises(ChartError, match="has no words"):
        asked(charted, 1, caption="  ")
    request, settings = asked(charted, 1, 2)
    refused = replace(request, vectors=(request.vectors[0], "Run cloob-scenes has no checkpoint."))
    data = compute(charted, refused, settings)
    assert data.problems == ("Run cloob-scenes has no checkpoint.",)
    assert CHART.panel(data, settings).warnings == data.problems
    with pytest.raises(ChartError, match="not embedded yet"):
        compute(charted, replace(request, vectors=()), settings)
    flat = replace(data, found=(replace(data.found[0], deviation=0.0),))
    with pytest.raises(ChartError, match="Set Unit to Cosine"):
        CHART.draw(flat, settings)
