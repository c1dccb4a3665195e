"""Waiting for Ray Train: its result or error, and not for ever where it keeps workers whose run has ended."""

import threading
from functools import partial

import pytest

from trainer import config
from trainer.places.shared_folder import StatePublisher
from trainer.places.storage import Storage
from trainer.store import Workspace
from trainer.training.ray_ranks import has_ended, until_ended


@pytest.fixture
def workspace(tmp_path):
    """Return an empty workspace: `has_ended` reads run 1, which is another test's in the shared one."""
    opened = Workspace(tmp_path)
    yield opened
    opened.close()


def test_what_ray_raises_is_raised(workspace):
    def fail() -> None:
        raise RuntimeError("no room")

    with pytest.raises(RuntimeError, match="no room"):
        until_ended(fail, lambda: False)


@pytest.mark.parametrize(("job", "status", "waits"), [("now", "finished", False), ("before", "finished", True)])
def test_workers_that_stay_are_waited_for_until_the_run_of_this_job_has_ended(workspace, job, status, waits):
    run = workspace.runs.create(config.Run(name="r"))
    publisher = StatePublisher(workspace, run, job)
    workspace.runs.change(run, status=status, session_at=2.0)
    publisher.publish()
    released, returned = threading.Event(), threading.Event()

    def wait() -> None:
        ended = partial(has_ended, workspace.folder, Storage(str(workspace.folder)), "now")
        until_ended(released.wait, ended, teardown_s=0.0)
        returned.set()

    threading.Thread(target=wait, daemon=True).start()
    assert returned.wait(2.0 if waits else 60.0) is not waits
    released.set()
    assert returned.wait(60.0)
