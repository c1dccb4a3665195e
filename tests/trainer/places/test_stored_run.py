"""The copy of a run in a store: mirrored row for row, asked, pruned, and restored for another node."""

import json
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.trainer.places.conftest import There
from tests.trainer.places.test_run_mirror import rows_of
from trainer.places import stored_run
from trainer.places.run_mirror import RunMirror
from trainer.places.storage import Storage
from trainer.places.stored_run import StoredPublisher, StoredRunSource, bring_checkpoint, restore
from trainer.store import Workspace

pytestmark = pytest.mark.slow


def test_a_run_is_mirrored_from_its_copy_asked_and_restored(
    there: There, here: Workspace, storage: Storage, tmp_path: Path
) -> None:
    rng, source = np.random.default_rng(0), StoredRunSource(storage)
    assert not source.exists()
    there.begin()
    there.train(range(1, 6), rng)
    there.measure(5, rng)
    for step in (3, 5):
        there.keep(step, rng, best=step == 3)
    mirror = RunMirror(here, 2, source)
    with StoredPublisher(there.workspace, there.run, "job", storage):
        asking = threading.Thread(target=source.ask, args=("pause",))
        asking.start()
        asking.join(60)
        assert there.workspace.runs.asked(there.run) == "pause"
        there.train(range(6, 9), rng)
        there.end()
    here.runs.change(2, phase="out of reach (box, last seen 06:17)")
    assert mirror.step()
    assert here.runs.get(2).phase == ""
    assert rows_of(here, 2) == rows_of(there.workspace, there.run)
    assert set(source.folders()) >= {"checkpoints/step-000003", "checkpoints/step-000005"}
    assert source.last_step() == 8

    other = Workspace(tmp_path / "other node")
    restore(storage, other)
    assert not other.look_only
    assert rows_of(other, 1) == rows_of(there.workspace, there.run)

    # One that is removed where it was made goes from the copy, the manifest first.
    for file in (there.folder / "checkpoints" / "step-000003").iterdir():
        file.unlink()
    with StoredPublisher(there.workspace, there.run, "job", storage):
        pass
    assert "checkpoints/step-000003" not in source.folders()
    assert storage.names("run/checkpoints/step-000003") == []


def test_a_rank_waits_for_the_checkpoint_that_all_begin_with(there: There, storage: Storage, tmp_path: Path) -> None:
    checks = []

    def check() -> None:
        checks.append(1)
        if len(checks) > 1:
            raise TimeoutError

    (tmp_path / "run").mkdir()
    with pytest.raises(TimeoutError):
        bring_checkpoint(storage, tmp_path / "run", 5, check)
    there.begin()
    there.keep(5, np.random.default_rng(0), best=True)
    (there.folder / "checkpoints" / "step-000005").rename(there.folder / "checkpoints" / "step_000005")
    with StoredPublisher(there.workspace, there.run, "job", storage):
        pass
    bring_checkpoint(storage, tmp_path / "run", 5, check)
    for name in ("checkpoints/step_000005/model.bin", "checkpoints/step_000005/manifest.json", "run.json"):
        assert (tmp_path / "run" / name).read_bytes() == (there.folder / name).read_bytes()


def test_a_slow_store_is_written_again_soon_enough_to_acknowledge_a_request(
    there: There, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed, storage = [0.0], Storage(str(tmp_path / "runs"))
    send = Storage.send

    def slowly(self: Storage, source: Path, name: str) -> None:
        passed[0] += 20
        send(self, source, name)

    monkeypatch.setattr(stored_run, "time", SimpleNamespace(monotonic=lambda: passed[0]))
    monkeypatch.setattr(Storage, "send", slowly)
    publisher, copy = StoredPublisher(there.workspace, there.run, "job", storage), storage.inside(stored_run.RUN)

    def acknowledged() -> int:
        return json.loads(copy.read("state.json", 1 << 16))["acknowledged"]

    publisher.publish()
    assert passed[0] >= 20
    copy.write("request.json", json.dumps({"number": 1, "request": "pause"}).encode())
    publisher.publish()
    assert acknowledged() == 0
    passed[0] += 11
    publisher.publish()
    assert acknowledged() == 1
