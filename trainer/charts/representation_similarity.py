"""Similarity of whole snapshots: linear CKA, RSA and shared neighbors, over runs, steps and modalities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float, Shaped
from msgspec import Struct

from trainer.analysis.chance import jaccard_chance_text
from trainer.analysis.embedding_similarity import compare_spaces
from trainer.analysis.progress import Progress, part_of
from trainer.analysis.sampling import at_most
from trainer.analysis.units import UNIT_OF, Units
from trainer.charts import ChartError
from trainer.charts.common_pairs import common_ids, rows_of_ids
from trainer.charts.marks import Panel, named_map
from trainer.charts.matching import units_of
from trainer.charts.opened_snapshot import open_target
from trainer.charts.snapshot_label import SnapshotLabel, shown
from trainer.charts.snapshots import choose_snapshot, course_of
from trainer.charts.spec import Chart, Records, Request
from trainer.config.fields import option
from trainer.metrics import data_label
from trainer.store import RunRow, SnapshotRow, Workspace
from trainer.store.snapshot_files import Snapshot, read_snapshot

METHOD: Final = """\
Every snapshot of the runs is compared with every other on the pairs that all of them hold, images and texts each as a \
space of its own; a step that is named is taken alone. Each distinct picture, and each distinct caption, counts once; \
images are compared with texts on pairs that share neither.

Linear CKA (Kornblith et al. 2019, arXiv 1905.00414), RSA (Spearman correlation of all pairwise cosines, Kriegeskorte \
et al. 2008), and the mean Jaccard overlap of the k nearest neighbors. CKA is close to 1 for any two spaces when there \
are fewer pairs than dimensions, so check n. Gray: a space that does not vary."""

MEASURES: Final[dict[str, str]] = {"cka": "Linear CKA", "rsa": "RSA", "neighbors": "Shared neighbors"}
MOST_ROWS: Final = 4_000
"""More pictures or captions are sampled for CKA and neighbors: every cell compares them again."""
MOST_RSA: Final = 600
"""Pictures or captions of RSA, which ranks all their 180,000 cosines."""
MOST_SPACES: Final = 40


@dataclass(frozen=True)
class RepresentationSettings:
    """The settings of the chart."""

    measure: Literal["cka", "rsa", "neighbors", "all"] = option(
        "cka", "Measure", "What is drawn.", redraws=True, named=MEASURES
    )
    steps: int = option(6, "Steps", "Snapshots of each run at most, evenly spread.", low=1, high=20)
    k: int = option(10, "Neighbors", "Neighbors of each pair that are compared.", low=1, high=100)


@dataclass(frozen=True, kw_only=True)
class Space(SnapshotLabel):
    """One row of the matrix: the images or the texts of one snapshot."""

    modality: str

    @property
    def words(self) -> str:
        """The row's name."""
        return f"{self.name} · {self.step:,} · {self.modality}s"


class RepresentationSimilarity(Struct, frozen=True):
    """A symmetric matrix per measure; row i is `spaces[i]`."""

    spaces: tuple[Space, ...]  # Modality by modality, run by run, by step.
    # Measure -> similarity of every two spaces; NaN where one of them does not vary.
    matrices: dict[str, Float[np.ndarray, "m m"]]
    # Modality -> distinct pictures, or captions, compared (RSA: at most 600 of them); `both`: pairs without a
    # common picture or caption, on which images are compared with texts.
    n: dict[str, int]
    pairs: int  # Pairs that all snapshots hold.
    k: int  # Neighbors of each pair.

    @property
    def note(self) -> str:
        """N, and what was sampled."""
        first, counts = self.spaces[0], set(self.n.values())
        names = {"image": "pictures", "text": "captions", "both": "pairs for images with texts"}
        if len(counts) == 1 and "both" in self.n:
            names = {"both": "pairs"}
        n = ", ".join(f"{self.n[key]:,} {name}" for key, name in names.items() if key in self.n)
        drawn = f" of {self.pairs:,}, drawn at random (seed 0)" if MOST_ROWS in counts else ""
        rsa_n = f" · RSA of {MOST_RSA:,} of them" if max(counts) > MOST_RSA else ""
        chance = jaccard_chance_text(self.k, min(counts) - 1)
        return f"{n}{drawn} of {data_label(first)}{rsa_n} · {self.k} neighbors, {chance}"


def representation_similarity(
    workspace: Workspace, request: Request, settings: RepresentationSettings, progress: Progress
) -> RepresentationSimilarity:
    """Compare every snapshot of these runs with every other, with images and texts as separate spaces.

    Raises:
        ChartError: A run has no such snapshot, they have no pair in common, or they are too many.
    """
    chosen = snapshots_of(workspace, request, settings.steps)
    dataset = chosen[0][1].dataset
    ids = common_ids([snapshot.items for _, snapshot in chosen])
    if len(ids) < 3:
        raise ChartError(f"These runs have {len(ids)} pairs of {dataset} in common; at least 3 are compared.")
    units = common_units(chosen, ids)
    rows_by_snapshot = [rows_of_ids(snapshot.items.id, ids) for _, snapshot in chosen]
    spaces, vectors = [], []
    for modality in ("image", "text"):
        for (row, snapshot), rows in zip(chosen, rows_by_snapshot, strict=True):
            if (array := getattr(snapshot, modality)) is not None:
                spaces.append(Space(modality=modality, **shown(row, snapshot, units)))
                vectors.append((array, rows))
    if len(spaces) > MOST_SPACES:
        raise ChartError(f"{len(spaces)} spaces are too many for one matrix; take fewer steps or runs ({MOST_SPACES}).")
    modalities = [space.modality for space in spaces]
    matrices, n = _compared(vectors, modalities, units, settings.k, progress)
    return RepresentationSimilarity(tuple(spaces), matrices, n, len(ids), min(settings.k, max(n.values()) - 1))


def common_units(chosen: Sequence[tuple[RunRow, Snapshot]], ids: Shaped[np.ndarray, " n"]) -> Units:
    """Return the units of the pairs that all snapshots hold."""
    first = chosen[0][1]
    return units_of(first, rows_of_ids(first.items.id, ids))


def _compared(
    vectors: Sequence[tuple[np.ndarray, ...]], modalities: Sequence[str], units: Units, k: int, progress: Progress
) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Return the matrices, and how many rows each modality was compared on: those that are independent of each other.

    Images with images: distinct pictures; texts with texts: distinct captions; images with texts: pairs of which no two
    share either. Of the vectors, each with the rows of the pairs in it, no more is read than is compared.
    """
    rows = {name: units.rows(UNIT_OF[name], MOST_ROWS) for name in UNIT_OF if name in modalities}
    if len(rows) == 2:
        rows = {"both": at_most(units.alike(), MOST_ROWS)} | rows
    n = {name: len(of) for name, of in rows.items()}
    parts = rows if len({*map(bytes, rows.values())}) > 1 else dict(list(rows.items())[:1])
    matrices = {key: np.full((len(vectors),) * 2, np.nan) for key in MEASURES}
    for part, (name, of) in enumerate(parts.items()):
        at = [index for index, modality in enumerate(modalities) if name in ("both", modality)]
        if len(of) < 3:
            continue
        some = [np.asarray(vectors[index][0][vectors[index][1][of]], np.float32) for index in at]
        blocks = compare_spaces(some, min(k, len(of) - 1), MOST_RSA, part_of(progress, part, len(parts)))
        for key, matrix in blocks.items():
            matrices[key][np.ix_(at, at)] = matrix
    return matrices, n


def draw(data: RepresentationSimilarity, settings: RepresentationSettings) -> Panel:
    """Draw one heat map per measure, on a scale from 0 (dark) to 1."""
    measures = MEASURES if settings.measure == "all" else {settings.measure: MEASURES[settings.measure]}
    names, ticks = tuple(space.words for space in data.spaces), tuple(enumerate(short_names(data.spaces)))
    groups = [(space.run, space.modality) for space in data.spaces]
    dividers = tuple(index for index in range(1, len(groups)) if groups[index] != groups[index - 1])
    same: dict[str, Any] = {"x_ticks": ticks, "y_ticks": ticks, "low": 0.0, "high": 1.0, "dividers": dividers}
    maps = [named_map(key, of, data.matrices[key], names, names, unit=of, **same) for key, of in measures.items()]
    names_of_runs = dict.fromkeys((space.run, space.name) for space in data.spaces)
    runs = " · ".join(f"{letter}: {name}" for letter, (_, name) in zip(ascii_uppercase, names_of_runs))
    return Panel(
        title="How similar whole snapshots are",
        rows=tuple((each,) for each in maps),
        notes=(runs, data.note),
        letters=True,
    )


def short_names(spaces: Sequence[Space]) -> tuple[str, ...]:
    """Return short vertical names: letters for runs; with a single run only step and modality."""
    runs = list(dict.fromkeys(space.run for space in spaces))
    letters = {run: f"{letter} · " if len(runs) > 1 else "" for run, letter in zip(runs, ascii_uppercase)}
    return tuple(f"{letters[space.run]}{space.step:,} · {space.modality}s" for space in spaces)


def values(data: RepresentationSimilarity, _settings: RepresentationSettings) -> list[dict[str, Any]]:
    """Return one column per space: its description, and its similarity to every space by every measure."""
    facts = ("run", "name", "step", "dataset", "split", "modality")
    sizes = {"pairs": data.pairs, "k": data.k}
    return [
        {name: getattr(space, name) for name in facts}
        | {"n": data.n[space.modality]}
        | sizes
        | {key: matrix[index].tolist() for key, matrix in data.matrices.items()}
        for index, space in enumerate(data.spaces)
    ]


def records(data: RepresentationSimilarity, _settings: RepresentationSettings) -> Records:
    """Return one row per pair of different spaces."""
    fields = ("run", "name", "step", "modality")
    header = (*(f"{field}_{side}" for side in "ab" for field in fields), *MEASURES, "n", "pairs", "k")
    return header, [
        (
            *(getattr(space, field) for space in (second, first) for field in fields),
            *(float(data.matrices[key][i, j]) for key in MEASURES),
            *(data.n[first.modality if first.modality == second.modality else "both"], data.pairs, data.k),
        )
        for i, first in enumerate(data.spaces)
        for j, second in enumerate(data.spaces[:i])
    ]


def snapshots_of(workspace: Workspace, request: Request, steps: int) -> list[tuple[RunRow, Snapshot]]:
    """Return the snapshots by run and step, all on the data that the first one prefers."""
    first = request.targets[0]
    about = open_target(workspace, first, request).row
    snapshots: dict[tuple[int, int], tuple[RunRow, Snapshot]] = {}
    for target in request.targets:
        row = workspace.runs.get(target.run)
        last = choose_snapshot(workspace, row, step=target.step, dataset=about.dataset, split=about.split)
        for chosen in [last] if target.step is not None else _spaced(course_of(workspace, last), steps):
            snapshots.setdefault((row.id, chosen.step), (row, read_snapshot(chosen.folder)))
    return list(snapshots.values())


def _spaced(course: Sequence[SnapshotRow], most: int) -> Sequence[SnapshotRow]:
    """Return evenly spaced ones including the first and the last; of one the last."""
    if most == 1:
        return course[-1:]
    return [course[index] for index in sorted({round(at) for at in np.linspace(0, len(course) - 1, most)})]


CHART: Final = Chart(
    view="changes",
    label="Representation similarity",
    question="How similar are whole snapshots?",
    cost="Grows with the square of the snapshots, at most 40; each is measured on at most 4,000 rows, RSA on 600.",
    method=METHOD,
    settings=RepresentationSettings,
    compute=representation_similarity,
    draw=draw,
    values=values,
    records=records,
)
