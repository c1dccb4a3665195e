"""The four Hopfield retrievals of a pair, and their effect on the cosines of all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis.hopfield import (
    FourRetrievals,
    four_retrievals,
    matched_after_retrieval,
    retrieval_shares,
    top_shares,
)
from trainer.analysis.label_shares import percent
from trainer.charts.hopfield_patterns import (
    KEPT,
    Patterns,
    Query,
    StoredSettings,
    beta_setting,
    beta_words,
    both_of,
    cell,
    head,
    minus,
    patterns,
    query_of,
    query_setting,
)
from trainer.charts.marks import Axis, ImageRow, NumberRow, NumberTable, Panel, Series, Tone, XYPlot, run_tone
from trainer.charts.spec import Chart, PerRun, Progress, Request, Target, per_run
from trainer.store import Workspace

NOTE: Final = (
    "U is retrieved from the images, V from the texts; x is the query of the image, y that of the text. CLOOB compares "
    "U_x with U_y and V_y with V_x instead of x with y. The pair itself is stored and not masked, as in training."
)
_COSINES: Final = (
    ("cos(x, y)", "Image and text before any retrieval."),
    ("cos(U_x, U_y)", "Input of CLOOB's first InfoLOOB."),
    ("cos(V_x, V_y)", "Input of CLOOB's second InfoLOOB."),
)
_NAMES: Final = ("U_x", "U_y", "V_x", "V_y")
_WAYS: Final = (
    ("U_x", "the image retrieves from the images"),
    ("U_y", "the text retrieves from the images"),
    ("V_x", "the image retrieves from the texts"),
    ("V_y", "the text retrieves from the texts"),
)


@dataclass(frozen=True)
class PairSettings:
    """The pair, and beta."""

    query: int = query_setting()
    beta: float = beta_setting()


class PairRetrievals(Struct, frozen=True):
    """The retrievals of a pair in one run."""

    run: Patterns
    query: Query
    rows: Int[np.ndarray, " n"]  # Pairs of the snapshot that are stored.
    four: FourRetrievals
    # For U_x, U_y, V_x and V_y: places among `rows` of the largest weights, the weights, and the rest.
    tops: tuple[tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"], float], ...]
    # Cosines of all matched pairs: before, and of U_x with U_y and V_x with V_y.
    matched: tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"], Float[np.ndarray, " n"]]


def pair_retrievals(
    workspace: Workspace, target: Target, request: Request, settings: PairSettings, progress: Progress
) -> PairRetrievals:
    """Return the four retrievals of the pair, among all pairs or a sample that contains it.

    Raises:
        ChartError: The run embeds only one modality, or there is no such pair.
    """
    run = patterns(workspace, target, request, StoredSettings(), progress=progress)
    query = query_of(workspace, target, request, run, settings.query)
    image, text, rows = both_of(run, query.row)
    row, beta = int(np.flatnonzero(rows == query.row)[0]), settings.beta
    ways = ((image[row], image), (text[row], image), (image[row], text), (text[row], text))
    tops = tuple(
        top_shares(retrieval_shares(state.astype(np.float64), stored, beta).astype(np.float64), KEPT)
        for state, stored in ways
    )
    four = four_retrievals(image, text, row, beta)
    return PairRetrievals(run, query, rows, four, tops, matched_after_retrieval(image, text, beta))


def draw(data: PerRun[PairRetrievals], settings: PairSettings) -> Panel:
    """Draw cosines, weights and histograms, and the images of the four retrievals."""
    runs = [retrievals.run for retrievals in data.found]
    drawn = data.named
    sampled = tuple(
        f"{name}: {len(retrievals.rows):,} of {retrievals.run.pairs:,} pairs, drawn at random."
        for retrievals, _, name in drawn
        if len(retrievals.rows) < retrievals.run.pairs
    )
    histograms = tuple(_matched(*retrievals) for retrievals in drawn)
    strips = tuple((strip,) for retrievals in drawn for strip in _strips(*retrievals))
    return Panel(
        title="Four Hopfield retrievals of a pair",
        head=head(runs, f"pair {settings.query}", beta_words(settings.beta)),
        rows=((_numbers(data.found, data.labels, settings.query), *histograms), *strips),
        notes=(NOTE, *sampled),
    )


def _numbers(pairs: Sequence[PairRetrievals], names: Sequence[str], query: int) -> NumberTable:
    fours = [retrievals.four for retrievals in pairs]
    cosines = zip(*((four.before, four.images, four.texts) for four in fours), strict=True)
    lines = [NumberRow(w, h, values, 3, strong=True) for (w, h), values in zip(_COSINES, cosines, strict=True)]
    for index, name in enumerate(_NAMES):
        lines.append(NumberRow(f"own weight in {name}", "", tuple(four.own[index] for four in fours)))
    for index, name in enumerate(_NAMES):
        lines.append(NumberRow(f"patterns in {name}", "", tuple(four.numbers[index] for four in fours), 1))
    lines.append(NumberRow("n stored", "", tuple(float(len(retrievals.rows)) for retrievals in pairs), 0))
    return NumberTable("pair", f"Pair {query}", tuple(names), tuple(lines))


def _strips(retrievals: PairRetrievals, index: int, label: str) -> list[ImageRow]:
    """Return the images and texts that both modalities retrieve; a text is shown as its image."""
    strips = []
    for (name, label_of_way), (positions, tops, rest) in zip(_WAYS, retrievals.tops, strict=True):
        rows = retrievals.rows[positions].tolist()
        cells = tuple(
            cell(retrievals.run, row, float(share), retrievals.query, strong=row == retrievals.query.row)
            for row, share in zip(rows, tops, strict=True)
        )
        note = f"{percent(rest)} of the weight outside the top {len(cells)}"
        strips.append(
            ImageRow(f"pair-{index}-{name}", f"{label} · {name}: {label_of_way}", run_tone(index), cells, note)
        )
    return strips


def _matched(retrievals: PairRetrievals, index: int, label: str) -> XYPlot:
    edges = np.linspace(min(map(np.min, retrievals.matched)) - 0.01, 1.0 + 1e-6, 41)
    curves, top = [], 0.0
    tones: tuple[Tone, ...] = ("quiet", "first", "second")
    for name, tone, values in zip(("before", "U_x·U_y", "V_x·V_y"), tones, retrievals.matched, strict=True):
        share = 100 * np.histogram(np.clip(values, edges[0], 1.0), edges)[0] / len(values)
        top = max(top, float(share.max()))
        curves.append(Series(f"{name}, mean {minus(values.mean())}", tone, edges, share, stepped=True))
    x = Axis("cosine of matched pairs", float(edges[0]), 1.0)
    y = Axis("share of pairs (%)", 0, 1.05 * top, percent=True)
    note = f"n = {len(retrievals.rows):,} pairs"
    return XYPlot(f"matched-{index}", label, x, y, tuple(curves), note=note, tone=run_tone(index))


CHART: Final = Chart(
    view="hopfield",
    label="Pair",
    question="What do the four retrievals of a pair average, and how does its cosine change?",
    cost="Grows with the stored pairs, at most 4,096.",
    settings=PairSettings,
    compute=per_run(pair_retrievals),
    draw=draw,
)
