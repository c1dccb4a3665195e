"""A run by two nodes of a Ray cluster: losses and weights of one process, by a shared folder and by an object store."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.trainer.places.ray_cluster import cluster
from tests.trainer.places.test_ray import losses_of, paused_continued_and_stopped
from tests.trainer.places.test_run_mirror import rows_of
from tests.trainer.places.test_ssh import wait, written
from tests.trainer.ranks.test_ranks_of_a_run import PARTS, curves, finished, weights
from trainer import config
from trainer.__main__ import main
from trainer.places import bindings
from trainer.places.remote_host import parse
from trainer.store import Workspace

pytestmark = [pytest.mark.slow, pytest.mark.ray, pytest.mark.nightly, pytest.mark.timeout(1_800)]
RUN = replace(PARTS, ranks=2)


@pytest.fixture
def here(watched: Workspace) -> Workspace:
    return watched


def test_a_run_in_a_store_continues_after_its_node_lost_it(bucket: str, here: Workspace, tmp_path: Path) -> None:
    file, folder = written(tmp_path, epochs=150), str(here.folder)
    with cluster(bucket, cpus=(2,)) as node:
        assert main(["fit", "--config", str(file), "--on", "lab", "--detach", "--workspace", folder]) == 0
        wait(lambda: here.runs.get(1).step > 0, f"it never began: {here.runs.get(1)}")
        paused_continued_and_stopped(here)
        (there,) = {found.parent for found in node.rglob("run-*/runs") if found.is_dir()}
        assert rows_of(here, 1) == rows_of(Workspace(there), 1)
        step = here.runs.get(1).step
        shutil.rmtree(there)
        assert main(["resume", "1", "--workspace", folder]) == 0
        wait(lambda: here.runs.get(1).step > step, f"it did not continue there: {here.runs.get(1)}")
        wait(lambda: here.runs.get(1).status == "finished", f"{here.runs.get(1)}")
        wait(lambda: not here.is_alive(1), "the follower stayed")
    assert main(["fit", "--config", str(file), "--workspace", folder]) == 0
    assert losses_of(here, 1) == losses_of(here, 2) != []


def test_a_rank_on_each_of_two_nodes_trains_the_run_of_one_process(store, here: Workspace, tmp_path: Path) -> None:
    """A node has one CPU and a rank needs one, so that each has its own; nodes of a store share no folder."""
    shared = tmp_path / "shared"
    shared.mkdir()
    (tmp_path / "one.toml").write_text(config.to_toml(PARTS))
    (tmp_path / "two.toml").write_text(config.to_toml(RUN))
    code, output = finished(here, "fit", "--config", str(tmp_path / "one.toml"))
    assert code == 0, output
    with cluster(str(shared), cpus=(1, 1)):
        stores = ["s3://bucket/runs", *["gs://bucket/runs"] * ("STORAGE_EMULATOR_HOST" in os.environ)]
        for run, storage in enumerate([str(shared), *stores], 2):
            address = bindings.host_of("lab").address
            bindings.add(parse("lab", address.replace(bindings.host_of("lab").options["storage"], storage)))
            words = ["fit", "--config", str(tmp_path / "two.toml"), "--on", "lab", "--workspace", str(here.folder)]
            assert main(words) == 0
            row = here.runs.get(run)
            assert row.status == "finished", (row.reason, *(file.read_text() for file in row.folder.glob("log.txt")))
            assert "2 processes share every batch" in (row.folder / "log.txt").read_text()
            assert curves(here, run) == curves(here, 1)
            ours, theirs = weights(here, run), weights(here, 1)
            assert ours.keys() == theirs.keys()
            assert all(torch.equal(ours[name], theirs[name]) for name in ours)
            if storage == str(shared):
                (there,) = shared.glob("from-*/*/wanted.toml")
                assert rows_of(here, run) == rows_of(Workspace(there.parent), 1)
