"""The dictionary of concepts that runs share: what the chart `concepts` draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from jaxtyping import Int
from msgspec import Struct

from trainer.analysis.concept_edits import ConceptSpaces
from trainer.analysis.concepts import (
    Concept,
    Kept,
    concepts_of,
    kept_by,
    learned_and_held,
    once,
    stability_of,
    standardized,
)
from trainer.analysis.progress import Progress, part_of
from trainer.analysis.sparse_dictionary import SparseDictionary, fit
from trainer.analysis.units import Unit
from trainer.charts import ChartError
from trainer.charts.common_pairs import common_ids
from trainer.charts.concept_effects import TowerTexts, asked_of, towers_texts
from trainer.charts.opened_snapshot import open_targets
from trainer.charts.snapshot_label import SnapshotLabel
from trainer.charts.spec import Request
from trainer.config.fields import option
from trainer.store import Workspace
from trainer.store.snapshot_files import Items, Snapshot

STABLE: Final = 0.7
"""Cosine with the counterpart of another seed from which a concept is stable."""

MOST_PAIRS: Final = 10_000


LEAST_PAIRS: Final = 20


_LEAST_ROWS: Final = 4
"""Rows of a concept per concept at least: fewer rows allow fewer concepts."""


@dataclass(frozen=True)
class ConceptsSettings:
    """The settings of the chart."""

    concepts: int = option(128, "Concepts", "Concepts of the dictionary; fewer for few pairs.", low=4, high=2_048)
    active: int = option(6, "Active", "Concepts that an image or caption has at most.", low=1, high=64)
    seeds: int = option(2, "Seeds", "Dictionaries that are trained; stability needs two.", low=1, high=5)
    listed: int = option(6, "Listed", "Concepts of each kind in the table.", low=1, high=100, redraws=True)
    concept: int = option(
        -1,
        "Pictures of",
        "Number of the concept whose images are shown; -1: of the first of each kind.",
        low=-1,
        high=2_047,
        redraws=True,
    )
    towers: bool = option(
        False, "Ask the text tower", "Also names concepts by each run's text tower, and measures zero-shot accuracy."
    )
    strength: float = option(
        0.0,
        "Add",
        "Adds that many typical strengths of the concept to the query pair and searches; 0: no search.",
        low=0.0,
        high=5.0,
        redraws=True,
    )
    query: int = option(0, "Query pair", "A row of the snapshot.", low=0, control=False, redraws=True)
    off: tuple[int, ...] = option(
        (), "Switched off", "Concepts that are taken out of all embeddings.", control=False, redraws=True
    )


class Concepts(Struct, frozen=True, weakref=True):
    """The concepts of some runs, most frequent first."""

    runs: tuple[SnapshotLabel, ...]  # Of which run and snapshot each space is.
    items: Items  # Of the first run's snapshot.
    pairs: int  # Pairs that all runs have and that were used.
    held: int  # Of these, pairs whose pictures the dictionary was not trained on, nor, but for `apart`, their captions.
    pictures: int  # Distinct pictures of these: the questions of recall.
    active: int  # Concepts of a row at most.
    concepts: tuple[Concept, ...]  # Those that a row has.
    size: int  # Concepts of the dictionary, with those that no row has.
    kept: tuple[Kept, ...]  # Of each run.
    stable: float  # Share of the concepts whose stability is at least `STABLE`; NaN for one seed.
    of: ConceptSpaces  # The dictionary, with what it was trained on.
    texts: TowerTexts | None  # What the text towers embedded; None if they were not asked.
    # `group`: no picture and no caption is on both sides of the split. `picture`: captions may be, because nearly
    # all pictures are linked by the captions that they share.
    apart: Unit = "group"

    @property
    def held_notes(self) -> tuple[str, ...]:
        """What is held out, in sentences."""
        first = "A recall is among the distinct captions of the pairs that the dictionary was not trained on."
        linked = "Captions of held-out pictures were learned from: nearly all pictures share captions."
        return (first, linked) if self.apart == "picture" else (first,)


def sentences(workspace: Workspace, request: Request, settings: ConceptsSettings) -> tuple[str, ...]:
    """Return the words and class prompts that each run embeds; none unless the settings ask for them."""
    return asked_of(workspace, request).sentences if settings.towers else ()


def compute(
    workspace: Workspace, request: Request, settings: ConceptsSettings, progress: Progress
) -> Iterator[Concepts]:
    """Yield the concepts of all targets on the pairs that all of them have, then with what is stable over seeds.

    Raises:
        ChartError: A run has no such snapshot or only one modality, or they have too few pairs in common.
    """
    opened = open_targets(workspace, request)
    for each in opened:
        each.both("concepts are of")
    run_labels, snapshots = tuple(SnapshotLabel(**each.label) for each in opened), [each.snapshot for each in opened]
    common = _common(snapshots)
    units = opened[0].units.taken(common[0])
    positions = units.sample(MOST_PAIRS, "picture")
    positions = positions[units.taken(positions).rows("pair")]
    units, common = units.taken(positions), [rows[positions] for rows in common]
    if units.count("picture") < LEAST_PAIRS:
        pictures = units.count("picture")
        raise ChartError(f"These runs have {pictures} pictures in common; a dictionary needs {LEAST_PAIRS}.")
    learned, held, apart = learned_and_held(units)
    learned_rows = once(units, learned)
    spaces = [standardized(*_sides(each, rows), learned_rows) for each, rows in zip(snapshots, common, strict=True)]
    rows = np.concatenate([space.rows for space in spaces], axis=1)
    train = rows[learned_rows]
    size = min(settings.concepts, len(train) // _LEAST_ROWS)
    widths = tuple(space.rows.shape[1] for space in spaces)
    fitted = partial(fit, train, widths=widths, concepts=size, active=min(settings.active, size))
    parts = [part_of(progress, seed, settings.seeds) for seed in range(settings.seeds)]
    first = fitted(seed=0, progress=parts[0])
    codes = first.codes(rows)
    captions = [snapshots[0].items.caption[row] for row in common[0]]
    texts = units.taken(held).matching.texts
    recall_kept = kept_by(first, codes, rows, train, spaces, held, units)
    of = ConceptSpaces(first, codes, tuple(spaces), held, texts, common[0], units.picture)
    towers = towers_texts(request, asked_of(workspace, request), snapshots[0], of) if settings.towers else None
    counts = len(positions), len(held), len(texts.asking()), first.active

    def named(dictionaries: Sequence[SparseDictionary]) -> Concepts:
        concepts = concepts_of(first, codes, stability_of(dictionaries), captions, common[0], units)
        steady = [concept.stability >= STABLE for concept in concepts]
        stable = float(np.mean(steady)) if len(dictionaries) > 1 and concepts else float("nan")
        return Concepts(run_labels, snapshots[0].items, *counts, concepts, size, recall_kept, stable, of, towers, apart)

    yield named([first])
    if settings.seeds > 1:
        others = (fitted(seed=seed, progress=parts[seed]) for seed in range(1, settings.seeds))
        yield named([first, *others])


def _common(snapshots: Sequence[Snapshot]) -> list[Int[np.ndarray, " n"]]:
    """Return the rows of each snapshot that hold the pairs that all have, in the order of the first."""
    ids = common_ids([snapshot.items for snapshot in snapshots]).astype(str).tolist()
    rows_of_ids = [
        {pair_id: row for row, pair_id in enumerate(np.asarray(s.items.id, str).tolist())} for s in snapshots
    ]
    return [np.array([row_of[pair_id] for pair_id in ids], np.int64) for row_of in rows_of_ids]


def _sides(snapshot: Snapshot, rows: Int[np.ndarray, " n"]) -> tuple[np.ndarray, np.ndarray]:
    assert snapshot.image is not None
    assert snapshot.text is not None
    image, text = snapshot.image[rows], snapshot.text[rows]
    if not (np.isfinite(image).all() and np.isfinite(text).all()):
        raise ChartError("Embeddings of this snapshot are not numbers. Choose an earlier step.")
    return image, text
