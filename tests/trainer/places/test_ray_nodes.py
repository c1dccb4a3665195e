"""A run by two nodes of a Ray cluster: losses and weights of one process, by a shared folder and by an object store."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.trainer.places.ray_cluster import cluster
from tests.trainer.places.test_mirror import rows_of
from tests.trainer.ranks.test_ranks_of_a_run import PARTS, curves, finished, weights
from trainer import config
from trainer.__main__ import main
from trainer.places import known
from trainer.places.address import parse
from trainer.store import Workspace

pytestmark = [pytest.mark.slow, pytest.mark.ray, pytest.mark.nightly, pytest.mark.timeout(1_800)]
RUN = replace(PARTS, ranks=2)


def test_a_rank_on_each_of_two_nodes_trains_the_run_of_one_process(store, tmp_path: Path) -> None:
    """A node has one CPU and a rank needs one, so that each has its own; nodes of a store share no folder."""
    here, shared = Workspace(tmp_path / "here"), tmp_path / "shared"
    here.folder.mkdir()
    shared.mkdir()
    (here.folder / "explorer.lock").write_text(f"{os.getpid()}\n")
    (tmp_path / "one.toml").write_text(config.to_toml(PARTS))
    (tmp_path / "two.toml").write_text(config.to_toml(RUN))
    code, output = finished(here, "fit", "--config", str(tmp_path / "one.toml"))
    assert code == 0, output
    with cluster(str(shared), cpus=(1, 1)):
        for run, storage in ((2, str(shared)), (3, "s3://bucket/runs")):
            address = known.place_of("lab").address
            known.add(parse("lab", address.replace(known.place_of("lab").options["storage"], storage)))
            words = ["fit", "--config", str(tmp_path / "two.toml"), "--on", "lab", "--workspace", str(here.folder)]
            assert main(words) == 0
            row = here.runs.get(run)
            assert row.status == "finished", (row.reason, (row.folder / "log.txt").read_text())
            assert "2 processes share every batch" in (row.folder / "log.txt").read_text()
            assert curves(here, run) == curves(here, 1)
            ours, theirs = weights(here, run), weights(here, 1)
            assert ours.keys() == theirs.keys()
            assert all(torch.equal(ours[name], theirs[name]) for name in ours)
            if storage == str(shared):
                (there,) = shared.glob("from-*/*/wanted.toml")
                assert rows_of(here, run) == rows_of(Workspace(there.parent), 1)
    here.close()
