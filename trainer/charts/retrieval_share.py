"""Dose-response of CLOOB's retrieval: recall, rank and self-weight by its share, for otherwise equal runs."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from msgspec import Struct

from trainer import config
from trainer.analysis.hopfield import own_weight
from trainer.analysis.retrieval import ranks, recall_at
from trainer.analysis.sampling import at_most
from trainer.analysis.spectra import covariance_spectrum, effective_rank
from trainer.charts import BOTH, ChartError
from trainer.charts.marks import Axis, Marker, NumberRow, NumberTable, Panel, Series, XYPlot, axis_over
from trainer.charts.matching import matching_of
from trainer.charts.measures.retrieval_share import alike_in_all_but_share
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import Chart, Progress, Records, Request
from trainer.metrics import data_label, recall_name
from trainer.store import RunRow, SnapshotRow, Workspace, read_snapshot

METHOD: Final = """\
The objective is s CLOOB + (1 - s) InfoLOOB of the embeddings: s = 1 is CLOOB as published (Fuerst et al., 2022, \
https://arxiv.org/abs/2110.11316), s = 0 is InfoLOOB. The share is ours, not from the paper.

Shown are all runs of the workspace with A's data, towers and optimizer whose objective is CLOOB at A's temperatures, \
InfoLOOB (s = 0) or CLIP (dashed), at A's step. Other runs are not comparable and are left out.

Effective rank: exponential of the entropy of the covariance's spectrum (Roy & Vetterli, 2007). Own image: mean weight \
softmax(beta x . y) that a caption gives to its own image among a batch of the training's size; 1 / batch by chance.

Caveats: a line joins means, without a model; the spread is one standard deviation over seeds, of a few seeds. No test \
is made: name a primary measure before training, and compare groups in Evaluate."""

MEASURES: Final = (
    (recall_name("image_to_text"), "In percent, of the distinct pictures of the snapshot.", 1),
    ("Effective rank, images", "Directions that the images use.", 1),
    ("Effective rank, captions", "Directions that the captions use.", 1),
    ("Own image (%)", "Weight a caption gives to its own image in the retrieval among a batch.", 1),
)
"""What is measured: label, meaning, digits."""
IN_PERCENT: Final = (0, 3)
"""Which of them are shares in percent."""

NO_OTHER: Final = "No run with another retrieval share is there. Repeat… in Runs makes a grid of them."
MOST_ASKING: Final = 9_604
"""Pictures that ask at most, each among all texts: a share of one half is then known to a point, in 95 of 100 draws."""
COMMAND: Final = (
    "trainer queue add --preset cloob-half-scenes --grid objective.retrieval_share=0,0.25,0.5,1 --seeds 0 1 2"
)


class ShareRun(Struct, frozen=True):
    """One run; `share` is None for CLIP, `values` are those of `MEASURES`."""

    run: int
    name: str
    seed: int
    share: float | None
    values: tuple[float, ...]


class ShareRuns(Struct, frozen=True):
    """Runs that differ in share and seed only, at one step; `absent` are those without a snapshot of it."""

    dataset: str
    split: str
    step: int
    n: int
    pictures: int
    beta: float
    batch_size: int
    runs: tuple[ShareRun, ...]
    absent: tuple[str, ...]

    def shares(self) -> list[float]:
        """Return every share of a run, ascending."""
        return sorted({run.share for run in self.runs if run.share is not None})

    def of(self, share: float | None, measure: int) -> np.ndarray:
        """Return the values of the runs with this share."""
        return np.array([run.values[measure] for run in self.runs if run.share == share])


def compute(workspace: Workspace, request: Request, _settings: Any, progress: Progress) -> ShareRuns:
    """Return the numbers of A and all comparable runs, from their snapshots.

    Raises:
        ChartError: A has no snapshot, or does not compare images with texts by one of the three objectives.
    """
    first = workspace.runs.get(request.targets[0].run)
    step = request.targets[0].step
    chosen = choose_snapshot(workspace, first, step=step, dataset=request.dataset, split=request.split)
    alike = alike_in_all_but_share(workspace, first)
    beta = next(
        (other.scale_hopfield for _, other in alike if isinstance(other, config.Cloob)), config.Cloob().scale_hopfield
    )
    size = workspace.runs.config_of(first.id).optimizer.batch_size
    runs, absent, n, pictures = [], [], 0, 0
    for index, (row, objective) in enumerate(alike):
        progress(index / len(alike), f"Measuring {row.short_name}")
        snapshot_row = _snapshot_of(workspace, row, chosen)
        if snapshot_row is None:
            absent.append(row.short_name)
            continue
        n, pictures, values = _measured(snapshot_row, beta, size)
        share = None if isinstance(objective, config.Clip) else getattr(objective, "retrieval_share", 0.0)
        runs.append(ShareRun(row.id, row.short_name, workspace.runs.config_of(row.id).seed, share, values))
    return ShareRuns(chosen.dataset, chosen.split, chosen.step, n, pictures, beta, size, tuple(runs), tuple(absent))


def _snapshot_of(workspace: Workspace, row: RunRow, chosen: SnapshotRow) -> SnapshotRow | None:
    key = (chosen.dataset, chosen.split, chosen.step)
    return next((s for s in workspace.results.snapshots(row.id) if (s.dataset, s.split, s.step) == key), None)


def _measured(row: SnapshotRow, beta: float, size: int) -> tuple[int, int, tuple[float, ...]]:
    """Return the snapshot's pairs, its distinct pictures, and the values of `MEASURES`."""
    snapshot = read_snapshot(row.folder)
    if snapshot.image is None or snapshot.text is None:
        raise ChartError(f"The snapshot of run {row.run} has only one modality. {BOTH}")
    image, text = (np.asarray(part, np.float32) for part in (snapshot.image, snapshot.text))
    texts = matching_of(snapshot).texts
    rankings = ranks(image, text, texts, rows=at_most(texts.asking(), MOST_ASKING))
    directions = (effective_rank(covariance_spectrum(part)) for part in (image, text))
    recall = recall_at(rankings, 1)
    return snapshot.n, len(rankings), (100 * recall, *directions, 100 * own_weight(text, image, beta, size))


def draw(data: ShareRuns, _settings: Any) -> Panel:
    """Draw one plot per measure with each run as a point, and the means as numbers."""
    plots = tuple(_plot(data, index) for index in range(len(MEASURES)))
    seeds = ", ".join(f"{len(data.of(share, 0))} of s = {share:g}" for share in data.shares())
    others = len(data.of(None, 0))
    head = (
        f"{data_label(data)}, step {data.step:,}, n = {data.n:,}",
        f"runs: {seeds or 'none of CLOOB'}{f', {others} of CLIP' if others else ''}",
        f"β {data.beta:g}, batches of {data.batch_size:,}",
    )
    lacking = len(data.shares()) < 2
    warnings = [NO_OTHER] if lacking else []
    if data.absent:
        warnings.append(f"Not measured at step {data.step:,} and left out: {', '.join(data.absent)}.")
    return Panel(
        title="Dose and response of the Hopfield retrieval",
        head=head,
        rows=(plots[:2], plots[2:], (_table(data),)),
        notes=("Points: runs. Line: means, with one standard deviation over seeds. Dashed: mean of CLIP.",),
        warnings=tuple(warnings),
        commands=(COMMAND,) if lacking else (),
    )


def _plot(data: ShareRuns, measure: int) -> XYPlot:
    label, shares = _label(data, measure), data.shares()
    curves = []
    if shares:
        mean, spread = np.array([_mean_and_spread(data.of(share, measure)) for share in shares]).T
        reach = np.nan_to_num(spread)
        line = {"low": mean - reach, "high": mean + reach} if (reach > 0).any() else {}
        curves.append(Series("CLOOB", "first", np.array(shares), mean, marked=True, **line))
    if len(clip := data.of(None, measure)):
        curves.append(Series("CLIP", "quiet", np.array([0.0, 1.0]), np.full(2, clip.mean()), dashed=True))
    # Without names: a legend of all runs would take the plot's place, and the records have them.
    dots = []
    for run in data.runs:
        # CLIP has no share and is placed beyond the end.
        tone, at = ("quiet", 1.06) if run.share is None else ("first", run.share)
        dots.append(Marker("", tone, at, run.values[measure], size=6))
    y = axis_over(label, [run.values[measure] for run in data.runs], include=(0,), percent=measure in IN_PERCENT)
    x = Axis("retrieval share s", -0.05, 1.1)
    return XYPlot(f"share-{measure}", label, x, y, tuple(curves), dots=tuple(dots))


def _label(data: ShareRuns, measure: int) -> str:
    recall = recall_name("image_to_text", split=data.split, n=data.pictures)
    return f"{recall} (%)" if measure == 0 else MEASURES[measure][0]


def _mean_and_spread(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else math.nan


def _columns(data: ShareRuns) -> list[tuple[str, float | None]]:
    clip = [("CLIP", None)] if len(data.of(None, 0)) else []
    return [*((f"s = {share:g}", share) for share in data.shares()), *clip]


def _table(data: ShareRuns) -> NumberTable:
    columns = _columns(data)
    lines = [NumberRow("Runs", "Seeds.", tuple(float(len(data.of(share, 0))) for _, share in columns), 0)]
    for index, (_, hint, digits) in enumerate(MEASURES):
        label = _label(data, index)
        both = [_mean_and_spread(data.of(share, index)) for _, share in columns]
        lines.append(NumberRow(label, hint, tuple(mean for mean, _ in both), digits))
        lines.append(NumberRow(f"{label}, ±", "Standard deviation over seeds.", tuple(s for _, s in both), digits))
    return NumberTable("shares", "By retrieval share", tuple(name for name, _ in columns), tuple(lines), badges=False)


def records(data: ShareRuns, _settings: Any) -> Records:
    """Return one row per run."""
    labels = (_label(data, index) for index in range(len(MEASURES)))
    return ("run", "name", "seed", "retrieval_share", "step", *labels), [
        (run.run, run.name, run.seed, "" if run.share is None else run.share, data.step, *run.values)
        for run in data.runs
    ]


CHART: Final = Chart(
    view="hopfield",
    label="Share",
    question="How do recall and rank change with the share of the retrieval in the objective?",
    cost="Grows with n and the runs: at most 9,604 pictures, drawn at random, ask among all texts.",
    method=METHOD,
    needs="one_run",
    compute=compute,
    draw=draw,
    records=records,
)
