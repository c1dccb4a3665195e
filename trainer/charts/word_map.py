"""A map of the words of captions: near are those that a run's text tower embeds alike."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from jaxtyping import Float

from trainer.analysis.cluster_words import words_of
from trainer.analysis.procrustes import procrustes
from trainer.analysis.projection import pca
from trainer.analysis.word_neighbors import nearest_rows, neighbors_kept
from trainer.charts import ChartError
from trainer.charts.marks import Marker, NumberRow, NumberTable, Panel, XYPlot, axis_over, run_tone
from trainer.charts.opened_snapshot import open_target
from trainer.charts.point_placement import CAUTION, LABELS, PointPlacement
from trainer.charts.snapshot_label import SnapshotLabel, shown
from trainer.charts.spec import Chart, PerRun, Progress, Records, Request, Target, per_run
from trainer.config.fields import option
from trainer.metrics import data_label
from trainer.store import Workspace

METHOD: Final = """\
The most frequent words of the captions (without stop words and numbers), each embedded alone by the run's text \
tower; of word2vec, the word's vector; of a bag of words, the word's column of the output matrix W, without words \
outside of its vocabulary. The unit rows are placed by PCA, or as maps of images are by UMAP (McInnes et \
al., 2018), t-SNE (van der Maaten and Hinton, 2008) or PaCMAP, started from PCA; a map of words as in Joulin et al., \
2015, https://arxiv.org/abs/1511.02251, figure 6. Maps of further runs are turned, mirrored and scaled onto the first.

Neighbors kept: share of each word's nearest words, by cosine, that are also nearest in the map.

Caveats: a text tower that learned from captions never saw a word alone, so this is what it makes of a caption of \
one word. Distances between far groups and the sizes of groups say nothing except in PCA; another seed or number of \
neighbors draws another map. Read neighbors off the records, not off the picture."""

NEIGHBORS: Final = 5


@dataclass(frozen=True)
class WordMapSettings:
    """The settings of the chart."""

    words: int = option(40, "Words", "The most frequent ones of the captions.", low=10, high=1_000, log=True)
    method: Literal["pca", "umap", "tsne", "pacmap"] = option(
        "pca",
        "Method",
        "PCA at once keeps the largest distances, the others keep neighbors.",
        named={name: LABELS[name] for name in ("pca", "umap", "tsne", "pacmap")},
    )
    neighbors: int = option(
        10, "Neighbors", "Neighbors that count; the perplexity of t-SNE. PCA ignores it.", low=2, high=50
    )
    seed: int = option(0, "Seed", "Of all methods but PCA.", low=0, high=99)


@dataclass(frozen=True, kw_only=True)
class WordMapRun(SnapshotLabel):
    """One run's words."""

    words: tuple[str, ...]  # The most frequent first.
    counts: tuple[int, ...]  # Captions with each word.
    places: Float[np.ndarray, "w 2"]
    near: np.ndarray  # Places in `words` of each word's nearest ones, by cosine.
    cosines: np.ndarray  # With these.
    kept: float  # Share of them that are nearest in the map.


def counted(workspace: Workspace, request: Request, most: int) -> tuple[tuple[str, int], ...]:
    """Return the most frequent words of the first run's captions, and in how many captions each is."""
    captions = open_target(workspace, request.targets[0], request).snapshot.items.caption
    counts = Counter(word for caption in captions for word in set(words_of(caption)))
    return tuple(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:most])


def placement(settings: WordMapSettings) -> PointPlacement | None:
    """Return how the process of projections places the words; None: the chart does it, by PCA."""
    made = PointPlacement(method=settings.method, neighbors=settings.neighbors, seed=settings.seed)
    return None if settings.method == "pca" else made


def sentences(workspace: Workspace, request: Request, settings: WordMapSettings) -> tuple[str, ...]:
    """Return the words that each run embeds."""
    return tuple(word for word, _ in counted(workspace, request, settings.words))


def word_map(
    workspace: Workspace, target: Target, request: Request, settings: WordMapSettings, _progress: Progress
) -> WordMapRun:
    """Return one run's map.

    Raises:
        ChartError: There is no such snapshot, or its model could not embed the words.
    """
    # Words that are in no vocabulary of some run have no vector there; all maps show the same ones.
    vectors, every = request.vectors_of(target), [request.vectors_of(other) for other in _answering(request)]
    rows = np.flatnonzero(np.all([vectors_of_run.any(axis=1) for vectors_of_run in every], axis=0))
    if len(rows) <= NEIGHBORS:
        raise ChartError(f"Only {len(rows)} of the words have vectors in all runs. Show more words, or fewer runs.")
    most = counted(workspace, request, settings.words)
    shown_words, counts = zip(*(most[row] for row in rows), strict=True)
    vectors = vectors[rows]
    opened = open_target(workspace, target, request)
    positions = request.places_of(target)[rows] if placement(settings) else pca(vectors)
    near, cosines = nearest_rows(vectors, NEIGHBORS)
    fidelity = neighbors_kept(near, positions)
    return WordMapRun(**shown(opened.run, opened.row), words=shown_words, counts=counts, places=positions, near=near,
                      cosines=cosines, kept=fidelity)  # fmt: skip


def _answering(request: Request) -> list[Target]:
    """Return the targets whose models embedded the words, and warn of each other one with its reason."""
    pairs = zip(request.targets, request.vectors, strict=False)
    return [target for target, rows in pairs if not isinstance(rows, str)]


def compute(
    workspace: Workspace, request: Request, settings: WordMapSettings, progress: Progress
) -> PerRun[WordMapRun]:
    """Return the maps of all targets, all but the first turned onto it."""
    *_, data = per_run(word_map)(workspace, request, settings, progress)
    first = data.found[0].places
    return replace(
        data,
        found=tuple(
            replace(run, places=procrustes(run.places, first, scaled=True).apply(run.places)) for run in data.found
        ),
    )


def draw(data: PerRun[WordMapRun], settings: WordMapSettings) -> Panel:
    """Draw one map per run, and how well it keeps neighbors."""
    plots, how = [], placement(settings)
    method = how.words if how else "PCA"
    for run, index, name in data.named:
        # A word stands beside its dot: at the edge it needs the room of half its length, or of its height.
        x, y = (axis_over("", [run.places[:, side]], margin=margin) for side, margin in enumerate((0.1, 0.22)))
        dots = tuple(
            Marker("", run_tone(index), float(at[0]), float(at[1]), 4.0, label=word)
            for word, at in zip(run.words, run.places, strict=True)
        )
        plots.append(XYPlot(f"words-{index}", name, x, y, dots=dots, note=f"{len(run.words)} words; {method}",
                            tone=run_tone(index)))  # fmt: skip
    shares = tuple(100 * run.kept for run in data.found)
    row = NumberRow("Neighbors kept (%)", f"Of each word's {NEIGHBORS} nearest by cosine.", shares, 0)
    table = NumberTable("kept", "The map", tuple(data.labels), (row,))
    head = tuple(f"{name}: {data_label(run)}, step {run.step:,}" for run, _, name in data.named)
    return Panel(
        title="Words of the captions",
        head=head,
        rows=(*((plot,) for plot in plots), (table,)),
        notes=(
            "Words that the run embeds similarly lie close together.",
            *([CAUTION.capitalize() + "."] if how else []),
        ),
    )


def records(data: PerRun[WordMapRun], _settings: WordMapSettings) -> Records:
    """Return each word's place, and its nearest words by cosine."""
    facts = ("run", "name", "step", "dataset", "split")
    return (*facts, "word", "captions", "x", "y", "nearest", "cosines"), [
        (*(getattr(run, fact) for fact in facts), word, run.counts[at], *run.places[at].tolist(),
         " ".join(run.words[near] for near in run.near[at]), " ".join(f"{c:.3f}" for c in run.cosines[at]))
        for run in data.found
        for at, word in enumerate(run.words)
    ]  # fmt: skip


CHART: Final = Chart(
    view="geometry",
    label="Word map",
    question="Which words does the run embed alike?",
    cost="Grows with the square of the words.",
    method=METHOD,
    settings=WordMapSettings,
    compute=compute,
    draw=draw,
    records=records,
    sentences=sentences,
    of_words=True,
    placement=placement,
)
