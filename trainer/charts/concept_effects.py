"""What concepts do: recall and zero-shot accuracy without them, neighbors with more of one, names by the text tower."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis.class_prompts import captioned
from trainer.analysis.cluster_words import words_of
from trainer.analysis.concept_edits import (
    ConceptSpaces,
    nearest_words,
    neighbors_with,
    recall_without,
    zero_shot_without,
)
from trainer.analysis.distinct import in_order
from trainer.charts import ChartError
from trainer.charts.class_task import class_task, class_words
from trainer.charts.marks import ImageRow, NumberRow, NumberTable, RowImage, heading_row, run_tone
from trainer.charts.opened_snapshot import open_target
from trainer.charts.spec import Request
from trainer.metrics import recall_name, split_label
from trainer.store import Items, Workspace
from trainer.store.snapshot_files import Snapshot

MOST_WORDS: Final = 300
"""Words of captions, the most frequent ones, that may name a concept by the text tower."""
MOST_PROMPTS: Final = 5_000
"""Class prompts that are embedded; of more, the first templates."""
NEIGHBORS: Final = 6


class AskedTexts(Struct, frozen=True):
    """What the text towers are asked to embed."""

    words: tuple[str, ...]  # Of captions.
    prompts: tuple[str, ...]  # Of the classes, a class in all templates, then the next one.
    templates: tuple[str, ...]  # Of the prompts; none without classes.
    labels: tuple[str, ...]  # The classes.

    @property
    def sentences(self) -> tuple[str, ...]:
        """Words, then prompts."""
        return (*self.words, *self.prompts)


class TowerTexts(Struct, frozen=True):
    """Embeddings of the words and class prompts by each run, and the classes of the held-out images."""

    asked: AskedTexts
    words: tuple[Float[np.ndarray, "w d"], ...]
    prompts: tuple[Float[np.ndarray, "ct d"], ...]
    places: Int[np.ndarray, " k"]
    truth: Int[np.ndarray, " k"]


def asked_of(workspace: Workspace, request: Request) -> AskedTexts:
    """Return the most frequent words of the captions, and prompts for each class that the data have."""
    target = request.targets[0]
    captions = open_target(workspace, target, request).snapshot.items.caption
    counted = Counter(word for caption in captions for word in set(words_of(caption)))
    frequent = tuple(word for word, _ in sorted(counted.items(), key=lambda entry: (-entry[1], entry[0]))[:MOST_WORDS])
    try:
        labels, templates = class_words(workspace, target.run)
    except ChartError:
        return AskedTexts(frequent, (), (), ())
    templates = templates[: max(1, MOST_PROMPTS // len(labels))]
    prompts = tuple(captioned(template, label) for label in labels for template in templates)
    return AskedTexts(frequent, prompts, templates, labels)


def towers_texts(request: Request, texts: AskedTexts, snapshot: Snapshot, of: ConceptSpaces) -> TowerTexts:
    """Return what the runs embedded, with the classes of the held-out images.

    Raises:
        ChartError: A run could not embed them.
    """
    rows = [request.vectors_of(target) for target in request.targets]
    cut = len(texts.words)
    positions, truth = np.empty(0, np.int64), np.empty(0, np.int64)
    if texts.labels:
        task = class_task(snapshot, texts.labels)
        by_row = dict(zip(task.rows.tolist(), task.truth.tolist(), strict=True))
        held = of.held if of.pictures is None else of.held[in_order(of.pictures[of.held])[1]]
        positions = np.array([position for position in held if int(of.rows[position]) in by_row], np.int64)
        truth = np.array([by_row[int(of.rows[position])] for position in positions], np.int64)
    return TowerTexts(
        texts, tuple(vectors[:cut] for vectors in rows), tuple(vectors[cut:] for vectors in rows), positions, truth
    )


def effects_table(
    of: ConceptSpaces, texts: TowerTexts | None, names: Sequence[str], split: str, off: Sequence[int]
) -> NumberTable:
    """Return recall and, if the towers were asked, zero-shot accuracy as embedded and without the concepts."""
    lines = []
    question = f"{recall_name('image_to_text', split=split, n=len(of.texts.asking()))} (%)"
    for index, name in enumerate(names):
        lines.append(heading_row(name))
        both = tuple(100 * recall_without(of, index, switched_off) for switched_off in ((), tuple(off)))
        lines.append(NumberRow(question, "Of pairs that the dictionary was not trained on.", both, 1))
        if texts is not None and len(texts.places):
            about = f"Zero-shot, {split_label(split)}, n = {len(texts.places):,}, {len(texts.asked.labels)} classes (%)"
            part = texts.prompts, texts.places, texts.truth, len(texts.asked.templates)
            accuracy = tuple(
                100 * zero_shot_without(of, index, switched_off, *part) for switched_off in ((), tuple(off))
            )
            n = len(texts.asked.templates)
            how = f"Template “{texts.asked.templates[0]}”." if n == 1 else f"Mean of the prompts of {n} templates."
            lines.append(NumberRow(about, how, accuracy, 1))
    numbers = ", ".join(map(str, off[:6])) + (" …" if len(off) > 6 else "")
    return NumberTable("off", f"Without concepts {numbers}", ("As embedded", "Without"), tuple(lines), badges=False)


def search_rows(
    of: ConceptSpaces, items: Items, names: Sequence[str], pair: int, concept: int, strength: float
) -> list[ImageRow]:
    """Return, for each run, the images nearest to a pair's image, and to it with more of a concept.

    Raises:
        ChartError: The pair is not among those of the dictionary.
    """
    positions = np.flatnonzero(of.rows == pair)
    if not len(positions):
        raise ChartError(f"Pair {pair} is not among the {len(of.rows):,} pairs of the dictionary. Choose another one.")
    rows = []
    for index, name in enumerate(names):
        for key, times, label in (("plain", 0.0, "nearest images"), ("added", strength, f"plus concept {concept}")):
            near = neighbors_with(of, index, int(positions[0]), concept, times, NEIGHBORS)
            pairs = [int(of.rows[at]) for at in near]
            cells = tuple(RowImage(row, items.path[row], items.caption[row], "") for row in pairs)
            title = f"{name}: {label} of pair {pair}" if not times else f"{name}: {label}, {times:g} times"
            rows.append(ImageRow(f"search-{key}-{index}", title, run_tone(index), cells))
    return rows


def names_by_tower(of: ConceptSpaces, texts: TowerTexts | None, concept: int) -> str:
    """Return the words nearest to the concept by the text towers, in brackets; empty if they were not asked."""
    if texts is None or not texts.asked.words:
        return ""
    return f" [{' '.join(nearest_words(of, concept, texts.asked.words, texts.words))}]"
