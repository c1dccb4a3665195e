"""A data set that is embedded elsewhere: the model and what to embed go there, shards come back.

The job is one folder there: `model/` (configuration, towers, one checkpoint), `job.json`, `state.json`, `out/`. Its
name follows from what it embeds, so a command that is repeated continues where the last one was cut off.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from trainer.places import bindings, ssh
from trainer.places.channel import packed
from trainer.places.links import workspace_there
from trainer.places.ray_jobs import ENDED, RayJobs, needs_of, package_name
from trainer.places.remote_host import OutOfReach, PlaceError, RemoteHost
from trainer.places.source import record
from trainer.places.storage import Storage
from trainer.places.wheel import wheel
from trainer.store import RunRow, Workspace, manifests, ownership
from trainer.untrusted import confined, shell
from trainer.untrusted import files as untrusted_files

JOB: Final = "job.json"
STATE: Final = "state.json"
MODEL: Final = "model"
OUT: Final = "out"
SUMMARY: Final = "embeddings.json"
ROWS: Final = 8_192
"""Pairs of a shard: 16 MB of 512 numbers each."""
_KINDS: Final = ("img_emb", "text_emb", "metadata", "shards")
_POLL_S: Final = 1.0
_PATIENCE_S: Final = 120.0
"""How long a place may be silent before the command gives up; the job there continues."""

_LOOK_S: Final = 10.0
"""How long at first: the address may be wrong."""

Say = Callable[[float, str], None]
_Result = TypeVar("_Result")


@dataclass(frozen=True, kw_only=True)
class EmbedJob:
    """What to embed by which model.

    Attributes:
        model: SHA-256 of the manifest of its checkpoint.
        data: Path or name of the data, as there; empty: the run's own.
        split: Which split; None: all, or what an evaluation tries.
        rows: Pairs of a shard.
        evaluate: Embed what an evaluation tries and learns from.
        learn: Whether it learns from any.
        most, most_train: At most so many of each.
        suite: Name of the classes that are asked.
    """

    model: str
    step: int
    name: str
    data: str = ""
    split: str | None = None
    rows: int = ROWS
    evaluate: bool = False
    learn: bool = False
    most: int | None = None
    most_train: int | None = None
    suite: str | None = None

    def to_json(self) -> str:
        """Return it as a text."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, content: bytes) -> EmbedJob:
        """Return what `to_json` wrote.

        Raises:
            PlaceError: It did not.
        """
        try:
            return cls(**record(content))
        except TypeError as error:
            raise PlaceError(f"The job is of another version: {error}.") from error

    @property
    def folder(self) -> str:
        """The name of its folder, the same at every call."""
        return f"embed-{hashlib.sha256(self.to_json().encode()).hexdigest()[:16]}"


def checkpoint_of(workspace: Workspace, row: RunRow, step: int | None) -> tuple[int, str]:
    """Return the step of a run's checkpoint, the newest unless one is named, and what tells its weights.

    Raises:
        PlaceError: There is none.
    """
    steps = sorted(checkpoint.step for checkpoint in workspace.results.checkpoints(row.id))
    chosen = step if step is not None else steps[-1] if steps else None
    if chosen not in steps:
        advice = f"Choose {', '.join(map(str, steps))}." if steps else "Wait until it has written one."
        raise PlaceError(
            f"Run {row.name!r} has no checkpoint{f' at step {step}' if step is not None else ''}. {advice}"
        )
    name = f"{_checkpoint(chosen)}/{manifests.NAME}"
    content = confined.read(row.folder, name, untrusted_files.MOST_SETTINGS)
    return chosen, hashlib.sha256(content).hexdigest()


def named_data(text: str) -> str:
    """Return a path of this computer as an absolute one; other words name data at the place, or a known set."""
    path = Path(text)
    return str(path.absolute()) if not text.startswith("~") and path.exists() else text


def summary_of(out: Path) -> dict[str, Any]:
    """Return what a finished job says of its embeddings.

    Raises:
        PlaceError: It is not what was written.
    """
    summary = record(confined.read(out, SUMMARY, untrusted_files.MOST_FACTS))
    numbers = all(type(summary.get(key)) is int for key in ("n", "step", "shards", "kept", "left_out"))
    if not numbers or not isinstance(summary.get("unreadable"), dict) or not isinstance(summary.get("dataset"), str):
        raise PlaceError(f"{out / SUMMARY} is not what was written. Repeat the command.")
    return summary


def claim(out: Storage, job: EmbedJob) -> None:
    """Check that the folder is empty or holds embeddings by this model, and say what it is for.

    Raises:
        PlaceError: It holds others.
    """
    mine = {"model": job.model, "rows": job.rows, "data": job.data, "evaluate": job.evaluate, "asked": job.split}
    try:
        stored = json.loads(out.read(JOB, 1 << 20))
    except FileNotFoundError:
        if out.folder is not None and out.folder.is_dir() and any(out.folder.iterdir()):
            raise PlaceError(f"{out.address} is not empty. Choose another folder.") from None
        return out.write(JOB, json.dumps(mine, sort_keys=True).encode())
    except ValueError:
        stored = None
    if stored != mine:
        raise PlaceError(
            f"{out.address} holds embeddings by another model, of other data, or with another number of rows a shard. "
            "Choose another folder."
        )
    return None


def embed_at(workspace: Workspace, row: RunRow, name: str, job: EmbedJob, out: Path, say: Say, workers: int) -> None:
    """Embed at a place and bring the shards here; those that are here or there are not made or brought again.

    Args:
        row: The run whose model embeds.
        say: Told the share done.
        workers: Of a Ray cluster: how many processes; 0: as many as it has room for.

    Raises:
        OutOfReach: It does not answer.
        PlaceError: It cannot embed; the message has its sentence.
    """
    host = bindings.host_of(name)
    claim(Storage(str(out)), job)
    say(0.0, f"checking {name}")
    files = _model_files(workspace, row, job.step)
    if host.kind == "ray":
        made = _on_ray(workspace, host, job, files, say, workers)
        bring(made.inside(OUT), out, say)
        return
    brought = out / ".from-place"
    _by_ssh(workspace, host, job, files, brought, say)
    bring(Storage(str(brought)), out, say)
    confined.remove_tree(out, brought.name)


def _model_files(workspace: Workspace, row: RunRow, step: int) -> dict[str, Path | bytes]:
    """Return name in the job's folder -> what opens the model there."""
    files: dict[str, Path | bytes] = {f"{MODEL}/config.toml": workspace.runs.config_text(row.id).encode()}
    if (row.folder / "model.json").is_file():
        files[f"{MODEL}/model.json"] = confined.inside(row.folder, "model.json")
    folder = confined.inside(row.folder, _checkpoint(step))
    for file in sorted(folder.iterdir()):
        if file.is_file() and not file.name.startswith("."):
            files[f"{MODEL}/{_checkpoint(step)}/{file.name}"] = file
    return files


def _checkpoint(step: int) -> str:
    return f"checkpoints/step_{step:06d}"


# -- a Ray cluster ---------------------------------------------------------------------------------------------------


def _on_ray(
    workspace: Workspace, host: RemoteHost, job: EmbedJob, files: dict[str, Path | bytes], say: Say, workers: int
) -> Storage:
    jobs = RayJobs(host)
    _patiently(jobs.version, _LOOK_S)
    storage = Storage(host.options["storage"])
    storage.check()
    storage = storage.inside(f"from-{ownership.seal(f'sent {workspace.folder}')[:16]}").inside(job.folder)
    for number, (name, content) in enumerate(files.items()):
        say(0.0, f"sending the model: {100 * number / len(files):.0f} %")
        if isinstance(content, bytes):
            storage.write(name, content)
        elif storage.size(name) != content.stat().st_size:
            storage.send(content, name)
    storage.write(JOB, job.to_json().encode())
    _patiently(partial(jobs.put_package, package_name(), wheel().content))
    question = {"what": "embed", "job": storage.address, "ray": True, "workers": workers} | needs_of(host)
    command = [host.python, "-P", "-m", "trainer", "remote", "--once", packed(question)]
    line = f'PYTHONPATH="$PWD" exec {shell.script_line(command)} --workspace "$PWD/workspace"'
    name = _patiently(partial(_next_job, jobs, f"contrastive-explorer-{job.folder}"))
    _patiently(partial(jobs.submit, name, line, package_name()))
    _wait_for(jobs, name, storage, host, say)
    return storage


def _patiently(step: Callable[[], _Result], patience_s: float = _PATIENCE_S) -> _Result:
    """Return what the step returns, tried again while the cluster does not answer: its head may be busy."""
    until = time.monotonic() + patience_s
    while True:
        try:
            return step()
        except OutOfReach:
            if time.monotonic() > until:
                raise
            time.sleep(_POLL_S)


def _next_job(jobs: RayJobs, stem: str) -> str:
    """Return the number of a job that has not ended, which a cut connection left there, or a new one."""
    number = 1
    while jobs.status(f"{stem}-{number}")[0] in ENDED:
        number += 1
    return f"{stem}-{number}"


def _wait_for(jobs: RayJobs, name: str, storage: Storage, host: RemoteHost, say: Say) -> None:
    silent_at, said = None, ""
    while True:
        try:
            status, message = jobs.status(name)
            share, note, problem = _told(storage)
            silent_at = None
        except OutOfReach as error:
            silent_at = silent_at or time.monotonic()
            if time.monotonic() - silent_at > _PATIENCE_S:
                raise OutOfReach(
                    f"{error} The job {name} may still run there: the same command continues with it."
                ) from error
            time.sleep(_POLL_S)
            continue
        if status == "SUCCEEDED":
            return
        if status in ENDED or not status:
            why = problem or message or f"Ray ended the job with {status or 'no trace of it'}"
            raise PlaceError(f"{host.name}: {why}")
        text = note or f"waits in Ray (job {name})"
        if text != said:
            say(share, text)
        said = text
        time.sleep(_POLL_S)


def _told(storage: Storage) -> tuple[float, str, str]:
    """Return the share done, what is being done, and why it failed, as the job last said."""
    try:
        state = record(storage.read(STATE, 1 << 16))
        share = float(state.get("share") or 0.0)
    except (FileNotFoundError, PlaceError, TypeError, ValueError):
        return 0.0, "", ""
    note, problem = (untrusted_files.spelled(str(state.get(key) or "")[:500]) for key in ("note", "problem"))
    return min(max(share, 0.0), 1.0), note, problem


# -- a computer by ssh, or SLURM -------------------------------------------------------------------------------------


def _by_ssh(
    workspace: Workspace, host: RemoteHost, job: EmbedJob, files: dict[str, Path | bytes], brought: Path, say: Say
) -> None:
    facts = ssh.check(host)
    ssh.send_code(host, facts)
    root = ssh.inside(facts, workspace_there(host, workspace.folder))
    with tempfile.TemporaryDirectory() as draft:
        folder = Storage(draft).inside(job.folder)
        folder.write(JOB, job.to_json().encode())
        for name, content in files.items():
            if isinstance(content, bytes):
                folder.write(name, content)
            else:
                folder.send(content, name)
                shutil.copystat(content, Path(draft) / job.folder / name)  # rsync compares size and time
        ssh.upload(
            host, Path(draft) / job.folder, root, lambda share: say(0.0, f"sending the model: {100 * share:.0f} %")
        )
    question = packed({"what": "embed", "job": f"{root}/{job.folder}"})
    command = ssh.trainer(host, facts, "remote", "--once", question, "--workspace", root)
    if host.kind == "slurm":
        command = [*_srun(host), *command]
    problem = ""

    def hear(line: str) -> None:
        nonlocal problem
        try:
            message = record(line.encode())
        except PlaceError:
            return
        problem = untrusted_files.spelled(str(message.get("problem") or "")[:500])
        share = message.get("share")
        say(
            min(max(float(share), 0.0), 1.0) if isinstance(share, int | float) else 0.0,
            str(message.get("note", ""))[:200],
        )

    try:
        ssh.listen(host, command, hear)
    except OutOfReach:
        raise
    except PlaceError as error:
        if not problem:
            raise
        raise PlaceError(f"{host.name}: {problem}") from error
    brought.mkdir(parents=True, exist_ok=True)
    ssh.download(
        host, f"{root}/{job.folder}/{OUT}/", brought, lambda share: say(1.0, f"bringing shards: {100 * share:.0f} %")
    )


def _srun(host: RemoteHost) -> list[str]:
    names = {"partition": "--partition", "time": "--time", "account": "--account", "cpus": "--cpus-per-task"}
    options = [f"{names[name]}={value}" for name, value in host.options.items() if name in names]
    gpus = [f"--gres=gpu:{host.options['gpus']}"] if host.options.get("gpus") else []
    return ["srun", "--ntasks=1", "--job-name=embed", *options, *gpus]


# -- back ------------------------------------------------------------------------------------------------------------


def bring(source: Storage, out: Path, say: Say) -> None:
    """Bring the shards here that are not here, each with its manifest last.

    Raises:
        PlaceError: A file is not what its manifest says, or the folder here cannot be written.
    """
    try:
        numbers = [name for name in source.names("shards") if name.removesuffix(".json").isdigit()]
        for number, name in enumerate(numbers):
            say(number / len(numbers), f"bringing shards: {number:,} of {len(numbers):,}")
            _bring_shard(source, out, f"shards/{name}")
        remove_after(out, max((int(name.removesuffix(".json")) for name in numbers), default=-1))
        content = source.read(SUMMARY, untrusted_files.MOST_FACTS)
        _place_file(out, SUMMARY, lambda draft: draft.write_bytes(content) and None)
    except OutOfReach:
        raise
    except FileNotFoundError as error:
        raise PlaceError(f"The place has not made {error.filename or 'all shards'}. Repeat the command.") from error
    except OSError as error:
        raise PlaceError(f"{out} cannot be written: {error.strerror or error}. Choose another folder.") from error


def remove_after(folder: Path, last: int) -> None:
    """Remove shards with higher numbers, which belong to rows that the data have no more."""
    for kind in _KINDS:
        for file in (folder / kind).glob("*") if (folder / kind).is_dir() else ():
            digits = file.stem.rpartition("_")[2]
            if digits.isdigit() and int(digits) > last:
                confined.remove(folder / kind, file.name)


def _bring_shard(source: Storage, out: Path, manifest: str) -> None:
    content = source.read(manifest, untrusted_files.MOST_FACTS)
    files = record(content).get("files")
    if not isinstance(files, dict) or not all(_is_of_shard(str(name)) for name in files):
        raise PlaceError(f"{manifest} is not that of a shard.")
    for name, digest in files.items():
        if _digest(out, name) != digest:
            _place_file(out, name, lambda draft, name=name: source.fetch(name, draft))  # type: ignore[misc]
            if _digest(out, name) != digest:
                raise PlaceError(f"{name} did not arrive as it was written. Repeat the command.")
    _place_file(out, manifest, lambda draft: draft.write_bytes(content) and None)


def _is_of_shard(name: str) -> bool:
    folder, _, file = name.partition("/")
    return folder in _KINDS[:3] and file.startswith(folder.partition("_emb")[0])


def _place_file(out: Path, name: str, write: Callable[[Path], Any]) -> None:
    from trainer.store import write_atomically

    path = confined.inside(out, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, write)


def _digest(folder: Path, name: str) -> str:
    try:
        return manifests.sha256_in(folder, name)
    except OSError:
        return ""
