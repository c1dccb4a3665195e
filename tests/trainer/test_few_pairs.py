"""What CLOOB does on few pairs is said of own data alone, and as long as its setting asks for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainer import config
from trainer.config.few_pairs import FEW, few_pairs_of_cloob

OWN = config.Run(name="own", data=config.Folder(path="own"), objective=config.Cloob())


@pytest.mark.parametrize(
    ("run", "pairs", "is_said"),
    [
        (OWN, 93, True),
        (OWN, FEW - 1, True),
        (OWN, FEW, False),
        (OWN, None, False),
        (replace(OWN, objective=config.Cloob(retrieval_share=0.5)), 93, False),
        (replace(OWN, objective=config.Clip()), 93, False),
        (replace(OWN, data=config.Scenes()), 93, False),
    ],
)
def test_it_is_said_of_few_own_pairs(run: config.Run, pairs: int | None, is_said: bool):
    assert few_pairs_of_cloob(run, pairs).endswith("set objective.retrieval_share to 0.5.") is is_said
