"""The probe strip against loops in float64: probes of the data, and probes that models embed at their own steps."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from trainer.__main__ import main
from trainer.analysis.progress import silent
from trainer.charts import ChartError
from trainer.charts.probe_strip import CHART, StripSettings
from trainer.charts.probes import KEY, MOST, PinnedProbe, keep, pin, pinned
from trainer.charts.spec import Request, Target
from trainer.errors import UserError
from trainer.store import Workspace, read_snapshot

BOTH = Request((Target(1), Target(2)), "scenes", "renderings")


def naive(query: np.ndarray, vectors: np.ndarray, names: list[str], k: int) -> list[tuple[str, float]]:
    """Return the k different names with the largest dot product, each with it."""
    best: dict[str, float] = {}
    for vector, name in zip(vectors, names, strict=True):
        cosine = sum(float(a) * float(b) for a, b in zip(query, vector, strict=True))
        best[name] = max(cosine, best.get(name, -2.0))
    return sorted(best.items(), key=lambda one: -one[1])[:k]


def folder_of(workspace: Workspace, run: int, step: int) -> Path:
    rows = workspace.results.snapshots(run)
    return next(row.folder for row in rows if (row.step, row.split) == (step, "renderings"))


def test_probes_of_the_data_equal_loops_at_every_step_of_two_runs(charted: Workspace):
    first = read_snapshot(folder_of(charted, 1, 0)).items
    settings = StripSettings(image=(first.path[7],), text=(first.caption[3],), k=5, steps=4)
    data = CHART.result(charted, BOTH, settings, silent)
    assert [(one.run, one.step) for one in data.frames] == [(run, step) for run in (1, 2) for step in (0, 80, 160, 240)]
    for frame in data.frames:
        held = read_snapshot(folder_of(charted, frame.run, frame.step))
        picture, sentence = frame.hits
        row = [*held.items.path].index(first.path[7])
        wanted = naive(held.image[row], held.text, [*held.items.caption], 5)
        assert [held.items.caption[at] for at in picture.rows] == [name for name, _ in wanted]
        assert picture.cosines == pytest.approx([cosine for _, cosine in wanted], abs=1e-5)
        if first.caption[3] not in held.items.caption:
            assert "not embedded" in sentence.problem or "no checkpoint" in sentence.problem
            continue
        row = [*held.items.caption].index(first.caption[3])
        wanted = naive(held.text[row], held.image, [*held.items.path], 5)
        assert [held.items.path[at] for at in sentence.rows] == [name for name, _ in wanted]
        own = [held.items.caption[at] == first.caption[3] for at in sentence.rows]
        assert list(sentence.own) == own
    printed = CHART.numbers(data, settings)
    assert [(one["kind"], one["run"], one["step"]) for one in printed[:2]] == [("image", 1, 0), ("image", 1, 80)]
    assert len(CHART.panel(data, settings).marks) == 2 + 2 * 8


def test_few_snapshots_are_spread_over_training_and_pins_stand_for_settings(charted: Workspace, tmp_path: Path):
    text = read_snapshot(folder_of(charted, 1, 0)).items.caption[0]
    data = CHART.result(charted, BOTH, StripSettings(text=(text,), steps=2), silent)
    assert [one.step for one in data.frames] == [0, 240, 0, 240]
    with pytest.raises(ChartError, match="There is no probe"):
        CHART.result(charted, BOTH, StripSettings(), silent)
    workspace = Workspace(tmp_path / "own")
    pin(workspace, [PinnedProbe("text", "a"), PinnedProbe("image", "b.png"), PinnedProbe("text", "a")])
    assert pinned(Workspace(tmp_path / "own")) == (PinnedProbe("text", "a"), PinnedProbe("image", "b.png"))
    with pytest.raises(UserError, match="At most 10"):
        pin(workspace, [PinnedProbe("text", str(number)) for number in range(MOST)])
    workspace.set_setting(KEY, [["text", 3], ["sound", "a"], "b", ["image", ""], ["text", "kept"]])
    assert pinned(workspace) == (PinnedProbe("text", "kept"),)
    assert keep(workspace, ()) == pinned(workspace) == ()


@pytest.mark.slow
def test_other_sentences_and_pictures_are_embedded_at_their_own_step(
    asked: Workspace, images: list[Path], capsys: pytest.CaptureFixture[str]
):
    from trainer.inference.embed import embed_files, embed_sentences
    from trainer.inference.model_cache import ModelCache

    words = ("analyze", "probe-strip", "1", "2", "--text", "a sentence of nobody", "--image", str(images[0]))
    assert main([*words, "--k", "3", "--steps", "40", "--workspace", str(asked.folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["runs"]
    kept = {(run, one.step) for run in (1, 2) for one in asked.results.checkpoints(run)}
    split = found[0]["split"]
    shots = {(run, one.step) for run in (1, 2) for one in asked.results.snapshots(run) if one.split == split}
    assert {(one["run"], one["step"]) for one in found} == shots
    assert shots & kept
    for one in found:
        if (one["run"], one["step"]) not in kept:
            assert "checkpoint" in one["problem"]
            continue
        opened = ModelCache(asked).get(one["run"], one["step"]).opened
        held = read_snapshot(next(
            row.folder for row in asked.results.snapshots(one["run"])
            if (row.step, row.split) == (one["step"], one["split"])
        ))  # fmt: skip
        if one["kind"] == "text":
            query, vectors, names = embed_sentences(opened, [one["probe"]])[0], held.image, [*held.items.path]
        else:
            query, vectors, names = embed_files(opened, [one["probe"]]).vectors[0], held.text, [*held.items.caption]
        wanted = naive(query, vectors, names, 3)
        assert [names[row] for row in one["rows"]] == [name for name, _ in wanted]
        assert one["cosines"] == pytest.approx([cosine for _, cosine in wanted], abs=1e-5)


def test_a_picture_that_searches_pictures_finds_itself_first(charted: Workspace):
    items = read_snapshot(folder_of(charted, 1, 0)).items
    settings = StripSettings(image=(items.path[0],), among="image", steps=1)
    data = CHART.result(charted, replace(BOTH, targets=BOTH.targets[:1]), settings, silent)
    assert data.frames[0].hits[0].own[0]
    assert data.frames[0].hits[0].rows[0] == 0
