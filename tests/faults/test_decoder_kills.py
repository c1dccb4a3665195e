"""Promise 1 for decoders of runs: killed at any moment, they continue bit-identically."""

import time
from dataclasses import replace

import pytest

from tests.faults.breakable_trainer import start_trainer
from trainer import config

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3_600)]

MOMENTS = 200
"""Twenty with `-m faults`."""


@pytest.mark.nightly  # test_decoder.py kills one in the plain suite
def test_a_decoder_killed_at_moments_of_all_its_training(space, small, straight, faults):
    """Weights, losses, measures and what is kept are those of a decoder that nobody disturbed."""
    source = small()
    assert start_trainer(space, source).wait() == 0
    objective = config.EmbeddingDecoder(of=str(source), size=16, width=8, prior_width=16)
    decoder = replace(space.runs.config_of(source), name="decoder", objective=objective)
    undisturbed, began = space.runs.create(decoder), time.monotonic()
    assert start_trainer(space, undisturbed).wait() == 0
    whole_s, expected = time.monotonic() - began, straight.of(space, undisturbed)
    assert expected.status == "finished"
    assert any(name.startswith("method.averaged.") for name in expected.weights)
    assert any(name == "train/loss" for _, name in expected.curves)
    tried, killed, good = faults.times(MOMENTS), 0, 0
    while killed < tried:
        run = space.runs.create(decoder)
        trainer = start_trainer(space, run)
        time.sleep(whole_s * (killed + 0.5) / tried)
        trainer.kill()
        if trainer.wait() != -9:
            whole_s *= 0.95  # it was faster than the first one
            continue
        killed += 1
        assert start_trainer(space, run).wait() == 0
        good += expected.same_as(straight.of(space, run))
    faults.row(1, "kill -9 at evenly spread moments of training a decoder", "resumed bit-identical", tried, good)
    assert good == tried
