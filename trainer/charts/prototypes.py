"""Prototypes of image embeddings over training: clusters, concentration, the bound of the EM, and purity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec import Struct

from trainer.analysis.prototypes import Prototypes, prototypes
from trainer.charts import ChartError
from trainer.charts.marks import (
    Axis,
    Bars,
    ImageRow,
    Mark,
    NumberTable,
    Panel,
    RowImage,
    Series,
    XYPlot,
    axis_over,
    categories,
    run_tone,
)
from trainer.charts.matching import units_of
from trainer.charts.measure import Measure, measure_table
from trainer.charts.opened_snapshot import open_target
from trainer.charts.snapshots import course_of
from trainer.charts.spec import Chart, PerRun, Progress, Request, Target, per_run
from trainer.config.fields import option
from trainer.metrics import data_label
from trainer.store import Items, Workspace
from trainer.store.snapshot_files import read_snapshot

METHOD: Final = """\
As in PCL (Li et al., Prototypical Contrastive Learning, 2021, https://arxiv.org/abs/2005.04966): k-means (E step) of \
the image embeddings of every snapshot up to the chosen step; concentration phi = sum d / (n ln(n + 10)), clipped to \
its 10th and 90th percentile and scaled to mean 0.2; bound: mean log-probability of the own prototype, softmax of \
v c / phi, the part of the ELBO that training changes. Purity: share of the images with a label whose cluster's most \
frequent label is theirs.

Caveats: these clusters are of the snapshot's pairs, made for the chart by scikit-learn, and not those of PCL's own \
training. A run that is not PCL has no EM: for it the curve tells how well its embeddings would serve as one, so \
PCL and InfoNCE can be compared. Purity grows with the number of clusters. The bound drops the normalizers of \
Gaussians of unequal width, as the paper's does, so it orders clusterings of equal phi only."""

MOST_PAIRS: Final = 5_000
SHOWN: Final = 3
PICTURES: Final = 6


@dataclass(frozen=True)
class PrototypesSettings:
    """The clustering."""

    clusters: int = option(10, "Clusters", "Prototypes of a snapshot.", low=2, high=256, log=True)
    seed: int = option(0, "Seed", "Of k-means.", low=0, high=99)


class RunPrototypes(Struct, frozen=True):
    """The prototypes of a run's snapshots: the steps, one clustering each, and the pairs of the last one."""

    name: str
    dataset: str
    split: str
    steps: tuple[int, ...]
    found: tuple[Prototypes, ...]
    items: Items
    rows: np.ndarray
    near: np.ndarray
    """Cosine of each of the distinct pictures `rows` with its own prototype, at the last step."""
    counted: str = ""
    """As of a `SnapshotLabel`."""


def of_run(
    workspace: Workspace, target: Target, request: Request, settings: PrototypesSettings, progress: Progress
) -> RunPrototypes:
    """Return the clusterings of a run up to the chosen step.

    Raises:
        ChartError: No images, or fewer than clusters.
    """
    opened = open_target(workspace, target, request)
    row, chosen = opened.run, opened.row
    every = [snapshot_row for snapshot_row in course_of(workspace, chosen) if snapshot_row.step <= chosen.step]
    clusterings, steps = [], []
    for index, snapshot_row in enumerate(every):
        progress(index / len(every), f"Clustering step {snapshot_row.step:,}")
        snapshot = read_snapshot(snapshot_row.folder)
        if snapshot.image is None:
            raise ChartError(f"{row.short_name} embeds no images. Choose a run with an image tower.")
        units = units_of(snapshot)
        rows = units.rows("picture", MOST_PAIRS)
        if len(rows) < settings.clusters:
            raise ChartError(f"{row.short_name} has {len(rows)} pictures. Choose at most as many clusters.")
        labels = [snapshot.items.label[at] for at in rows]
        clusterings.append(prototypes(snapshot.image[rows], labels, settings.clusters, settings.seed))
        steps.append(snapshot_row.step)
    last = clusterings[-1]
    assert snapshot.image is not None
    near = np.einsum("nd,nd->n", np.float64(snapshot.image[rows]), last.centers[last.assigned])
    data = (chosen.dataset, chosen.split, tuple(steps), tuple(clusterings), snapshot.items)
    return RunPrototypes(row.short_name, *data, rows, near, units.counted)


def draw(data: PerRun[RunPrototypes], settings: PrototypesSettings) -> Panel:
    """Draw purity and bound over steps, phi of the last step, and pictures of the densest clusters."""
    drawn = list(zip(data.found, data.places, strict=True))
    purity = [Series(o.name, run_tone(p), _x(o), np.array([100 * f.purity for f in o.found]), marked=True)
              for o, p in drawn]  # fmt: skip
    bounds = [Series(o.name, run_tone(p), _x(o), np.array([f.bound for f in o.found]), marked=True) for o, p in drawn]
    labeled = Axis("labeled images (%)", 0, 100, percent=True)
    step = axis_over("step", [_x(o) for o, _ in drawn], integer=True)
    rows: list[tuple[Mark, ...]] = [(
        XYPlot("purity", "Purity of the clusters", step, labeled, tuple(purity)),
        XYPlot("bound", "EM bound", step, axis_over("log-probability", [s.y for s in bounds]), tuple(bounds)),
    )]  # fmt: skip
    for run, index in drawn:
        rows += [(_phi(run, index),), *((strip,) for strip in _strips(run, index))]
    rows.append((_table(data),))
    head = tuple(f"{o.name}: {data_label(o)}, step {o.steps[-1]:,}, n = {len(o.rows):,}" for o, _ in drawn)
    return Panel(title=f"{settings.clusters} prototypes", head=head, rows=tuple(rows))


def _x(run: RunPrototypes) -> np.ndarray:
    return np.array(run.steps, np.float64)


def _phi(run: RunPrototypes, index: int) -> XYPlot:
    order = np.argsort(run.found[-1].phi, kind="stable")
    names = tuple(run.found[-1].names[at] or str(at) for at in order)
    heights = tuple(run.found[-1].phi[order].tolist())
    y = axis_over("phi", [heights], include=(0,))
    return XYPlot(f"phi-{index}", f"{run.name}: concentration, dense first", categories("cluster", names), y,
                  bars=(Bars("", run_tone(index), heights),), names=names)  # fmt: skip


def _strips(run: RunPrototypes, index: int) -> list[ImageRow]:
    last, strips = run.found[-1], []
    for cluster in np.argsort(last.phi, kind="stable")[:SHOWN].tolist():
        members = np.flatnonzero(last.assigned == cluster)
        best = members[np.argsort(-run.near[members], kind="stable")[:PICTURES]]
        cells = tuple(
            RowImage(int(run.rows[at]), run.items.path[run.rows[at]], run.items.caption[run.rows[at]],
                     f"{run.near[at]:.2f}")
            for at in best
        )  # fmt: skip
        title = f"{run.name}: cluster {cluster}, {last.names[cluster] or 'no label'}"
        note = f"{len(members):,} images, phi {last.phi[cluster]:.3f}"
        strips.append(ImageRow(f"cluster-{index}-{cluster}", title, run_tone(index), cells, note))
    return strips


def _table(data: PerRun[RunPrototypes]) -> NumberTable:
    measures = (
        Measure[Prototypes]("Purity (%)", "At the last step.", lambda last: 100 * last.purity, 1),
        Measure[Prototypes]("Bound", "Mean log-probability of the own prototype.", lambda last: last.bound),
        Measure[Prototypes]("Smallest phi", "Densest cluster.", lambda last: last.phi.min()),
        Measure[Prototypes]("Largest phi", "Loosest cluster.", lambda last: last.phi.max()),
    )
    names, clusterings = [run.name for run in data.found], [run.found[-1] for run in data.found]
    return measure_table("prototypes", "Prototypes", names, measures, clusterings)


CHART: Final = Chart(
    view="geometry",
    label="Prototypes",
    question="Which clusters do the image embeddings form, how dense and how pure are they?",
    cost="Grows with the pictures that are drawn, at most 5,000, times the clusters.",
    method=METHOD,
    settings=PrototypesSettings,
    compute=per_run(of_run),
    draw=draw,
)
