"""The accuracy of each prompt template on each class, and of ensembles of templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from trainer.analysis.progress import Progress
from trainer.charts.class_task import ClassWords, texts_of
from trainer.charts.marks import HeatMap, NumberRow, NumberTable, Panel, heading_row, named_map
from trainer.charts.measure import facts_of
from trainer.charts.measures.prompts import Mixture, PromptRun, mixture, prompts
from trainer.charts.spec import Chart, PerRun, Records, Request, Target, per_run
from trainer.config.fields import option
from trainer.store import Workspace

METHOD: Final = """\
Each template classifies alone; the ensemble is the normalized mean of the class vectors of all templates, weighted \
where weights are given. A difference is in points of accuracy above or below the mean ensemble, class by class.

Confusion: images of a class (row) that the weighted ensemble predicts as another (column), as shares of the row."""

MEAN_NOTE: Final = "The mean ensemble weighs all templates equally."


@dataclass(frozen=True)
class PromptSettings(ClassWords):
    """The labels and templates, the templates' weights, and the value of the cells."""

    weights: tuple[float, ...] = option(
        (),
        "Weights",
        "Weight of each template in the ensemble; empty: equal weights.",
        low=0.0,
        redraws=True,
        control=False,
    )
    value: Literal["difference", "accuracy"] = option(
        "difference", "Cells", "Points above or below the mean ensemble, or accuracy.", redraws=True, control=False
    )


def compute(
    workspace: Workspace, target: Target, request: Request, _settings: PromptSettings, progress: Progress
) -> PromptRun:
    """Return `prompts` of one target, with the request's class vectors."""
    options: dict[str, Any] = {"dataset": request.dataset, "split": request.split, "progress": progress}
    return prompts(workspace, texts_of(request, target), index=request.targets.index(target), **options)


def draw(data: PerRun[PromptRun], settings: PromptSettings) -> Panel:
    """Draw each run's templates by class and its confusion matrix, then the ensembles' accuracies."""
    mixed = [_weighted(run, settings) for run in data.found]
    maps = [_maps(run, weighted, settings) for run, weighted in zip(data.found, mixed, strict=True)]
    # The names of templates are sentences: only a row of its own has room for them.
    # A single template is its own ensemble: every difference is zero.
    differ = [matrix for (matrix, _), run in zip(maps, data.found, strict=True) if len(run.templates) > 1]
    matrices = differ if settings.value == "difference" else [matrix for matrix, _ in maps]
    rows: list[tuple[HeatMap | NumberTable, ...]] = [*((matrix,) for matrix in matrices), tuple(m for _, m in maps)]
    names = " · ".join(f"{run.name}: n = {run.n:,} of {run.pairs:,}, class from {run.column}" for run in data.found)
    single = len(matrices) < len(maps)
    notes = ("One template: there is no ensemble to compare it with." if single else MEAN_NOTE,)
    return Panel(title="Prompt templates and classes", head=(names,), rows=(*rows, (_table(data, mixed),)), notes=notes)


def _weighted(run: PromptRun, settings: PromptSettings) -> Mixture:
    return mixture(run, settings.weights) if settings.weights else run.mean


def _maps(run: PromptRun, weighted: Mixture, settings: PromptSettings) -> tuple[HeatMap, HeatMap]:
    difference = settings.value == "difference"
    accuracy = np.column_stack([run.overall, run.accuracy])
    base = np.concatenate([[run.mean.accuracy], run.mean.by_class])
    cells = 100 * (accuracy - base if difference else accuracy)
    reach = max(float(np.nanmax(np.abs(cells), initial=0.0)), 2.0)
    classes, unit = ("All", *run.labels), "points vs. ensemble" if difference else "accuracy in percent"
    weights = settings.weights or (1.0,) * len(accuracy)
    weighted_names = (f"{weight:g} × {template}" for weight, template in zip(weights, run.templates, strict=True))
    templates = tuple(weighted_names) if len({*weights}) > 1 else run.templates
    cut: dict[str, Any] = {"x_ticks": _ticks(classes, 16), "y_ticks": _ticks(templates, 32)}
    ends: dict[str, Any] = {"low": -reach, "high": reach} if difference else {"low": 0.0, "high": 100.0}
    key, title = f"templates-{run.index}", f"{run.name}, confusion"
    matrix = named_map(key, run.name, cells, templates, classes, unit=unit, centered=difference, **cut, **ends)
    shares = 100 * weighted.confusion / np.maximum(weighted.confusion.sum(axis=1, keepdims=True), 1)
    cut = dict.fromkeys(("x_ticks", "y_ticks"), _ticks(run.labels, 16))
    ends = {"low": 0.0, "high": 100.0, "unit": "percent of the class"}
    return matrix, named_map(f"confusion-{run.index}", title, shares, run.labels, run.labels, **cut, **ends)


def _ticks(names: Sequence[str], most: int) -> tuple[tuple[float, str], ...]:
    cut = (name if len(name) <= most else f"{name[: most - 1].rstrip()}…" for name in names)
    return tuple((float(index), name) for index, name in enumerate(cut))


def _table(data: PerRun[PromptRun], mixed: Sequence[Mixture]) -> NumberTable:
    both = list(zip(data.found, mixed, strict=True))

    def line(label: str, hint: str, read: Any) -> NumberRow:
        return NumberRow(label, hint, tuple(100 * float(read(run, weighted)) for run, weighted in both), 1)

    lines = [
        line("Mean ensemble", "All templates weighted equally.", lambda run, _one: run.mean.accuracy),
        line("Weighted ensemble", "By the weights that are set.", lambda _run, weighted: weighted.accuracy),
        line("Best template", "Alone.", lambda run, _one: run.overall.max()),
        heading_row("By class, weighted ensemble"),
    ]
    labels = data.found[0].labels
    lines += [line(name, "", lambda _run, weighted, c=index: weighted.by_class[c]) for index, name in enumerate(labels)]
    return NumberTable("numbers", "Accuracy (%)", tuple(run.name for run in data.found), tuple(lines))


def values(data: PerRun[PromptRun], settings: PromptSettings) -> list[dict[str, Any]]:
    """Return one dictionary per run: facts, and the accuracies of ensembles and of every template alone."""
    return [
        facts_of(run, "n", "pairs")
        | {"mean_ensemble": run.mean.accuracy, "weighted_ensemble": _weighted(run, settings).accuracy}
        | dict(zip(run.templates, run.overall.tolist(), strict=True))
        for run in data.found
    ]


def records(data: PerRun[PromptRun], settings: PromptSettings) -> Records:
    """Return one row per run, template (none: an ensemble) and class (none: all): accuracy, and difference to mean."""
    header = ("run", "name", "objective", "step", "dataset", "split", "n", "pairs", "what", "template", "weight")
    lines: list[tuple[Any, ...]] = []
    for run in data.found:
        facts = (run.run, run.name, run.objective, run.step, run.dataset, run.split, run.n, run.pairs)
        base = [run.mean.accuracy, *run.mean.by_class.tolist()]
        weights = settings.weights or (1.0,) * len(run.templates)
        ensembles = [
            ("mean_ensemble", None, None, run.mean),
            ("weighted_ensemble", None, None, _weighted(run, settings)),
        ]
        shares_of: list[tuple[Any, ...]] = [
            (*ensemble[:3], [ensemble[3].accuracy, *ensemble[3].by_class.tolist()]) for ensemble in ensembles
        ]
        for index, template in enumerate(run.templates):
            shares_of.append(
                ("template", template, weights[index], [run.overall[index], *run.accuracy[index].tolist()])
            )
        for *what, shares in shares_of:
            for label, value, mean in zip((None, *run.labels), shares, base, strict=True):
                lines.append((*facts, *what, label, float(value), float(value - mean)))
    return (*header, "class", "value", "difference"), lines


CHART: Final = Chart(
    view="prompts",
    label="Templates",
    question="What does each prompt template do to each class?",
    cost="Grows with the images times classes and templates; images are drawn where that exceeds 2e11 products.",
    method=METHOD,
    settings=PromptSettings,
    compute=per_run(compute),
    draw=draw,
    values=values,
    records=records,
)
