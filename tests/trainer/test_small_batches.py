"""What CLOOB does in small batches is said of own data alone, and as long as its setting asks for it."""

from dataclasses import replace

import pytest

from trainer import config
from trainer.config.small_batches import ENOUGH, small_batch_of_cloob

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
