"""Linear probes of the attributes of runs, and the runs of the four-way ablation: what `attribute-probes` draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.probes import Probe, probe
from trainer.analysis.progress import part_of
from trainer.analysis.spectra import covariance_spectrum, effective_directions, effective_rank
from trainer.analysis.units import UNIT_OF, Unit
from trainer.charts import ChartError
from trainer.charts.matching import units_of
from trainer.charts.opened_snapshot import open_target
from trainer.charts.snapshot_label import SnapshotLabel, shown
from trainer.charts.snapshot_measures import MOST_PAIRS, finite, modalities_of
from trainer.charts.spec import PerRun, Progress, Request, Target
from trainer.config import Scenes
from trainer.config.ablation import INDEPENDENT, PRESET
from trainer.config.fields import option
from trainer.store import RunRow, SnapshotRow, Workspace, read_snapshot
from trainer.store.number_series import number_series
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


HELD_OUT: Final[dict[str, tuple[Unit, Unit]]] = {"image": ("picture", "picture"), "text": ("caption", "group")}
"""Modality -> what is read, and what is held out as a whole: captions of one picture say the same of it."""


@dataclass(frozen=True)
class ProbeSettings:
    """The pairs and runs to probe."""

    independent: bool = option(
        False, "Independent Scenes", "Probe the same Scenes of every run, in which attributes are independent."
    )
    ablation: bool = option(True, "Runs of the ablation", "Also list the newest runs of the four-way ablation.")


@dataclass(frozen=True, kw_only=True)
class Probed(SnapshotLabel):
    """One run's probes: attribute -> its probe, of images and of texts.

    Attributes:
        cooccurrence: Of its training data; None where they have none.
        others: Attribute -> accuracy of a probe on the other attributes alone.
        recall: Image to text R@1 at that step, in percent; NaN where it was not measured.
        directions, rank: Modality -> effective directions and effective rank, of distinct pictures or captions.
        untried: What could not be probed -> why not.
    """

    cooccurrence: float | None
    images: dict[str, Probe]
    texts: dict[str, Probe]
    others: dict[str, float]
    recall: float
    directions: dict[str, float]
    rank: dict[str, float]
    untried: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Probes(PerRun[Probed]):
    """The probes of the selected runs, and those of the ablation."""

    ablation: tuple[Probed, ...] = ()  # Of the runs of the ablation that are not selected.
    missing: tuple[str, ...] = ()  # Runs without a snapshot of independent Scenes.

    def by_data(self) -> tuple[PerRun[Probed], ...]:
        """Return the runs of each data by themselves, with those of the ablation that were probed on these."""
        parts, rest = [], self.ablation
        for part in super().by_data():
            same = tuple(
                run for run in rest if (run.dataset, run.split) == (part.found[0].dataset, part.found[0].split)
            )
            rest = tuple(run for run in rest if run not in same)
            parts.append(replace(self, found=part.found, places=part.places, ablation=same))
        return (*parts, *([replace(self, found=(), places=(), ablation=rest)] if rest else []))

    @property
    def name(self) -> str:
        """Of the only run, or of the data of several."""
        return PerRun((*self.found, *self.ablation), ()).name if not self.found else super().name


def ablation_runs(workspace: Workspace) -> list[RunRow]:
    """Return the newest 8 ablation runs with a snapshot, oldest first: four with and four without co-occurrence."""
    rows = [run for run in workspace.runs.all() if run.preset == PRESET and workspace.results.snapshots(run.id)]
    return rows[-8:]


def attributes_of(snapshot: Snapshot) -> dict[str, list[str]]:
    """Return the attributes to probe: text columns with 2 to 50 values; else the class."""
    attributes = {}
    for name, values in snapshot.items.metadata.items():
        if all(isinstance(value, str) for value in values) and 2 <= len(set(values)) <= 50:
            attributes[_ATTRIBUTES.get(name, name.replace("_", " "))] = list(values)
    if not attributes and 2 <= len(set(snapshot.items.label)) <= 200:
        attributes["class"] = list(snapshot.items.label)
    return attributes


def probed(workspace: Workspace, run: RunRow, row: SnapshotRow, progress: Progress) -> Probed:
    """Return all probes of one snapshot, on at most 20,000 random pictures with all of their captions.

    Raises:
        ChartError: Its items have no attributes.
    """
    snapshot = read_snapshot(row.folder)
    all_units = units_of(snapshot)
    rows = all_units.sample(MOST_PAIRS, "picture")
    units = all_units.taken(rows)
    named = {name: np.array(values, dtype=str)[rows] for name, values in attributes_of(snapshot).items()}
    if not named:
        raise ChartError(f"The pairs of {row.dataset}-{row.split} have no attributes to probe; Scenes has.")
    probes: dict[str, dict[str, Probe]] = {"image": {}, "text": {}}
    others: dict[str, float] = dict.fromkeys(named, math.nan)
    untried: dict[str, str] = {}
    for index, (name, classes) in enumerate(named.items()):
        progress(index / len(named), f"Probing {run.short_name}: {name}")
        for side, vectors in modalities_of(snapshot):
            vectors, (unit, apart) = finite(vectors[rows], run), HELD_OUT[side]
            try:
                probes[side][name] = probe(vectors, classes, units, unit=unit, apart=apart, progress=progress)
            except ValueError as problem:
                untried[f"{name} of the {side}s"] = str(problem)
        rest = [values for other, values in named.items() if other != name]
        with suppress(ValueError):
            others[name] = probe(_one_hot(rest), classes, units).accuracy if rest else math.nan
    if not (probes["image"] or probes["text"]):
        raise ChartError(f"{run.short_name} cannot be probed: {next(iter(untried.values()))}.")
    spectra = {
        side: covariance_spectrum(vectors[rows[units.rows(UNIT_OF[side])]]) for side, vectors in modalities_of(snapshot)
    }
    return Probed(
        **shown(run, row, all_units),
        untried=untried,
        cooccurrence=getattr(workspace.runs.config_of(run.id).data, "cooccurrence", None),
        images=probes["image"],
        texts=probes["text"],
        others=others,
        recall=recall_of(workspace, run, row),
        directions={side: effective_directions(spectrum) for side, spectrum in spectra.items()},
        rank={side: effective_rank(spectrum) for side, spectrum in spectra.items()},
    )


def recall_of(workspace: Workspace, run: RunRow, row: SnapshotRow) -> float:
    """Return the last recall up to the snapshot: logged, else evaluated on its data; NaN without any."""
    data = f"{row.dataset}/{row.split}/image_to_text_R@1"
    logged = number_series(workspace, run.id, "val/image_to_text_R@1")
    recalls = logged if len(logged.steps) else number_series(workspace, run.id, data)
    at = np.flatnonzero(recalls.steps <= row.step)
    return 100 * float(recalls.values[at[-1]]) if len(at) else math.nan


def lacking_independent(
    workspace: Workspace, runs: Sequence[tuple[int, int | None]]
) -> tuple[tuple[int, int | None], ...]:
    """Return Scenes runs without a snapshot of independent Scenes, and the checkpoint step to embed it with.

    Of the runs given at their steps (None: the newest), and of the ablation's other runs at their newest.
    """
    run_ids = {run for run, _ in runs}
    others = [(run.id, None) for run in ablation_runs(workspace) if run.id not in run_ids]
    lacking = []
    for run, at in dict.fromkeys((*runs, *others)):
        if isinstance(workspace.runs.config_of(run).data, Scenes):
            checkpoints = [row.step for row in workspace.results.checkpoints(run)]
            newest = max(checkpoints, default=None)
            embedded_steps = {row.step for row in workspace.results.snapshots(run) if row.split == INDEPENDENT}
            if (newest if at is None else at) not in embedded_steps and checkpoints:
                lacking.append((run, at))
    return tuple(lacking)


def attribute_probes(workspace: Workspace, request: Request, settings: ProbeSettings, progress: Progress) -> Probes:
    """Return probes of the selected runs and of the ablation.

    Raises:
        ChartError: There is nothing to probe, or no run has a snapshot of independent Scenes.
    """
    selected = [(index, workspace.runs.get(target.run), target) for index, target in enumerate(request.targets)]
    run_ids = {run.id for _, run, _ in selected}
    others = [run for run in ablation_runs(workspace) if run.id not in run_ids] if settings.ablation else []
    every = [*selected, *((None, run, Target(run.id)) for run in others)]
    results, ablation = list[Probed](), list[Probed]()
    indices, missing, problems = [], [], []
    for count, (index, run, target) in enumerate(every):
        part = part_of(progress, count, len(every))
        try:
            row = _snapshot(workspace, run, target, request, settings)
            if row is None:
                missing.append(run.short_name)
                continue
            (ablation if index is None else results).append(probed(workspace, run, row, part))
            indices += [] if index is None else [index]
        except ChartError as problem:
            # What is wrong with a run of the ablation that nobody chose is not told.
            problems += [] if index is None else [str(problem)]
    if not results and not ablation and missing:
        numbers = " ".join(dict.fromkeys(str(run.id) for _, run, _ in every))
        raise ChartError(
            "No run has a snapshot of independent Scenes yet. Press Embed independent Scenes, or: trainer "
            f"independent {numbers}"
        )
    if not results and not ablation:
        raise ChartError(" ".join(problems))
    return Probes(tuple(results), tuple(indices), tuple(problems), tuple(ablation), tuple(missing))


def _snapshot(
    workspace: Workspace, run: RunRow, target: Target, request: Request, settings: ProbeSettings
) -> SnapshotRow | None:
    """Return the snapshot to probe; None if the run has none of independent Scenes at that step."""
    if not settings.independent:
        return open_target(workspace, target, request).row
    rows = [row for row in workspace.results.snapshots(run.id) if row.split == INDEPENDENT]
    return max((row for row in rows if target.step in (None, row.step)), key=lambda row: row.step, default=None)


def _one_hot(columns: Sequence[np.ndarray]) -> Float[np.ndarray, "n d"]:
    blocks = []
    for column in columns:
        values, codes = np.unique(column, return_inverse=True)
        blocks.append(np.eye(len(values), dtype=np.float32)[codes.reshape(-1)])
    return np.concatenate(blocks, axis=1)
