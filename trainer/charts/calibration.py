"""Calibration of a run's zero-shot probabilities at its own temperature and at any other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from trainer.analysis import calibration as analysis
from trainer.analysis.progress import Progress
from trainer.charts.class_task import ClassWords, texts_of
from trainer.charts.marks import Axis, Marker, NumberRow, NumberTable, Panel, Rug, Series, XYPlot, joined, run_tone
from trainer.charts.measure import facts_of
from trainer.charts.measures.calibration import CURVE, CalibrationAt, CalibrationRun, at, calibration
from trainer.charts.spec import Chart, PerRun, Records, Request, Target, per_run
from trainer.config.fields import option
from trainer.store import Workspace

METHOD: Final = """\
Reliability: images in 15 bins of their largest probability, accuracy over mean confidence; on the line, confidence \
equals accuracy; the area of a dot is the number of images. The calibration error (ECE) is the mean distance to the \
line, weighted by the images; by chance it is that of a perfectly calibrated run on the same number of images.

Negative log-likelihood over the temperature; the best one has the smallest.

Probabilities are a softmax over the labels; of SigLIP the sigmoid of each label with the run's bias, whose likelihood \
is that of all labels of an image."""
NOTE: Final = (
    "The best temperature is fitted on these same images: it shows the best that this run's cosines allow, not a "
    "held-out gain."
)
FEWEST: Final = 10
"""Images of a bin that a line goes through; the share of fewer is noise."""


@dataclass(frozen=True)
class CalibrationSettings(ClassWords):
    """The labels and templates, and the temperatures shown."""

    tau: tuple[float, ...] = option(
        (),
        "Temperatures",
        "Of each run, A first; that of its training where there is none.",
        low=1e-6,
        redraws=True,
        control=False,
    )


def compute(
    workspace: Workspace, target: Target, request: Request, _settings: CalibrationSettings, _progress: Progress
) -> CalibrationRun:
    """Return `calibration` of one target, with the request's class vectors."""
    question = {"dataset": request.dataset, "split": request.split}
    return calibration(workspace, texts_of(request, target), index=request.targets.index(target), **question)


def draw(data: PerRun[CalibrationRun], settings: CalibrationSettings) -> Panel:
    """Draw confidence against accuracy, negative log-likelihood against temperature, and each run's numbers."""
    runs, chosen = data.found, [_chosen(run, settings) for run in data.found]
    rows = ((_reliability(runs, chosen), _likelihood(runs, chosen)), (_table(runs, chosen),))
    names = " · ".join(
        f"{run.name}{', by sigmoid' if run.offset is not None else ''}: n = {run.n:,} of {run.pairs:,} images"
        f"{' (sampled)' if run.n < run.labeled else ''}, "
        f"class from {run.column}"
        for run in runs
    )
    first = runs[0]
    templates = f"{len(first.templates)} template{'s' * (len(first.templates) > 1)}"
    notes = (f"{len(first.labels)} classes, mean of {templates}. {NOTE}",)
    return Panel(title="Calibration of zero-shot probabilities", head=(names,), rows=rows, notes=notes)


def _chosen(run: CalibrationRun, settings: CalibrationSettings) -> CalibrationAt:
    tau = settings.tau[run.index] if run.index < len(settings.tau) else None
    return run.own if tau is None or tau == 1 / run.own.inv_tau else at(run, 1 / tau)


def _reliability(runs: tuple[CalibrationRun, ...], chosen: list[CalibrationAt]) -> XYPlot:
    line = np.array([0.0, 1.0])
    curves, dots, rugs = [Series("", "quiet", line, line, dashed=True, width=1.0)], [], []
    for run, shown_at in zip(runs, chosen, strict=True):
        bins, tone = shown_at.reliability, run_tone(run.index)
        filled = bins.counts > 0
        x, y = bins.confidence[filled], bins.accuracy[filled]
        sizes = 5 + 13 * np.sqrt(bins.counts[filled] / max(int(bins.counts.max()), 1))
        name = f"{run.name}, calibration error {_percent(shown_at.ece)} at temperature {1 / shown_at.inv_tau:.3g}"
        enough = bins.counts[filled] >= FEWEST
        curves.append(Series(name, tone, x[enough], y[enough], width=1.5))
        points = zip(x.tolist(), y.tolist(), sizes.tolist(), strict=True)
        dots += [Marker("", tone, at, height, size) for at, height, size in points]
        confidence, _ = analysis.top_confidence(run.cosines, run.truth, shown_at.inv_tau, run.offset)
        rugs.append(Rug(run.rows, confidence))
    axes = Axis("Confidence (largest probability)", 0, 1.05), Axis("Accuracy", -0.05, 1.05)
    note = f"dot area: images in the bin; line: bins of {FEWEST} or more"
    title, rug = "Reliability diagram", joined(rugs)
    return XYPlot("reliability", title, *axes, tuple(curves), dots=tuple(dots), note=note, brushes="x", rug=rug)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _likelihood(runs: tuple[CalibrationRun, ...], chosen: list[CalibrationAt]) -> XYPlot:
    curves, dots = [], []
    lowest, highest = (float(end([end(run.curve) for run in runs])) for end in (np.min, np.max))
    for run, shown_at in zip(runs, chosen, strict=True):
        tone = run_tone(run.index)
        curves.append(Series(run.name, tone, 1 / CURVE[::-1], run.curve[::-1]))
        trained = Marker("", tone, 1 / run.own.inv_tau, run.own.nll, mark="ring")
        best = Marker("", tone, 1 / run.fitted.inv_tau, run.fitted.nll, mark="diamond")
        now = Marker("", tone, 1 / shown_at.inv_tau, shown_at.nll)
        dots += [dot for dot in (trained, best, now) if 1 / CURVE[-1] <= dot.x <= 1 / CURVE[0]]
    x = Axis("Temperature", 0.001, 1, log=True)
    # Logarithmic: the smallest value is a hundredth of those at the ends.
    y = Axis("NLL (nats per image)", max(0.8 * lowest, 1e-4 * highest, 1e-4), max(1.2 * highest, 0.01), log=True)
    note = "disc: shown, ring: trained, diamond: best"
    return XYPlot("likelihood", "NLL over the temperature", x, y, tuple(curves), dots=tuple(dots), note=note)


def _table(runs: tuple[CalibrationRun, ...], chosen: list[CalibrationAt]) -> NumberTable:
    names, accuracies = tuple(run.name for run in runs), tuple(f"{100 * run.accuracy:.1f} %" for run in runs)
    lines = [NumberRow("Accuracy", "Independent of the temperature.", accuracies)]
    fits = {"shown": chosen, "trained": [run.own for run in runs], "best": [run.fitted for run in runs]}
    for title, hint, read in _MEASURES:
        lines += [NumberRow(f"{title}, {at}", hint, tuple(map(read, fits_at))) for at, fits_at in fits.items()]
    count = f", n = {runs[0].n:,}" if len({run.n for run in runs}) == 1 else ""
    return NumberTable("numbers", f"At current, trained and optimal temperature{count}", names, tuple(lines))


_MEASURES: Final = (
    ("Temperature", "Of the softmax over the labels.", lambda one: f"{1 / one.inv_tau:.3g}"),
    ("Calibration error", "Expected calibration error (ECE).", lambda one: _percent(one.ece)),
    (
        "Calibration error, interval",
        "95 %, by resampling.",
        lambda one: f"{_percent(one.ece_range.low)} to {_percent(one.ece_range.high)}",
    ),
    (
        "Calibration error by chance",
        "Of a perfectly calibrated run on the same number of images.",
        lambda one: _percent(one.ece_range.calibrated),
    ),
    ("NLL", "Negative log-likelihood, nats per image.", lambda one: one.nll),
    ("Confidence", "Mean of the largest probabilities.", lambda one: f"{100 * one.confidence:.1f} %"),
)


def values(data: PerRun[CalibrationRun], settings: CalibrationSettings) -> list[dict[str, Any]]:
    """Return one dictionary per run: facts, and its numbers at the shown, the trained and the best temperature."""
    return [facts_of(run, "n", "pairs") | _numbers(run, _chosen(run, settings)) for run in data.found]


def _numbers(run: CalibrationRun, shown_at: CalibrationAt) -> dict[str, float]:
    values = {"accuracy": run.accuracy}
    for name, fit in (("shown", shown_at), ("own", run.own), ("fitted", run.fitted)):
        values |= {
            f"tau_{name}": 1 / fit.inv_tau,
            f"ece_{name}": fit.ece,
            f"ece_{name}_low": fit.ece_range.low,
            f"ece_{name}_high": fit.ece_range.high,
            f"ece_{name}_calibrated": fit.ece_range.calibrated,
            f"nll_{name}": fit.nll,
            f"confidence_{name}": fit.confidence,
        }
    return values


def records(data: PerRun[CalibrationRun], settings: CalibrationSettings) -> Records:
    """Return the bins of each run at the temperature shown."""
    header = ("run", "name", "objective", "step", "dataset", "split", "n", "pairs", "tau", "bin", "count")
    lines = []
    for run in data.found:
        shown_at = _chosen(run, settings)
        bins_of, facts = shown_at.reliability, (run.run, run.name, run.objective, run.step, run.dataset, run.split)
        prefix = (*facts, run.n, run.pairs, 1 / shown_at.inv_tau)
        bins = (bins_of.edges[:-1], bins_of.counts, bins_of.confidence, bins_of.accuracy)
        lines += [(*prefix, *bin_row) for bin_row in zip(*(part.tolist() for part in bins), strict=True)]
    return (*header, "confidence", "accuracy"), lines


CHART: Final = Chart(
    view="prompts",
    label="Calibration",
    question="Are zero-shot probabilities calibrated?",
    cost="Grows with the images times classes and templates; images are drawn where that exceeds 2e11 products.",
    method=METHOD,
    settings=CalibrationSettings,
    compute=per_run(compute),
    draw=draw,
    values=values,
    records=records,
)
