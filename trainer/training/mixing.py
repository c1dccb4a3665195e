"""A run that trains nothing: it measures and keeps mixes of a model with what was fine-tuned from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from trainer.analysis.interpolation import RULE, best_percent
from trainer.analysis.retrieval import right_answers
from trainer.charts.matching import matching_of
from trainer.checkpoints.mixed_weights import mixed
from trainer.config.objectives.base import SourceRun
from trainer.store import RunLog, Workspace, read_snapshot, snapshot_name
from trainer.training.control import ControlFlags
from trainer.training.metric_logger import MetricLogger
from trainer.training.session import FitError, TrainingSession
from trainer.training.starting_point import checkpoint_of, source_of
from trainer.training.text_log import TextLog

if TYPE_CHECKING:
    from torch import Tensor

MIXED = "mixed"
"""Fact of such a run: the rule, and the alpha that it chose, in percent."""


def mix_until_end(
    workspace: Workspace,
    log: RunLog,
    control: ControlFlags,
    text_log: TextLog,
    training: TrainingSession,
    logger: MetricLogger,
) -> tuple[str, str]:
    """Measure and keep every alpha after that of the newest checkpoint; return the status and its reason.

    A step of such a run is alpha in percent.

    Raises:
        FitError: The runs have not the same towers.
        CheckpointError: One has no such checkpoint.
    """
    run = workspace.runs.config_of(log.run.id)
    source = source_of(run)
    assert source is not None, "checked when the run was made"
    start = _weights(workspace, source)
    tuned = [_weights(workspace, SourceRun(name, step)) for name, step in run.tuning.mixed_runs]
    for percent in run.tuning.percents:
        if percent <= training.step:
            continue
        if control.now() == "stop":
            return "stopped", f"Stopped after alpha {training.step / 100:g}; resume continues."
        _load(training, start, tuned, percent / 100)
        logger.visit(percent)
    heldout, reference = logger.own_and_reference
    best = best_percent(*(_answers(log, split, run.tuning.percents) for split in (heldout, reference)))
    log.facts(**{MIXED: {"rule": RULE, "best": best, "runs": run.tuning.mix, "reference": bool(reference)}})
    logger.mark_best(best)
    text_log.say(f"alpha {best / 100:g} is the best by the rule: {RULE}")
    return "finished", ""


def _weights(workspace: Workspace, source: SourceRun) -> dict[str, Tensor]:
    return checkpoint_of(workspace.runs.get(source.run), source.step).averaged().weights


def _load(training: TrainingSession, start: Mapping[str, Tensor], tuned: list[dict[str, Tensor]], alpha: float) -> None:
    """Give the towers and the method of a session the weights of a mix; a method of other parts is the tuned one's."""
    for name, module in (("towers", training.towers), ("method", training.method)):
        parts = [
            {key.removeprefix(f"{name}."): value for key, value in weights.items() if key.startswith(f"{name}.")}
            for weights in (start, *tuned)
        ]
        try:
            module.load_state_dict(mixed(parts[0], parts[1:], alpha))
        except ValueError as error:
            if name == "towers":
                raise FitError(
                    f"The runs have not the same towers ({error} differs), so nothing lies between them. Mix a run "
                    "with what was fine-tuned from it."
                ) from error
            module.load_state_dict(parts[-1])


def _answers(log: RunLog, split: tuple[str, str] | None, percents: tuple[int, ...]) -> dict[int, dict]:
    """Return alpha in percent -> the answers of its snapshot of a split; of no split, none."""
    if split is None:
        return {}
    answers = {}
    for percent in percents:
        name = snapshot_name(dataset=split[0], split=split[1], step=percent)
        snapshot = read_snapshot(log.folder / "snapshots" / name)
        image, text = snapshot.image, snapshot.text
        if image is not None and text is not None:
            answers[percent] = right_answers(image, text, matching_of(snapshot))
    return answers
