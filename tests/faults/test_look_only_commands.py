"""Commands and functions that train, add or decide leave a workspace of somebody else as it was, byte by byte."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from explorer.run_control import actions
from explorer.views.quality.load import write_states
from trainer import api, config
from trainer.__main__ import main
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
    (tmp_path / "new.toml").write_text(to_toml(clip_and_cloob(None)), encoding="utf-8")
    return tmp_path / "copy"


def _state(folder: Path) -> dict[str, bytes | None]:
    """Return what lies in the folder, without the two files that SQLite needs beside a database to read it."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if not path.name.startswith("explorer.db-")
    }


COMMANDS = (
    *(("experiment", "new", "{new}"), ("experiment", "run", "{new}", "--queue"), ("experiment", "run", "asked")),
    *(("experiment", "stop", "asked"), ("experiment", "repeat", "1", "--set", "objective.inv_tau=10,20")),
    *(("experiment", "new", "{made}", "--preset", "clip-scenes", "--preset", "cloob-scenes"),),
    *(("data", "quality", "1"), ("data", "review", "1", "--flag", "k"), ("data", "review", "1", "--clear", "k")),
    *(("data", "cleaned", "1"), ("data", "cleaned", "1", "--out", "{made}.csv")),
    *(("runs", "note", "1", "x"), ("runs", "tag", "1", "--add", "x"), ("runs", "archive", "1")),
    *(("runs", "rename", "1", "x"), ("runs", "delete", "1"), ("runs", "purge", "1"), ("queue", "hold")),
    *(("open", "vectors", "--image", "{vectors}"),),
    *(("replay", "1", "--step", "1"), ("fit", "--preset", "clip-scenes"), ("resume", "1"), ("queue", "run")),
)


def test_commands_leave_a_workspace_of_somebody_else_as_it_was(foreign: Path, tmp_path: Path, capsys, faults) -> None:
    np.save(tmp_path / "vectors.npy", np.eye(6, dtype=np.float32))
    before = _state(foreign)
    for command in COMMANDS:
        files = {"new": "new.toml", "made": "made.toml", "vectors": "vectors.npy"}
        words = [word.format(**{key: tmp_path / name for key, name in files.items()}) for word in command]
        assert main([*words, "--workspace", str(foreign)]) == 2, command
        assert "look only" in capsys.readouterr().err, command
        assert _state(foreign) == before, command
    faults.row("S3", "a command that trains, adds or decides, on a copy", "refused", len(COMMANDS), len(COMMANDS))


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
