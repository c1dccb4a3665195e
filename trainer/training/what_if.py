"""What if: an update of a run made again without some pairs, or with another objective, and continued.

Two continuations start from the same bits. The real one goes on to the next checkpoint and must come to its very bits;
the other one has the same order, crops, learning rates and random numbers, so that whatever differs in the end comes
from the change. The difference of their recalls is exact: it has no noise of seeds, and is about this one run.
"""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Int
from torch import nn

from trainer import config
from trainer.analysis.progress import Progress
from trainer.analysis.retrieval import question_ranks
from trainer.checkpoints import checkpoint
from trainer.data.pairs import Pairs
from trainer.evaluation import HeldOut
from trainer.methods import Batch
from trainer.methods.pair_losses import pair_losses
from trainer.store import RunRow, Workspace
from trainer.store.what_if_files import WhatIfRecord
from trainer.training.replay import (
    ReplayError,
    ReplayState,
    assert_same,
    check_step,
    embedded,
    pairs_method,
    replay_state,
    suspected,
)
from trainer.training.session import TrainingSession

SUSPECTED: Final = "suspected"
HARDEST: Final = "hardest"
UPDATES: Final = 10
"""Updates that are made both ways, unless another number is asked for."""
_MEASURED: Final = 4
"""Measurements after the updates have begun to differ."""
_REAL: Final = 0.6
"""Share of the progress for the real continuation, which goes on to a checkpoint."""


@dataclass(frozen=True)
class UpdateChange:
    """What is different.

    Attributes:
        without: Places of pairs in the training split; `suspected`: one pair of each two suspected false negatives
            of the update's batch; `hardest:N`: its N pairs of the largest loss. They are left out of every update.
        objective: Kind of another objective of image-text pairs; empty for the run's own.
        fields: Fields of the objective as `name=value`, such as `retrieval_share=0.5`.
    """

    without: tuple[str, ...] = ()
    objective: str = ""
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class _State:
    """Everything that an update depends on, copied."""

    modules: dict[str, dict[str, Any]]
    optimizer: dict[str, Any]
    generators: dict[str, Any]


@dataclass(frozen=True)
class _Measured:
    """Image to text and text to image ranks of the distinct held-out pictures and captions."""

    image_to_text: Int[np.ndarray, " n"]
    text_to_image: Int[np.ndarray, " m"]

    @property
    def recalls(self) -> tuple[float, float]:
        return float((self.image_to_text == 1).mean()), float((self.text_to_image == 1).mean())


def what_if(
    workspace: Workspace, run: int, step: int, change: UpdateChange, *, updates: int = UPDATES, progress: Progress
) -> WhatIfRecord:
    """Return both continuations from the state before the update that led to `step`, measured on held-out pairs.

    Args:
        workspace: Where the run lives.
        run: Its number.
        step: Of the first update that differs; 1 is the first.
        change: What is different.
        updates: How many are made both ways.
        progress: Told the share done; may raise to cancel.

    Raises:
        ReplayError: Nothing changes, or no such step, no checkpoint after the updates, other data, other bits.
        StoreError: No such run.
    """
    row = workspace.runs.get(run)
    own = workspace.runs.config_of(row.id)
    check_step(row, own, step)
    other = _changed_run(own, change)
    last = step - 1 + updates
    if updates < 1 or last > row.step:
        raise ReplayError(
            f"{row.name} has made {row.step:,} updates, so from step {step:,} on {row.step - step + 1:,} can be "
            f"compared. Choose from 1 to {row.step - step + 1:,}."
        )
    state = replay_state(workspace, row, step - 1, last, progress)
    training, watched = state.training, _watched(state, row)
    places = sorted({step - 1, *np.linspace(step - 1, last, min(updates, _MEASURED) + 1).round().astype(int).tolist()})
    whole = max(1, state.verified - state.began)

    def again(at: int) -> None:
        progress(_REAL * (at - state.began) / whole, f"Making update {at:,} again")

    def otherwise(at: int) -> None:
        progress(_REAL + (1 - _REAL) * (at - step) / updates, f"Making update {at:,} with the change")

    _advance(training, step - 1, again)
    begun = _state_of(training)
    left_out = _left_out(state, change.without)
    was = _continued(training, watched, places, again)
    _advance(training, state.verified, again)
    assert_same(training, state.target, row)
    changed = _begin(other, state, begun, step - 1)
    would = _continued(changed, watched, places, otherwise, left_out=left_out)
    progress(1.0, "")
    ends = was[-1].image_to_text == 1, would[-1].image_to_text == 1
    columns = [tuple(one.recalls[side] for one in measured) for side in (0, 1) for measured in (was, would)]
    return WhatIfRecord(
        step=step,
        updates=updates,
        change=_words(change, len(left_out)),
        left_out=tuple(left_out.tolist()),
        began=state.began,
        verified=state.verified,
        dataset=watched.pairs.name,
        split=watched.pairs.split,
        n=len(was[-1].image_to_text),
        n_back=len(was[-1].text_to_image),
        steps=tuple(places),
        was=columns[0],
        would=columns[1],
        was_back=columns[2],
        would_back=columns[3],
        gained=int((ends[1] & ~ends[0]).sum()),
        lost=int((ends[0] & ~ends[1]).sum()),
    )


def _words(change: UpdateChange, left_out: int) -> str:
    named = [re.sub(r"^hardest:(\d+)$", r"the \1 hardest", one) for one in change.without]
    parts = [f"{left_out} pairs left out ({' '.join(named)})"] if named else []
    parts += [f"objective {change.objective}"] if change.objective else []
    return ", ".join([*parts, *change.fields])


def _changed_run(run: config.Run, change: UpdateChange) -> config.Run:
    if not (change.without or change.objective or change.fields):
        raise ReplayError("Nothing is changed. Leave pairs out, or name another objective.")
    if change.objective:
        every: Sequence[Any] = config.choices(config.Objective)
        known = {one.kind: one for one in every if one.towers == "both"}
        if change.objective not in known:
            raise ReplayError(f"{change.objective!r} compares no images with texts. Choose among {', '.join(known)}.")
        objective = known[change.objective]()
        masks = getattr(run.objective, "mask_duplicates", False)
        run = dataclasses.replace(run, objective=dataclasses.replace(objective, mask_duplicates=masks))
    for field in change.fields:
        name, _, value = field.partition("=")
        run = config.replace(run, f"objective.{name.removeprefix('objective.')}", value)
    config.check(run)
    return run


def _watched(state: ReplayState, row: RunRow) -> HeldOut:
    """Return the first held-out split, whose numbers the curves call `val`."""
    splits = state.splits
    if not splits.heldout:
        raise ReplayError(f"{row.name} holds no pairs out, so there is no recall to compare.")
    pairs: Pairs = next(iter(splits.heldout.values()))
    length = state.sizes.context_length
    return HeldOut(pairs, prefix="val", suite=None, tokenizer=state.tokenizer, context_length=length)


def _left_out(state: ReplayState, without: Sequence[str]) -> Int[np.ndarray, " k"]:
    """Return the places of the pairs in the training split that `without` names.

    Raises:
        ReplayError: No number, or a place that the split does not have.
    """
    found: set[int] = set()
    most = len(state.splits.train)
    for word in without:
        if word == SUSPECTED or word.partition(":")[0] == HARDEST:
            found |= {*_of_the_batch(state, word)}
        elif word.isdecimal() and int(word) < most:
            found.add(int(word))
        else:
            raise ReplayError(
                f"{word!r} is not a pair of the {most:,}. Name pairs by `row` as trainer replay --json prints "
                f"it, or say {SUSPECTED} or {HARDEST}:8."
            )
    if without and not found:
        raise ReplayError("The batch of this update has no suspected false negatives, so nothing would change.")
    return np.array(sorted(found), np.int64)


def _of_the_batch(state: ReplayState, word: str) -> list[int]:
    training = state.training
    batch = training.batch()
    assert batch.rows is not None
    rows = batch.rows.cpu().numpy()
    before = embedded(training, batch)
    if word == SUSPECTED:
        captions = [state.splits.train.captions[row] for row in rows]
        places = [second for _, second, *_ in suspected(training.method, before, captions)]
    else:
        count = word.partition(":")[2]
        if not count.isdecimal() or not int(count):
            raise ReplayError(f"{word!r} names no number of pairs. Say for example {HARDEST}:8.")
        method = copy.deepcopy(pairs_method(training.method))
        units = [torch.from_numpy(side.astype(np.float64)).to(training.device) for side in before]
        losses = pair_losses(method, units[0], units[1], method.groups_of(batch)).cpu().numpy()
        places = np.argsort(-losses, kind="stable")[: int(count)].tolist()
    return [int(rows[place]) for place in places]


def _state_of(training: TrainingSession) -> _State:
    modules = {name: copy.deepcopy(module.state_dict()) for name, module in training.modules.items()}
    return _State(modules, copy.deepcopy(training.optimizer.state_dict()), checkpoint.generators())


def _begin(run: config.Run, state: ReplayState, begun: _State, step: int) -> TrainingSession:
    """Return a session of the changed run in the state of the real one; a new objective's own weights are new."""
    training = TrainingSession(run, state.splits.train, state.tokenizer, state.training.device, built_from=state.sizes)
    training.micro_batch, training.step = state.training.micro_batch, step
    training.towers.load_state_dict(begun.modules["towers"])
    if training.average is not None:
        training.average.towers.load_state_dict(begun.modules.get("average", begun.modules["towers"]))
    if run.objective.kind == state.run.objective.kind:
        training.method.load_state_dict(begun.modules["method"])
    _give_moments(training, state.training, begun)
    checkpoint.restore_generators(begun.generators)
    return training


def _give_moments(training: TrainingSession, real: TrainingSession, begun: _State) -> None:
    """Give each weight the moments of the weight of its name; those of another objective's own weights begin at 0."""
    place = 0
    by_weight: dict[nn.Parameter, dict[str, Any]] = {}
    for group in real.optimizer.param_groups:
        for weight in group["params"]:
            if place in begun.optimizer["state"]:
                by_weight[weight] = begun.optimizer["state"][place]
            place += 1
    mine, theirs = (dict(nn.ModuleDict(one.modules).named_parameters()) for one in (training, real))
    same = training.method.choice.kind == real.method.choice.kind  # type: ignore[union-attr]
    for name, weight in mine.items():
        if name in theirs and theirs[name] in by_weight and (same or name.startswith("towers.")):
            training.optimizer.state[weight] = copy.deepcopy(by_weight[theirs[name]])


def _continued(
    training: TrainingSession,
    watched: HeldOut,
    places: Sequence[int],
    report: Callable[[int], None],
    *,
    left_out: Int[np.ndarray, " k"] | None = None,
) -> list[_Measured]:
    """Make the updates up to the last place, and return what is measured at each."""
    found = []
    for place in places:
        _advance(training, place, report, left_out)
        found.append(_measured(training, watched))
    return found


def _advance(
    training: TrainingSession, until: int, report: Callable[[int], None], left_out: Int[np.ndarray, " k"] | None = None
) -> None:
    while training.step < until:
        report(training.step + 1)
        batch = training.batch()
        if left_out is not None and len(left_out):
            batch = _without(batch, left_out)
        if not training.update(batch).made:
            raise ReplayError(f"Update {training.step + 1:,} has no finite loss or gradient; it was not applied.")


def _without(batch: Batch, left_out: Int[np.ndarray, " k"]) -> Batch:
    assert batch.rows is not None
    kept = ~torch.isin(batch.rows, torch.from_numpy(left_out).to(batch.rows.device))
    if int(kept.sum()) < 2:
        raise ReplayError("Fewer than two pairs of a batch are left. Leave fewer out.")
    members: dict[str, Any] = {
        field.name: value[kept]
        for field in dataclasses.fields(batch)
        if isinstance(value := getattr(batch, field.name), torch.Tensor)
    }
    return dataclasses.replace(batch, **members)


def _measured(training: TrainingSession, watched: HeldOut) -> _Measured:
    devices = [training.device] if training.device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        found = watched.embed(training.measured, training.device)
    assert found.image is not None
    assert found.text is not None
    return _Measured(
        question_ranks(found.image, found.text, watched.matching.texts),
        question_ranks(found.text, found.image, watched.matching.images),
    )
