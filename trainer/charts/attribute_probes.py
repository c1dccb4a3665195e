"""Attributes that linear probes predict from each run's embeddings, and the ablation table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.probes import Probe, probe
from trainer.analysis.sampling import at_most
from trainer.analysis.spectra import covariance_spectrum, effective_directions, effective_rank
from trainer.charts import ChartError, objective_label
from trainer.charts.marks import (
    Mark,
    Marker,
    NumberRow,
    NumberTable,
    Panel,
    Series,
    ShadedTable,
    XYPlot,
    axis_over,
    categories,
    run_tone,
)
from trainer.charts.settings import setting
from trainer.charts.snapshot_label import SnapshotLabel, labels, shown
from trainer.charts.snapshot_measures import MOST_PAIRS, choose, finite, head_of, modalities_of
from trainer.charts.spec import Chart, Progress, Request, Target
from trainer.config import Scenes
from trainer.config.ablation import INDEPENDENT, PRESET
from trainer.metrics import SPLIT_WORDS, recall_name
from trainer.store import RunRow, SnapshotRow, Workspace, read_snapshot
from trainer.store.snapshot_files import Snapshot

MOST_DRAWN: Final = 8
"""More runs than these are in the tables only."""

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
class ProbeSettings:
    """The pairs and runs to probe."""

    independent: bool = setting(
        False, "Independent Scenes", "Probe the same Scenes of every run, in which attributes are independent."
    )
    ablation: bool = setting(True, "Runs of the ablation", "Also list the newest runs of the four-way ablation.")


@dataclass(frozen=True, kw_only=True)
class Probed(SnapshotLabel):
    """One run's probes: attribute -> its probe, of images and of texts.

    Attributes:
        cooccurrence: Of its training data; None where they have none.
        others: Attribute -> accuracy of a probe on the other attributes alone.
        recall: Image to text R@1 at that step, in percent; NaN where it was not measured.
        directions, rank: Modality -> effective directions and effective rank.
    """

    cooccurrence: float | None
    images: dict[str, Probe]
    texts: dict[str, Probe]
    others: dict[str, float]
    recall: float
    directions: dict[str, float]
    rank: dict[str, float]


@dataclass(frozen=True)
class Probes:
    """The probes of the selected runs, then those of the ablation.

    Attributes:
        found: All that could be probed.
        places: Of the chosen ones: the place of each among the targets.
        missing: Runs without a snapshot of independent Scenes.
        problems: Why chosen runs could not be probed, a sentence each.
    """

    found: tuple[Probed, ...]
    places: tuple[int, ...]
    missing: tuple[str, ...]
    problems: tuple[str, ...]


def ablation_runs(workspace: Workspace) -> list[RunRow]:
    """Return the newest 8 ablation runs with a snapshot, oldest first: four with and four without co-occurrence."""
    rows = [run for run in workspace.runs.all() if run.preset == PRESET and workspace.results.snapshots(run.id)]
    return rows[-8:]


def attributes_of(snapshot: Snapshot) -> dict[str, list[str]]:
    """Return the attributes to probe: text columns with 2 to 50 values; else the class."""
    found = {}
    for name, values in snapshot.items.metadata.items():
        if all(isinstance(value, str) for value in values) and 2 <= len(set(values)) <= 50:
            found[_ATTRIBUTES.get(name, name.replace("_", " "))] = list(values)
    if not found and 2 <= len(set(snapshot.items.label)) <= 200:
        found["class"] = list(snapshot.items.label)
    return found


def probed(workspace: Workspace, run: RunRow, row: SnapshotRow, progress: Progress) -> Probed:
    """Return all probes of one snapshot, on at most 20,000 random rows.

    Raises:
        ChartError: Its items have no attributes.
    """
    snapshot = read_snapshot(row.folder)
    rows = at_most(snapshot.n, MOST_PAIRS)
    named = {name: np.array(values, dtype=str)[rows] for name, values in attributes_of(snapshot).items()}
    if not named:
        raise ChartError(f"The pairs of {row.dataset}-{row.split} have no attributes to probe; Scenes has.")
    probes: dict[str, dict[str, Probe]] = {"image": {}, "text": {}}
    others: dict[str, float] = {}
    for place, (name, words) in enumerate(named.items()):
        progress(place / len(named), f"Probing {run.name}: {name}")
        for side, vectors in modalities_of(snapshot):
            probes[side][name] = probe(finite(vectors[rows], run), words, progress=progress)
        rest = [values for other, values in named.items() if other != name]
        others[name] = probe(_one_hot(rest), words).accuracy if rest else math.nan
    spectra = {side: covariance_spectrum(vectors[rows]) for side, vectors in modalities_of(snapshot)}
    return Probed(
        **shown(run, row),
        cooccurrence=getattr(workspace.runs.config_of(run.id).data, "cooccurrence", None),
        images=probes["image"],
        texts=probes["text"],
        others=others,
        recall=_recall(workspace, run, row),
        directions={side: effective_directions(spectrum) for side, spectrum in spectra.items()},
        rank={side: effective_rank(spectrum) for side, spectrum in spectra.items()},
    )


def _recall(workspace: Workspace, run: RunRow, row: SnapshotRow) -> float:
    steps, values, _ = workspace.results.series(run.id, "val/image_to_text_R@1")
    at = np.flatnonzero(steps <= row.step)
    return 100 * float(values[at[-1]]) if len(at) else math.nan


def lacking_independent(
    workspace: Workspace, runs: Sequence[tuple[int, int | None]]
) -> tuple[tuple[int, int | None], ...]:
    """Return Scenes runs without a snapshot of independent Scenes, and the checkpoint step to embed it with.

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


def attribute_probes(workspace: Workspace, request: Request, settings: ProbeSettings, progress: Progress) -> Probes:
    """Return probes of the selected runs and of the ablation.

    Raises:
        ChartError: There is nothing to probe, or no run has a snapshot of independent Scenes.
        StoreError: No such run.
    """
    asked = [(place, workspace.runs.get(target.run), target) for place, target in enumerate(request.targets)]
    given = {run.id for _, run, _ in asked}
    others = [run for run in ablation_runs(workspace) if run.id not in given] if settings.ablation else []
    every = [*asked, *((None, run, Target(run.id)) for run in others)]
    found, places, missing, problems = [], [], [], []
    for count, (place, run, target) in enumerate(every):
        part = _part(progress, count, len(every))
        try:
            row = _snapshot(workspace, run, target, request, settings)
            if row is None:
                missing.append(run.name)
                continue
            found.append(probed(workspace, run, row, part))
            places += [] if place is None else [place]
        except ChartError as problem:
            # What is wrong with a run of the ablation that nobody chose is not told.
            problems += [] if place is None else [str(problem)]
    if not found and missing:
        numbers = " ".join(dict.fromkeys(str(run.id) for _, run, _ in every))
        raise ChartError(
            "No run has a snapshot of independent Scenes yet. Press Embed independent Scenes, or: trainer "
            f"independent {numbers}"
        )
    if not found:
        raise ChartError(" ".join(problems))
    return Probes(tuple(found), tuple(places), tuple(missing), tuple(problems))


def _snapshot(
    workspace: Workspace, run: RunRow, target: Target, request: Request, settings: ProbeSettings
) -> SnapshotRow | None:
    """Return the snapshot to probe; None if the run has none of independent Scenes at that step."""
    if not settings.independent:
        return choose(workspace, run, target, request)
    rows = [row for row in workspace.results.snapshots(run.id) if row.split == INDEPENDENT]
    return max((row for row in rows if target.step in (None, row.step)), key=lambda row: row.step, default=None)


def _part(progress: Progress, place: int, of: int) -> Progress:
    return lambda share, note: progress((place + share) / of, note)


def draw(data: Probes, settings: ProbeSettings) -> Panel:
    """Draw the selected runs' probes, the tables of all runs, and the effect of co-occurrence."""
    chosen = len(data.places)
    apart = labels(data.found[:chosen])
    found = [replace(each, name=name) for each, name in zip(data.found, apart)] + [*data.found[chosen:]]
    names = list(dict.fromkeys(name for each in found for name in (*each.images, *each.texts)))
    drawn = list(zip(found, data.places))[:MOST_DRAWN]
    rows: list[tuple[Mark, ...]] = []
    if drawn:
        rows.append(tuple(_attribute_plot(side, drawn, names) for side in ("images", "texts")))
    rows.append(tuple(_attribute_table(side, found, names) for side in ("images", "texts")))
    rows.append((_runs_table(found),))
    effects = (_effect(side, found, names) for side in ("images", "texts"))
    if there := tuple(effect for effect in effects if effect is not None):
        rows.append(there)
    notes: tuple[str, ...] = (_NOTE, _INDEPENDENT if settings.independent else _OWN, _tried(found))
    notes += (f"Without a snapshot of independent Scenes: {', '.join(data.missing)}.",) if data.missing else ()
    title = "Which attributes does each run encode?"
    return Panel(title=title, head=head_of(data.found[: max(chosen, 4)]), rows=tuple(rows), notes=notes)


_NOTE: Final = (
    "Linear probes: multinomial logistic regression on the embeddings, fitted on 70 % of the pairs and tested on the "
    "rest; intervals are Wilson's at 95 %. An attribute that a run explains away is read off it no better than by "
    "chance."
)
_OWN: Final = (
    "Each run is probed on its own held-out pairs. 'From the others' is a probe on the pair's other attributes alone: "
    "where training data are correlated, held-out renderings are, too, and an attribute can be predicted from "
    "the others. Only the excess over that is read off the embedding; independent Scenes have no such correlations."
)
_INDEPENDENT: Final = (
    "All runs are probed on the same Scenes, drawn with a seed of their own and without co-occurrence: no attribute "
    "can be predicted from the others, and runs trained with and without co-occurrence are compared on equal terms."
)


def _tried(found: Sequence[Probed]) -> str:
    told = (f"{p.name}: n = {next(iter(p.images.values() or p.texts.values())).tried:,} tried" for p in found)
    return "; ".join(told) + "."


def _attribute_plot(side: str, drawn: Sequence[tuple[Probed, int]], names: Sequence[str]) -> XYPlot:
    dots, curves = [], []
    for order, (each, place) in enumerate(drawn):
        offset = min(0.16, 0.6 / len(drawn)) * (order - (len(drawn) - 1) / 2)
        for at, name in enumerate(names):
            if (value := getattr(each, side).get(name)) is not None:
                ends = {"low": 100 * value.low, "high": 100 * value.high}
                dots.append(Marker(each.name, run_tone(place), at + offset, 100 * value.accuracy, size=9, **ends))
    first = drawn[0][0]
    for at, name in enumerate(names):
        value = getattr(first, side).get(name)
        for level, dashed in ((value.chance, False), (first.others[name], True)) if value is not None else ():
            if level == level:
                ends_of = np.array([at - 0.35, at + 0.35])
                curves.append(Series("", "quiet", ends_of, np.full(2, 100 * level), dashed=dashed, width=1.5))
    x, y = categories("", tuple(names)), axis_over("read correctly (%)", (), include=(0, 104))
    note = "gray: guessing; dashed: from the others"
    return XYPlot(
        f"probes-{side}", f"Probes of the {side}", x, y, tuple(curves), dots=tuple(dots), names=tuple(names), note=note
    )


def _attribute_table(side: str, found: Sequence[Probed], names: Sequence[str]) -> ShadedTable:
    lines = [
        (
            each.name,
            [100 * getattr(each, side)[n].accuracy if n in getattr(each, side) else math.nan for n in names],
        )
        for each in found
    ]
    first = found[0]
    chances = [100 * getattr(first, side)[n].chance if n in getattr(first, side) else math.nan for n in names]
    lines.append(("guessing", chances))
    for level in sorted({each.cooccurrence for each in found if each.cooccurrence is not None}):
        one = next(each for each in found if each.cooccurrence == level)
        lines.append((f"from the others, co-occurrence {level:g}", [100 * one.others.get(n, math.nan) for n in names]))
    values = np.array([numbers for _, numbers in lines])
    rows = tuple(name for name, _ in lines)
    return ShadedTable(f"table-{side}", f"Read off the {side} (%)", rows, tuple(names), values, 1, top=100.0)


def _runs_table(found: Sequence[Probed]) -> NumberTable:
    columns = ("objective", "co-occ.", "step", "recall (%)", "dirs image", "dirs text", "rank image", "rank text")
    lines = []
    for each in found:
        cells = (
            objective_label(each.objective),
            "–" if each.cooccurrence is None else f"{each.cooccurrence:g}",
            f"{each.step:,}",
            f"{each.recall:.1f}" if each.recall == each.recall else "–",
            *(f"{each.directions[side]:,.0f}" if side in each.directions else "–" for side in ("image", "text")),
            *(f"{each.rank[side]:.1f}" if side in each.rank else "–" for side in ("image", "text")),
        )
        lines.append(NumberRow(each.name, "", cells))
    recall = recall_name("image_to_text", split=SPLIT_WORDS["val"])
    title = f"What was trained: {recall}, effective directions (99 %), effective rank"
    return NumberTable("runs", title, columns, tuple(lines), badges=False)


def _effect(side: str, found: Sequence[Probed], names: Sequence[str]) -> ShadedTable | None:
    """Return accuracy with minus without co-occurrence for each objective trained both ways."""
    by: dict[tuple[str, float], Probed] = {
        (each.objective, each.cooccurrence): each for each in found if each.cooccurrence is not None
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


CHART: Final = Chart(
    name="attribute-probes",
    view="explaining",
    label="Attribute probes",
    question="Which attributes can be read off each run, and which are explained away?",
    settings=ProbeSettings,
    compute=attribute_probes,
    draw=draw,
)
