"""The training loop, top to bottom: claim the run, prepare the pairs, update, monitor, save."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import torch

from trainer import config, data, device, pretrained, ranks
from trainer.analysis.progress import Progress
from trainer.analysis.sampling import at_most
from trainer.charts.measures.forgetting import HELD
from trainer.checkpoints import checkpoint
from trainer.config.small_batches import small_batch_of_cloob
from trainer.data import DataSplits
from trainer.data.kept_pairs import once
from trainer.data.streamed_images import StreamedImages
from trainer.data.tokenizer import train_tokenizer
from trainer.data.tokenizers import AnyTokenizer, read_tokenizer
from trainer.errors import UserError
from trainer.evaluation.neighbors import STORED
from trainer.evaluation.reference import REFERENCE, with_reference
from trainer.models import has_batch_norm
from trainer.prompt_suites import ZERO_SHOT, suite_facts, untrained_suite
from trainer.scheduling.energy import METRIC
from trainer.scheduling.launch import check_trainable
from trainer.scheduling.ranks import is_rank, take_place
from trainer.scheduling.ranks import train as train_by_ranks
from trainer.store import RunLog, StoreError, Workspace, disk
from trainer.store.caption_words import counted_words, write_caption_words
from trainer.trackers.live import FOLDER, LiveTrackers, TrackedRun, wanted
from trainer.training.control import ControlFlags
from trainer.training.disk_guard import LOOK_S, DiskGuard, StoppedWaiting
from trainer.training.follower import BEGINS, follow
from trainer.training.memory_prediction import Trained, proposal
from trainer.training.metric_logger import SAY_S, MetricLogger
from trainer.training.mixing import mix_until_end
from trainer.training.provenance import session_facts, sessions_of, threads_to_resume, with_session
from trainer.training.session import PREPARED_FIRST, FitError, TrainingSession, load_splits, prepared_first
from trainer.training.starting_point import TOKENIZER, StartingPoint, keep, start_config, starting_point
from trainer.training.text_log import TextLog
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files
from trainer.vectors import open_vectors

_LEFT_OUT: Final = "left_out"

_MOST_SPELLED: Final = 100_000
"""Captions that a tokenizer is trained on."""


def fit(workspace: Workspace, run_id: int) -> None:
    """Train a run to its end or until asked to stop, resuming from its newest valid checkpoint.

    Where several processes share its batches, they are started here, unless this is one of them. Afterwards the run is
    finished, stopped or failed, and its row says why.

    Raises:
        UserError: It cannot be trained, or failed in a way the person can mend; also when another process trains it.
    """
    check_trainable(workspace, workspace.runs.get(run_id))
    if is_rank():
        take_place(workspace.runs.ranks_of(run_id))
    # numba sets OpenMP's threads and not MKL's. Bits depend on both, and a replay sets both to what the run recorded.
    torch.set_num_threads(torch.get_num_threads())
    shared = ranks.join()
    if shared is None:
        count = workspace.runs.ranks_of(run_id)
        return train_by_ranks(workspace, run_id, count) if count > 1 else _fit(workspace, run_id, None)
    try:
        if not shared.leads:
            return follow(workspace.runs.get(run_id).folder, workspace.folder, shared)
        return _fit(workspace, run_id, shared)
    except Exception as error:
        if not isinstance(error, ranks.RankError):
            shared.confess(str(error) or type(error).__name__)
        raise
    finally:
        shared.leave()


def _claimed(workspace: Workspace, run_id: int) -> RunLog:
    """Claim the run; wait for a disk that has no room even for its row, with a sentence where this process prints."""
    waits = False
    while True:
        try:
            return RunLog.claim(workspace, run_id)
        except disk.DiskTrouble as trouble:
            if not trouble.full:
                raise
            if not waits:
                TextLog(workspace.runs.get(run_id).folder / "log.txt").say(
                    f"{trouble} The run begins once there is room."
                )
            waits = True
            time.sleep(LOOK_S)


def _compute_as_before(log: RunLog) -> None:
    """Take as many threads as the run had; what the person sets by OMP_NUM_THREADS stands."""
    threads = threads_to_resume(log.run.facts)
    if threads is not None and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(threads)


def _fit(workspace: Workspace, run_id: int, shared: ranks.Ranks | None) -> None:
    with _claimed(workspace, run_id) as log, ControlFlags(log) as control:
        _compute_as_before(log)
        text_log = TextLog(log.folder / "log.txt")
        room = DiskGuard(log, control, text_log)
        try:
            with _logged_beside(workspace, log, text_log):
                status, end_reason = _train(workspace, log, control, text_log, room, shared)
            if shared is not None and status == "stopped":
                # The agent ends all ranks when one is gone, by the signal that asks for a stop.
                shared.check_peers(look=True)
            room.until_written(log.settle)
        except StoppedWaiting as stopped:
            status, end_reason = "stopped", str(stopped)
        except Exception as error:
            if log.is_moved:
                reason = (
                    f"{log.folder} was moved, renamed or removed while the run was being trained. Open its workspace "
                    "where it lies now: Resume continues."
                )
                # Told through what is open of the database, or by the log alone; `reconcile` reads that.
                log.status("interrupted", reason)
                raise FitError(reason) from error
            problem = _as_problem(error, workspace.runs.config_of(log.run.id))
            if problem is not error or isinstance(error, OutOfMemory):
                log.alert("memory", str(problem), log.run.step)
            # Of a run that lost one of its processes nothing is wrong.
            end = "interrupted" if isinstance(problem, ranks.RankError) else "failed"
            log.status(end, str(problem))
            if not isinstance(problem, UserError):
                text_log.write(traceback.format_exc())
            text_log.say(f"{end}: {problem}")
            if problem is error:
                raise
            raise problem from error
        finally:
            if shared is not None:
                shared.dismiss()
        log.status(status, end_reason)
        text_log.say(f"{status}. {end_reason}".rstrip())
    # The next day's training tries it again; a run that has ended well must not fail for it.
    with contextlib.suppress(StoreError):
        workspace.back_up_daily()


def _logged_beside(workspace: Workspace, log: RunLog, text_log: TextLog) -> LiveTrackers:
    """Log the run's numbers also to the trackers that the person named."""

    def tracked(first: int) -> TrackedRun:
        confined.make_folder(log.folder, FOLDER)
        return TrackedRun(log.run.name, log.folder, config.flatten(workspace.runs.config_of(log.run.id)), first)

    def warn(sentence: str) -> None:
        text_log.say(sentence)
        log.alert("tracker", sentence, int(log.said("step", log.run.step)))

    beside = LiveTrackers(wanted(), tracked, warn)
    log.beside = beside.log
    return beside


@dataclass(frozen=True)
class _Job:
    """One session of a run."""

    workspace: Workspace
    run: config.Run
    log: RunLog  # What the window reads.
    text_log: TextLog  # Lines for the person.
    control: ControlFlags  # What was asked of the run.
    room: DiskGuard  # Waits for a full disk.
    shared: ranks.Ranks | None  # The processes that share each batch; None for one alone.
    where: torch.device
    warned: set[str] = field(default_factory=set)  # Held-out splits of whose copies was warned.


@dataclass(frozen=True)
class _Prepared:
    """What a session trains with: where the model starts, the pairs and the tokenizer."""

    start: StartingPoint
    splits: DataSplits
    tokenizer: AnyTokenizer


def _train(
    workspace: Workspace,
    log: RunLog,
    control: ControlFlags,
    text_log: TextLog,
    room: DiskGuard,
    shared: ranks.Ranks | None,
) -> tuple[str, str]:
    """Return the status and its reason at the end of this session."""
    run = workspace.runs.config_of(log.run.id)
    config.check(run)
    if run.model.is_missing:
        assert isinstance(run.data, config.Vectors)
        opened = open_vectors(log, run.data)
        summary = f"{opened.kept:,} of {opened.rows:,} vectors of {opened.width} numbers"
        text_log.say(f"{summary}, {opened.left_out:,} left out")
        return "finished", ""
    where = _device_of(run, text_log, shared)
    text_log.say(f"{log.run.name}: {run.objective.label} on {run.data.label}, device {where}, process {log.run.pid}")
    job = _Job(workspace, run, log, text_log, control, room, shared, where)
    used = workspace.results.last_values(log.run.id).get(METRIC, 0.0)
    give_up = functools.partial(_give_up, control)
    logger = MetricLogger(log, run, text_log=text_log, room=room, give_up=give_up, used_wh=used)
    try:
        prepared = _prepare(job, logger)
    except _Stopped:
        return "stopped", "Stopped while the model and the data were being prepared."
    training = _session(job, prepared)
    logger.watch(training, prepared.splits, prepared.tokenizer)
    try:
        logger.begin()
    except _Stopped:
        logger.forget_untrained()
        return "stopped", "Stopped while the untrained model was being measured."
    if shared is not None:
        shared.announced(BEGINS, str(training.step))
    try:
        if run.tuning.mix:
            return mix_until_end(workspace, log, control, text_log, training, logger)
        training.keep_images()
        return _update_until_end(job, prepared.splits, training, logger)
    except torch.OutOfMemoryError as error:
        if where.type != "cuda":
            raise
        size = run.optimizer.batch_size
        raise OutOfMemory(f"Memory ran out with batches of {size} pairs. {_smaller(job, prepared)}") from error
    finally:
        training.end()


def _device_of(run: config.Run, text_log: TextLog, shared: ranks.Ranks | None) -> torch.device:
    """Return the device of this process, checked to have what the run needs."""
    where = device.choose(run.device)
    if shared is not None:
        where = shared.device_of(where)
        text_log.say(f"{shared.size} processes share every batch")
    device.be_polite(where)
    return where


def _prepare(job: _Job, logger: MetricLogger) -> _Prepared:
    """Open the model that the run starts from, read the data, and make the tokenizer."""
    run, text_log, room = job.run, job.text_log, job.room
    progress = _reporter(job.log, job.control, text_log)
    start = starting_point(job.workspace, run, job.log, progress)
    if start.published is not None:
        text_log.say(start.published.origin)
        if start.published.head_guess:
            job.log.alert("guessed", start.published.head_guess, 0)
    if summary := config.weights_words(run):
        text_log.say(summary)
    room.until_written(lambda: _measure_ahead(job, logger, progress))
    splits = room.until_written(lambda: _load(job, start, progress))
    tokenizer = _tokenizer(job, splits, progress) if start.tokenizer is None else start.tokenizer
    return _Prepared(start, splits, tokenizer)


def _load(job: _Job, start: StartingPoint, progress: Progress) -> DataSplits:
    run, folder = job.run, job.workspace.folder
    # A model that is only measured needs no more than those among which neighbors are sought.
    most = None if run.optimizer.epochs else STORED
    splits = load_splits(run, start.sizes, folder, progress, most_training=most, facts=job.log.run.facts)
    if not (run.optimizer.epochs or run.tuning.start):
        return replace(splits, suite=untrained_suite(splits.suite))
    return with_reference(splits, run, start.sizes, folder, progress, start=start_config(job.log.folder))


def _session(job: _Job, prepared: _Prepared) -> TrainingSession:
    """Return the session before its first update, and record what the run is trained on."""
    start, splits, tokenizer = prepared.start, prepared.splits, prepared.tokenizer
    job.room.until_written(lambda: keep(job.log.folder / TOKENIZER, tokenizer.to_json()))
    device.keep_freed_memory(job.where)
    training = TrainingSession(
        job.run, splits.train, tokenizer, job.where, shared=job.shared, **start.session_arguments
    )
    _record_facts(job, splits, training)
    _introduce(job.text_log, splits, training, job.run)
    return training


def _update_until_end(
    job: _Job, splits: DataSplits, training: TrainingSession, logger: MetricLogger
) -> tuple[str, str]:
    """Make the updates that remain, and do between them what is asked of the run."""
    while training.step < training.total_steps:
        request = _request(job, training)
        if request in ("stop", "pause", "save"):
            logger.save()
        if request == "stop":
            return "stopped", f"Stopped after step {training.step} of {training.total_steps}; resume continues."
        if request == "pause":
            logger.rest(job.control)
            continue
        if request == "evaluate":
            logger.evaluate()
        if job.shared is not None:
            job.shared.lead()
        for update in training.updates(logger.updates_until_due):
            logger.saw(update)
        if news := training.news():
            for sentence in news:
                job.text_log.say(sentence)
            _record_unreadable(job, splits, training)
    logger.save()
    return "finished", ""


def _request(job: _Job, training: TrainingSession) -> str | None:
    """Return what is asked of the run now; a stop at the end of an epoch is one only there."""
    request = job.control.now()
    if job.shared is not None:
        job.shared.check_peers()
    is_epoch_end = training.step % (training.total_steps // job.run.optimizer.epochs) == 0
    return "stop" if request == "stop-epoch" and is_epoch_end else request


def _measure_ahead(job: _Job, logger: MetricLogger, progress: Progress) -> None:
    """Measure the untrained model, if it can be, before the training pictures are drawn.

    The model is built from the seed again when it is trained, so nothing of it is kept. The two are not done at the
    same time: both take all cores, and the numbers are wanted first.
    """
    run = job.run
    if not isinstance(run.model, config.TinyTowers) or run.tuning.start or not may_be_measured_ahead(run, job.log):
        return
    ahead = data.load_untrained(
        run.data, image_size=run.model.image_size, workspace_folder=job.workspace.folder, progress=progress
    )
    try:
        first = next(ahead, None)
        if first is None:
            return
        tokenizer = _tokenizer(job, first, progress)
        training = TrainingSession(run, first.train, tokenizer, job.where, built_from=run.model)
        if not training.method.takes_all_as_negatives:
            return
        for splits in itertools.chain((first,), ahead):
            logger.watch(training, splits, tokenizer, with_batch=False)
            logger.measure_untrained()
    except _Stopped:
        # What was measured so far is of no use without the rest.
        logger.forget_untrained()
        raise


class _Stopped(Exception):
    """A request to stop before there is anything to save."""


def _give_up(control: ControlFlags) -> None:
    if control.now() == "stop":
        raise _Stopped


def _reporter(log: RunLog, control: ControlFlags, text_log: TextLog) -> Callable[[float, str], None]:
    """Return a progress callback that reports preparation as the run's phase and raises on a stop request."""
    said_at = time.monotonic()

    def progress(share: float, note: str) -> None:
        nonlocal said_at
        if time.monotonic() - said_at >= SAY_S:
            text_log.say(f"{note} ({100 * share:.0f} % of the preparation)")
            said_at = time.monotonic()
        # A count is told by the note; the share is of the whole preparation and would contradict it.
        phase = note if " of " in note else f"{note} {100 * share:.0f} %"
        log.progress(step=log.run.step, total_steps=log.run.total_steps, phase=phase, eta_s=None)
        _give_up(control)

    return progress


def _tokenizer(job: _Job, splits: DataSplits, progress: Progress) -> AnyTokenizer:
    """Return the run's tokenizer: trained or downloaded in the first session, then reused."""
    file, model = job.log.folder / TOKENIZER, job.run.model
    if file.exists():
        return read_tokenizer(untrusted_files.read_text(file, untrusted_files.MOST_TOKENIZER))
    if named := model.tokenizer.strip():
        return pretrained.tokenizer_by_name(named, cache=job.workspace.folder / "cache", progress=progress)
    captions = splits.train.captions
    return train_tokenizer([captions[row] for row in at_most(len(captions), _MOST_SPELLED)], model.vocabulary)


def _record_facts(job: _Job, splits: DataSplits, training: TrainingSession) -> None:
    """Record what the run is trained on.

    Raises:
        FitError: The training pairs are not those the run began with.
    """
    log, pairs = job.log, splits.train
    # A kill may have come before the row knew of steps that a checkpoint has.
    begun = max(log.run.step, *checkpoint.steps(log.folder / "checkpoints"), 0)
    if begun and log.run.facts.get("fingerprint", pairs.fingerprint) != pairs.fingerprint:
        raise FitError(
            f"The images, captions or labels of {pairs.name} have changed since this run began, so it cannot continue. "
            "Put them back, or duplicate the run to train on them as they are now."
        )
    write_caption_words(log.folder, pairs.captions, _counted_words)
    log.facts(
        device=str(training.device),
        parameters=_parameters(training),
        train_pairs=splits.training_pairs,
        heldout_pairs={split: len(held) for split, held in splits.heldout.items()},
        fingerprint=pairs.fingerprint,
        **{PREPARED_FIRST: prepared_first(job.run, log.run.facts)},
        **_held_data(splits),
        split=splits.report.split,
        **{ZERO_SHOT: suite_facts(splits.suite)},
        sessions=with_session(sessions_of(log.run.facts), session_facts(training.device, step=begun)),
    )
    _record_unreadable(job, splits, training, earlier=log.run.facts.get(_LEFT_OUT, 0) if begun else 0)


def _counted_words(captions: Sequence[str]) -> dict[str, int]:
    return once(captions, "words", dict[str, int], lambda: counted_words(captions))


def _record_unreadable(job: _Job, splits: DataSplits, training: TrainingSession, *, earlier: int = 0) -> None:
    """Record what only decoding tells, and warn of it: of listed pictures that is known bit by bit.

    Args:
        earlier: How many an earlier session had left out.
    """
    count = len(splits.report.problems) + len(splits.report.other_parts) + len(training.unreadable)
    copies = splits.copies
    job.log.facts(**{_LEFT_OUT: max(count, earlier)}, heldout_copies=copies)
    for split, number in copies.items():
        if number and split not in job.warned:
            job.warned.add(split)
            job.text_log.say(
                f"warning: {number:,} of {len(splits.heldout[split]):,} {split} pairs show pictures with the pixels "
                "of a training picture; trainer data duplicates lists them"
            )


def _held_data(splits: DataSplits) -> dict[str, Any]:
    """Return the fact that says which evaluations are of the own data and which of the reference set."""
    heldout = next((pairs for split, pairs in splits.heldout.items() if split != REFERENCE), None)
    evaluations = {"own": heldout, "reference": splits.heldout.get(REFERENCE)}
    return {HELD: {name: [pairs.name, pairs.split] for name, pairs in evaluations.items() if pairs is not None}}


def _parameters(training: TrainingSession) -> int:
    return sum(p.numel() for module in (training.towers, training.method) for p in module.parameters())


def _introduce(text_log: TextLog, splits: DataSplits, training: TrainingSession, run: config.Run) -> None:
    """Say what the run is trained on, and what is unusual about it."""
    pairs = splits.train
    held = ", ".join(f"{len(part):,} {split}" for split, part in splits.heldout.items())
    text_log.say(
        f"{splits.training_pairs:,} training pairs, held out {held}; "
        f"{_parameters(training):,} parameters, {training.total_steps} steps"
    )
    if splits.report.split:
        text_log.say(splits.report.split)
    if expected := small_batch_of_cloob(run):
        text_log.say(expected)
    images = pairs.images
    if isinstance(images, StreamedImages) and images.keep is not None:
        text_log.say("images are decoded as they come, and prepared meanwhile where further epochs need them")
    elif isinstance(images, StreamedImages) and images.kept is None:
        text_log.say(f"images are decoded again in every epoch, because {images.why}")
    _warn_of_batch_norm(text_log, training)
    if training.method.takes_all_as_negatives:
        warn_of_equal_captions(text_log, pairs.captions, training.batch_size)
    for path, reason in splits.report.problems[:10]:
        text_log.say(f"left out: {path}: {reason}")
    if len(splits.report.problems) > 10:
        text_log.say(f"left out: {len(splits.report.problems) - 10:,} more; `trainer data show` lists them")


def warn_of_equal_captions(text_log: TextLog, captions: Sequence[str], batch_size: int) -> None:
    """Warn where a pair meets its own caption again in its batch more often than not."""
    n = len(captions)
    equal = once(captions, "equal", int, lambda: sum(count * (count - 1) for count in Counter(captions).values()))
    again = equal / max(1, n * (n - 1))
    if (met := (min(batch_size, n) - 1) * again) >= 0.5:
        text_log.say(
            f"warning: a batch has {met:.1f} other pairs with the same caption for each pair, and they count as "
            "negatives. Set objective.mask_duplicates=true to leave them out."
        )


def _warn_of_batch_norm(text_log: TextLog, training: TrainingSession) -> None:
    size = training.norm_rows
    if size < training.batch_size and any(has_batch_norm(module) for module in training.modules.values()):
        text_log.say(
            f"warning: batch norms see {size} pairs at a time and not the whole batch, so gradients are not "
            "exactly those of the batch. The ViT tower has none."
        )


class OutOfMemory(FitError):
    """The memory of a graphics card ran out; the message says what would fit."""


def _smaller(job: _Job, prepared: _Prepared) -> str:
    """Return a sentence with a micro-batch that the card's whole memory is predicted to hold."""
    trained = Trained(job.run, prepared.splits.train, prepared.tokenizer, prepared.start.sizes)
    _, total = torch.cuda.mem_get_info(job.where)
    bfloat16 = torch.cuda.is_bf16_supported(including_emulation=False)
    return (
        f"{proposal(trained, total, bfloat16=bfloat16)} A duplicate takes that; Resume continues from the last "
        "checkpoint where more memory is free."
    )


def _as_problem(error: Exception, run: config.Run) -> Exception:
    """Return the error as a message if the user can fix it; any other unchanged."""
    starved = isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)
    if not starved:
        return error
    size = run.optimizer.batch_size
    return FitError(
        f"Memory ran out with batches of {size} pairs. Duplicate the run with batches of {max(2, size // 2)}, or keep "
        f"the batch and its gradient and set Micro-batch to {max(2, (run.optimizer.micro_batch or size) // 2)}."
    )


def may_be_measured_ahead(run: config.Run, log: RunLog) -> bool:
    """Return whether the run begins, with its own tokenizer and an objective that no training picture has a part in."""
    trains_tokenizer = not run.model.tokenizer.strip()
    masks = getattr(run.objective, "mask_duplicates", True)
    begins = run.optimizer.epochs > 0 and not checkpoint.steps(log.folder / "checkpoints")
    return trains_tokenizer and run.objective.compares_pairs and not masks and begins
