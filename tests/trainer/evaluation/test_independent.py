"""Snapshots of independent Scenes: the same pairs for every run, in the store, and probed side by side."""

from pathlib import Path

import numpy as np
import pytest

from tests.builders import writable_copy
from trainer import config
from trainer.charts import ChartError
from trainer.charts.attribute_probes import CHART
from trainer.charts.marks import Panel
from trainer.charts.measures.attribute_probes import ProbeSettings, lacking_independent
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import Request, targets_of
from trainer.evaluation import independent
from trainer.inference.model_cache import AnswerError, ModelCache
from trainer.messages import EmbedIndependent
from trainer.server.handlers import RequestHandlers
from trainer.store import Workspace, read_snapshot

pytestmark = pytest.mark.slow


@pytest.fixture
def workspace(asked: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Return a copy of two short runs, with few independent Scenes."""
    monkeypatch.setattr(independent, "INDEPENDENT_SCENES", config.Scenes(seed=77, train_pairs=80, heldout_pairs=40))
    return writable_copy(asked.folder, tmp_path / "copy")


def probes(workspace: Workspace) -> Panel:
    settings = ProbeSettings(independent=True)
    data = CHART.result(workspace, Request(targets_of([1, 2])), settings, lambda *_: None)
    return CHART.panel(data, settings)


def test_every_run_gets_the_same_pairs(workspace: Workspace) -> None:
    assert lacking_independent(workspace, [(1, None), (2, None), (3, None)]) == ((1, None), (2, None)), (
        "run 3 has no checkpoint"
    )
    with pytest.raises(ChartError, match="trainer independent 1 2"):
        probes(workspace)
    told: list[float] = []
    models = ModelCache(workspace)
    question = EmbedIndependent(runs=(1, 2), steps=(4, None))
    answer = RequestHandlers(workspace).answer(question, lambda share, _note: told.append(share))
    rows = [row for run in (1, 2) for row in workspace.results.snapshots(run) if row.split == "independent"]
    assert answer.snapshots == tuple(str(row.folder) for row in rows)
    assert [(row.run, row.step, row.dataset, row.split, row.n) for row in rows] == [
        (1, 4, "scenes", "independent", 40),
        (2, 8, "scenes", "independent", 40),
    ]
    assert told == sorted(told)
    assert told[-1] == 1
    first, second = (read_snapshot(row.folder) for row in rows)
    assert first.fingerprint == second.fingerprint
    assert first.items.caption == second.items.caption
    assert set(first.items.metadata) >= {"subject_color", "ground", "relation"}
    assert np.allclose(np.linalg.norm(first.image, axis=1), 1, atol=1e-4)
    opened = models.get(1, 4).opened
    assert np.allclose(opened.embed_texts(first.items.caption), first.text, atol=1e-5)

    assert choose_snapshot(workspace, workspace.runs.get(1)).split == "renderings", "other views go on as before"
    assert lacking_independent(workspace, [(1, None), (2, None)]) == ((1, None),)
    assert lacking_independent(workspace, [(1, 4), (2, 4)]) == ((2, 4),)
    board = probes(workspace)
    assert "step 4, Scenes, independent" in board.head[0]
    assert "on equal terms" in board.notes[1]


def test_runs_on_other_data_are_refused(workspace: Workspace) -> None:
    other = workspace.runs.create(config.Run(name="other", data=config.Folder(path="/somewhere")))
    with pytest.raises(AnswerError, match="not trained on Scenes"):
        independent.embed_independent(ModelCache(workspace), [1, other])
    assert lacking_independent(workspace, [(other, None)]) == ()
