"""A resumed run deletes no checkpoint that may be valid, and accepts no other pairs as its own."""

import json
import os
import signal

import pytest

from trainer.checkpoints import checkpoint
from trainer.errors import UserError
from trainer.training.fit import fit
from trainer.training.session import FitError

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("reader", "trouble", "words"),
    [
        ("tensor_file.load", RuntimeError("DefaultCPUAllocator: not enough memory"), "is what was saved, but"),
        ("manifests.verified", PermissionError(13, "Permission denied"), "cannot be read"),
    ],
)
def test_a_checkpoint_that_cannot_be_opened_for_now_is_no_damaged_one(
    workspace, tiny, after_update, journal, monkeypatch, reader, trouble, words
):
    def refuse(*_args, **_options):
        raise trouble

    run = tiny()
    after_update(9, lambda: os.kill(os.getpid(), signal.SIGTERM))
    fit(workspace, run)
    folder = workspace.runs.get(run).folder / "checkpoints"
    kept, curves = checkpoint.steps(folder), journal(run)
    assert max(kept) == 9
    with monkeypatch.context() as patch:
        patch.setattr(f"trainer.checkpoints.checkpoint.{reader}", refuse)
        with pytest.raises(UserError, match=f"step_000009 {words}"):
            fit(workspace, run)
    assert checkpoint.steps(folder) == kept, "nothing was thrown away"
    assert journal(run) == curves
    fit(workspace, run)
    assert workspace.runs.get(run).status == "finished"


def test_pairs_that_have_changed_are_noticed_though_the_row_knows_of_no_step(workspace, tiny, after_update):
    run = tiny()
    after_update(4, lambda: os.kill(os.getpid(), signal.SIGTERM))
    fit(workspace, run)
    # As after a kill in the first two seconds: the row is told of steps every two seconds only.
    facts = workspace.runs.get(run).facts | {"fingerprint": "0" * 32}
    workspace.runs.change(run, step=0, facts=json.dumps(facts))
    with pytest.raises(FitError, match="have changed since this run began"):
        fit(workspace, run)
