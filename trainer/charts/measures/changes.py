"""One snapshot against others of the same pairs: what the chart `changes` draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal
from weakref import WeakValueDictionary

import numpy as np
from msgspec import Struct

from trainer import prompt_suites
from trainer.analysis.class_prompts import captioned
from trainer.analysis.progress import Progress, part_of
from trainer.charts import ChartError
from trainer.charts.class_task import ClassTexts
from trainer.charts.mispairs import Mispairs, mispairs
from trainer.charts.opened_snapshot import open_targets
from trainer.charts.pair_changes import MEASURES, Changes, changes, fitting_suites, with_verdicts
from trainer.charts.spec import Records, Request, Target, joined
from trainer.config.fields import option
from trainer.errors import UserError
from trainer.store import Workspace

AXES: Final = {
    "both": "Both ranks",
    "image_rank": "Caption rank",
    "text_rank": "Image rank",
    "margin": "Standardized margin",
}
"""What is compared pair by pair; `both` is the geometric mean of the ranks both ways."""


@dataclass(frozen=True)
class ChangesSettings:
    """The settings of the chart."""

    measure: Literal["both", "image_rank", "text_rank", "margin"] = option(
        "both", "Metric", "The measure of B drawn over that of A.", redraws=True, named=AXES
    )
    worst: float = option(
        0.1,
        "Low-ranked share",
        "Share of each run's pairs that count as low-ranked.",
        low=0.001,
        high=0.5,
        redraws=True,
    )
    k: int = option(10, "Neighbors", "Neighbors of each pair.", low=1, high=100)
    suite: str = option(
        "", "Class prototypes", "A prompt suite that defines the classes instead of the captions.", control=False
    )


class ChangesData(Struct, frozen=True):
    """The first snapshot against each of the others."""

    found: tuple[Changes, ...]  # One comparison for each of the others that can be compared.
    places: tuple[int, ...]  # The place of each of the others among the targets.
    plain: tuple[Changes, ...]  # The same with verdicts by captions: what is kept while it is shown.
    suites: tuple[str, ...] = ()  # Prompt suites that have classes of the data.
    problems: tuple[str, ...] = ()  # Why others cannot be compared.


_ALIVE: Final[WeakValueDictionary[object, Changes]] = WeakValueDictionary()
"""Comparisons that a shown chart holds: different predictions need no other ranks."""


def sentences(_workspace: Workspace, _request: Request, settings: ChangesSettings) -> tuple[str, ...]:
    """Return the classes of the prompt suite in its templates; empty without a suite.

    Raises:
        ChartError: There is no such suite.
    """
    if not settings.suite:
        return ()
    names, templates = _suite(settings.suite)
    return tuple(captioned(template, label) for template in templates for label in names)


def _suite(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    suites = prompt_suites.prompt_suites()
    if name not in suites:
        raise ChartError(f"There is no prompt suite {name!r}. Choose one of {', '.join(suites)}.")
    return tuple(dict.fromkeys(suites[name].classes)), tuple(dict.fromkeys(suites[name].templates))


def compare(workspace: Workspace, request: Request, settings: ChangesSettings, progress: Progress) -> ChangesData:
    """Compare the first target with each of the others, on the pairs in both.

    Raises:
        ChartError: None can be compared; says why.
    """
    first, *others = request.targets
    compared, plain, indices, problems = [], [], [], list[UserError]()
    for index, other in enumerate(others, start=1):
        try:
            part = part_of(progress, index - 1, len(others))
            unlabeled = _plain(workspace, request, (first, other), settings.k, part)
            texts = _texts(workspace, request, (first, other), settings.suite) if settings.suite else None
            compared.append(with_verdicts(workspace, unlabeled, texts) if texts else unlabeled)
            plain.append(unlabeled)
            indices.append(index)
        except UserError as problem:
            problems.append(problem)
    if not compared:
        raise joined(problems)
    notes = tuple(map(str, problems))
    return ChangesData(tuple(compared), tuple(indices), tuple(plain), fitting_suites(workspace, plain[0]), notes)


def _plain(workspace: Workspace, request: Request, pair: tuple[Target, Target], k: int, progress: Progress) -> Changes:
    opened = open_targets(workspace, replace(request, targets=pair))
    chosen, key = [each.row for each in opened], (*(each.key for each in opened), k)
    if (compared := _ALIVE.get(key)) is None:
        a, b = ((row.run, row.step) for row in chosen)
        data, split = chosen[0].dataset, chosen[0].split
        compared = _ALIVE[key] = changes(workspace, a, b, dataset=data, split=split, k=k, progress=progress)
    return compared


def _texts(
    workspace: Workspace, request: Request, pair: tuple[Target, Target], suite: str
) -> tuple[ClassTexts, ClassTexts]:
    names, templates = _suite(suite)
    first, second = (
        ClassTexts(
            workspace.runs.get(target.run).id,
            target.step or 0,
            1.0,
            names,
            templates,
            request.vectors_of(target).reshape(len(templates), len(names), -1),
        )
        for target in pair
    )
    return first, second


def bad_pairs(compared: Changes, settings: ChangesSettings) -> Mispairs | None:
    """Return the badly ranked pairs; None if a run lacks images or texts."""
    return mispairs(compared, share=settings.worst) if "text_rank_a" in compared.values else None


def mean_of(changes: Changes, key: str) -> float:
    """Return the mean of a measure over what it is counted by; NaN where it was not measured."""
    numbers = changes.distinct(key) if key in changes.values else np.empty(0)
    numbers = numbers[np.isfinite(numbers)]
    return float(numbers.mean()) if len(numbers) else float("nan")


def values(data: ChangesData, settings: ChangesSettings) -> list[dict[str, Any]]:
    """Return facts, then each measure's mean and median over the pairs, then the number of mispairs."""
    return [_values(changes, bad_pairs(changes, settings)) for changes in data.found]


def _values(changes: Changes, bad: Mispairs | None) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for letter, side in (("a", changes.a), ("b", changes.b)):
        facts |= {f"run_{letter}": side.run, f"name_{letter}": side.name, f"step_{letter}": side.step}
    facts |= {"dataset": changes.a.dataset, "split": changes.a.split, "n": changes.n, "pairs": changes.pairs}
    facts |= {"pictures": changes.units.count("picture"), "captions": changes.units.count("caption")}
    facts |= {name: getattr(changes, name) for name in ("k", "modality", "verdict_by", "sampled")}
    for key in changes.values:
        numbers = changes.distinct(key)
        finite = numbers[np.isfinite(numbers)]
        facts[f"{key}_mean"] = mean_of(changes, key)
        facts[f"{key}_median"] = float(np.median(finite)) if len(finite) else float("nan")
    if bad is not None:
        # Pictures.
        facts |= {"bad_in_both": bad.pictures["both"], "bad_only_in_a": bad.pictures["only_a"]}
        facts |= {"bad_only_in_b": bad.pictures["only_b"], "bad_in_both_by_chance": bad.expected}
    return facts


def records(data: ChangesData, settings: ChangesSettings) -> Records:
    """Return one row per pair: its facts, every measure, and whether it is a mispair."""
    keys = list(dict.fromkeys(key for changes in data.found for key in changes.values))
    header = ("a", "step_a", "b", "step_b", "row", "id", "caption", "label", "path", *keys, "mispair")
    return header, [line for changes in data.found for line in _records(changes, keys, bad_pairs(changes, settings))]


def _records(changes: Changes, keys: list[str], bad: Mispairs | None) -> Iterator[tuple[Any, ...]]:
    kind = np.full(changes.n, "", dtype=object)
    if bad is not None:
        for name, positions in (("both", bad.both), ("only A", bad.only_a), ("only B", bad.only_b)):
            kind[positions] = name
    items, ids = changes.items, np.asarray(changes.items.id)
    about = (changes.a.name, changes.a.step, changes.b.name, changes.b.step)
    for position, row in enumerate(changes.rows.tolist()):
        pair = (row, ids[row].item(), items.caption[row], items.label[row], items.path[row])
        yield *about, *pair, *(_cell(changes, key, position) for key in keys), kind[position]


def _cell(changes: Changes, key: str, position: int) -> float | int | str:
    value = float(changes.values[key][position]) if key in changes.values else float("nan")
    if np.isnan(value):
        return ""
    return int(value) if MEASURES[key].digits == 0 else value
