"""Concepts of one or more runs: a sparse dictionary over their embeddings of the same images and captions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Int

from trainer.analysis.concept_edits import ConceptSpaces
from trainer.analysis.concepts import Concept, Kept, concepts_of, kept_by, learned_and_held, stability_of, standardized
from trainer.analysis.progress import Progress
from trainer.analysis.sampling import at_most
from trainer.analysis.sparse_dictionary import fit
from trainer.charts import BOTH, ChartError
from trainer.charts.concept_effects import (
    TowerTexts,
    asked_of,
    effects,
    effects_table,
    names_by_tower,
    search_rows,
    towers_texts,
)
from trainer.charts.marks import (
    Axis,
    ImageRow,
    Mark,
    NumberRow,
    NumberTable,
    Panel,
    Points,
    RowImage,
    Tone,
    XYPlot,
    axis_over,
    heading_row,
    run_tone,
)
from trainer.charts.matching import matching_of
from trainer.charts.settings import setting
from trainer.charts.snapshot_label import SnapshotLabel, labels, shown
from trainer.charts.snapshots import choose_snapshot
from trainer.charts.spec import Chart, Request
from trainer.metrics import recall_name
from trainer.store import Workspace
from trainer.store.snapshot_files import Items, Snapshot, read_snapshot

METHOD: Final = """\
Images and captions of each run are centered and divided by the run's root mean square; an image and a caption are a \
row each, with the embeddings of all runs side by side. A dictionary is trained on four fifths of the pairs: \
f = TopK(ReLU(x E + b)), x' = f D + o, least squares, by Adam (TopK: Gao et al., 2024, \
https://arxiv.org/abs/2406.04093; several spaces: crosscoders, Lindsey et al., 2024, \
https://transformer-circuits.pub/2024/crosscoders). What is kept is measured on the other fifth, \
the concepts on all pairs.

Part of a run: norm of the concept's direction in the run over the sum of its norms; above 70 % the concept is called \
that run's own, else shared. Names: words of captions that have the concept, weighed by how much more often they have \
it than all captions do. Stability: cosine with its counterpart in dictionaries of other seeds, matched one to one.

Caveats: a dictionary is one description of many. A concept with stability below 0.7 is gray and says little. The same \
number of principal components keeps what a linear map can; the dictionary also stores which concepts are active. A \
name is a summary of captions, not a meaning.

Switched off: x - f_c(x) d_c for each concept that is off, in images, captions and class prompts; what the dictionary \
does not explain stays. Recall is of the held-out fifth. Added: the query image plus so many mean strengths of the \
concept. Names in brackets: words of captions whose embeddings by the runs' own text towers lie nearest to the \
direction, as in SpLiCE (Bhalla et al., 2024, https://arxiv.org/abs/2402.10376) but without its sparse fit. Two \
concepts may hold parts of one thing: switching off one of them then changes little."""

MOST_PAIRS: Final = 10_000
LEAST_PAIRS: Final = 20
STABLE: Final = 0.7
"""Cosine with the counterpart of another seed from which a concept is stable."""
_LEAST_ROWS: Final = 4
"""Rows of a concept per concept at least: fewer rows allow fewer concepts."""


@dataclass(frozen=True)
class ConceptsSettings:
    """The settings of the chart."""

    concepts: int = setting(128, "Concepts", "Concepts of the dictionary; fewer for few pairs.", low=4, high=2_048)
    active: int = setting(6, "Active", "Concepts that an image or caption has at most.", low=1, high=64)
    seeds: int = setting(2, "Seeds", "Dictionaries that are trained; stability needs two.", low=1, high=5)
    listed: int = setting(6, "Listed", "Concepts of each kind in the table.", low=1, high=100, redraws=True)
    concept: int = setting(
        -1,
        "Pictures of",
        "Number of the concept whose images are shown; -1: of the first of each kind.",
        low=-1,
        high=2_047,
        redraws=True,
    )
    towers: bool = setting(
        False, "Ask the text tower", "Also names concepts by each run's text tower, and measures zero-shot accuracy."
    )
    strength: float = setting(
        0.0,
        "Add",
        "Adds that many typical strengths of the concept to the query pair and searches; 0: no search.",
        low=0.0,
        high=5.0,
        redraws=True,
    )
    query: int = setting(0, "Query pair", "A row of the snapshot.", low=0, control=False, redraws=True)
    off: tuple[int, ...] = setting(
        (), "Switched off", "Concepts that are taken out of all embeddings.", control=False, redraws=True
    )


@dataclass(frozen=True)
class Concepts:
    """The concepts of some runs, most frequent first.

    Attributes:
        runs: Of which run and snapshot each space is.
        items: Of the first run's snapshot.
        pairs: Pairs that all runs have and that were used.
        held: Of these, pairs that the dictionary was not trained on.
        pictures: Distinct pictures of these: the questions of recall.
        active: Concepts of a row at most.
        concepts: Those that a row has.
        size: Concepts of the dictionary, with those that no row has.
        kept: Of each run.
        stable: Share of the concepts whose stability is at least `STABLE`; NaN for one seed.
        of: The dictionary, with what it was trained on.
        texts: What the text towers embedded; None if they were not asked.
    """

    runs: tuple[SnapshotLabel, ...]
    items: Items
    pairs: int
    held: int
    pictures: int
    active: int
    concepts: tuple[Concept, ...]
    size: int
    kept: tuple[Kept, ...]
    stable: float
    of: ConceptSpaces
    texts: TowerTexts | None


def sentences(workspace: Workspace, request: Request, settings: ConceptsSettings) -> tuple[str, ...]:
    """Return the words and class prompts that each run embeds; none unless the settings ask for them."""
    return asked_of(workspace, request).sentences if settings.towers else ()


def compute(workspace: Workspace, request: Request, settings: ConceptsSettings, progress: Progress) -> Concepts:
    """Return the concepts of all targets on the pairs that all of them have.

    Raises:
        ChartError: A run has no such snapshot or only one modality, or they have too few pairs in common.
        StoreError: No such run.
    """
    found, snapshots = _opened(workspace, request)
    common = _common(snapshots)
    places = at_most(len(common[0]), MOST_PAIRS)
    common = [rows[places] for rows in common]
    if len(places) < LEAST_PAIRS:
        raise ChartError(f"These runs have {len(places)} pairs in common; a dictionary needs {LEAST_PAIRS}.")
    learned, held = learned_and_held(len(places))
    spaces = [standardized(*_sides(one, rows), learned) for one, rows in zip(snapshots, common, strict=True)]
    rows = np.concatenate([space.rows for space in spaces], axis=1)
    train = rows[np.concatenate([learned, learned + len(places)])]
    size = min(settings.concepts, len(train) // _LEAST_ROWS)
    dictionaries = [
        fit(
            train,
            widths=tuple(space.rows.shape[1] for space in spaces),
            concepts=size,
            active=min(settings.active, size),
            seed=seed,
            progress=_part(progress, seed, settings.seeds),
        )
        for seed in range(settings.seeds)
    ]
    first = dictionaries[0]
    codes = first.codes(rows)
    stability = stability_of(dictionaries)
    captions = [snapshots[0].items.caption[row] for row in common[0]]
    concepts = concepts_of(first, codes, stability, captions, common[0])
    texts = matching_of(snapshots[0], common[0][held]).texts
    kept = kept_by(first, codes, rows, train, spaces, held, texts)
    of = ConceptSpaces(first, codes, tuple(spaces), held, texts, common[0])
    told = towers_texts(request, asked_of(workspace, request), snapshots[0], of) if settings.towers else None
    steady = [one.stability >= STABLE for one in concepts]
    stable = float(np.mean(steady)) if settings.seeds > 1 and concepts else float("nan")
    counts = len(places), len(held), len(texts.asking()), first.active
    return Concepts(found, snapshots[0].items, *counts, concepts, size, kept, stable, of, told)


def _opened(workspace: Workspace, request: Request) -> tuple[tuple[SnapshotLabel, ...], list[Snapshot]]:
    found, snapshots = [], []
    dataset, split = request.dataset, request.split
    for target in request.targets:
        row = workspace.runs.get(target.run)
        chosen = choose_snapshot(workspace, row, step=target.step, dataset=dataset, split=split)
        dataset, split = chosen.dataset, chosen.split  # the others on the same data, or nothing could be compared
        snapshot = read_snapshot(chosen.folder)
        if snapshot.image is None or snapshot.text is None:
            raise ChartError(f"The snapshot of {row.name} has only one modality. {BOTH}")
        found.append(SnapshotLabel(**shown(row, chosen)))
        snapshots.append(snapshot)
    return tuple(found), snapshots


def _common(snapshots: Sequence[Snapshot]) -> list[Int[np.ndarray, " n"]]:
    """Return the rows of each snapshot that hold the items that all have, in the order of the first."""
    ids = [np.asarray(snapshot.items.id, str) for snapshot in snapshots]
    if all(np.array_equal(ids[0], one) for one in ids[1:]):
        return [np.arange(len(ids[0]))] * len(ids)
    places = [{one: row for row, one in enumerate(own.tolist())} for own in ids]
    kept = [one for one in places[0] if all(one in other for other in places[1:])]
    return [np.array([own[one] for one in kept], np.int64) for own in places]


def _sides(snapshot: Snapshot, rows: Int[np.ndarray, " n"]) -> tuple[np.ndarray, np.ndarray]:
    assert snapshot.image is not None
    assert snapshot.text is not None
    image, text = snapshot.image[rows], snapshot.text[rows]
    if not (np.isfinite(image).all() and np.isfinite(text).all()):
        raise ChartError("Embeddings of this snapshot are not numbers. Choose an earlier step.")
    return image, text


def draw(data: Concepts, settings: ConceptsSettings) -> Panel:
    """Draw where the concepts lie, what they keep, their names, and pictures of some."""
    names = labels(data.runs)
    rows = (
        (_plot(data, names), _kept_table(data, names)),
        *((mark,) for mark in _effects(data, names, settings)),
        (_table(data, names, settings.listed),),
        *((strip,) for strip in _strips(data, names, settings.concept)),
    )
    first = data.runs[0]
    head = (
        f"{first.dataset} {first.split}, {'; '.join(f'{n}, step {r.step:,}' for n, r in zip(names, data.runs))}",
        f"{data.pairs:,} pairs, {data.held:,} of them held out",
        f"{len(data.concepts):,} of {data.size:,} concepts are used, at most {data.active} in a row",
    )
    notes = ["A recall is among the distinct captions of the pairs that the dictionary was not trained on."]
    if data.stable == data.stable:
        notes.append(f"{data.stable:.0%} of the concepts are stable over seeds (cosine at least {STABLE}).")
    return Panel(title="Concepts of the embeddings", head=head, rows=rows, notes=tuple(notes))


def _effects(data: Concepts, names: Sequence[str], settings: ConceptsSettings) -> list[Mark]:
    """Return what happens without the concepts that are off, and the search with more of the chosen one."""
    chosen = (*settings.off, *((settings.concept,) if settings.strength else ()))
    if wrong := [number for number in chosen if not 0 <= number < data.size]:
        raise ChartError(f"There is no concept {wrong[0]} among the {data.size}. Choose one from 0 to {data.size - 1}.")
    found: list[Mark] = []
    if settings.off or data.texts is not None:
        found.append(effects_table(data.of, data.texts, names, data.runs[0].split, settings.off))
    if settings.strength:
        asked = settings.query, settings.concept, settings.strength
        found += search_rows(data.of, data.items, names, *asked)
    return found


def _plot(data: Concepts, names: Sequence[str]) -> XYPlot:
    several = len(names) > 1
    label = f"part of {names[1]} (%)" if several else "images' part in its activations (%)"
    kinds: dict[tuple[str, Tone], list[tuple[float, float, int]]] = {}
    for one in data.concepts:
        unstable = one.stability < STABLE
        tone: Tone = "quiet" if unstable else "first" if one.owner < 0 else run_tone(one.owner)
        name = "unstable" if unstable else "shared" if one.owner < 0 else f"{names[one.owner]} only"
        x = one.parts[1] if several else one.of_images
        kinds.setdefault((name, tone), []).append((100 * x, 100 * one.frequency, one.number))
    points = tuple(
        Points(name, tone, (every := np.array(xy))[:, :2], every[:, 2].astype(np.int64), size=6)
        for (name, tone), xy in kinds.items()
    )
    y = axis_over("rows that have it (%)", [p.xy[:, 1] for p in points], include=(0,))
    title = "Where the concepts lie"
    return XYPlot("concepts", title, Axis(label, 0, 100), y, points=points, ids_are="concepts")


def _kept_table(data: Concepts, names: Sequence[str]) -> NumberTable:
    lines = []
    for name, kept in zip(names, data.kept, strict=True):
        lines.append(heading_row(name))
        both = tuple(100 * value for value in kept.explained)
        lines.append(NumberRow("Explained variance (%)", "Of the centered rows.", (100.0, *both), 1))
        recall = tuple(100 * value for value in kept.recall)
        question = f"{recall_name('image_to_text', split=data.runs[0].split, n=data.pictures)} (%)"
        lines.append(NumberRow(question, "Of pairs that the dictionary was not trained on.", recall, 1))
    columns = ("As embedded", "Dictionary", f"{data.active} components")
    return NumberTable("kept", "What is kept", columns, tuple(lines), badges=False)


def _kinds(data: Concepts, names: Sequence[str]) -> list[tuple[str, list[Concept]]]:
    """Return the concepts of each kind: shared ones, then those of each run alone."""
    owners = [
        (-1, "Shared" if len(names) > 1 else "Concepts"),
        *((at, f"{name} only") for at, name in enumerate(names)),
    ]
    found = [(words, [one for one in data.concepts if one.owner == owner]) for owner, words in owners]
    return [(words, ones) for words, ones in found if ones]


def _table(data: Concepts, names: Sequence[str], listed: int) -> NumberTable:
    lines = []
    for words, ones in _kinds(data, names):
        lines.append(heading_row(f"{words}: {len(ones):,}"))
        for one in ones[:listed]:
            values = (100 * one.frequency, 100 * one.of_images, *(100 * part for part in one.parts), one.stability)
            name = f"{one.name}{names_by_tower(data.of, data.texts, one.number)}"
            lines.append(NumberRow(name, "", tuple(values), 2 if len(values) < 3 else 1))
    parts = tuple(f"{name} (%)" for name in names)
    return NumberTable(
        "names",
        "The most frequent concepts",
        ("Rows (%)", "Images (%)", *parts, "Stability"),
        tuple(lines),
        badges=False,
    )


def _strips(data: Concepts, names: Sequence[str], number: int) -> list[ImageRow]:
    chosen = [one for one in data.concepts if one.number == number]
    if number >= 0 and not chosen:
        raise ChartError(f"There is no used concept {number}. The table names those that are used.")
    picked = [(one, "") for one in chosen] or [(ones[0], words) for words, ones in _kinds(data, names)]
    strips = []
    for one, words in picked:
        cells = tuple(
            RowImage(row, data.items.path[row], data.items.caption[row], f"{strength:.2f}", strength)
            for row, strength in zip(one.pairs, one.strengths, strict=True)
        )
        tone: Tone = "quiet" if one.owner < 0 else run_tone(one.owner)
        title = f"{words}: {one.name}" if words else one.name
        strips.append(ImageRow(f"concept-{one.number}", title, tone, cells))
    return strips


def values(data: Concepts, settings: ConceptsSettings) -> list[dict[str, Any]]:
    """Return one dictionary per run, and one per concept."""
    runs = [
        {
            "run": run.run,
            "name": run.name,
            "step": run.step,
            "dataset": run.dataset,
            "split": run.split,
            "pairs": data.pairs,
            "heldout_pairs": data.held,
            "concepts": data.size,
            "used": len(data.concepts),
            "active": data.active,
            "stable": data.stable,
            "explained_variance": kept.explained[0],
            "explained_variance_pca": kept.explained[1],
            "image_to_text_R@1": kept.recall[0],
            "image_to_text_R@1_dictionary": kept.recall[1],
            "image_to_text_R@1_pca": kept.recall[2],
        }
        for run, kept in zip(data.runs, data.kept, strict=True)
    ]
    if settings.off or data.texts is not None:
        without = effects(data.of, data.texts, settings.off)
        runs = [run | {"off": list(settings.off)} | more for run, more in zip(runs, without, strict=True)]
    return runs + [
        {
            "concept": one.number,
            "words": list(one.words),
            "words_of_tower": names_by_tower(data.of, data.texts, one.number).strip(" []").split(),
            "parts": list(one.parts),
            "frequency": one.frequency,
            "of_images": one.of_images,
            "stability": one.stability,
            "top_pairs": list(one.pairs),
        }
        for one in data.concepts
    ]


def records(data: Concepts, _settings: ConceptsSettings) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return one row per concept and picture."""

    def owner(one: Concept) -> str:
        return data.runs[one.owner].name if one.owner >= 0 else ""

    def facts(row: int) -> tuple[Any, ...]:
        return data.items.id[row].item(), data.items.caption[row], data.items.path[row]

    header = (
        "concept",
        "words",
        "owner",
        "frequency",
        "stability",
        "place",
        "pair",
        "id",
        "caption",
        "path",
        "strength",
    )
    return header, [
        (one.number, " ".join(one.words), owner(one), one.frequency, one.stability, place, row, *facts(row), strength)
        for one in data.concepts
        for place, (row, strength) in enumerate(zip(one.pairs, one.strengths, strict=True), 1)
    ]


def _part(progress: Progress, place: int, of: int) -> Progress:
    return lambda share, note: progress((place + share) / of, note)


CHART: Final = Chart(
    name="concepts",
    view="geometry",
    label="Concepts",
    question="Which concepts do the embeddings consist of, and which are one run's own?",
    method=METHOD,
    settings=ConceptsSettings,
    compute=compute,
    draw=draw,
    values=values,
    records=records,
    sentences=sentences,
)
