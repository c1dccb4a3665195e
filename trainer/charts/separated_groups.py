"""Groups of pictures or captions that one run separates and the other merges, each named in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from trainer.analysis.progress import Progress
from trainer.charts.marks import (
    Axis,
    ImageRow,
    Mark,
    NumberRow,
    NumberTable,
    Panel,
    Points,
    RowImage,
    Series,
    XYPlot,
    axis_over,
    heading_row,
    run_tone,
)
from trainer.charts.measures.separated_groups import NamedGroup, SeparatedGroupsChart, groups_of_snapshots, partner_of
from trainer.charts.opened_snapshot import open_targets
from trainer.charts.snapshot_label import told_apart
from trainer.charts.spec import Chart, Records, Request
from trainer.config.fields import option
from trainer.metrics import data_label
from trainer.store import Workspace

METHOD: Final = """\
SPEC (Jalali, Wu, Shaham and Farnia, ICML 2025, arXiv 2506.06231): the eigenvectors of (K_A - K_B) / n with large \
positive eigenvalues live on pictures that A relates otherwise than B does; of (K_B - K_A) / n likewise for B. \
K(x, y) = exp(-|x - y|² / 2σ²) of centered rows of unit length, σ a share of the median distance in each run. By \
Nyström features (Williams and Seeger 2001) with 400 landmarks the cost grows linearly with n: the nonzero spectrum is \
that of a matrix of twice their number.

A group of n·s pictures that B mixes with an equally large one has the eigenvalue s. Eigenvalues up to the least \
share count as noise. Within and across are mean kernels: 1 is the same point, 0 \
far apart. Gain is (within - across) of the run that separates minus that of the other; groups \
of less than the least gain are left out, as two noisy copies of the same clusters have. Two equal embeddings, or one \
turned as a whole, have no groups. Groups are found, not tested: look whether another seed has them."""


@dataclass(frozen=True)
class SeparatedGroupsSettings:
    """How groups are sought."""

    modality: Literal["image", "text"] = option(
        "image", "Embeddings", "What is grouped.", named={"image": "Pictures", "text": "Captions"}
    )
    bandwidth: float = option(0.5, "Bandwidth σ", "In median distances; smaller finds smaller groups.", low=0.1, high=2)
    least_share: float = option(0.01, "Least share", "Of all pictures, that a group has.", low=0.002, high=0.5)
    least_gain: float = option(0.2, "Least gain", "By how much more one run separates a group.", low=0.0, high=1.0)


def compute(
    workspace: Workspace, request: Request, settings: SeparatedGroupsSettings, progress: Progress
) -> SeparatedGroupsChart:
    """Return the groups that only one of the first two snapshots separates.

    Raises:
        ChartError: A run lacks the modality, or they have fewer than 10 pictures in common.
    """
    progress(0.1, "comparing kernels")
    how = {name: getattr(settings, name) for name in ("bandwidth", "least_share", "least_gain")}
    return groups_of_snapshots(open_targets(workspace, request)[:2], settings.modality, **how)


def draw(chart: SeparatedGroupsChart, _settings: SeparatedGroupsSettings) -> Panel:
    """Draw the groups by how close both runs hold them, their table, the spectra, and pictures of each."""
    names = told_apart([each.run.short_name for each in chart.opened], [each.row.step for each in chart.opened])
    rows: list[tuple[Mark, ...]] = [(_overview(chart), _spectra(chart, names))]
    if chart.groups:
        rows.append((_table(chart, names),))
    rows += [(_pictures(chart, group, names),) for group in chart.groups]
    row = chart.opened[0].row
    steps = ", ".join(
        f"{'AB'[side]} {each.run.short_name}, step {each.row.step:,}" for side, each in enumerate(chart.opened)
    )
    drawn = f" of {chart.whole:,}" if chart.n < chart.whole else ""
    head = f"{data_label(row)}, n = {chart.n:,}{drawn} {chart.unit}s. {steps}"
    counted = filter(None, (chart.opened[0].units.counted,))
    none = () if chart.groups else ("No group is kept apart by one run and merged by the other.",)
    notes = (*none, *counted)
    return Panel(title="Groups that only one run separates", head=(head,), rows=tuple(rows), notes=notes, letters=True)


def _overview(chart: SeparatedGroupsChart) -> XYPlot:
    points = []
    for side in (0, 1):
        of = [group for group in chart.groups if group.side == side]
        xy = np.array([_margins(group) for group in of]).reshape(-1, 2)
        ids = np.array([group.number for group in of], np.int64)
        points.append(Points(f"only {'AB'[side]}", run_tone(side), xy, ids, size=9.0))
    x, y = (Axis(f"within - across, {side}", -0.2, 1.0) for side in "AB")
    note = "a click selects the pairs of a group"
    return XYPlot("groups", "Groups", x, y, points=tuple(points), ids_are="concepts", note=note)


def _margins(named: NamedGroup) -> tuple[float, float]:
    group = named.group
    margin_a, other = group.within_a - group.across_a, group.within_b - group.across_b
    return (margin_a, other) if named.side == 0 else (other, margin_a)


def _spectra(chart: SeparatedGroupsChart, names: Sequence[str]) -> XYPlot:
    curves = []
    for side, difference in enumerate(chart.differences):
        top = difference.eigenvalues[::-1][:30]
        x = np.arange(1.0, len(top) + 1)
        curves.append(Series(names[side], run_tone(side), x, np.maximum(top, 0.0), marked=True))
    level = max(difference.threshold for difference in chart.differences)
    ends, height = np.array([1.0, 30.0]), np.array([level, level])
    curves.append(Series("counts as noise below", "quiet", ends, height, dashed=True))
    y = axis_over("eigenvalue", [curve.y for curve in curves], include=(0.0,))
    return XYPlot("spectra", "Spectra of the differences", Axis("rank", 0.5, 30.5), y, curves=tuple(curves))


def _table(chart: SeparatedGroupsChart, names: Sequence[str]) -> NumberTable:
    lines = []
    for side in (0, 1):
        of = [group for group in chart.groups if group.side == side]
        lines += [heading_row(f"Only {'AB'[side]} · {names[side]} separates")] if of else []
        for named in of:
            group, pair = named.group, f" from {partner_of(chart, named)}"
            kernels = (group.within_a, group.across_a, group.within_b, group.across_b)
            numbers = kernels if side == 0 else (*kernels[2:], *kernels[:2])
            cells = (f"{len(named.pairs):,}", *numbers, group.gain)
            lines.append(NumberRow(named.words + pair, "Mean kernels; 1: one point.", cells, 2))
    heads = ("pairs", "within A", "across A", "within B", "across B", "gain")
    return NumberTable("table", "Groups", heads, tuple(lines), badges=False)


def _pictures(chart: SeparatedGroupsChart, named: NamedGroup, names: Sequence[str]) -> ImageRow:
    items = chart.opened[0].snapshot.items
    cells = tuple(RowImage(row, items.path[row], items.caption[row], "") for row in named.typical.tolist())
    title = f"Only {names[named.side]}: {named.words}, apart from {partner_of(chart, named)}"
    note = f"{len(cells)} of {len(named.pairs):,} pairs"
    return ImageRow(f"group-{named.number}", title, run_tone(named.side), cells, note)


def values(chart: SeparatedGroupsChart, _settings: SeparatedGroupsSettings) -> list[dict[str, Any]]:
    """Return one dictionary per group."""
    return [
        {
            "separated_by": "AB"[named.side],
            "run": chart.opened[named.side].run.id,
            "words": named.words,
            "from": partner_of(chart, named),
            "pairs": len(named.pairs),
            "pictures": len(named.group.rows),
            **{name: getattr(named.group, name) for name in ("within_a", "across_a", "within_b", "across_b", "gain")},
        }
        for named in chart.groups
    ]


def records(chart: SeparatedGroupsChart, _settings: SeparatedGroupsSettings) -> Records:
    """Return a row per group and pair."""
    items = chart.opened[0].snapshot.items
    return ("separated_by", "group", "words", "pair", "id", "caption"), [
        ("AB"[named.side], named.number, named.words, row, str(items.id[row]), items.caption[row])
        for named in chart.groups
        for row in named.pairs.tolist()
    ]


CHART: Final = Chart(
    view="changes",
    label="Groups of one run",
    question="Which groups does only one of the runs separate?",
    cost="Grows with the pictures or captions, at most 30,000: kernels are approximated by 400 landmarks.",
    method=METHOD,
    settings=SeparatedGroupsSettings,
    needs="two_runs",
    compute=compute,
    draw=draw,
    values=values,
    records=records,
)
