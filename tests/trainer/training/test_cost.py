"""The cost of a run is measured by real steps, and nothing is saved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.trainer.training.conftest import TINY
from trainer import config
from trainer.config import ConfigError
from trainer.data import DataError
from trainer.messages import MeasureRun
from trainer.server.handlers import RequestHandlers
from trainer.store import Workspace
from trainer.training.cost import measure_cost
from trainer.training.fit import fit

pytestmark = pytest.mark.slow


def test_the_cost_is_that_of_the_run(workspace: Workspace, tiny) -> None:
    told: list[str] = []
    cost = measure_cost(TINY, workspace.folder, lambda _share, note: told.append(note))
    number = tiny()
    fit(workspace, number)
    row = workspace.runs.get(number)
    assert (cost.steps, cost.pairs, cost.device) == (row.total_steps, 256, "cpu")
    assert cost.train_s == pytest.approx(cost.step_s * 12)
    assert cost.memory_mib > 50
    assert cost.gpu_mib is None
    assert "step 3 of 3" in told
    # Kept are the last three checkpoints and the best, and three snapshots of each split.
    files = [file for kind in ("checkpoints", "snapshots") for file in (row.folder / kind).rglob("*") if file.is_file()]
    assert cost.disk_mib == pytest.approx(sum(file.stat().st_size for file in files) / 2**20, rel=1.0)


def test_nothing_is_kept_and_the_answer_is_plain(workspace: Workspace) -> None:
    before = len(workspace.runs.all())
    answer = RequestHandlers(workspace).answer(
        MeasureRun(config=config.to_toml(TINY), steps=2), lambda _share, _note: None
    )
    assert answer["steps"] == 12
    assert len(workspace.runs.all()) == before


def test_what_cannot_run_is_not_measured(workspace: Workspace) -> None:
    def nobody(_share: float, _note: str) -> None:
        pass

    with pytest.raises(ConfigError, match="text_heads"):
        measure_cost(replace(TINY, model=replace(TINY.model, text_heads=7)), workspace.folder, nobody)
    large = replace(TINY, optimizer=replace(TINY.optimizer, batch_size=512))
    with pytest.raises(DataError, match="256 training pairs"):
        measure_cost(large, workspace.folder, nobody)
