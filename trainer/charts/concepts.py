"""Concepts of one or more runs: a sparse dictionary over their embeddings of the same images and captions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from trainer.analysis.concepts import Concept
from trainer.charts import ChartError
from trainer.charts.concept_effects import effects_table, names_by_tower, search_rows
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
from trainer.charts.measures.concepts import STABLE, Concepts, ConceptsSettings, compute, sentences
from trainer.charts.snapshot_label import labels
from trainer.charts.spec import Chart, Records
from trainer.metrics import data_label, recall_name

METHOD: Final = """\
Images and captions of each run are centered and divided by the run's root mean square; an image and a caption are a \
row each, with the embeddings of all runs side by side. A dictionary is trained on four fifths of the \
pictures with their captions, each once: f = TopK(ReLU(x E + b)), x' = f D + o, least squares, by Adam (TopK: Gao et \
al., 2024, https://arxiv.org/abs/2406.04093; several spaces: crosscoders, Lindsey et al., 2024, \
https://transformer-circuits.pub/2024/crosscoders). What is kept is measured on the other fifth, \
the concepts on all pairs.

Part of a run: norm of the concept's direction in the run over the sum of its norms; above 70 % the concept is called \
that run's own, else shared. Names: words of captions that have the concept, weighed by how much more often they have \
it than all captions do. Stability: cosine with its counterpart in dictionaries of other seeds, matched one to one.

Caveats: a dictionary is one description of many. A concept with stability below 0.7 is gray and says little. The same \
number of principal components keeps what a linear map can; the dictionary also stores which concepts are active. A \
name is a summary of captions, not a meaning.

Switched off: x - f_c(x) d_c for each concept that is off, in images, captions and class prompts; what the \
dictionary does not explain stays. Recall is of the held-out fifth, zero-shot of its images that have a class, by \
the mean of the class's prompts as in Classify. Added: the query image plus so many mean strengths of the concept. \
Names in brackets: words of captions whose embeddings by the runs' own text towers lie nearest to the direction, as \
in SpLiCE (Bhalla et al., 2024, https://arxiv.org/abs/2402.10376) but without its sparse fit. Two concepts may hold \
parts of one thing: switching off one of them then changes little."""


def draw(data: Concepts, settings: ConceptsSettings) -> Panel:
    """Draw where the concepts lie, what they keep, their names, and pictures of some."""
    names = labels(data.runs)
    rows = (
        (_plot(data, names), _kept_table(data, names), _sizes(data)),
        *((mark,) for mark in _effects(data, names, settings)),
        (_table(data, names, settings.listed),),
        *((strip,) for strip in _strips(data, names, settings.concept)),
    )
    first = data.runs[0]
    head = f"{data_label(first)}, {'; '.join(f'{n}, step {r.step:,}' for n, r in zip(names, data.runs))}"
    return Panel(title="Concepts of the embeddings", head=(head,), rows=rows, notes=tuple(data.held_notes))


def _effects(data: Concepts, names: Sequence[str], settings: ConceptsSettings) -> list[Mark]:
    """Return what happens without the concepts that are off, and the search with more of the chosen one."""
    chosen = (*settings.off, *((settings.concept,) if settings.strength else ()))
    if wrong := [number for number in chosen if not 0 <= number < data.size]:
        raise ChartError(f"There is no concept {wrong[0]} among the {data.size}. Choose one from 0 to {data.size - 1}.")
    marks: list[Mark] = []
    if settings.off or data.texts is not None:
        marks.append(effects_table(data.of, data.texts, names, data.runs[0].split, settings.off))
    if settings.strength:
        search = settings.query, settings.concept, settings.strength
        marks += search_rows(data.of, data.items, names, *search)
    return marks


def _plot(data: Concepts, names: Sequence[str]) -> XYPlot:
    several = len(names) > 1
    label = f"part of {names[1]} (%)" if several else "images' part in its activations (%)"
    kinds: dict[tuple[str, Tone], list[tuple[float, float, int]]] = {}
    for concept in data.concepts:
        unstable = concept.stability < STABLE
        tone: Tone = "quiet" if unstable else "first" if concept.owner < 0 else run_tone(concept.owner)
        name = "unstable" if unstable else "shared" if concept.owner < 0 else f"{names[concept.owner]} only"
        x = concept.parts[1] if several else concept.of_images
        kinds.setdefault((name, tone), []).append((100 * x, 100 * concept.frequency, concept.number))
    points = tuple(
        Points(name, tone, (every := np.array(xy))[:, :2], every[:, 2].astype(np.int64), size=6)
        for (name, tone), xy in kinds.items()
    )
    y = axis_over("rows (%)", [p.xy[:, 1] for p in points], include=(0,), percent=True)
    title = "Where the concepts lie"
    return XYPlot("concepts", title, Axis(label, 0, 100, percent=True), y, points=points, ids_are="concepts")


def _kept_table(data: Concepts, names: Sequence[str]) -> NumberTable:
    lines = []
    for name, fidelity in zip(names, data.kept, strict=True):
        lines.append(heading_row(name))
        both = tuple(100 * value for value in fidelity.explained)
        lines.append(NumberRow("Explained variance (%)", "Of the centered rows.", (100.0, *both), 1))
        recall = tuple(100 * value for value in fidelity.recall)
        question = f"{recall_name('image_to_text', split=data.runs[0].split, n=data.pictures)} (%)"
        lines.append(NumberRow(question, "Of pairs that the dictionary was not trained on.", recall, 1))
    columns = ("As embedded", "Dictionary", f"{data.active} components")
    return NumberTable("kept", "What is kept", columns, tuple(lines), badges=False)


def _sizes(data: Concepts) -> NumberTable:
    lines = (
        NumberRow("Pairs", "That all runs hold.", (float(data.pairs),), 0),
        NumberRow("Held-out pairs", "Not trained on.", (float(data.held),), 0),
        NumberRow("Concepts", "Of the dictionary.", (float(data.size),), 0),
        NumberRow("Used", "By at least one row.", (float(len(data.concepts)),), 0),
        NumberRow("Active in a row", "At most.", (float(data.active),), 0),
        NumberRow("Stable (%)", f"Over seeds: cosine at least {STABLE}.", (100 * data.stable,), 0),
    )
    return NumberTable("sizes", "Dictionary", ("",), lines, badges=False)


def _kinds(data: Concepts, names: Sequence[str]) -> list[tuple[str, list[Concept]]]:
    """Return the concepts of each kind: shared ones, then those of each run alone."""
    owners = [
        (-1, "Shared" if len(names) > 1 else "Concepts"),
        *((at, f"{name} only") for at, name in enumerate(names)),
    ]
    by_owner = [(title, [concept for concept in data.concepts if concept.owner == owner]) for owner, title in owners]
    return [(title, ones) for title, ones in by_owner if ones]


def _table(data: Concepts, names: Sequence[str], listed: int) -> NumberTable:
    lines = []
    for title, ones in _kinds(data, names):
        lines.append(heading_row(f"{title}: {len(ones):,}"))
        for concept in ones[:listed]:
            values = (
                100 * concept.frequency,
                100 * concept.of_images,
                *(100 * part for part in concept.parts),
                concept.stability,
            )
            name = f"{concept.name}{names_by_tower(data.of, data.texts, concept.number)}"
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
    chosen = [concept for concept in data.concepts if concept.number == number]
    if number >= 0 and not chosen:
        raise ChartError(f"There is no used concept {number}. The table names those that are used.")
    picked = [(concept, "") for concept in chosen] or [(ones[0], kind) for kind, ones in _kinds(data, names)]
    strips = []
    for concept, kind in picked:
        cells = tuple(
            RowImage(row, data.items.path[row], data.items.caption[row], f"{strength:.2f}", strength)
            for row, strength in zip(concept.pairs, concept.strengths, strict=True)
        )
        tone: Tone = "quiet" if concept.owner < 0 else run_tone(concept.owner)
        title = f"{kind}: {concept.name}" if kind else concept.name
        strips.append(ImageRow(f"concept-{concept.number}", title, tone, cells))
    return strips


def records(data: Concepts, _settings: ConceptsSettings) -> Records:
    """Return one row per concept and picture."""
    parts = tuple(f"part of {run.name}" for run in data.runs)
    of_concept = ("concept", "words", "words_of_tower", "owner", "frequency", "of_images", *parts, "stability")
    rows = []
    for concept in data.concepts:
        owner = data.runs[concept.owner].name if concept.owner >= 0 else ""
        by_tower = names_by_tower(data.of, data.texts, concept.number).strip(" []")
        facts = (concept.number, " ".join(concept.words), by_tower, owner, concept.frequency, concept.of_images)
        for rank, (row, strength) in enumerate(zip(concept.pairs, concept.strengths, strict=True), 1):
            pair = (row, data.items.id[row].item(), data.items.caption[row], data.items.path[row])
            rows.append((*facts, *concept.parts, concept.stability, rank, *pair, strength))
    return (*of_concept, "place", "pair", "id", "caption", "path", "strength"), rows


CHART: Final = Chart(
    view="geometry",
    label="Concepts",
    question="Concepts of the embeddings: shared by runs, or of one run only.",
    cost="Grows with the pairs that are drawn, at most 10,000, times the concepts.",
    method=METHOD,
    settings=ConceptsSettings,
    compute=compute,
    draw=draw,
    records=records,
    sentences=sentences,
)
