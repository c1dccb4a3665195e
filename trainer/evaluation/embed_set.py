"""Embed a data set in shards, in this process or by the workers of a Ray cluster over Ray Data."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Int

from trainer import config
from trainer.analysis.progress import Progress, between
from trainer.data.pairs import DataError, Source
from trainer.errors import UserError
from trainer.evaluation.task_data import (
    ChosenPairs,
    TaskBatch,
    TaskData,
    choose_pairs,
    listed_splits,
    names_data_of,
    refuse_learned,
    sampled,
)
from trainer.inference.open_model import OpenModel, open_folder
from trainer.inference.shards import Shard, WrittenShard, cut, files_of, manifest_of, write_shard
from trainer.places.embed_job import JOB, MODEL, OUT, STATE, SUMMARY, EmbedJob, claim, remove_after, summary_of
from trainer.places.storage import Storage
from trainer.prompt_suites import PromptSuite
from trainer.store.snapshot_files import Items
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files
from trainer.vectors.item_table import read_items
from trainer.vectors.matrices import find

TRIED: Final = "tried"
TRAIN: Final = "train"
_MOST_NAMED: Final = 1_000
"""Unreadable images that the summary names; all of them are counted."""
_STATE_S: Final = 1.0
_LISTING: Final = 0.05
_WORTH_TELLING: Final = 0.1
"""Share of the time for which a model waits for pictures."""


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Processes of a Ray cluster.

    Attributes:
        count: How many; 0: as many as there is room for.
        cpus, gpus: That each has to itself.
    """

    count: int = 0
    cpus: float = 1.0
    gpus: float = 0.0


def embed_set(
    job: EmbedJob, out: Path, *, model: OpenModel, run: config.Run, workspace: Path, progress: Progress
) -> dict[str, Any]:
    """Embed a data set in this process into shards in `out`, where whole ones are kept, and return the summary there.

    Raises:
        DataError: There are no such data or split.
        UserError: The folder holds other embeddings, or cannot be written.
    """
    splits, facts = _pairs(job, run, workspace, between(progress, 0.0, _LISTING))
    shards = cut(splits, job.rows)
    claim(Storage(str(out)), job)
    done = (write_shard(model, shard, out, job.model) for shard in shards)
    written = _followed(done, shards, between(progress, _LISTING, 1.0))
    remove_after(out, len(shards) - 1)
    return _finished(Storage(str(out)), job, facts, written)


def run_job(address: str, workspace: Path, progress: Progress, workers: Workers | None = None) -> dict[str, Any]:
    """Do a job that another computer has sent, and say in its folder how far it is.

    Args:
        address: The job's folder, of a disk or an object store.
        workspace: Folder for what listing the data leaves behind.
        workers: Of the Ray cluster whose job this is; None: this process embeds.

    Raises:
        UserError: As `embed_set`; its sentence is in the job's folder too.
    """
    storage, told_at = Storage(address), 0.0

    def say(share: float, note: str, problem: str = "") -> None:
        nonlocal told_at
        if problem or share >= 1 or time.monotonic() - told_at >= _STATE_S:
            told_at = time.monotonic()
            storage.write(STATE, json.dumps({"share": share, "note": note, "problem": problem}).encode())
            progress(share, note)

    try:
        job = EmbedJob.from_json(storage.read(JOB, 1 << 20))
        return _run_job(job, storage, workspace, say, workers)
    except UserError as error:
        say(0.0, "", str(error))
        raise


def _run_job(
    job: EmbedJob, storage: Storage, workspace: Path, say: Progress, workers: Workers | None
) -> dict[str, Any]:
    if workers is None:
        folder = storage.folder
        assert folder is not None, "without Ray a job lies on a disk"
        model, run = _opened(folder / MODEL, job)
        return embed_set(job, folder / OUT, model=model, run=run, workspace=workspace, progress=say)
    with tempfile.TemporaryDirectory() as draft:
        run = _configuration(_model_here(storage, job, Path(draft)))
    splits, facts = _pairs(job, run, workspace, between(say, 0.0, _LISTING))
    shards, out = cut(splits, job.rows), storage.inside(OUT)
    claim(out, job)
    written = _followed(_over_ray(storage, job, shards, workers), shards, between(say, _LISTING, 1.0))
    if out.folder is not None:
        remove_after(out.folder, len(shards) - 1)
    return _finished(out, job, facts, written)


# -- what is embedded -------------------------------------------------------------------------------------------------


def _pairs(
    job: EmbedJob, run: config.Run, workspace: Path, progress: Progress
) -> tuple[dict[str, Sequence[Source]], dict[str, Any]]:
    """Return the pairs by split, and what the summary says of them."""
    # Of its own data a run has a held-out part that their path alone does not tell.
    data = job.data if job.data and not names_data_of(job.data, run.data) else run.data
    if job.evaluate:
        pairs = choose_pairs(data, workspace, split=job.split, suite=job.suite, learn=job.learn, progress=progress)
        tried, train = sampled(pairs.tried, job.most), sampled(pairs.train, job.most_train)
        return {TRIED: tried, TRAIN: train}, _facts_of(pairs, job, len(train))
    listed = listed_splits(data, workspace, progress)
    if job.split is not None and job.split not in listed.splits:
        raise DataError(f"{listed.dataset} has no split {job.split}; choose one of {', '.join(listed.splits)}.")
    splits: dict[str, Sequence[Source]] = {
        name: rows for name, rows in listed.splits.items() if job.split in (None, name)
    }
    if not any(splits.values()):
        raise DataError(f"{listed.dataset} holds no pairs. See trainer data show --data PATH.")
    return splits, {"dataset": listed.dataset, "splits": {name: len(rows) for name, rows in splits.items()}}


def _facts_of(pairs: ChosenPairs, job: EmbedJob, train: int) -> dict[str, Any]:
    return {
        "dataset": pairs.listed.dataset,
        "split": pairs.split_of(job.most),
        "asked": pairs.split,
        "others": [name for name in pairs.listed.splits if name != pairs.split],
        "whole": [pairs.whole, len(pairs.train)],
        "suite": asdict(pairs.suite) if pairs.suite else None,
        "source": pairs.source_of(train),
    }


# -- how it is embedded ------------------------------------------------------------------------------------------------


def _over_ray(storage: Storage, job: EmbedJob, shards: Sequence[Shard], workers: Workers) -> Iterator[WrittenShard]:
    """Embed by actors of Ray Data, each with a model of its own; a shard is the unit of work."""
    import ray

    ray.init(ignore_reinit_error=True, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    resources = ray.cluster_resources()
    room = int(resources.get("CPU", 1) // workers.cpus)
    if workers.gpus:
        room = min(room, int(resources.get("GPU", 0) // workers.gpus))
    count = min(workers.count or room, len(shards))
    if count < 1 or (workers.count and workers.count > room):
        raise UserError(
            f"The cluster has room for {room} processes of {workers.cpus:g} CPUs and {workers.gpus:g} GPUs, and "
            f"{max(count, 1)} are asked for. Name fewer: --workers N."
        )
    rows = [{"shard": shard.to_json()} for shard in shards]
    made = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        ShardActor,
        fn_constructor_args=(storage.address, job.to_json()),
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=count),
        num_cpus=workers.cpus,
        num_gpus=workers.gpus,
    )
    for row in made.iter_rows():
        yield WrittenShard(**json.loads(row["written"]))


class ShardActor:
    """A worker of Ray Data: opens the model once, and writes the shards that it is given."""

    def __init__(self, address: str, job: str) -> None:
        """Open the model, on the GPU if Ray gave it one."""
        self._storage, self._job = Storage(address), EmbedJob.from_json(job.encode())
        self._draft = tempfile.TemporaryDirectory()
        draft = Path(self._draft.name)
        self._model, _ = _opened(_model_here(self._storage, self._job, draft), self._job)
        out = self._storage.inside(OUT)
        self._out, self._folder = out, out.folder or draft / OUT

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Write a shard, and say what was made of it."""
        (text,) = batch["shard"]
        done = self._written(Shard.from_json(str(text)))
        return {"written": [json.dumps(asdict(done))]}

    def _written(self, shard: Shard) -> WrittenShard:
        if self._out.folder is not None:
            return write_shard(self._model, shard, self._folder, self._job.model)
        # An object store: what is there is compared here; the manifest goes last, as on a disk.
        self._folder.mkdir(exist_ok=True)
        for name in _names_there(self._out, shard.number):
            (self._folder / name).parent.mkdir(exist_ok=True)
            self._out.fetch(name, self._folder / name)
        done = write_shard(self._model, shard, self._folder, self._job.model)
        for name in (*files_of(self._folder, shard.number), manifest_of(shard.number)):
            if not done.kept:
                self._out.send(self._folder / name, name)
            confined.remove(self._folder, name)
        return done


def _names_there(out: Storage, number: int) -> list[str]:
    try:
        manifest = json.loads(out.read(manifest_of(number), untrusted_files.MOST_FACTS))
        names = [*manifest["files"], manifest_of(number)]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return []
    return [name for name in names if out.size(name) is not None]


def _opened(folder: Path, job: EmbedJob) -> tuple[OpenModel, config.Run]:
    run = _configuration(folder)
    return open_folder(folder, run, name=job.name, step=job.step), run


def _configuration(folder: Path) -> config.Run:
    text = untrusted_files.read_text(folder / "config.toml")
    return config.from_toml(text, source="config.toml")


def _model_here(storage: Storage, job: EmbedJob, draft: Path) -> Path:
    """Return the folder of the model, on a disk of this node."""
    if storage.folder is not None:
        return storage.folder / MODEL
    stored, checkpoint = storage.inside(MODEL), f"checkpoints/step_{job.step:06d}"
    (draft / MODEL / checkpoint).mkdir(parents=True)
    for folder in ("", checkpoint):
        for name in stored.names(folder):
            path = f"{folder}/{name}".lstrip("/")
            stored.fetch(path, draft / MODEL / path)
    return draft / MODEL


# -- what is told ------------------------------------------------------------------------------------------------------


def _followed(done: Iterator[WrittenShard], shards: Sequence[Shard], progress: Progress) -> list[WrittenShard]:
    written: list[WrittenShard] = []
    total, rows = sum(len(shard.rows) for shard in shards), 0
    progress(0.0, f"embedding {total:,} pairs")
    for finished in done:
        written.append(finished)
        rows += finished.rows + len(finished.unreadable)
        share = f"{100 * finished.waited:.0f} %"
        waits = f", waiting for pictures {share} of the time" if finished.waited > _WORTH_TELLING else ""
        progress(rows / max(total, 1), f"embedded {rows:,} of {total:,} pairs{waits}")
    return sorted(written, key=lambda finished: finished.number)


def _finished(out: Storage, job: EmbedJob, facts: dict[str, Any], written: Sequence[WrittenShard]) -> dict[str, Any]:
    unreadable = {name: why for shard in written for name, why in shard.unreadable.items()}
    named = dict(list(unreadable.items())[:_MOST_NAMED])
    summary = {
        "run": job.name, "step": job.step, "model": job.model, **facts, "n": sum(shard.rows for shard in written),
        "shards": len(written), "kept": sum(shard.kept for shard in written),
        "left_out": len(unreadable), "unreadable": named,
    }  # fmt: skip
    out.write(SUMMARY, json.dumps(summary, indent=1).encode())
    return summary


# -- what is evaluated -------------------------------------------------------------------------------------------------


def task_data_of(folder: Path, *, learned: set[str], named: bool) -> tuple[TaskData, dict[str, Any]]:
    """Return the pairs of an evaluation and their embeddings, from the shards of a job that was made for one.

    Args:
        learned: Pixels, as `pixel_digests` tells them, of the pictures that the run was trained on.
        named: Whether the split was asked for by its name.

    Returns:
        The data, and `image`, `text` and `train` for `Stored`.

    Raises:
        DataError: No image could be read, or the split holds pictures that the run was trained on and was not named.
    """
    summary = summary_of(folder)
    vectors = find(folder)
    sides = {"image": vectors.image, "text": vectors.text}
    n = next(matrix.rows for matrix in sides.values() if matrix is not None)
    items, _ = read_items(vectors.items, np.arange(n), n, split="")
    where = np.array(items.metadata["split"])
    parts = [np.flatnonzero(where == name) for name in (TRIED, TRAIN)]
    tried, train = (_batch(items, part, int(total)) for part, total in zip(parts, summary["whole"], strict=True))
    if not len(tried):
        raise DataError(f"No image of {summary['dataset']} {summary['asked']} could be read there.")
    seen = sum(digest in learned for digest in tried.content)
    if not named:
        refuse_learned(summary["dataset"], summary["others"], summary["asked"], seen, len(tried))
    suite = (
        PromptSuite(**{key: _tuples(value) for key, value in summary["suite"].items()}) if summary["suite"] else None
    )
    data = TaskData(summary["dataset"], summary["split"], tried, train, suite, seen, summary["source"])
    embedded = {name: None if matrix is None else matrix.take(parts[0]) for name, matrix in sides.items()}
    return data, embedded | {"train": None if vectors.image is None else vectors.image.take(parts[1])}


def _batch(items: Items, part: Int[np.ndarray, " k"], total: int) -> TaskBatch:
    columns = (items.caption, items.label, items.metadata["place"], items.metadata["pixels"])
    captions, labels, paths, pixels = ([column[row] for row in part.tolist()] for column in columns)
    return TaskBatch(np.zeros((0, 0, 0, 3), np.uint8), captions, labels, paths, total, content=pixels)


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
