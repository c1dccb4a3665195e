"""The cost of a run is measured by real steps, and nothing is saved."""

from dataclasses import replace

import numpy as np
import pytest

from tests.trainer.training.conftest import TINY
from trainer import config
from trainer.config import ConfigError
from trainer.data import DataError, load, load_planned
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


def test_of_scenes_that_are_not_drawn_only_what_is_measured_is(tmp_path) -> None:
    told: list[str] = []
    many = replace(TINY, data=config.Scenes(train_pairs=4096, heldout_pairs=512), model=TINY.model)
    cost = measure_cost(many, tmp_path, lambda _share, note: told.append(note))
    assert "Drawing the pictures of the first steps: 192 of 192" in told
    assert not any("of 4,096" in note or "of 5,120" in note for note in told)
    assert not (tmp_path / "data").exists(), "nothing was drawn to stay"
    assert (cost.pairs, cost.steps) == (4096, 3 * 64)
    assert cost.disk_mib > 3 * 1024 * 2 * 32 * 4 / 2**20, "the snapshots of the pairs that will be held out"


def test_planned_pictures_are_those_that_are_drawn(tmp_path) -> None:
    pairs, heldout = load_planned(
        TINY.data, image_size=32, workspace_folder=tmp_path, needed=lambda n: [7, n - 1], progress=lambda *_: None
    )
    whole = load(TINY.data, image_size=32, workspace_folder=tmp_path, progress=lambda *_: None)
    assert (len(pairs), heldout) == (len(whole.train), sum(map(len, whole.heldout.values())))
    assert pairs.captions == whole.train.captions
    for row in (7, 255):
        # A file of JPEG is not quite what was drawn.
        assert np.abs(pairs.images[row].astype(int) - whole.train.images[row]).mean() < 6
    assert not pairs.images[8].any()
    assert load_planned(TINY.data, image_size=32, workspace_folder=tmp_path, needed=range, progress=print) is None


def test_nothing_is_kept_and_the_answer_is_plain(workspace: Workspace) -> None:
    before = len(workspace.runs.all())
    answer = RequestHandlers(workspace).answer(
        MeasureRun(config=config.to_toml(TINY), steps=2), lambda _share, _note: None
    )
    assert answer.steps == 12
    assert len(workspace.runs.all()) == before


def test_what_cannot_run_is_not_measured(workspace: Workspace) -> None:
    def nobody(_share: float, _note: str) -> None:
        pass

    with pytest.raises(ConfigError, match="text_heads"):
        measure_cost(replace(TINY, model=replace(TINY.model, text_heads=7)), workspace.folder, nobody)
    large = replace(TINY, optimizer=replace(TINY.optimizer, batch_size=512))
    with pytest.raises(DataError, match="256 training pairs"):
        measure_cost(large, workspace.folder, nobody)
