"""Which attributes linear probes read off each run, and the table of the ablation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Float
from trainer.charts.diagnosis.shared import (
    MOST_PAIRS,
    Asked,
    choose_at,
    choose_last,
    finite,
    head_of,
    sides_of,
    title,
)

from trainer.analysis.probes import Probe, probe
from trainer.analysis.progress import Progress
from trainer.analysis.sampling import at_most
from trainer.analysis.spectra import covariance_spectrum, effective_directions, effective_rank
from trainer.charts import ChartError, objective_label
from trainer.charts.marks import (
    RUN_TONES,
    Axis,
    Mark,
    Marker,
    NumberRow,
    NumberTable,
    Panel,
    Series,
    ShadedTable,
    XYPlot,
)
from trainer.charts.snapshot_label import told_apart
from trainer.config import Scenes
from trainer.config.ablation import INDEPENDENT, PRESET
from trainer.store import RunRow, SnapshotRow, Workspace, read_snapshot
from trainer.store.snapshot_files import Snapshot

_ATTRIBUTES: Final = {
    "subject_color": "color",
    "subject_shape": "shape",
    "object_color": "color 2",
    "object_shape": "shape 2",
    "relation": "relation",
    "ground": "ground",
}
"""Columns of Scenes in words: the subject is the larger thing; `2` is the object."""


@dataclass(frozen=True)
class Probed:
    """One run's probes: attribute -> its probe, of images and of texts."""

    run: RunRow
    row: SnapshotRow
    cooccurrence: float | None
    images: dict[str, Probe]
    texts: dict[str, Probe]
    others: dict[str, float]


def ablation_runs(workspace: Workspace) -> list[RunRow]:
    """The newest 8 runs of ablations that have a snapshot, oldest first: four with and four without co-occurrence."""
    rows = [run for run in workspace.runs.all() if run.preset == PRESET and workspace.results.snapshots(run.id)]
    return rows[-8:]


def attributes_of(snapshot: Snapshot) -> dict[str, list[str]]:
    """The attributes that can be probed: columns of words with 2 to 50 values; else the class."""
    found = {}
    for name, values in snapshot.items.metadata.items():
        if all(isinstance(value, str) for value in values) and 2 <= len(set(values)) <= 50:
            found[_ATTRIBUTES.get(name, name.replace("_", " "))] = list(values)
    if not found and 2 <= len(set(snapshot.items.label)) <= 200:
        found["class"] = list(snapshot.items.label)
    return found


def probed(workspace: Workspace, run: RunRow, row: SnapshotRow, progress: Progress | None = None) -> Probed:
    """All probes of one snapshot; at most 20,000 rows, drawn at random.

    Raises:
        ChartError: Its items have no attributes.
    """
    snapshot = read_snapshot(row.folder)
    rows = at_most(snapshot.n, MOST_PAIRS)
    named = {name: np.array(values, dtype=str)[rows] for name, values in attributes_of(snapshot).items()}
    if not named:
        raise ChartError(f"The pairs of {row.dataset}-{row.split} have no attributes to probe; Scenes has.")
    sides: dict[str, dict[str, Probe]] = {"image": {}, "text": {}}
    others: dict[str, float] = {}
    done, total = 0, len(named) * 3
    for name, words in named.items():
        for side, vectors in sides_of(snapshot):
            sides[side][name] = probe(finite(vectors[rows], run), words, progress=progress)
            done += 1
            if progress:
                progress(done / total, f"Probing {run.name}: {name}")
        rest = [values for other, values in named.items() if other != name]
        others[name] = probe(_one_hot(rest), words).accuracy if rest else math.nan
        done += 1
    data = workspace.runs.config_of(run.id).data
    return Probed(run, row, getattr(data, "cooccurrence", None), sides["image"], sides["text"], others)


def lacking_independent(
    workspace: Workspace, runs: Sequence[tuple[int, int | None]]
) -> tuple[tuple[int, int | None], ...]:
    """Runs on Scenes that have no snapshot of independent Scenes yet, and the step of the checkpoint it is to be of.

    Of the runs given at their steps (None: the newest), and of the ablation's other runs at their newest.
    """
    given = {run for run, _ in runs}
    others = [(run.id, None) for run in ablation_runs(workspace) if run.id not in given]
    lacking = []
    for run, at in dict.fromkeys((*runs, *others)):
        if isinstance(workspace.runs.config_of(run).data, Scenes):
            checkpoints = [row.step for row in workspace.results.checkpoints(run)]
            newest = max(checkpoints, default=None)
            there = {row.step for row in workspace.results.snapshots(run) if row.split == INDEPENDENT}
            if (newest if at is None else at) not in there and checkpoints:
                lacking.append((run, at))
    return tuple(lacking)


def attributes(workspace: Workspace, runs: Sequence[RunRow], asked: Asked, progress: Progress | None) -> Panel:
    """The panel.

    Raises:
        ChartError: There is nothing to probe, or of independent Scenes no run has a snapshot.
    """
    others: list[RunRow] = []
    if asked.ablation:
        others = [run for run in ablation_runs(workspace) if run.id not in {r.id for r in runs}]
    wanted = [*runs, *others]
    if asked.independent:
        there = [(i, run, _independent(workspace, run, asked.step_at(i))) for i, run in enumerate(runs)]
        there += [(i, run, _independent(workspace, run, None)) for i, run in enumerate(others, start=len(runs))]
        if all(row is None for *_, row in there):
            raise ChartError(
                "No run has a snapshot of independent Scenes yet. Press Embed independent Scenes, or: trainer "
                f"independent {' '.join(dict.fromkeys(str(run.id) for run in wanted))}"
            )
        chosen, missing = there, [run.name for _, run, row in there if row is None]
    else:
        chosen = [(i, run, choose_at(workspace, run, asked, i)) for i, run in enumerate(runs)]
        chosen += [(i, run, choose_last(workspace, run, asked)) for i, run in enumerate(others, start=len(runs))]
        missing = []
    chosen = _told_apart([(i, run, row) for i, run, row in chosen if row is not None], len(runs))
    if not chosen:
        raise ChartError("There is nothing to probe yet: choose a run, or start the ablation.")
    found = [(i, probed(workspace, run, row, progress)) for i, run, row in chosen]
    names = list(dict.fromkeys(name for _, each in found for name in (*each.images, *each.texts)))
    pieces: list[tuple[Mark, ...]] = []
    # Two runs have a color; the tables have all of them.
    both = [(i, each) for i, each in found if i < min(len(runs), len(RUN_TONES))]
    if both:
        pieces.append(tuple(_attribute_plot(side, both, names) for side in ("images", "texts")))
    pieces.append(tuple(_attribute_table(side, found, names) for side in ("images", "texts")))
    pieces.append((_ablation_table(workspace, found, names),))
    effects = (_effect(side, found, names) for side in ("images", "texts"))
    if shown := tuple(effect for effect in effects if effect is not None):
        pieces.append(shown)
    notes = (_NOTE, _INDEPENDENT if asked.independent else _OWN, _tried(found))
    notes += (f"Without a snapshot of independent Scenes: {', '.join(missing)}.",) if missing else ()
    return Panel(title=title("attributes"), head=head_of(chosen), rows=tuple(pieces), notes=notes)


_NOTE: Final = (
    "Linear probes: multinomial logistic regression on the embeddings, fitted on 70 % of the pairs and tried on the "
    "rest; intervals are Wilson's at 95 %. An attribute that a run explains away is read off it no better than by "
    "guessing."
)
_OWN: Final = (
    "Each run is probed on its own held-out pairs. 'From the others' is a probe on the pair's other attributes alone: "
    "where training data are correlated, held-out renderings are, too, and an attribute can be guessed from its "
    "companions. Only what lies above it is read off the embedding itself; independent Scenes have no such companions."
)
_INDEPENDENT: Final = (
    "All runs are probed on the same Scenes, drawn with a seed of their own and without co-occurrence: nothing can be "
    "guessed from its companions, and runs trained with and without co-occurrence are compared on equal terms."
)


def _tried(found: Sequence[tuple[int, Probed]]) -> str:
    told = (f"{p.run.name}: n = {next(iter(p.images.values() or p.texts.values())).tried:,} tried" for _, p in found)
    return "; ".join(told) + "."


def _told_apart(chosen: Sequence[tuple[int, RunRow, SnapshotRow]], runs: int) -> list[tuple[int, RunRow, SnapshotRow]]:
    """The runs looked at by name and, where their steps differ, by step; the others of the ablation by name."""
    first = [one for one in chosen if one[0] < runs]
    names = told_apart([run.name for _, run, _ in first], [row.step for *_, row in first])
    named = [(i, replace(run, name=name), row) for (i, run, row), name in zip(first, names, strict=True)]
    return [*named, *chosen[len(first) :]]


def _independent(workspace: Workspace, run: RunRow, step: int | None) -> SnapshotRow | None:
    """The run's snapshot of independent Scenes at a step, None: the newest; None where there is none."""
    rows = [row for row in workspace.results.snapshots(run.id) if row.split == INDEPENDENT and step in (None, row.step)]
    return max(rows, key=lambda row: row.step, default=None)


def _attribute_plot(side: str, found: Sequence[tuple[int, Probed]], names: Sequence[str]) -> XYPlot:
    dots, curves = [], []
    for place, (i, each) in enumerate(found):
        offset = 0.16 * (place - (len(found) - 1) / 2)
        for at, name in enumerate(names):
            value = getattr(each, side).get(name)
            if value is None:
                continue
            tone = RUN_TONES[i % 2]
            dots.append(Marker(each.run.name, tone, at + offset, 100 * value.accuracy, size=9))
            x = np.full(2, at + offset)
            curves.append(Series("", tone, x, 100 * np.array([value.low, value.high])))
    first = found[0][1]
    for at, name in enumerate(names):
        value = getattr(first, side).get(name)
        if value is not None:
            for level, dashed in ((value.chance, False), (first.others[name], True)):
                if level == level:
                    x = np.array([at - 0.35, at + 0.35])
                    curves.append(Series("", "quiet", x, np.full(2, 100 * level), dashed=dashed, width=1.5))
    x, y = Axis("", -0.6, len(names) - 0.4), Axis("read rightly (%)", 0, 104)
    note = "gray: guessing; dashed: from the others"
    return XYPlot(
        f"probes-{side}", f"Probes of the {side}", x, y, tuple(curves), dots=tuple(dots), names=tuple(names), note=note
    )


def _attribute_table(side: str, found: Sequence[tuple[int, Probed]], names: Sequence[str]) -> ShadedTable:
    lines = [
        (
            each.run.name,
            [100 * getattr(each, side)[n].accuracy if n in getattr(each, side) else math.nan for n in names],
        )
        for _, each in found
    ]
    first = found[0][1]
    chances = [100 * getattr(first, side)[n].chance if n in getattr(first, side) else math.nan for n in names]
    lines.append(("guessing", chances))
    for level in sorted({each.cooccurrence for _, each in found if each.cooccurrence is not None}):
        one = next(each for _, each in found if each.cooccurrence == level)
        lines.append((f"from the others, co-occurrence {level:g}", [100 * one.others.get(n, math.nan) for n in names]))
    values = np.array([numbers for _, numbers in lines])
    rows = tuple(name for name, _ in lines)
    return ShadedTable(f"table-{side}", f"Read off the {side} (%)", rows, tuple(names), values, 1, top=100.0)


def _ablation_table(workspace: Workspace, found: Sequence[tuple[int, Probed]], names: Sequence[str]) -> NumberTable:
    columns = ("objective", "co-occ.", "step", "R@1 (%)", "dirs image", "dirs text", "rank image", "rank text")
    lines = []
    for _, each in found:
        snapshot = read_snapshot(each.row.folder)
        spectra = {
            side: covariance_spectrum(vectors[at_most(len(vectors), MOST_PAIRS)])
            for side, vectors in sides_of(snapshot)
        }
        none = np.zeros(0)
        r1 = workspace.results.series(each.run.id, "val/image_to_text_R@1")
        at = np.flatnonzero(r1[0] <= each.row.step)
        recall = f"{100 * float(r1[1][at[-1]]):.1f}" if len(at) else "–"
        values = [effective_directions(spectra.get(s, none)) if s in spectra else math.nan for s in ("image", "text")]
        ranks = [effective_rank(spectra[s]) if s in spectra else math.nan for s in ("image", "text")]
        level = "–" if each.cooccurrence is None else f"{each.cooccurrence:g}"
        cells = (
            objective_label(each.run.objective),
            level,
            f"{each.row.step:,}",
            recall,
            *(f"{v:,.0f}" if v == v else "–" for v in values),
            *(f"{v:.1f}" if v == v else "–" for v in ranks),
        )
        lines.append(NumberRow(each.run.name, "", cells))
    title = "What was trained: recall, effective directions (99 %), effective rank"
    return NumberTable("runs", title, columns, tuple(lines), badges=False)


def _effect(side: str, found: Sequence[tuple[int, Probed]], names: Sequence[str]) -> ShadedTable | None:
    """Accuracy with minus without co-occurrence, of each objective that was trained both ways."""
    by: dict[tuple[str, float], Probed] = {
        (each.run.objective, each.cooccurrence): each for _, each in found if each.cooccurrence is not None
    }
    lines = []
    for objective in dict.fromkeys(kind for kind, _ in by):
        with_ = max((level for kind, level in by if kind == objective), default=0.0)
        if with_ > 0 and (objective, 0.0) in by:
            correlated, free = (getattr(by[objective, level], side) for level in (with_, 0.0))
            differences = [
                100 * (correlated[n].accuracy - free[n].accuracy) if n in correlated and n in free else math.nan
                for n in names
            ]
            lines.append((f"{objective_label(objective)}, {with_:g} − 0", differences))
    if not lines:
        return None
    title = f"{side.capitalize()}: trained with minus without co-occurrence (points)"
    values = np.array([row for _, row in lines])
    key = "effect" if side == "images" else f"effect-{side}"
    return ShadedTable(key, title, tuple(name for name, _ in lines), tuple(names), values, 1, top=50.0)


def _one_hot(columns: Sequence[np.ndarray]) -> Float[np.ndarray, "n d"]:
    blocks = []
    for words in columns:
        values, codes = np.unique(words, return_inverse=True)
        blocks.append(np.eye(len(values), dtype=np.float32)[codes.reshape(-1)])
    return np.concatenate(blocks, axis=1)
