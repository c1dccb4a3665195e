"""What a generative model of the pictures knows of classes, next to the discriminative run."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from trainer.analysis.intervals import wilson
from trainer.analysis.number_text import signed, signed_ends
from trainer.analysis.significance import holm, mcnemar, paired_shares
from trainer.charts import ChartError
from trainer.charts.marks import (
    ImageRow,
    Mark,
    Marker,
    NumberRow,
    NumberTable,
    Panel,
    RowImage,
    XYPlot,
    axis_over,
    categories,
    run_tone,
)
from trainer.charts.measures.groups import p_text
from trainer.charts.settings import NoSettings
from trainer.charts.spec import Chart, PerRun, Progress, Request, Target, per_run
from trainer.errors import NotYetError
from trainer.metrics import split_label
from trainer.store import Workspace
from trainer.store.generative_results import GenerativeComparison, ReadClasses, read_comparison

METHOD: Final = """\
A gated PixelCNN given the class, y = tanh(W_f * x + V_f h) · σ(W_g * x + V_g h) (van den Oord et al., 2016, \
https://arxiv.org/abs/1606.05328, equation 2 and section 2.3), learns p(x | y) of the run's training pictures, and \
draws pictures of a class number by number. By Bayes' rule it is a classifier: argmax p(x | y) p(y), with p(y) the \
shares of the classes in training. The discriminative classifier is a linear probe on the run's image tower. Both are \
asked of the same held-out pictures. Intervals: Wilson, 95 %; a difference: Newcombe's interval and exact McNemar's p \
(Holm over the classifiers of a plot).

Bits per dimension are exact for PixelCNNs (of the conditional one: of p(x), the sum over its classes), a bound from \
above for the diffusion model; a contrastive tower gives no likelihood. trainer generative RUN trains the generative \
models on the CPU and stores the result that is drawn here.

Caveats: few updates draw blurs that still tell classes apart. A bit per dimension is little said of a class: nearly \
all bits are texture (Theis et al., 2016, https://arxiv.org/abs/1511.01844)."""


class NoModelYetError(ChartError, NotYetError):
    """No generative model was trained next to a run."""

    title = "No generative model yet"


class RunComparison(Struct, frozen=True):
    """The stored comparison of a run."""

    run: int
    name: str
    stored: GenerativeComparison


def of_run(
    workspace: Workspace, target: Target, _request: Request, _settings: NoSettings, _progress: Progress
) -> RunComparison:
    """Return what was trained next to a run.

    Raises:
        NoModelYetError: Nothing was; says the command.
    """
    row = workspace.runs.get(target.run)
    stored = read_comparison(row.folder)
    if stored is None:
        raise NoModelYetError(f"To train one next to {row.short_name}, type trainer generative {row.id}.")
    return RunComparison(row.id, row.short_name, stored)


def draw(data: PerRun[RunComparison], _settings: NoSettings) -> Panel:
    """Draw samples of each class next to training pictures, both classifiers, and the table of all models."""
    rows: list[tuple[Mark, ...]] = []
    for run, index in zip(data.found, data.places, strict=True):
        read = run.stored.by_class
        if read is not None:
            rows += [(strip,) for strip in _strips(read, run.name, index)]
            rows += [(_accuracies(read, run.name, index),), (_differences(read, run.name, index),)]
        rows.append((_models(run.stored, run.name, index),))
    return Panel(title="Generative and discriminative", head=tuple(map(_head, data.found)), rows=tuple(rows))


def _head(run: RunComparison) -> str:
    stored = run.stored
    return (
        f"{run.name}: {stored.data}, {split_label(stored.split)}; {stored.updates:,} updates of each generative model "
        f"on {stored.training:,} pictures of {stored.size} pixels"
    )


def _strips(read: ReadClasses, name: str, index: int) -> list[ImageRow]:
    strips = []
    left = len(read.classes) - len(read.samples)
    note = f"the first {len(read.samples)} of {len(read.classes):,} classes" if left > 0 else ""
    for key, title, pictures in (
        ("drawn", "drawn by the gated PixelCNN, given the class", read.samples),
        ("learned", "training pictures", read.learned),
    ):
        for number in range(pictures.shape[1]):
            cells = tuple(
                RowImage(-1, "", of, "", pixels=np.ascontiguousarray(of_class[number]))
                for of_class, of in zip(pictures, read.classes)
            )
            label = f"{name}: {title}, {number + 1} of {pictures.shape[1]}"
            strips.append(ImageRow(f"{key}-{index}-{number}", label, run_tone(index), cells, note))
    return strips


def _accuracies(read: ReadClasses, name: str, index: int) -> XYPlot:
    """Return the share of right answers of each classifier: all classes, then each class."""
    groups = [("all", np.full(len(read.truth), True))]
    groups += [(of, read.truth == number) for number, of in enumerate(read.classes)]
    groups = [(of, rows) for of, rows in groups if rows.any()][:13]
    dots, gap = [], 0.5 / len(read.models)
    for at, (_, rows) in enumerate(groups):
        for number, (model, predicted) in enumerate(zip(read.models, read.predicted, strict=True)):
            share = float((predicted[rows] == read.truth[rows]).mean())
            low, high = (100 * end for end in wilson(share, int(rows.sum())))
            tone = "first" if not number else run_tone(number - 1)
            x = at + gap * (number - (len(read.models) - 1) / 2)
            dots.append(Marker(model, tone, x, 100 * share, low=low, high=high))
    names = tuple(f"{of} ({int(rows.sum()):,})" for of, rows in groups)
    chance = 100 / len(read.classes)
    y = axis_over("%", [(0, 100)], include=(chance,), percent=True)
    return XYPlot(
        f"accuracy-{index}", f"{name}: accuracy", categories("", names), y, dots=tuple(dots), names=names,
        lying=True, note=f"with 95 % intervals; a guess: {chance:.1f} %",
    )  # fmt: skip


def _differences(read: ReadClasses, name: str, index: int) -> NumberTable:
    bayes, *others = read.predicted == read.truth
    tests = [mcnemar(bayes, other) for other in others]
    adjusted = holm(np.array([test.p for test in tests], np.float64)).tolist()
    lines = [NumberRow(read.models[0], "argmax p(x | y) p(y)", (f"{100 * bayes.mean():.1f} %", "", "", ""))]
    for model, other, test, p in zip(read.models[1:], others, tests, adjusted, strict=True):
        paired = paired_shares(bayes, other)
        ends = signed_ends(100 * paired.low, 100 * paired.high)
        cells = (f"{100 * other.mean():.1f} %", signed(100 * paired.difference), ends, p_text(p))
        hint = f"Right in Bayes' rule alone: {test.only_a:,}; in the probe alone: {test.only_b:,}"
        lines.append(NumberRow(model, hint, cells))
    heads = ("accuracy", "against Bayes' rule", "95 % interval", "p")
    title = f"{name}: both classifiers on the same {len(read.truth):,} pictures"
    return NumberTable(f"differences-{index}", title, heads, tuple(lines), badges=False)


def _models(stored: GenerativeComparison, name: str, index: int) -> NumberTable:
    lines = []
    for row in stored.rows:
        bits = "–" if row.bits is None else f"{'≤ ' * row.bound}{row.bits:.3f}"
        accuracy = "–" if row.accuracy is None else f"{100 * row.accuracy:.1f} %"
        lines.append(NumberRow(row.model, row.features, (f"{row.parameters:,}", bits, accuracy)))
    note = f"bits: n = {stored.n_bits:,}; linear probes: n = {stored.n_probe:,}, {stored.classes:,} classes"
    heads = ("parameters", "bits per dimension", "classification accuracy")
    return NumberTable(f"models-{index}", f"{name}: models", heads, tuple(lines), badges=False, note=note)


CHART: Final = Chart(
    view="explaining",
    label="Generative",
    question="What does a generative model draw, and does it name classes as the run does?",
    cost="Grows with the runs: stored results are drawn. trainer generative, which makes them, trains for minutes.",
    method=METHOD,
    compute=per_run(of_run),
    draw=draw,
)
