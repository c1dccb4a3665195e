"""The moving average of the weights: against a loop in double precision, over a resume, and as what is opened."""

import numpy as np
import pytest
import torch

from tests.trainer.training.test_updates_ahead import session
from trainer import config
from trainer.checkpoints import checkpoint
from trainer.inference.open_model import open_run
from trainer.store import read_snapshot
from trainer.training import fit
from trainer.training.gpu_bench import resumes_equal
from trainer.training.weight_average import WeightAverage


def test_it_is_the_average_of_the_weights_of_every_update():
    training = session(average=0.9)
    assert training.average is not None
    names = [name for name, value in training.towers.state_dict().items() if value.is_floating_point()]
    expected = {name: training.towers.state_dict()[name].double().numpy().copy() for name in names}
    for step in range(1, training.total_steps + 1):
        assert training.update().made
        decay = min(0.9, (1 + step) / (10 + step))
        for name in names:
            weights = training.towers.state_dict()[name].double().numpy()
            expected[name] = decay * expected[name] + (1 - decay) * weights
    found = training.average.towers.state_dict()
    for name in names:
        np.testing.assert_allclose(found[name].numpy(), expected[name], rtol=1e-5, atol=1e-6)
    assert any(not torch.equal(found[name], training.towers.state_dict()[name]) for name in names)
    assert not any(weight.requires_grad for weight in training.average.towers.parameters())


def test_the_weights_that_learn_are_those_of_a_run_without():
    plain, averaged = session(), session(average=0.99)
    for _ in range(4):
        assert plain.update().loss == averaged.update().loss
    assert plain.measured is plain.towers
    assert averaged.measured is not averaged.towers
    assert "average" not in plain.modules


def test_a_discarded_update_leaves_it_as_it_is():
    training = session()
    average = WeightAverage(training.towers, 0.5)
    before = [weight.clone() for weight in average.towers.parameters()]
    training.update()
    average.follow(training.towers, 1, torch.tensor(1.0))
    for weight, other in zip(average.towers.parameters(), before, strict=True):
        assert torch.equal(weight, other)
    average.follow(training.towers, 1, torch.tensor(0.0))
    assert any(not torch.equal(a, b) for a, b in zip(average.towers.parameters(), before, strict=True))


def test_a_resumed_training_has_the_same_average():
    assert resumes_equal(lambda: session(average=0.9), 4)


@pytest.mark.slow
def test_the_average_is_what_is_kept_in_snapshots_and_opened(tiny, workspace):
    run = tiny(config.Clip(), name="averaged", **{"optimizer.average": 0.9})
    fit.fit(workspace, run)
    row = workspace.runs.get(run)
    assert row.status == "finished", row.reason
    newest = [one for one in workspace.results.snapshots(run) if one.split == "renderings"][-1]
    kept = read_snapshot(newest.folder)
    model = open_run(workspace, run, on="cpu")
    np.testing.assert_allclose(kept.text, model.embed_texts(kept.items.caption), atol=1e-5)
    found = checkpoint.load(row.folder / "checkpoints" / f"step_{row.step:06d}", training=False)
    opened = model.model.state_dict()
    assert all(torch.equal(found.weights[f"average.{name}"], value) for name, value in opened.items())
    assert any(not torch.equal(found.weights[f"towers.{name}"], value) for name, value in opened.items())
