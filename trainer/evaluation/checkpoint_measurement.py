"""Embed pairs with a checkpoint that another program has written, and store snapshot and numbers of its step."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float

from trainer import config, device
from trainer.analysis.unit_rows import is_vector
from trainer.companion.folder_watch import VanishedCheckpoint
from trainer.evaluation.benchmark import Stored, Subject
from trainer.evaluation.task_data import TaskData, load_every_pair
from trainer.images import Preprocessing
from trainer.inference.batches import embed_images, embed_tokens
from trainer.models import ModelError, build, preprocessing_of
from trainer.pretrained import PretrainedError, ResolvedModel, find, start_from
from trainer.store import Items, RunLog, Workspace
from trainer.store.task_records import evaluation_folder, write_task

SPLIT: Final = "val"
TASKS: Final = ("zero_shot", "retrieval")
_REPORT_S: Final = 1.0


class CheckpointMeasurement:
    """Measures checkpoints on all pairs of a data set, which are decoded once.

    A step has the pairs as one split `val`, and the tasks zero-shot and retrieval with their questions.
    """

    def __init__(self, workspace: Workspace, data: str, *, model: str = "") -> None:
        """Read nothing yet.

        Args:
            workspace: Whose cache keeps the decoded images.
            data: The pairs: a folder, table or tar.
            model: Folder with the settings that the training was started with; empty: the training's files tell.
        """
        self._workspace, self._data, self._model = workspace, data, model
        self._device = device.choose("auto")
        self._pairs: dict[tuple[int, Preprocessing | None], TaskData] = {}

    def __call__(self, log: RunLog, path: Path, step: int) -> Mapping[str, float]:
        """Store the step of a checkpoint and return its numbers by the names of their curves.

        Raises:
            VanishedCheckpoint: It is not there any more, or cannot be opened.
            UserError: The pairs cannot be read, or the disk is full.
        """
        resolved = self._resolved(path)
        if resolved.head_guess:
            log.alert("guessed", resolved.head_guess, step)
        towers = build(resolved.blueprint, vocabulary=resolved.tokenizer.size)
        start_from(resolved, towers)
        towers = towers.eval().to(self._device).to(memory_format=device.memory_format(self._device))
        data = self._pairs_for(log, resolved)
        alive = _signs_of_life(log, f"embedding {path.name}")
        length = resolved.blueprint.context_length
        image = embed_images(towers, data.tried.images, self._device, alive=alive)
        tokens = resolved.tokenizer.encode(data.tried.captions, length)
        text = embed_tokens(towers, tokens, self._device, alive=alive)
        if not is_vector(image).all() or not is_vector(text).all():
            raise VanishedCheckpoint("Some of its embeddings have no direction: they are zero or no numbers.")
        self._write_snapshot(log, data, image, text, step)
        inv_tau = float("nan") if resolved.learned.inv_tau is None else resolved.learned.inv_tau
        subject = Subject(towers, resolved.tokenizer, length, self._device, inv_tau, None, resolved.learned.bias)
        return _measured(log, Stored(subject, data, image=image, text=text, train=None), step)

    def _resolved(self, path: Path) -> ResolvedModel:
        """Return the model of a checkpoint.

        Raises:
            VanishedCheckpoint: It cannot be opened.
        """
        if path.is_dir():
            # Transformers saves the tokenizer only where the trainer was given it.
            named = "" if any((path / name).is_file() for name in ("tokenizer.json", "vocab.json")) else "clip"
            choice = config.OpenClip(name=f"local-dir:{path}", tokenizer=named)
        elif self._model:
            choice = config.OpenClip(
                name=f"local-dir:{Path(self._model).expanduser().absolute()}", pretrained=str(path)
            )
        else:
            choice = config.OpenClip(name=str(path))
        try:
            return find(choice, cache=self._workspace.folder / "cache", progress=lambda share, note: None)
        except (PretrainedError, ModelError, OSError) as error:
            raise VanishedCheckpoint(str(error)) from error

    def _pairs_for(self, log: RunLog, resolved: ResolvedModel) -> TaskData:
        size, reads = resolved.blueprint.image_size, preprocessing_of(resolved.blueprint)
        if (size, reads) not in self._pairs:
            alive = _signs_of_life(log, "decoding the pairs")
            self._pairs[size, reads] = load_every_pair(
                self._data,
                split=SPLIT,
                image_size=size,
                workspace_folder=self._workspace.folder,
                preprocessing=reads,
                progress=lambda share, note: alive(),
            )
        return self._pairs[size, reads]

    def _write_snapshot(
        self, log: RunLog, data: TaskData, image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "n d"], step: int
    ) -> None:
        tried = data.tried
        splits = [data.split] * len(tried)
        items = Items(np.arange(len(tried)), tried.paths, tried.captions, tried.labels, splits, {}, tried.content)
        log.write_snapshot(
            step, data.dataset, data.split, image=image, text=text, items=items, fingerprint=tried.fingerprint
        )
        log.facts(heldout_pairs={data.split: len(tried)})


def _measured(log: RunLog, evaluation: Stored, step: int) -> dict[str, float]:
    """Store the tasks that can be measured, and return their numbers by the names of their curves."""
    data, possible = evaluation.data, evaluation.possible()
    numbers: dict[str, float] = {}
    for task in TASKS:
        if possible[task]:
            continue
        record = evaluation.run(task)
        write_task(evaluation_folder(log.folder, data.dataset, data.split, step), record)
        questions = {task: record.question} if record.question is not None else {}
        if task == "retrieval" and record.question is not None:
            log.facts(heldout_questions={data.split: record.question.noted_counts})
        log.evaluation(step, data.dataset, data.split, record.metrics, questions)
        numbers |= {f"{SPLIT}/{name}": value for name, value in record.metrics.items()}
    log.scalars(step, numbers)
    return numbers


def _signs_of_life(log: RunLog, phase: str) -> Callable[[], None]:
    """Return what reports a phase again, once a second at most."""
    reported_at = time.monotonic()

    def alive() -> None:
        nonlocal reported_at
        if time.monotonic() - reported_at >= _REPORT_S:
            reported_at = time.monotonic()
            log.report(phase)

    return alive
