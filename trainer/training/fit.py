"""The training loop, top to bottom: claim the run, prepare the pairs, update, watch, save."""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final

import torch

from trainer import config, data, device, pretrained
from trainer.checkpoints import checkpoint
from trainer.data import DataSplits
from trainer.data.lazy_images import StreamedImages
from trainer.data.published_tokenizers import AnyTokenizer, read_tokenizer
from trainer.data.tokenizer import train_tokenizer
from trainer.errors import UserError
from trainer.models import has_batch_norm, preprocessing_of
from trainer.pretrained import read_architecture
from trainer.store import RunLog, StoreError, Workspace, disk, write_atomically
from trainer.training.control import ControlFlags
from trainer.training.disk_guard import DiskGuard, StoppedWaiting
from trainer.training.provenance import sitting, sittings_of, with_sitting
from trainer.training.recorder import Recorder
from trainer.training.session import FitError, TrainingSession
from trainer.training.text_log import TextLog
from trainer.untrusted import files as untrusted_files

SAY_S: Final = 3.0
"""How long a preparation goes on between two lines about it."""


def fit(workspace: Workspace, run: int) -> None:
    """Trains a run to its end or until it is asked to stop, beginning where its newest whole checkpoint left off.

    Afterwards the run is finished, stopped or failed, and its row says why.

    Raises:
        Problem: It cannot be trained, or failed in a way the person can mend; also when another process trains it.
    """
    with RunLog.claim(workspace, run) as log, ControlFlags(log) as wishes:
        speech = TextLog(log.folder / "log.txt")
        room = DiskGuard(log, wishes, speech)
        try:
            status, reason = _train(workspace, log, wishes, speech, room)
            room.until_written(log.settle)
        except StoppedWaiting as stopped:
            status, reason = "stopped", str(stopped)
        except Exception as error:
            if log.is_moved:
                words = (
                    f"{log.folder} was moved, renamed or removed while the run was being trained. Open its workspace "
                    "where it lies now: Resume goes on."
                )
                # Told through what is open of the database, or by the log alone; `reconcile` reads that.
                log.status("interrupted", words)
                raise FitError(words) from error
            problem = _as_problem(error, workspace.runs.config_of(log.run.id))
            if problem is not error:
                log.alert("memory", str(problem), log.run.step)
            log.status("failed", str(problem))
            if not isinstance(problem, UserError):
                speech.write(traceback.format_exc())
            speech.say(f"failed: {problem}")
            raise problem from error
        log.status(status, reason)
        speech.say(f"{status}. {reason}")
    # The next day's training tries it again; a run that has ended well must not fail for it.
    with contextlib.suppress(StoreError):
        workspace.back_up_daily()


def _train(
    workspace: Workspace, log: RunLog, wishes: ControlFlags, speech: TextLog, room: DiskGuard
) -> tuple[str, str]:
    """The status and its reason at the end of this sitting."""
    run = workspace.runs.config_of(log.run.id)
    config.check(run)
    where = device.choose(run.device)
    device.be_polite(where)
    speech.say(f"{log.run.name}: {run.objective.label} on {run.data.label}, device {where}, process {log.run.pid}")
    progress = _telling(log, wishes, speech)
    try:
        found = _found(workspace, run, log, progress)
        if found is not None:
            speech.say(found.origin)
        sizes = found.blueprint if found else read_architecture(run.model, log.folder)
        splits = data.load(
            run.data,
            image_size=sizes.image_size,
            workspace_folder=workspace.folder,
            progress=progress,
            loading=run.loading,
            preprocessing=preprocessing_of(sizes),
        )
        tokenizer = found.tokenizer if found else _tokenizer(workspace, run, log, splits, progress)
    except _Stopped:
        return "stopped", "Stopped while the model and the data were being prepared."
    room.until_written(lambda: _keep(log.folder / "tokenizer.json", tokenizer.to_json()))
    training = TrainingSession(run, splits.train, tokenizer, where, found=found, built_from=sizes)
    _introduce(log, speech, splits, training)
    watch = Recorder(log, run, training, speech=speech, room=room)
    watch.hold_out(splits, tokenizer)
    watch.begin()

    while training.step < training.total_steps:
        wish = wishes.now()
        if wish == "stop-epoch" and training.step % (training.total_steps // run.optimizer.epochs) == 0:
            wish = "stop"
        if wish in ("stop", "pause", "save"):
            watch.save()
        if wish == "stop":
            return (
                "stopped",
                f"Stopped after step {training.step} of {training.total_steps}; resume goes on.",
            )
        if wish == "pause":
            watch.rest(wishes)
            continue
        if wish == "evaluate":
            watch.evaluate()
        watch.saw(training.update())
        for sentence in training.news():
            speech.say(sentence)

    watch.save()
    return "finished", ""


class _Stopped(Exception):
    """Raised out of the preparation of the data by the wish to stop."""


def _telling(log: RunLog, wishes: ControlFlags, speech: TextLog) -> Callable[[float, str], None]:
    """Shows what is being prepared as the run's phase, and says it now and then; raises when it is to stop."""
    said_at = time.monotonic()

    def progress(share: float, note: str) -> None:
        nonlocal said_at
        if time.monotonic() - said_at >= SAY_S:
            speech.say(f"{note} ({share:.0%} of the preparation)")
            said_at = time.monotonic()
        log.progress(step=log.run.step, total_steps=log.run.total_steps, phase=f"{note} {share:.0%}", eta_s=None)
        if wishes.now() == "stop":
            raise _Stopped

    return progress


def _found(
    workspace: Workspace, run: config.Run, log: RunLog, progress: Callable[[float, str], None]
) -> pretrained.ResolvedModel | None:
    """The published model that the run begins with; None for tiny towers, and once a checkpoint has the weights."""
    file = log.folder / pretrained.BLUEPRINT
    if isinstance(run.model, config.TinyTowers):
        return None
    if file.exists() and (log.folder / "tokenizer.json").exists() and checkpoint.steps(log.folder / "checkpoints"):
        return None
    found = pretrained.find(run.model, cache=workspace.folder / "cache", progress=progress)
    _keep(file, found.blueprint.to_json())
    return found


def _tokenizer(
    workspace: Workspace, run: config.Run, log: RunLog, splits: DataSplits, progress: Callable[[float, str], None]
) -> AnyTokenizer:
    """The run's tokenizer: trained on its captions or fetched in the first sitting, the same one ever after."""
    file = log.folder / "tokenizer.json"
    if file.exists():
        return read_tokenizer(untrusted_files.read_text(file, untrusted_files.MOST_TOKENIZER))
    if run.model.tokenizer.strip():
        named = run.model.tokenizer.strip()
        return pretrained.tokenizer_by_name(named, cache=workspace.folder / "cache", progress=progress)
    return train_tokenizer(splits.train.captions, run.model.vocabulary)


def _keep(file: Path, text: str) -> None:
    """Writes what the run needs in every later sitting; what is there already stays."""
    with disk.writing(file.name, file, 2 * len(text)):
        if not file.exists():
            write_atomically(file, lambda draft: draft.write_text(text, encoding="utf-8") and None, private=True)


def _introduce(log: RunLog, speech: TextLog, splits: DataSplits, training: TrainingSession) -> None:
    """Notes what the run is made of.

    Raises:
        FitError: The training pairs are not those the run began with.
    """
    pairs = splits.train
    # A kill may have come before the row knew of steps that a checkpoint has.
    begun = max(log.run.step, *checkpoint.steps(log.folder / "checkpoints"), 0)
    if begun and not data.are_those_of(log.run.facts.get("fingerprint", pairs.fingerprint), pairs):
        raise FitError(
            f"The images, captions or labels of {pairs.name} have changed since this run began, so it cannot go on. "
            "Put them back, or duplicate the run to train on them as they are now."
        )
    parameters = sum(p.numel() for module in training.modules.values() for p in module.parameters())
    log.facts(
        device=str(training.device),
        parameters=parameters,
        train_pairs=len(pairs),
        heldout_pairs={split: len(held) for split, held in splits.heldout.items()},
        fingerprint=pairs.fingerprint,
        left_out=len(splits.report.problems),
        sittings=with_sitting(sittings_of(log.run.facts), sitting(training.device, step=begun)),
    )
    held = ", ".join(f"{len(part):,} {split}" for split, part in splits.heldout.items())
    speech.say(
        f"{len(pairs):,} training pairs, held out {held}; {parameters:,} parameters, {training.total_steps} steps"
    )
    if isinstance(pairs.images, StreamedImages):
        speech.say(f"images are decoded again in every epoch, because {pairs.images.why}")
    _warn_of_batch_norm(speech, training)
    for path, reason in splits.report.problems[:10]:
        speech.say(f"left out: {path}: {reason}")
    if len(splits.report.problems) > 10:
        speech.say(f"left out: {len(splits.report.problems) - 10:,} more; `trainer data show` lists them")


def _warn_of_batch_norm(speech: TextLog, training: TrainingSession) -> None:
    size = training.micro_batch
    if size and any(has_batch_norm(module) for module in training.modules.values()):
        speech.say(
            f"warning: batch norms see micro-batches of {size} pairs and not the whole batch, so gradients are not "
            "exactly those of the batch. The ViT tower has none."
        )


def _as_problem(error: Exception, run: config.Run) -> Exception:
    """The error as a sentence where the person can mend it; any other as it is."""
    starved = isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)
    if not starved:
        return error
    size = run.optimizer.batch_size
    return FitError(
        f"Memory ran out with batches of {size} pairs. Duplicate the run with batches of {max(2, size // 2)}, or keep "
        f"the batch and its gradient and set Micro-batch to {max(2, (run.optimizer.micro_batch or size) // 2)}."
    )
