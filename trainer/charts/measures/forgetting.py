"""What a fine-tuning has gained on its own data and lost on a reference set: numbers of the chart `forgetting`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

from trainer.analysis.intervals import wilson
from trainer.analysis.retrieval import right_answers
from trainer.analysis.significance import Paired, paired_shares
from trainer.charts import BOTH, ChartError
from trainer.charts.matching import matching_of
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import Progress, Request, Target
from trainer.config.fields import option
from trainer.metrics import recall_name
from trainer.store import RunRow, Workspace, read_snapshot

MEASURES: Final = {
    "image_to_text": recall_name("image_to_text"),
    "text_to_image": recall_name("text_to_image"),
    "zero_shot": "Zero-shot accuracy",
}
HELD: Final = "held_data"
"""Fact of a run: `own` and `reference`, each a data set and split."""


@dataclass(frozen=True)
class ForgettingSettings:
    """The settings of the chart."""

    measure: Literal["image_to_text", "text_to_image", "zero_shot"] = option(
        "image_to_text", "Measure", "What is drawn of both sets.", redraws=True, named=MEASURES
    )
    at: int = option(
        -1, "Step", "Where a line stands, of a mix alpha in percent; -1: nowhere.", control=False, redraws=True, low=-1
    )


@dataclass(frozen=True)
class StepShare:
    """A share of right answers at a step."""

    value: float  # 0 to 1.
    questions: int  # How many distinct ones were asked.
    change: Paired | None = None  # Since the first step, paired by question; None where no snapshots say it.

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the share."""
        return wilson(self.value, self.questions)


@dataclass(frozen=True)
class Course:
    """One data set over the steps of a run: measure -> step -> share."""

    dataset: str
    split: str
    shares: Mapping[str, Mapping[int, StepShare]] = field(default_factory=dict)

    def n(self, measure: str) -> int:
        """Return the questions of a measure; 0 where it was not measured."""
        return next((share.questions for share in self.shares.get(measure, {}).values()), 0)


@dataclass(frozen=True)
class Forgetting:
    """A run over its steps on both sets."""

    run: int
    name: str
    mixes: bool  # Its steps are alphas in percent.
    own: Course
    reference: Course | None  # None where it measures none.
    best: int | None = None  # The alpha that its rule chose, in percent; None without one.
    rule: str = ""

    @property
    def dataset(self) -> str:
        """Of its own data."""
        return self.own.dataset

    @property
    def split(self) -> str:
        """Of its own data."""
        return self.own.split


def course_rows(run: Forgetting) -> list[dict[str, Any]]:
    """Return every share of both sets, each with its interval, and its change since the first step with its own."""
    at = "alpha" if run.mixes else "step"
    rows = []
    for name, course in (("own", run.own), ("reference", run.reference)):
        for measure, shares in course.shares.items() if course else ():
            for step, share in shares.items():
                low, high = share.interval
                change = share.change or Paired(math.nan, math.nan, math.nan, 0)
                where = step / 100 if run.mixes else step
                facts = {"run": run.run, "name": run.name, "set": name, "measure": measure, at: where}
                numbers = {"share": share.value, "low": low, "high": high, "n": share.questions}
                changes = {"change": change.difference, "change_low": change.low, "change_high": change.high}
                rows.append(facts | numbers | changes)
    return rows


def measure_run(
    workspace: Workspace, target: Target, _request: Request, _settings: ForgettingSettings, progress: Progress
) -> Forgetting:
    """Return both courses of a run.

    Raises:
        ChartError: It was not evaluated on image-text pairs.
    """
    row = workspace.runs.get(target.run)
    held = row.facts.get(HELD)
    if not isinstance(held, dict):
        preferred = choose_snapshot(workspace, row)
        held = {"own": [preferred.dataset, preferred.split]}
    course = _course(workspace, row, held.get("own"), progress)
    if course is None:
        raise ChartError(f"{row.short_name} was not evaluated on images and texts. {BOTH}")
    mixed = row.facts.get("mixed")
    best, rule = (mixed.get("best"), mixed.get("rule", "")) if isinstance(mixed, dict) else (None, "")
    mixes = bool(workspace.runs.config_of(row.id).tuning.mix)
    return Forgetting(
        row.id, row.short_name, mixes, course, _course(workspace, row, held.get("reference"), progress), best, rule
    )


def _course(workspace: Workspace, row: RunRow, held: object, progress: Progress) -> Course | None:
    """Return a data set over the steps of a run; None where nothing was measured of it."""
    if not (isinstance(held, list) and len(held) == 2):
        return None
    dataset, split = map(str, held)
    shares: dict[str, dict[int, StepShare]] = {}
    for evaluation in workspace.results.answers(row.id):
        if (evaluation.dataset, evaluation.split) != (dataset, split) or evaluation.question is None:
            continue
        for measure in MEASURES:
            name = "zero_shot_acc1" if measure == "zero_shot" else f"{measure}_R@1"
            value = evaluation.metrics.get(name, math.nan)
            if math.isfinite(value):
                n = evaluation.question.asked(name)
                shares.setdefault(measure, {})[evaluation.step] = StepShare(value, n)
    for measure, changes in _changes(workspace, row, dataset, split, progress).items():
        by_step = shares.setdefault(measure, {})
        for step, (value, change) in changes.items():
            by_step[step] = StepShare(value, change.n, change)
    ordered = {measure: dict(sorted(by_step.items())) for measure, by_step in shares.items()}
    return Course(dataset, split, ordered) if ordered else None


def _changes(
    workspace: Workspace, row: RunRow, dataset: str, split: str, progress: Progress
) -> dict[str, dict[int, tuple[float, Paired]]]:
    """Return direction -> step -> share and its change since the first step, of the snapshots of a split."""
    listed = [each for each in workspace.results.snapshots(row.id) if (each.dataset, each.split) == (dataset, split)]
    listed.sort(key=lambda each: each.step)
    first: dict[str, np.ndarray] = {}
    changes: dict[str, dict[int, tuple[float, Paired]]] = {}
    for index, each in enumerate(listed):
        progress(index / len(listed), f"{row.short_name}: {dataset}, step {each.step:,}")
        snapshot = read_snapshot(each.folder)
        if snapshot.image is None or snapshot.text is None:
            return {}
        answers = right_answers(snapshot.image, snapshot.text, matching_of(snapshot))
        first = first or answers
        for name, right in answers.items():
            if len(right) == len(first[name]):
                share = float(np.mean(right)), paired_shares(first[name], right)
                changes.setdefault(name, {})[each.step] = share
    return changes
