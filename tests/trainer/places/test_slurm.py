"""A run queued by SLURM: by stand-ins of `sbatch`, `squeue` and `scancel`, and by a cluster of one node.

The cluster is started by its test where `slurmctld slurmd slurm-client munge` of Debian are installed.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.trainer.places.test_run_mirror import rows_of
from tests.trainer.places.test_ssh import check_embedding, wait, written
from trainer.__main__ import main
from trainer.places import bindings
from trainer.places.remote_host import parse
from trainer.scheduling import launch
from trainer.store import Workspace

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

STAND_IN = """#!{python}
import os, pathlib, subprocess, sys
import psutil
folder, program, words = pathlib.Path({folder!r}), pathlib.Path(sys.argv[0]).name, sys.argv[1:]

def begin(job):
    script, log = (folder / f"{{job}}.sh"), open((folder / f"{{job}}.log").read_text(), "ab")
    process = subprocess.Popen(["/bin/sh", str(script)], stdout=log, stderr=log, start_new_session=True)
    (folder / f"{{job}}.pid").write_text(str(process.pid))

def process(job):
    try:
        found = psutil.Process(int((folder / f"{{job}}.pid").read_text()))
        return None if found.status() == "zombie" else found
    except (OSError, psutil.Error):
        return None

if program == "sbatch":
    job = str(len(list(folder.glob("*.sh"))) + 1)
    (folder / f"{{job}}.words").write_text("\\n".join(words))
    (folder / f"{{job}}.log").write_text(next(w for w in words if w.startswith("--output=")).partition("=")[2])
    (folder / f"{{job}}.sh").write_text(sys.stdin.read())
    if not (folder / "hold").exists():
        begin(job)
    print(job + ";cluster")
elif program == "squeue" and "--states=PENDING" in words:
    print("70\\n71")
    for file in sorted(folder.glob("*.sh")):
        if not file.with_suffix(".pid").exists():
            print(file.stem)
elif program == "squeue":
    job = next(w for w in words if w.startswith("--jobs=")).partition("=")[2]
    if (folder / f"{{job}}.gone").exists():
        sys.exit("slurm_load_jobs error: Invalid job id specified")
    if not (folder / f"{{job}}.pid").exists():
        if (folder / "hold").exists():
            print("PENDING|Resources|gpu|2026-11-29T14:05:00")
        else:
            begin(job)
            print("RUNNING|None|gpu|N/A")
    elif process(job):
        print("RUNNING|None|gpu|N/A")
else:
    (folder / f"{{words[0]}}.gone").touch()
    if found := process(words[0]):
        found.terminate()
"""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    programs, jobs, home = (tmp_path / name for name in ("programs", "jobs", "home"))
    for folder in (programs, jobs, home):
        folder.mkdir()
    for name in ("sbatch", "squeue", "scancel"):
        (programs / name).write_text(STAND_IN.format(python=sys.executable, folder=str(jobs)))
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(home))
    options = f"workspace={tmp_path}/there&partition=gpu&gpus=1&time=8:00:00"
    bindings.add(parse("cluster", f"slurm://{sys.executable}?{options}"))
    yield jobs
    bindings.remove("cluster")
    for file in jobs.glob("*.pid"):
        try:
            psutil.Process(int(file.read_text())).kill()
        except psutil.Error:
            continue


@pytest.fixture
def here(watched: Workspace) -> Workspace:
    return watched


def test_a_run_waits_in_slurm_trains_and_is_told_to_stop(cluster: Path, here: Workspace, tmp_path: Path) -> None:
    (cluster / "hold").touch()
    file = written(tmp_path, epochs=150)
    words = ["fit", "--config", str(file), "--on", "cluster", "--detach", "--workspace", str(here.folder)]
    assert main(words) == 0
    phase = "waits in SLURM (job 1): 3 of 3 in gpu, Resources, expected 2026-11-29 14:05"
    wait(lambda: here.runs.get(1).phase == phase, f"it does not wait: {here.runs.get(1)}")
    told = (cluster / "1.words").read_text().splitlines()
    assert {"--signal=B:TERM@90", "--requeue", "--partition=gpu", "--gres=gpu:1", "--time=8:00:00"} <= set(told)
    (cluster / "hold").unlink()
    wait(lambda: here.runs.get(1).step > 0, f"it never began: {here.runs.get(1)}")
    # Its time is nearly up: SLURM's signal stops it with a checkpoint.
    os.kill(int((cluster / "1.pid").read_text()), signal.SIGTERM)
    wait(lambda: here.runs.get(1).status == "stopped", f"it did not stop: {here.runs.get(1)}")
    wait(lambda: not here.is_alive(1), "the follower stayed")
    there = Workspace(tmp_path / "there")
    assert rows_of(here, 1) == rows_of(there, 1)
    assert there.results.checkpoints(1)
    step = here.runs.get(1).step
    assert main(["resume", "1", "--workspace", str(here.folder)]) == 0
    wait(lambda: here.runs.get(1).step > step, "it did not continue as a new job")
    # A node that dies says nothing; that the job has left the queue is SLURM's word.
    os.kill(int((cluster / "2.pid").read_text()), signal.SIGKILL)
    wait(lambda: here.runs.get(1).status == "interrupted", f"{here.runs.get(1)}")
    wait(lambda: not here.is_alive(1), "the follower stayed")
    assert rows_of(here, 1) == rows_of(there, 1)
    there.close()


def test_a_run_that_waits_is_taken_out_of_the_queue(cluster: Path, here: Workspace, tmp_path: Path) -> None:
    (cluster / "hold").touch()
    file = written(tmp_path, epochs=1)
    words = ["fit", "--config", str(file), "--on", "cluster", "--detach", "--workspace", str(here.folder)]
    assert main(words) == 0
    wait(lambda: here.runs.get(1).phase.startswith("waits in SLURM"), f"it does not wait: {here.runs.get(1)}")
    launch.stop(here, 1)
    wait(lambda: here.runs.get(1).status == "stopped", f"it did not stop: {here.runs.get(1)}")
    assert (cluster / "1.gone").exists()


@pytest.mark.skipif(shutil.which("sbatch") is not None, reason="SLURM is installed here; a stand-in runs all else")
def test_without_slurm_a_sentence_says_so(here: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    bindings.add(parse("cluster", f"slurm://{sys.executable}?workspace={tmp_path}/there"))
    file = written(tmp_path, epochs=1)
    words = ["fit", "--config", str(file), "--on", "cluster", "--detach", "--workspace", str(here.folder)]
    assert main(words) == 0
    wait(lambda: here.runs.get(1).status == "failed", f"{here.runs.get(1)}")
    assert "There is no sbatch there" in here.runs.get(1).reason
    bindings.remove("cluster")


SLURM_CONF = """
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
KillWait=30
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs={cpus} RealMemory=1000 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs={cpus} RealMemory=1000 State=UNKNOWN
PartitionName=main Nodes=n1,n2 Default=YES DefaultTime=30 MaxTime=1-0 State=UP
"""
NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Start SLURM with two nodes, both of them this computer; return a function that runs one of its programs."""
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if missing := [name for name in NEEDED if shutil.which(name) is None]:
        pytest.skip(f"There is no {missing[0]}: apt-get install slurmctld slurmd slurm-client munge")
    if os.geteuid():
        pytest.skip("slurmd starts jobs as root alone")
    folder = Path(tempfile.mkdtemp(prefix="slurm", dir="/tmp"))  # a socket has room for a short name only
    folder.chmod(0o755)
    for name in ("state", "spool-n1", "spool-n2"):
        (folder / name).mkdir()
    (folder / "key").write_bytes(os.urandom(1024))
    (folder / "key").chmod(0o600)
    ports = []
    for _ in range(3):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(free.getsockname()[1])
    host, file = socket.gethostname().partition(".")[0], folder / "slurm.conf"
    file.write_text(SLURM_CONF.format(host=host, ports=ports, folder=folder, user="root", cpus=os.cpu_count()))
    monkeypatch.setenv("SLURM_CONF", str(file))
    places = [f"--{name}={folder}/{name}" for name in ("log-file", "pid-file", "seed-file")]
    daemons = (
        ["munged", "--foreground", "--force", f"--key-file={folder}/key", f"--socket={folder}/munge.socket", *places],
        ["slurmctld", "-D"],
        ["slurmd", "-D", "-N", "n1"],
        ["slurmd", "-D", "-N", "n2"],
    )
    started = []
    try:
        for words in daemons:
            with (folder / f"{words[0]}.out").open("wb") as log:
                started.append(subprocess.Popen(words, stdout=log, stderr=log))
            if words[0] == "munged":
                wait(lambda: (folder / "munge.socket").exists(), "munged did not come up")

        def told(*words: str) -> str:
            return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()

        wait(lambda: told("sinfo", "-h", "-o", "%D %T") == "2 idle", "SLURM did not come up")
        yield told
        told("scancel", "--user=root")
        wait(lambda: not told("squeue", "-h"), "a job did not end")
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.nightly  # the stand-in of the tests above runs the same commands
def test_a_run_trains_in_a_real_cluster(
    slurm: Callable[..., str],
    here: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Trains by two processes of one node, is stopped as SLURM does, continues as a new job, and embeds."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    address = f"slurm://{sys.executable}?workspace={tmp_path}/there&partition=main&cpus=1&time=1:00:00&mem=500M&comment=a.test&exclusive="
    assert main(["places", "add", "cluster", address, "--workspace", str(here.folder)]) == 0
    try:
        capsys.readouterr()
        assert main(["places", "test", "cluster", "--json", "--workspace", str(here.folder)]) == 0
        assert "the site's default, 30:00 unless time is named, 1-00:00:00 at most, 2 nodes" in capsys.readouterr().out
        file = written(tmp_path, epochs=400)
        words = ["fit", "--config", str(file), "--on", "cluster", "--ranks", "2", "--detach"]
        assert main([*words, "--workspace", str(here.folder)]) == 0
        wait(lambda: here.runs.get(1).step > 0, f"it never began: {here.runs.get(1)}")
        job = slurm("squeue", "-h", "-o", "%i %P %j %T %m %k %h").split()
        assert job[1:] == ["main", "far", "RUNNING", "500M", "a.test", "NO"]  # exclusive: no oversubscription
        # As SLURM does 90 s before its time is up.
        slurm("scancel", "--signal=TERM", "--batch", job[0])
        wait(lambda: here.runs.get(1).status == "stopped", f"it did not stop: {here.runs.get(1)}")
        wait(lambda: not here.is_alive(1), "the follower stayed")
        assert "2 processes share every batch" in (here.runs.get(1).folder / "log.txt").read_text()
        there = Workspace(tmp_path / "there")
        assert rows_of(here, 1) == rows_of(there, 1)
        step = here.runs.get(1).step
        assert main(["resume", "1", "--workspace", str(here.folder)]) == 0
        wait(lambda: here.runs.get(1).step > step, "it did not continue as a new job")
        # The first may still be listed while SLURM cleans up after it.
        assert max(map(int, slurm("squeue", "-h", "-o", "%i").split())) > int(job[0])
        launch.stop(here, 1)
        wait(lambda: here.runs.get(1).status == "stopped", f"it did not stop: {here.runs.get(1)}")
        wait(lambda: not here.is_alive(1), "the follower stayed")
        assert rows_of(here, 1) == rows_of(there, 1)
        there.close()
        check_embedding(here.folder, tmp_path, "cluster")
    finally:
        bindings.remove("cluster")


@pytest.mark.nightly
def test_srun_starts_the_ranks_of_two_nodes_in_a_container_after_a_prologue(
    slurm: Callable[..., str], here: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`CONTAINER_FOR_TESTS` names an image whose `python3` can train, for an apptainer that is installed."""
    image = os.environ.get("CONTAINER_FOR_TESTS", "")
    home, program = tmp_path / "home", tmp_path / "modules" / ("no apptainer" if image else "apptainer")
    program.parent.mkdir()
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    program.write_text(APPTAINER.format(python=sys.executable, log=tmp_path / "container"))
    program.chmod(0o755)
    words = ["places", "add", "cluster", f"slurm://{sys.executable}?workspace={tmp_path}/there&cpus=1"]
    words += ["--prologue", f"export PATH={program.parent}:$PATH", "--prologue", "echo the prologue ran"]
    assert main([*words, "--container", image or "/images/torch.sif", "--workspace", str(here.folder)]) == 0
    slurm("scontrol", "update", "partitionname=main", "state=down")
    try:
        words = ["fit", "--config", str(written(tmp_path, epochs=400)), "--on", "cluster", "--detach"]
        assert main([*words, "--ranks", "2", "--nodes", "2", "--workspace", str(here.folder)]) == 0
        wait(lambda: "in main, PartitionDown" in here.runs.get(1).phase, f"it does not wait: {here.runs.get(1)}")
        assert here.runs.get(1).phase.startswith("waits in SLURM (job 1): 1 of 1")
        slurm("scontrol", "update", "partitionname=main", "state=up")
        wait(lambda: here.runs.get(1).step > 0, f"it never began: {here.runs.get(1)}")
        assert slurm("squeue", "-h", "-o", "%D %N").split() == ["2", "n[1-2]"]
        slurm("scancel", "--signal=TERM", "1")  # as SLURM does 90 s before its time is up
        wait(lambda: here.runs.get(1).status == "stopped", f"it did not stop: {here.runs.get(1)}")
        wait(lambda: not here.is_alive(1), "the follower stayed")
        log = (here.runs.get(1).folder / "log.txt").read_text()
        assert "the prologue ran" in log
        assert log.count("2 processes share every batch") == 1
        if not image:
            asked = (tmp_path / "container").read_text().splitlines()
            assert asked == [f"exec --bind {tmp_path}/there /images/torch.sif"] * 2
        there = Workspace(tmp_path / "there")
        assert rows_of(here, 1) == rows_of(there, 1)
        there.close()
    finally:
        bindings.remove("cluster")


APPTAINER = """#!/bin/sh
asked=
while [ "$1" != python3 ]; do asked="$asked $1"; shift; done
echo $asked >> {log}
shift
exec {python} "$@"
"""
"""Stands for apptainer: writes down what it is asked for, and runs the command outside of any container."""
