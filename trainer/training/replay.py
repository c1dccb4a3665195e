"""Replay one update of a run: its batch, and the effect of the update on every pair.

Order, crops and weights are functions of (seed, step), so any update can be made again from a checkpoint before it, or
from the start. Training then goes on to the next checkpoint, and must come to its very bits: a replay of which that is
not known is never shown.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from trainer import config, data, device, methods
from trainer.analysis import batches
from trainer.analysis.progress import Progress
from trainer.analysis.units import units_of_numbers
from trainer.checkpoints import checkpoint
from trainer.data.content import matching_of
from trainer.data.tokenizers import AnyTokenizer, read_tokenizer
from trainer.errors import UserError
from trainer.methods import Batch, ImageText
from trainer.methods.pair_losses import pair_losses
from trainer.models import Architecture
from trainer.pretrained import read_architecture
from trainer.pretrained.peft_layout import kept_adapter
from trainer.pretrained.size_limits import check_run
from trainer.store import RunRow, Workspace
from trainer.store.replay_records import ReplayRecord
from trainer.training.provenance import MOST_THREADS, sessions_of
from trainer.training.session import TrainingSession, Update, load_splits
from trainer.untrusted import files as untrusted_files

COMPARED: Final = ("clip", "infoloob", "cloob")
"""Objectives that are asked what they would have done, besides the run's own."""

Rows = Float[np.ndarray, "n d"]
PerPair = Float[np.ndarray, " n"]
Before = TypeVar("Before")
After = TypeVar("After")


class ReplayError(UserError):
    """A step that cannot be replayed; the message says why and what to choose."""


@dataclass(frozen=True)
class Pull:
    """The effect of one objective on the embeddings of a batch."""

    kind: str
    label: str  # Its name for people.
    loss: float
    losses: PerPair  # Of each pair; their mean is the loss.
    image: Rows  # Gradient on every unit image embedding, without what only stretches it.
    text: Rows  # The same of the texts.
    agreement: float  # Cosine of this gradient, images and texts together, with that of the run's own objective.


@dataclass(frozen=True)
class ReplayedStep:
    """The update that led to `step`; row k of every member is pair k of its batch."""

    run: int  # Id.
    name: str
    step: int  # Updates made after it.
    began: int  # Step of the checkpoint from which it was replayed; 0 may be the start of the run.
    verified: int  # Step of the next checkpoint, which the replay came to bit by bit.
    loss: float  # Of the update, as the run had it.
    logged: float | None  # The loss in the run's curves; None where this step was not logged.
    gradient_norm: float  # Of all weights, before clipping.
    learning_rate: float
    rows: Int[np.ndarray, " n"]  # Places of the pairs in the training split.
    captions: tuple[str, ...]
    paths: tuple[str, ...]
    before: tuple[Rows, Rows]  # Unit images and texts as the update saw them.
    after: tuple[Rows, Rows]  # The same crops and texts once the update was made.
    pulls: tuple[Pull, ...]  # Of the run's own objective, then of those compared.
    # Suspected false negatives: both places, weight, cosine, reason.
    likely: tuple[tuple[int, int, float, float, str], ...]


def replay(
    workspace: Workspace, run_id: int, step: int, *, compare: Sequence[str] = COMPARED, progress: Progress
) -> ReplayedStep:
    """Replay the update that led to `step`, and continue to the next checkpoint to compare every bit.

    Args:
        step: 1 is the first update; the curves' value at this step is the loss of this update.
        compare: Kinds of objectives of image-text pairs, with their defaults.
        progress: Told the share of the updates made; may raise to cancel.

    Raises:
        ReplayError: No such step, no checkpoint to compare with, other data, or other bits at the checkpoint.
    """
    run_row = workspace.runs.get(run_id)
    compared = _compared(compare)
    run = workspace.runs.config_of(run_row.id)
    check_step(run_row, run, step)
    if not run.objective.compares_pairs:
        raise ReplayError(f"{run_row.name} learns words: there is no matrix of pairs to replay.")

    def pulls_of(training: TrainingSession, batch: Batch) -> tuple[tuple[Rows, Rows], tuple[Pull, ...]]:
        return _pulls(training, batch, compared)

    made = repeated(workspace, run_row, step, pulls_of, embedded, progress)
    pairs, update, (before, pulls) = made.state.splits.train, made.update, made.before
    assert made.batch.rows is not None
    rows = made.batch.rows.numpy()
    return ReplayedStep(
        run=run_row.id,
        name=run_row.name,
        step=step,
        began=made.state.began,
        verified=made.state.verified,
        loss=update.loss,
        logged=made.logged,
        gradient_norm=update.gradient_norm,
        learning_rate=update.learning_rate,
        rows=rows,
        captions=tuple(pairs.captions[index] for index in rows),
        paths=tuple(pairs.paths[index] for index in rows),
        before=before,
        after=made.after,
        pulls=pulls,
        likely=tuple(suspected(made.state.training.method, before, rows, pairs)),
    )


@dataclass(frozen=True)
class RepeatedUpdate(Generic[Before, After]):
    """An update that was made again up to a checkpoint of equal bits, and what was measured on both sides of it."""

    state: ReplayState  # Its training, at the checkpoint by now.
    batch: Batch  # Of the update.
    update: Update  # What it gave.
    before: Before  # Measured with the weights that it found.
    after: After  # Measured with those that it made.
    logged: float | None  # The loss in the run's curves; None where this step was not logged.


def repeated(
    workspace: Workspace,
    run_row: RunRow,
    step: int,
    before: Callable[[TrainingSession, Batch], Before],
    after: Callable[[TrainingSession, Batch], After],
    progress: Progress,
) -> RepeatedUpdate[Before, After]:
    """Make the update that led to `step` again, measure around it, and go on to the next checkpoint, which must agree.

    Raises:
        ReplayError: As `replay`.
    """
    state = replay_state(workspace, run_row, step - 1, step, progress)
    training, total = state.training, max(1, state.verified - state.began)

    def advance(until: int) -> None:
        while training.step < until:
            progress((training.step - state.began) / total, f"Making update {training.step + 1:,} again")
            if not training.update().made:
                raise ReplayError(f"Update {training.step + 1:,} has no finite loss or gradient; it was not applied.")

    advance(step - 1)
    batch = training.batch()
    measured = before(training, batch)
    update = training.update(batch)
    moved = after(training, batch)
    advance(state.verified)
    assert_same(training, state.target, run_row)
    progress(1.0, "")
    steps, values, _ = workspace.results.series(run_row.id, "train/loss")
    logged = [float(value) for at, value in zip(steps, values, strict=True) if at == step]
    return RepeatedUpdate(state, batch, update, measured, moved, logged[-1] if logged else None)


def record_of(replayed: ReplayedStep) -> ReplayRecord:
    """Return the stored record of a replay."""
    return ReplayRecord(
        step=replayed.step,
        began=replayed.began,
        verified=replayed.verified,
        loss=replayed.loss,
        captions=replayed.captions,
        paths=replayed.paths,
        labels=tuple(pull.label for pull in replayed.pulls),
        losses=np.array([pull.losses for pull in replayed.pulls]),
        agreements=tuple(pull.agreement for pull in replayed.pulls),
        before=replayed.before,
        after=replayed.after,
        likely=replayed.likely,
        gradients=np.stack(
            [np.linalg.norm(rows, axis=1) for rows in (replayed.pulls[0].image, replayed.pulls[0].text)]
        ),
    )


def _compared(kinds: Sequence[str]) -> list[Any]:
    every: Sequence[Any] = config.choices(config.Objective)
    comparable = {objective.kind: objective for objective in every if objective.towers == "both"}
    for kind in kinds:
        if kind not in comparable:
            raise ReplayError(f"{kind!r} compares no images with texts. Choose among {', '.join(comparable)}.")
    return [comparable[kind]() for kind in dict.fromkeys(kinds)]


def check_step(run_row: RunRow, run: config.Run, step: int) -> None:
    """Raise an error unless the run learns from image-text pairs or words, and has made the update.

    Raises:
        ReplayError: It does not, or has not.
    """
    if not (run.objective.compares_pairs or isinstance(run.objective, config.Word2Vec)):
        raise ReplayError(
            f"{run_row.name} ({run.objective.label}) compares no images with texts, so there is no matrix to replay. "
            "Choose a run of image-text pairs, or of word2vec."
        )
    if not 1 <= step <= run_row.step:
        raise ReplayError(
            f"{run_row.name} has made {run_row.step:,} updates. Choose a step from 1 to {run_row.step:,}."
        )


@dataclass(frozen=True)
class ReplayState:
    """The training of a run before some update, and the checkpoint that its replay must come to."""

    run: config.Run
    training: TrainingSession  # At step `began`.
    sizes: Architecture  # What its towers were built from.
    splits: data.DataSplits
    tokenizer: AnyTokenizer
    began: int  # Step of the newest checkpoint before the update; 0 may be the start of the run.
    verified: int  # Step of `target`.
    target: checkpoint.Checkpoint


def replay_state(workspace: Workspace, run_row: RunRow, most: int, until: int, progress: Progress) -> ReplayState:
    """Return the training at its newest checkpoint up to step `most` or at its start.

    Args:
        most: Updates that the checkpoint to begin with may have.
        until: Updates that the checkpoint to compare with has at least.

    Raises:
        ReplayError: No checkpoint at or after `until`, other data, or no state to begin with.
    """
    folder = run_row.folder / "checkpoints"
    verified = min((saved for saved in checkpoint.steps(folder) if saved >= until), default=None)
    if verified is None:
        raise ReplayError(
            f"{run_row.name} has no checkpoint at or after step {until:,} yet, so a replay could not be verified. "
            "Choose an earlier step, or train the run further."
        )
    target = checkpoint.load(folder / f"step_{verified:06d}")
    _compute_as_trained(run_row, verified)
    run = workspace.runs.config_of(run_row.id)
    where, sizes = device.choose(run.device), read_architecture(run.model, run_row.folder)
    report = lambda share, note: progress(0.0, note)  # noqa: E731
    splits = load_splits(run, sizes, workspace.folder, report, facts=run_row.facts)
    pairs = splits.train
    if run_row.facts.get("fingerprint", pairs.fingerprint) != pairs.fingerprint:
        raise ReplayError(
            f"The images, captions or labels of {pairs.name} have changed since {run_row.name} was trained. Put them "
            "back."
        )
    file = run_row.folder / "tokenizer.json"
    text = untrusted_files.read_text(file, untrusted_files.MOST_TOKENIZER) if file.exists() else target.tokenizer
    tokenizer = read_tokenizer(text)
    check_run(
        sizes, target.averaged().weights, vocabulary=tokenizer.size, towers=run.objective.towers, source=run_row.name
    )
    training = TrainingSession(run, pairs, tokenizer, where, built_from=sizes, adapter=kept_adapter(run_row.folder))
    ranks = workspace.runs.ranks_of(run_row.id)
    if ranks > 1 and not training.micro_batch:
        training.micro_batch = training.batch_size // ranks  # which has the bits of as many processes
    start = _newest_up_to(run_row, most)
    if start is not None:
        checkpoint.restore(start, modules=training.modules, optimizer=training.optimizer)
        training.step = start.step
    elif run.tuning.start or run.model.is_published:
        raise ReplayError(
            f"{run_row.name} began with trained weights and keeps no checkpoint up to step {most:,}. Choose a "
            "later step."
        )
    return ReplayState(run, training, sizes, splits, tokenizer, training.step, verified, target)


def _compute_as_trained(run_row: RunRow, step: int) -> None:
    """Take as many threads as the session that made the update to `step` had: sums of other parts have other bits."""
    before = [
        session
        for session in sessions_of(run_row.facts)
        if isinstance(session.get("step"), int) and session["step"] < step
    ]
    threads = before[-1].get("threads") if before else None
    if isinstance(threads, int) and 1 <= threads <= MOST_THREADS:
        torch.set_num_threads(threads)


def _newest_up_to(run_row: RunRow, most: int) -> checkpoint.Checkpoint | None:
    folder = run_row.folder / "checkpoints"
    for step in checkpoint.steps(folder):
        if step <= most:
            try:
                return checkpoint.load(folder / f"step_{step:06d}")
            except checkpoint.DamagedCheckpoint:
                continue
    return None


def embedded(training: TrainingSession, batch: Batch) -> tuple[Rows, Rows]:
    """Embed the batch with copies of the modules, so that batch norm statistics and generators stay unchanged."""
    towers, method = copy.deepcopy(training.towers).train(), copy.deepcopy(training.method).train()
    devices = [training.device] if training.device.type == "cuda" else []
    with torch.no_grad(), torch.random.fork_rng(devices), device.autocast(training.device):
        image, text = method.embed(towers, batch)
    return image.float().cpu().numpy(), text.float().cpu().numpy()


def _pulls(
    training: TrainingSession, batch: Batch, compared: Sequence[Any]
) -> tuple[tuple[Rows, Rows], tuple[Pull, ...]]:
    """Return the embeddings before the update, and each objective's effect on them; float64."""
    before = embedded(training, batch)
    trained = pairs_method(copy.deepcopy(training.method))
    answers = trained.answers_of(batch, training.device)
    others = (pairs_method(methods.build(choice)) for choice in compared if choice != trained.choice)
    reference: Tensor | None = None
    pulls = []
    for method in (trained, *(other.to(training.device) for other in others)):
        leaves = [torch.from_numpy(rows.astype(np.float64)).to(training.device).requires_grad_() for rows in before]
        loss = method.loss(*leaves, answers=answers)
        gradients = torch.autograd.grad(loss, leaves)
        units = [leaf.detach() for leaf in leaves]
        image, text = (g - (g * u).sum(1, keepdim=True) * u for g, u in zip(gradients, units, strict=True))
        flat = torch.cat([image, text]).flatten()
        reference = flat if reference is None else reference
        agreement = torch.nn.functional.cosine_similarity(flat, reference, dim=0)
        losses = pair_losses(method, units[0], units[1], answers).cpu().numpy()
        choice = method.choice
        towards = image.cpu().numpy(), text.cpu().numpy()
        pulls.append(Pull(choice.kind, choice.label, loss.item(), losses, *towards, agreement.item()))
    return before, tuple(pulls)


def pairs_method(method: methods.Method) -> ImageText:
    """Return the method of image-text pairs; others were refused before."""
    assert isinstance(method, ImageText)
    return method


def suspected(
    method: methods.Method, before: tuple[Rows, Rows], rows: Int[np.ndarray, " n"], pairs: data.Pairs
) -> list[tuple[int, int, float, float, str]]:
    """Return suspected false negatives of a batch: both places, weight, cosine, reason.

    Right answers that the run masks are no negatives, and pictures are known by their pixels, as in its loss.
    """
    pairs_of = pairs_method(method)
    drawn = pairs.part(rows, split=pairs.split)
    matching = matching_of(drawn) if pairs_of.matching is None else pairs_of.matching
    at = np.arange(len(rows)) if pairs_of.matching is None else rows
    units = units_of_numbers(matching.images.place[at], matching.texts.place[at])
    right = units.right(np.arange(len(rows)), np.arange(len(rows))) if pairs_of.masks else None
    weights = batches.batch(*before, pairs_of.inv_tau, right)
    return batches.likely_false_negatives(weights, *before, units, masked=pairs_of.masks)


def assert_same(training: TrainingSession, target: checkpoint.Checkpoint, run_row: RunRow) -> None:
    """Raise an error unless weights, buffers and moments equal the checkpoint's, bit by bit.

    Raises:
        ReplayError: They are not.
    """
    mine = {f"{name}.{key}": value for name, m in training.modules.items() for key, value in m.state_dict().items()}
    moments = target.training.get("optimizer")
    moments_replayed, moments_saved = (
        list(_tensors(state.get("state"))) for state in (training.optimizer.state_dict(), moments or {})
    )
    shapes = [[value.shape for value in values] for values in (moments_replayed, moments_saved)]
    fits = mine.keys() == target.weights.keys() and shapes[0] == shapes[1]
    if not fits or any(mine[key].shape != value.shape for key, value in target.weights.items()):
        raise ReplayError(
            f"The checkpoint of step {target.step:,} of {run_row.name} has other weights or moments than its training. "
            "Choose another step."
        )
    pairs = [
        *((mine[key], value) for key, value in target.weights.items()),
        *zip(moments_replayed, moments_saved, strict=True),
    ]
    if not all(torch.equal(a.cpu(), b.cpu()) for a, b in pairs):
        most = max((float((a.cpu().double() - b.double()).abs().max()) for a, b in pairs if a.numel()), default=0.0)
        raise ReplayError(
            f"The replay of {run_row.name} differs from its checkpoint of step {target.step:,} (largest difference "
            f"{most:.2g}), so it would show another step. It was trained on another device, with other threads or "
            "another version of torch: replay it there."
        )


def _tensors(state: Any) -> Iterator[Tensor]:
    if isinstance(state, Tensor):
        yield state
    elif isinstance(state, dict):
        for key in sorted(state):
            yield from _tensors(state[key])
