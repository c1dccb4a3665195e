"""How alike whole snapshots are: linear CKA, RSA and shared neighbors, over runs, steps and modalities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.embedding_similarity import (
    cka_of_profiles,
    cka_profile,
    jaccard,
    neighbor_rows,
    rsa_of_profiles,
    rsa_profile,
)
from trainer.analysis.progress import Progress
from trainer.analysis.sampling import at_most
from trainer.charts import ChartError
from trainer.charts.snapshot_label import SnapshotLabel, shown
from trainer.charts.snapshots import choose_snapshot
from trainer.store import Workspace
from trainer.store.snapshot_files import read_snapshot

LIKENESSES: Final[dict[str, str]] = {"cka": "Linear CKA", "rsa": "RSA", "neighbors": "Shared neighbors"}
MOST_ROWS: Final = 4_000
"""More pairs are sampled for CKA and neighbors: every cell compares them anew."""
MOST_RSA: Final = 600
"""Pairs of RSA, which ranks all their 180,000 cosines."""
MOST_SPACES: Final = 40


@dataclass(frozen=True, kw_only=True)
class Space(SnapshotLabel):
    """One line of the matrix: the images or the texts of one snapshot."""

    modality: str

    @property
    def words(self) -> str:
        """What the line is called."""
        return f"{self.name} · {self.step:,} · {self.modality}s"


@dataclass(frozen=True)
class Likeness:
    """A symmetric matrix a measure; line i is `spaces[i]`.

    Attributes:
        spaces: Modality by modality, run by run, by step.
        matrices: Measure -> likeness of every two spaces; NaN where one of them does not vary.
        n: Pairs compared (RSA: at most 600 of them).
        pairs: Pairs that all snapshots hold; more than `n` where these were sampled.
        k: Neighbors of each pair.
    """

    spaces: tuple[Space, ...]
    matrices: dict[str, Float[np.ndarray, "m m"]]
    n: int
    pairs: int
    k: int

    @property
    def note(self) -> str:
        """n, and what was sampled."""
        first = self.spaces[0]
        drawn = f" of {self.pairs:,}, drawn at random (seed 0)" if self.n < self.pairs else ""
        rsa_n = f" · RSA of {MOST_RSA:,} of them" if self.n > MOST_RSA else ""
        return f"{self.n:,} pairs{drawn} of {first.dataset}, {first.split}{rsa_n} · {self.k} neighbors"


def likeness(
    workspace: Workspace,
    runs: Sequence[int | str],
    *,
    dataset: str | None = None,
    split: str | None = None,
    steps: int = 6,
    k: int = 10,
    progress: Progress | None = None,
) -> Likeness:
    """Compares every snapshot of these runs with every other, images and texts each as a space of its own.

    Args:
        workspace: Where the runs are.
        runs: Ids or names; a run twice counts once.
        dataset: Of the snapshots; None takes the first run's preferred.
        split: Of the snapshots.
        steps: At most so many of each run's, evenly spread, the first and last among them.
        k: Neighbors of each pair.
        progress: Told after each pair of spaces; raises to cancel.

    Raises:
        ChartError: A run has no such snapshot, or they have no pair in common.
        StoreError: No such run.
    """
    if k < 1 or steps < 1 or not runs:
        raise ChartError("At least one run, one step and one neighbor are needed.")
    rows = {row.id: row for row in (workspace.runs.get(ref) for ref in runs)}
    first = choose_snapshot(workspace, next(iter(rows.values())), dataset=dataset, split=split)
    chosen = []
    for row in rows.values():
        choose_snapshot(workspace, row, dataset=first.dataset, split=first.split)
        there = [s for s in workspace.results.snapshots(row.id) if (s.dataset, s.split) == (first.dataset, first.split)]
        there.sort(key=lambda s: s.step)
        chosen += [(row, read_snapshot(there[i].folder)) for i in _spread(len(there), steps)]
    kept = _common([snapshot.items.id for _, snapshot in chosen])
    if len(kept) < 3:
        raise ChartError(f"These runs have {len(kept)} pairs of {first.dataset} in common; at least 3 are compared.")
    drawn = at_most(len(kept), MOST_ROWS)
    spaces, vectors = [], []
    for modality in ("image", "text"):
        for row, snapshot in chosen:
            if (array := getattr(snapshot, modality)) is not None:
                at = _places(snapshot.items.id, kept[drawn])
                spaces.append(Space(modality=modality, **shown(row, snapshot)))
                vectors.append(np.asarray(array[at], np.float32))
    if len(spaces) > MOST_SPACES:
        raise ChartError(f"{len(spaces)} spaces are too many for one matrix; take fewer steps or runs ({MOST_SPACES}).")
    matrices = _compare(vectors, min(k, len(drawn) - 1), progress)
    return Likeness(tuple(spaces), matrices, len(drawn), len(kept), min(k, len(drawn) - 1))


def _compare(vectors: list[np.ndarray], k: int, progress: Progress | None) -> dict[str, np.ndarray]:
    count = len(vectors)
    matrices = {key: np.full((count, count), np.nan) for key in LIKENESSES}
    near: list[np.ndarray] = []
    profiles: list[np.ndarray] = []
    done, whole = 0, count + count * (count + 1) // 2
    few = np.sort(np.random.default_rng(1).choice(len(vectors[0]), min(len(vectors[0]), MOST_RSA), replace=False))
    for i in range(count):
        near.append(neighbor_rows(vectors[i], k))
        profiles.append(rsa_profile(vectors[i][few]))
        vectors[i] = cka_profile(vectors[i])
        done += 1
        for j in range(i + 1):
            if progress is not None:
                progress(done / whole, f"{i + 1} of {count} spaces")
            pair = {
                "cka": cka_of_profiles(vectors[i], vectors[j]),
                "rsa": rsa_of_profiles(profiles[i], profiles[j]),
                "neighbors": float(jaccard(near[i], near[j]).mean()),
            }
            for key, value in pair.items():
                matrices[key][i, j] = matrices[key][j, i] = value
            done += 1
    return matrices


def _spread(count: int, most: int) -> list[int]:
    if most == 1:
        return [count - 1]
    return sorted({round(i * (count - 1) / (min(count, most) - 1 or 1)) for i in range(min(count, most))})


def _common(ids: list[np.ndarray]) -> np.ndarray:
    if all(np.array_equal(ids[0], other) for other in ids[1:]):
        return ids[0]
    kept = np.asarray(ids[0], str)
    for other in ids[1:]:
        kept = kept[np.isin(kept, np.asarray(other, str))]
    return kept


def _places(ids: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    names = np.asarray(ids, str)
    order = np.argsort(names)
    return order[np.searchsorted(names, np.asarray(wanted, str), sorter=order)]
