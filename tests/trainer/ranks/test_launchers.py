"""Processes that torchrun, Kubernetes, MPI or srun started are ranks, or are refused in words."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.trainer.ranks.test_ranks_of_a_run import RUN
from trainer import config
from trainer.__main__ import main
from trainer.cli import fit
from trainer.errors import UserError
from trainer.scheduling import launch, ranks
from trainer.store import Workspace

_LEFT = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "GLOO_SOCKET_IFNAME")
MPI = {f"OMPI_COMM_WORLD_{name}": value for name, value in
       {"RANK": "1", "SIZE": "2", "LOCAL_RANK": "1", "LOCAL_SIZE": "2"}.items()}  # fmt: skip
SRUN = {"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "1", "SLURM_STEP_TASKS_PER_NODE": "2(x2)"}
HYDRA = {"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2"}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave nothing of this process's launcher, nor what is set by the tests."""
    for name in [*os.environ]:
        if name in _LEFT or name.startswith(("OMPI_", "PMI_", "SLURM_", "TORCHELASTIC_")):
            monkeypatch.delenv(name)
    for name in _LEFT:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def started(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("variables", "size", "place"),
    [(MPI, 2, ("1", "2", "1", "2")), (HYDRA, 2, ("0", "2", "0", "2")),
     (SRUN | {"MASTER_ADDR": "node1"}, 4, ("3", "4", "1", "2"))],
)  # fmt: skip
def test_a_process_of_mpi_or_srun_takes_its_place(monkeypatch: pytest.MonkeyPatch, variables, size, place):
    started(monkeypatch, variables)
    assert ranks.is_rank()
    ranks.take_place(size)
    assert tuple(os.environ[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")) == place
    assert os.environ["MASTER_ADDR"] == variables.get("MASTER_ADDR", "127.0.0.1")
    assert 29_500 <= int(os.environ["MASTER_PORT"]) < 30_500


def test_what_kubernetes_sets_stays(monkeypatch: pytest.MonkeyPatch):
    started(monkeypatch, {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "job-master-0", "MASTER_PORT": "23456"})
    assert ranks.is_rank()
    ranks.take_place(2)
    assert (os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]) == ("job-master-0", "23456")


@pytest.mark.parametrize("variables", [{}, {"WORLD_SIZE": "4"}, {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"},
                                       {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}])  # fmt: skip
def test_a_process_on_its_own_is_no_rank(monkeypatch: pytest.MonkeyPatch, variables):
    started(monkeypatch, variables)
    assert not ranks.is_rank()


def test_another_number_of_processes_and_a_missing_address_are_refused_in_words(monkeypatch: pytest.MonkeyPatch):
    started(monkeypatch, MPI)
    with pytest.raises(UserError, match=r"2 processes were started, and the run is trained by 4.*--ranks 2"):
        ranks.take_place(4)
    started(monkeypatch, {"OMPI_COMM_WORLD_LOCAL_SIZE": "1", "LOCAL_WORLD_SIZE": "1"})
    with pytest.raises(UserError, match="on several computers, and MASTER_ADDR is not set"):
        ranks.take_place(2)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun")
def test_mpirun_trains_a_run(tmp_path):
    workspace = Workspace(tmp_path)
    run = workspace.runs.create(config.replace(RUN, "ranks", "2"))
    command = ["mpirun", "-n", "2", "--oversubscribe", sys.executable, "-m", "trainer", "fit", str(run)]
    more = {"OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    finished = subprocess.run(
        [*command, "--workspace", str(tmp_path)], env=os.environ | more, capture_output=True, text=True, check=False
    )
    assert workspace.runs.get(run).status == "finished", finished.stdout + finished.stderr
    workspace.close()


@pytest.mark.parametrize("words", [("-1",), ("1", "--detach"), ("1", "--on", "box")])
def test_restarts_that_nothing_would_make_are_refused_before_there_is_a_run(words, tmp_path, capsys):
    command = ["fit", "--preset", "clip-scenes", "--ranks", "2", "--workspace", str(tmp_path), "--max-restarts", *words]
    assert main(command) == 2
    assert "a training that this command waits for" in capsys.readouterr().err
    assert not Workspace(tmp_path).runs.all()


@pytest.mark.parametrize(("words", "restarts"), [((), 0), (("--max-restarts", "2"), 2)])
def test_a_resumed_training_is_started_again_as_well(words, restarts, tmp_path, monkeypatch, capsys):
    workspace = Workspace(tmp_path)
    run = workspace.runs.create(RUN, status="interrupted")
    monkeypatch.setattr(launch, "check_trainable", lambda *_: None)
    monkeypatch.setattr(fit, "train", lambda *_, **options: seen.append(options["max_restarts"]))
    seen: list[int] = []
    command = ["resume", str(run), "--workspace", str(tmp_path), *words]
    assert main([*command, "--foreground"]) == 0
    assert seen == [restarts]
    if words:
        assert main(command) == 2
        assert "add --foreground" in capsys.readouterr().err
    workspace.close()


class EndedAgent:
    """An agent that has ended."""

    def __init__(self, returncode: int) -> None:
        self.returncode = returncode

    def poll(self) -> int:
        return self.returncode


@pytest.mark.parametrize(
    ("restarts", "most_starts", "end"), [(0, 1, "interrupted"), (1, 2, "finished"), (3, 2, "finished")]
)
def test_a_lost_rank_is_started_again_as_often_as_was_said(tmp_path, monkeypatch, restarts, most_starts, end):
    workspace = Workspace(tmp_path)
    run = workspace.runs.create(RUN)
    starts = []

    def start_agent(*_: object, **__: object) -> EndedAgent:
        starts.append(1)
        status = "interrupted" if len(starts) == 1 else "finished"
        workspace.runs.change(run, status=status, reason="Rank 1 of 2 is gone.")
        return EndedAgent(int(len(starts) == 1))

    monkeypatch.setattr(ranks, "start_agent", start_agent)
    if end == "interrupted":
        with pytest.raises(UserError, match="Rank 1 of 2 is gone"):
            ranks.train(workspace, run, 2, max_restarts=restarts)
    else:
        ranks.train(workspace, run, 2, max_restarts=restarts)
    assert (len(starts), workspace.runs.get(run).status) == (most_starts, end)
    workspace.close()
