"""Functions that train, add or decide leave a workspace of somebody else as it was, byte by byte.

Commands: tests/journeys/test_walk_look_only.py.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from explorer.run_control import actions
from explorer.views.quality.load import write_states
from trainer import api, config
from trainer.evaluation.cleaned_list import write_cleaned_list
from trainer.evaluation.data_quality import check_data
from trainer.experiments.experiment import clip_and_cloob, to_toml
from trainer.inference.model_cache import ModelCache
from trainer.scheduling import experiments, queue
from trainer.store import LookOnly, Workspace
from trainer.store.quality_reports import KINDS, Measured, QualityFinding, QualityReport, write_quality
from trainer.store.reviews import Review

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """Return the copy of a workspace with a run, a check of its data, a review and an experiment that goes on."""
    original = Workspace(tmp_path / "original")
    run = original.runs.create(config.Run(name="one"), status="stopped")
    finding = QualityFinding("mispair", "train", 0, ("k",), "p", "c", "", (-3.0,), ((4, 5),))
    measured = Measured(run, "one", 1, {"train": 0.1}, {"train": 0.2}, {"train": -2.0})
    counts = {kind: {"train": 1} for kind in KINDS}
    report = QualityReport("scenes", 1.0, (measured,), {"train": 8}, {"train": 8}, counts, (finding,))
    write_quality(original.runs.get(run).folder, report)
    original.reviews.put([Review("scenes", "k", "ignored")])
    original.experiments.add("asked", to_toml(clip_and_cloob(None)))
    original.experiments.set_state("asked", "going")
    original.close()
    shutil.copytree(original.folder, tmp_path / "copy")
    return tmp_path / "copy"


def _state(folder: Path) -> dict[str, bytes | None]:
    """Return what lies in the folder, without the two files that SQLite needs beside a database to read it."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if not path.name.startswith("explorer.db-")
    }


def test_functions_leave_a_workspace_of_somebody_else_as_it_was(foreign: Path, faults) -> None:
    before, workspace = _state(foreign), Workspace(foreign)
    acts: tuple[Callable[[], object], ...] = (
        lambda: api.fit("clip-scenes", workspace=foreign),
        lambda: api.fit("clip-scenes", workspace=foreign, detach=True),
        lambda: experiments.start(workspace, "asked"),
        lambda: experiments.stop(workspace, "asked"),
        lambda: workspace.experiments.remove("asked"),
        lambda: actions.start_clip_and_cloob(workspace, None),
        lambda: check_data(ModelCache(workspace), [1]),
        lambda: write_cleaned_list(workspace, 1),
        lambda: workspace.reviews.put([Review("scenes", "k", "flagged")]),
        lambda: workspace.reviews.take_back("scenes", ["k"]),
        lambda: write_states(workspace, "scenes", [(Review("scenes", "k", "ignored"), "flagged")]),
        lambda: write_states(workspace, "scenes", [(Review("scenes", "k", "ignored"), "")]),
    )
    for act in acts:
        with pytest.raises(LookOnly, match="look only"):
            act()
    assert not queue.start_due(workspace)
    workspace.close()
    assert _state(foreign) == before
    faults.row("S3", "a function of a view or of Python that trains, on a copy", "refused", len(acts), len(acts))
