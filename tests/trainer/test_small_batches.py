"""What CLOOB does in small batches is said of own data alone, and as long as its setting asks for it."""

from dataclasses import replace

import pytest

from trainer import config
from trainer.config.small_batches import ENOUGH, in_larger_batches, longer_run, small_batch_of_cloob
from trainer.config.suited_optimizer import suited_optimizer

OWN = config.Run(name="own", data=config.Folder(path="own"), objective=config.Cloob())


@pytest.mark.parametrize(
    ("run", "batch", "is_said"),
    [
        (OWN, 8, True),
        (OWN, ENOUGH, False),
        (replace(OWN, objective=config.Cloob(retrieval_share=0.5)), 8, False),
        (replace(OWN, objective=config.Clip()), 8, False),
        (replace(OWN, data=config.Scenes()), 8, False),
    ],
)
def test_it_is_said_of_small_batches_of_own_pairs(run: config.Run, batch: int, is_said: bool):
    run = config.replace(run, "optimizer.batch_size", str(batch))
    assert (f"with batches of {batch}: choose {ENOUGH}, or" in small_batch_of_cloob(run)) is is_said


def of(batch: int, epochs: int) -> config.Run:
    return replace(OWN, optimizer=replace(OWN.optimizer, batch_size=batch, epochs=epochs))


def test_larger_batches_are_proposed_with_the_epochs_that_suit_them():
    suited = suited_optimizer(of(16, 3).optimizer, 214)
    larger = in_larger_batches(replace(OWN, optimizer=suited), 214).optimizer
    assert (suited.epochs, larger.batch_size, larger.epochs) == (39, ENOUGH, 84)
    assert in_larger_batches(of(16, 3), 214).optimizer.epochs == 3, "so few were chosen"
    for run, pairs in ((of(16, 39), 31), (of(16, 39), None), (of(ENOUGH, 39), 214)):
        assert in_larger_batches(run, pairs) == run


def test_a_longer_training_is_in_batches_in_which_no_arm_collapses():
    control = replace(of(16, 3), objective=config.Clip())
    assert longer_run(control, 214).optimizer.batch_size == 16
    both = longer_run(control, 214, [config.Clip(), config.Cloob()])
    assert (both.optimizer.batch_size, both.optimizer.epochs, both.objective) == (ENOUGH, 84, config.Clip())
