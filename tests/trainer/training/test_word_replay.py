"""Replay of word2vec: a repeated update equals the run's own, and says what it did to every pair and word."""

import json
import math

import numpy as np
import pytest
from safetensors.torch import load_file

from tests.nightly import nightly_except
from trainer import config
from trainer.__main__ import main
from trainer.analysis.progress import silent
from trainer.analysis.skip_gram_pairs import gradient_step
from trainer.charts import registry
from trainer.charts.spec import Request, Target
from trainer.data.tokenizers import read_tokenizer
from trainer.store.replay_records import read_replay
from trainer.training.fit import fit
from trainer.training.replay import ReplayError, replay
from trainer.training.word_replay import replay_words

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trained(workspace, tiny):
    """Return twelve updates with drawn negatives and checkpoints at 4, 8 and 12."""
    run = tiny(config.Word2Vec(negatives=3), **{"optimizer.learning_rate": 0.01})
    fit(workspace, run)
    return run


def vectors_at(workspace, run: int, step: int, vocabulary: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the input and output vectors of words in a checkpoint."""
    folder = workspace.runs.get(run).folder
    weights = load_file(folder / "checkpoints" / f"step_{step:06d}" / "model.safetensors")
    tokenizer = read_tokenizer((folder / "tokenizer.json").read_text(encoding="utf-8"))
    tokens = [int(tokenizer.encode([word], 4)[0, 1]) for word in vocabulary]
    names = ("towers.text.vectors.weight", "method.context.weight")
    inputs, outputs = (weights[name].double().numpy()[tokens] for name in names)
    return inputs, outputs


def losses_of(inputs: np.ndarray, outputs: np.ndarray, pairs: np.ndarray) -> list[float]:
    """Return -ln sigma(c+ w) - sum ln sigma(-c- w) of every pair, by a loop over plain numbers."""
    result = []
    for center, context, *negatives in pairs.tolist():
        total = math.log1p(math.exp(-math.fsum(inputs[center] * outputs[context])))
        for drawn in negatives:
            if drawn >= 0:
                total += math.log1p(math.exp(math.fsum(inputs[center] * outputs[drawn])))
        result.append(total)
    return result


def test_an_update_of_word2vec_is_made_again_bit_by_bit(workspace, trained, journal):
    """At step 5 the weights before it are those of checkpoint 4; at step 8 those after it are checkpoint 8's."""
    for step, saved in ((5, 4), (8, 8)):
        result = replay_words(workspace, trained, step, progress=silent)
        assert result.loss == journal(trained)[step]["train/loss"]
        assert (result.began, result.verified) == (4, 8)
        inputs, outputs = vectors_at(workspace, trained, saved, result.words)
        side = int(saved == step)
        assert result.losses[side] == pytest.approx(losses_of(inputs, outputs, result.pairs), abs=1e-12)
        assert result.losses[0].mean() == pytest.approx(result.loss, abs=1e-6)
        assert result.losses[1].mean() < result.losses[0].mean()
        shown = len(result.scores[0])
        assert result.scores[side] == pytest.approx(inputs[:shown] @ outputs[:shown].T, abs=1e-12)


def test_gradients_are_the_sum_of_the_steps_of_all_pairs(workspace, trained):
    result = replay_words(workspace, trained, 5, progress=silent)
    inputs, outputs = vectors_at(workspace, trained, 4, result.words)
    moved = np.zeros_like(inputs), np.zeros_like(outputs)
    for center, context, *negatives in result.pairs.tolist():
        drawn = [index for index in negatives if index >= 0]
        ends = gradient_step(inputs[center], outputs[context], outputs[drawn].reshape(-1, inputs.shape[1]), 1.0)
        moved[0][center] += inputs[center] - ends[0]
        moved[1][context] += outputs[context] - ends[1]
        np.add.at(moved[1], drawn, outputs[drawn] - ends[2])
    lengths = [np.linalg.norm(rows, axis=1) / len(result.pairs) for rows in moved]
    assert result.gradients == pytest.approx(np.array(lengths), abs=1e-12)
    most = np.bincount(result.pairs[:, 0], minlength=len(result.words))
    assert (np.diff(most) <= 0).all(), "the most frequent centers are first"


@pytest.mark.parametrize("softmax", nightly_except(["full", "hierarchical"], "hierarchical"))
def test_other_softmaxes_have_no_negatives(workspace, tiny, journal, softmax):
    run = tiny(config.Word2Vec(softmax=softmax), **{"optimizer.epochs": 1, "optimizer.learning_rate": 0.01})
    fit(workspace, run)
    result = replay_words(workspace, run, 3, progress=silent)
    assert result.loss == journal(run)[3]["train/loss"]
    assert result.losses[0].mean() == pytest.approx(result.loss, abs=1e-6)
    assert result.pairs.shape[1] == 2
    tree = softmax == "hierarchical"
    assert np.isnan(result.gradients[1]).all() == tree
    if tree:
        assert (np.exp(result.scores).sum(axis=2) <= 1 + 1e-9).all(), "of words the probabilities sum to at most 1"


def test_the_chart_draws_it_and_the_command_prints_it(workspace, trained, capsys, tmp_path):
    where = ["--workspace", str(workspace.folder)]
    assert main(["replay", str(trained), "--step", "7", "--json", *where]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["n"] == len(printed["pairs"]) > 100
    chart = registry.load("replayed-step")
    settings = chart.settings(replayed=7)
    panel = chart.panel(chart.result(workspace, Request((Target(trained),)), settings, silent), settings)
    assert panel.mark("before-0").values == pytest.approx(np.array(printed["scores_before"]))
    change = np.array(printed["scores_after"]) - np.array(printed["scores_before"])
    assert panel.mark("change-0").values == pytest.approx(change)
    of_pair: dict[tuple[str, str], list[float]] = {}
    for pair in printed["pairs"]:
        of_pair.setdefault((pair["center"], pair["context"]), []).append(pair["loss_before"])
    line = panel.mark("pairs-0").lines[0]
    means = {key: sum(values) / len(values) for key, values in of_pair.items()}
    assert (line.words, line.values[0]) == max(means, key=lambda key: means[key])
    assert line.values[2] == pytest.approx(max(means.values()))
    by_word = {word["word"]: word for word in printed["words"]}
    bars = panel.mark("gradients-0")
    assert bars.bars[1].heights[0] == pytest.approx(by_word[bars.names[0]]["gradient_output"])
    assert main(["replay", str(trained), "--step", "7", *where]) == 0
    assert "bit by bit" in capsys.readouterr().out
    out = tmp_path / "replay.svg"
    assert main(["export", "replayed-step", "--runs", str(trained), "--out", str(out), *where]) == 0
    assert "center" in out.read_text(encoding="utf-8")


def test_what_cannot_be_replayed_or_read_is_said(workspace, trained, capsys):
    with pytest.raises(ReplayError, match="compares no images with texts: clip have no loss"):
        replay_words(workspace, trained, 3, compare=("clip",), progress=silent)
    with pytest.raises(ReplayError, match="Choose a step from 1 to 12"):
        replay_words(workspace, trained, 13, progress=silent)
    with pytest.raises(ReplayError, match="no matrix"):
        replay(workspace, trained, 3, progress=silent)
    assert main(["replay", str(trained), "--step", "2", "--workspace", str(workspace.folder)]) == 0
    folder = workspace.runs.get(trained).folder
    assert read_replay(folder, 2).pairs.shape[1] == 5
    file = folder / "replays" / "step_000002.json"
    whole = json.loads(file.read_text(encoding="utf-8"))
    for change in ({"words": ["one"]}, {"loss": "much"}, {"softmax": 3}):
        file.write_text(json.dumps(whole | change), encoding="utf-8")
        assert read_replay(folder, 2) is None
