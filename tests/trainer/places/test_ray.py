"""A run as a job of Ray: by a stand-in of its REST interface with real processes, and by Ray itself (`-m ray`)."""

import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.nightly import few_plain
from tests.trainer.places.ray_cluster import cluster
from tests.trainer.places.test_run_mirror import rows_of
from tests.trainer.places.test_ssh import pictures_in, wait, written
from trainer.__main__ import main
from trainer.places import bindings
from trainer.places.ray_jobs import RayJobs
from trainer.places.remote_host import OutOfReach, PlaceError, parse
from trainer.scheduling import launch
from trainer.store import Workspace

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]  # a busy node takes minutes to start a worker


class StandIn(ThreadingHTTPServer):
    """Answers as the Jobs interface of Ray 2: packages, jobs as processes in their unpacked folder, status, logs."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.jobs: dict[str, tuple[subprocess.Popen[bytes], dict[str, Any]]] = {}
        self.stopped: set[str] = set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def submit(self, body: dict[str, Any]) -> str:
        job = body["submission_id"]
        package = body["runtime_env"]["working_dir"].removeprefix("gcs://")
        place = self.folder / f"work-{job}"
        zipfile.ZipFile(self.folder / package).extractall(place)
        log = (self.folder / f"{job}.log").open("wb")
        process = subprocess.Popen(["/bin/sh", "-c", body["entrypoint"]], cwd=place, stdout=log, stderr=log)
        self.jobs[job] = (process, body)
        return job

    def status(self, job: str) -> dict[str, Any]:
        code = self.jobs[job][0].poll()
        ended = "STOPPED" if job in self.stopped else "SUCCEEDED" if code == 0 else "FAILED"
        message = f"Job failed with exit code {code}." if code else ""
        return {"status": "RUNNING" if code is None else ended, "message": message, "submission_id": job}

    def end(self) -> None:
        for process, _ in self.jobs.values():
            if process.poll() is None:
                process.kill()
            process.wait()
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    server: StandIn

    def log_message(self, *_: Any) -> None:
        pass

    def _say(self, code: int, document: Any = None) -> None:
        content = json.dumps(document or {}).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self) -> None:
        parts = self.path.strip("/").split("/")
        if self.path == "/api/version":
            self._say(200, {"ray_version": "2.0 of a test"})
        elif parts[1] == "packages":
            self._say(200 if (self.server.folder / parts[-1]).is_file() else 404)
        elif parts[2] not in self.server.jobs:
            self._say(404, {"error": "no such job"})
        elif parts[-1] == "logs":
            self._say(200, {"logs": (self.server.folder / f"{parts[2]}.log").read_text()})
        else:
            self._say(200, self.server.status(parts[2]))

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        (self.server.folder / self.path.rpartition("/")[2]).write_bytes(content)
        self._say(200)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        parts = self.path.strip("/").split("/")
        if parts[-1] == "stop":
            self.server.stopped.add(parts[2])
            self.server.jobs[parts[2]][0].terminate()
            self._say(200, {"stopped": True})
        else:
            self._say(200, {"submission_id": self.server.submit(body)})


@pytest.fixture
def stand_in(tmp_path: Path) -> Iterator[StandIn]:
    (tmp_path / "ray").mkdir()
    (tmp_path / "shared").mkdir()
    server = StandIn(tmp_path / "ray")
    port = server.server_address[1]
    bindings.add(parse("lab", f"ray://127.0.0.1:{port}{sys.executable}?storage={tmp_path}/shared&cpus=1"))
    yield server
    server.end()
    bindings.remove("lab")


@pytest.fixture
def here(watched: Workspace) -> Workspace:
    return watched


def paused_continued_and_stopped(here: Workspace) -> None:
    """Ask a run that trains elsewhere to pause, to continue and to stop, and wait for each."""
    here.runs.ask(1, "pause")
    wait(lambda: here.runs.get(1).status == "paused", "it did not pause there")
    here.runs.ask(1, "")
    wait(lambda: here.runs.get(1).status == "running", "it did not continue after the pause")
    launch.stop(here, 1)
    wait(lambda: here.runs.get(1).status == "stopped", f"it did not stop: {here.runs.get(1)}")
    wait(lambda: not here.is_alive(1), "the follower stayed")


@pytest.mark.nightly  # test_slurm.py has a job that is stopped, resumed and lost
def test_a_run_trains_as_a_job(stand_in: StandIn, here: Workspace, tmp_path: Path, capsys) -> None:
    assert main(["places", "test", "lab", "--json", "--workspace", str(here.folder)]) == 0
    assert "2.0 of a test" in capsys.readouterr().out
    file = written(tmp_path, epochs=150)
    words = ["fit", "--config", str(file), "--on", "lab", "--detach", "--workspace", str(here.folder)]
    assert main(words) == 0
    wait(lambda: here.runs.get(1).step > 0, f"it never began: {here.runs.get(1)}")
    (job, (process, body)) = next(iter(stand_in.jobs.items()))
    assert body["entrypoint_num_cpus"] == 1
    paused_continued_and_stopped(here)
    process.wait()
    (there,) = (tmp_path / "shared").glob("from-*/*")
    assert rows_of(here, 1) == rows_of(Workspace(there), 1)
    # It continues as another job, and Ray's word ends it where its trainer cannot tell.
    step = here.runs.get(1).step
    assert main(["resume", "1", "--workspace", str(here.folder)]) == 0
    wait(lambda: here.runs.get(1).step > step, "it did not continue there")
    assert [name[-1] for name in stand_in.jobs] == ["1", "2"]
    second = stand_in.jobs[f"{job[:-1]}2"][0]
    second.send_signal(signal.SIGKILL)
    wait(lambda: here.runs.get(1).status == "interrupted", f"{here.runs.get(1)}")
    assert here.runs.get(1).reason.startswith("Job failed with exit code")


@pytest.mark.nightly
def test_a_run_in_an_object_store_is_mirrored_and_continued_on_another_node(
    bucket: str, stand_in: StandIn, here: Workspace, tmp_path: Path
) -> None:
    """Its folder lies on the node that trains it, which is lost in the middle; bits are those of a run of one go."""
    bindings.add(parse("lab", bindings.host_of("lab").address.replace(f"{tmp_path}/shared", bucket)))
    file, folder = written(tmp_path, epochs=12), str(here.folder)
    assert main(["fit", "--config", str(file), "--on", "lab", "--detach", "--workspace", folder]) == 0
    wait(lambda: here.runs.get(1).step > 0, f"it never began: {here.runs.get(1)}")
    paused_continued_and_stopped(here)
    (first,) = stand_in.folder.glob("work-*/run-*")
    assert rows_of(here, 1) == rows_of(Workspace(first), 1)
    step = here.runs.get(1).step
    shutil.rmtree(first)
    assert main(["resume", "1", "--workspace", folder]) == 0
    wait(lambda: here.runs.get(1).step > step, f"it did not continue there: {here.runs.get(1)}")
    next(process for process, _ in reversed(stand_in.jobs.values())).send_signal(signal.SIGKILL)
    wait(lambda: here.runs.get(1).status == "interrupted", f"{here.runs.get(1)}")
    wait(lambda: not here.is_alive(1), "the follower stayed")
    assert main(["resume", "1", "--workspace", folder]) == 0
    wait(lambda: here.runs.get(1).status == "finished", f"{here.runs.get(1)}")
    wait(lambda: not here.is_alive(1), "the follower stayed")
    (last,) = stand_in.folder.glob("work-*-3/run-*")
    assert rows_of(here, 1) == rows_of(Workspace(last), 1)
    assert main(["fit", "--config", str(file), "--workspace", folder]) == 0
    assert losses_of(here, 1) == losses_of(here, 2) != []


def losses_of(workspace: Workspace, run: int) -> list[tuple[int, float]]:
    found = workspace.results.scalars_after(0, runs=[run])
    return sorted((row.step, row.value) for row in found if row.name in ("train/loss", "train/gradient_norm"))


def test_a_job_that_fails_before_its_run_says_why(stand_in: StandIn, here: Workspace, tmp_path: Path) -> None:
    bindings.add(parse("lab", bindings.host_of("lab").address.replace(sys.executable, "/no/python")))
    file = written(tmp_path, epochs=1)
    assert main(["fit", "--config", str(file), "--on", "lab", "--workspace", str(here.folder)]) == 0
    row = here.runs.get(1)
    assert row.status == "failed"
    assert "exit code 127" in row.reason


def test_nobody_there_is_out_of_reach(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    jobs = RayJobs(parse("lab", f"ray://127.0.0.1:{port}?storage={tmp_path}"))
    with pytest.raises(OutOfReach, match="does not answer"):
        jobs.version()
    with pytest.raises(PlaceError, match="needs a folder"):
        parse("lab", "ray://127.0.0.1:8265")


@few_plain(1, "part", ["its head", "its body", "everything"])
def test_an_answer_without_an_end_is_ended(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then starts the timeout of a socket anew."""
    monkeypatch.setattr(RayJobs._request, "__kwdefaults__", {"kind": "", "wait_s": 0.2})
    begun = b"HTTP/1.1 200 OK\r\n" + (b"" if part == "its head" else b"Content-Length: 1000\r\n\r\n")
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(10_000)
                connection.sendall(begun if part != "everything" else b"HTTP/1.1 200 OK\r\n\r\n")
                while True:
                    connection.sendall(bytes(100_000) if part == "everything" else b"x")
                    time.sleep(0 if part == "everything" else 0.01)

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        jobs = RayJobs(parse("r", f"ray://127.0.0.1:{listening.getsockname()[1]}?storage=/tmp"))
        error = PlaceError if part == "everything" else OutOfReach
        with pytest.raises(error, match=r"Ray at r (does not|answers without an end)"):
            jobs.version()
        serving.join(10)
        assert not serving.is_alive()


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Start a head with two CPU workers as the place `lab`; return the folder that it and this computer see."""
    shared = tmp_path_factory.mktemp("shared")
    with cluster(str(shared), cpus=(2,)):
        yield shared


@pytest.mark.ray
@pytest.mark.nightly
def test_a_run_trains_on_a_real_head(head: Path, here: Workspace, tmp_path: Path) -> None:
    """A head with two CPU workers; `pip install 'ray[default,data]'`, then `pytest -n 0 -m ray`."""
    file = written(tmp_path, epochs=2)
    assert main(["fit", "--config", str(file), "--on", "lab", "--workspace", str(here.folder)]) == 0
    row = here.runs.get(1)
    assert row.status == "finished", row.reason
    assert rows_of(here, 1) == rows_of(Workspace(next(head.glob("from-*/*/wanted.toml")).parent), 1)


@pytest.mark.ray
@pytest.mark.nightly
def test_two_workers_of_ray_train_are_two_ranks(head: Path, here: Workspace, tmp_path: Path) -> None:
    file, folder = written(tmp_path, epochs=2), str(here.folder)
    assert main(["fit", "--config", str(file), "--on", "lab", "--ranks", "2", "--workspace", folder]) == 0
    assert main(["fit", "--config", str(file), "--ranks", "2", "--workspace", folder]) == 0
    first, second = here.runs.get(1), here.runs.get(2)
    assert (first.status, second.status) == ("finished", "finished"), (first.reason, second.reason)
    # Placed by Ray or by torch's agent, they train the same run: bit for bit, since both have one thread a rank.
    rows = [here.results.scalars_after(0, runs=[run]) for run in (1, 2)]
    losses = [[(row.step, row.value) for row in found if row.name in ("train/loss", "val/loss")] for found in rows]
    assert losses[0] == losses[1] != []


@pytest.mark.ray
@pytest.mark.nightly
def test_ray_data_embeds_a_set_once_and_two_workers_equal_one(
    head: Path, here: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, folder = written(tmp_path, epochs=1), str(here.folder)
    assert main(["fit", "--config", str(file), "--workspace", folder]) == 0
    pictures = pictures_in(tmp_path, 50)
    words = ["embed", "1", "--data", str(pictures), "--shard-rows", "8", "--json", "--workspace", folder]
    found, told = [], []
    for workers in (1, 2):
        out = tmp_path / f"by-{workers}"
        capsys.readouterr()
        assert main([*words, "--out", str(out), "--on", "lab", "--workers", str(workers)]) == 0
        told.append(json.loads(capsys.readouterr().out.splitlines()[-1]))
        found.append(shards_in(out))
        (made,) = head.glob("from-*/embed-*/out")
        if workers == 1:
            # As after a node was lost: three shards are gone, one is cut off, and one has a flipped bit.
            for number in (0, 1, 2):
                (made / "shards" / f"{number:05d}.json").unlink()
            (made / "text_emb" / "text_emb_00003.npy").write_bytes(b"half")
            flipped = bytearray((made / "img_emb" / "img_emb_00004.npy").read_bytes())
            flipped[-1] ^= 1
            (made / "img_emb" / "img_emb_00004.npy").write_bytes(bytes(flipped))
    assert found[0] == found[1]
    assert [(one["n"], one["shards"], one["kept"]) for one in told] == [(50, 7, 0), (50, 7, 2)]
    out = tmp_path / "by this computer"
    assert main([*words, "--out", str(out)]) == 0
    here_rows, there_rows = (np.load(one / "img_emb" / "img_emb_00006.npy") for one in (out, tmp_path / "by-2"))
    np.testing.assert_allclose(here_rows, there_rows, atol=1e-6)

    # Tasks of embeddings that were made there equal those of this computer.
    asked = ["evaluate", "1", "--task", "zero_shot", "retrieval", "knn", "--json", "--workspace", folder]
    capsys.readouterr()
    assert main(asked) == 0
    alone = json.loads(capsys.readouterr().out)
    assert main([*asked, "--on", "lab"]) == 0
    there = json.loads(capsys.readouterr().out)
    assert [one["task"] for one in alone] == [one["task"] for one in there]
    for one, other in zip(alone, there, strict=True):
        assert one["metrics"] == pytest.approx(other["metrics"], abs=1e-5, nan_ok=True)


def shards_in(folder: Path) -> dict[str, bytes]:
    """Return every file of the shards."""
    kinds = ("img_emb", "text_emb", "metadata", "shards")
    return {f"{kind}/{path.name}": path.read_bytes() for kind in kinds for path in sorted((folder / kind).iterdir())}
