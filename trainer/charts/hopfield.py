"""The Hopfield lab: what a retrieval among a snapshot's own embeddings averages, at any beta."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.hopfield import (
    Trail,
    effective_grid,
    effective_number,
    entropy,
    equal_self_weight_beta,
    fixed_point_kind,
    four_retrievals,
    matched_after_retrieval,
    measured_self_weights,
    retrieval_shares,
    self_weight,
    top_shares,
    updates,
)
from trainer.analysis.losses import hopfield_retrieval
from trainer.analysis.projection import principal_axes
from trainer.analysis.spectra import (
    covariance_spectrum,
    effective_directions,
    effective_rank,
    share_in_first,
    shares_of,
)
from trainer.analysis.tiles import exact
from trainer.charts import BOTH, ChartError
from trainer.charts.board import RUN_TONES, Board, Cell, Grid, Line, Numbers, Strip
from trainer.charts.lab.pieces import Axis, Curve, Dot, Plot
from trainer.charts.shown import Shown, shown
from trainer.charts.snapshots import choose_snapshot
from trainer.store import Workspace, read_snapshot
from trainer.store.snapshot_files import Items

Progress = Callable[[float, str], None]
Side = Literal["images", "texts"]

PANELS: Final = ("retrieval", "pair", "phase", "batch", "spectrum")

BETAS: Final = np.geomspace(0.1, 100, 61)
KEPT: Final = 12
"""Stored patterns shown with their pictures."""
MOST_MAPPED: Final = 3_000
MOST_QUERIES: Final = 96
MOST_PAIRS: Final = 4_096
"""More pairs than this are sampled where every pair retrieves: that costs n squared."""

NOTE_KIND: Final = (
    "Fixed point: where repeated updates end. Single pattern: it averages at most 1.5 patterns; global average: more "
    "than half of all stored; metastable: a group between. Effective number: exp of the entropy of the weights."
)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is looked at: whose embeddings, what is stored, what asks, and how sharply.

    Attributes:
        step, dataset, split: Of the snapshots; None is chosen as for every chart.
        stored: Which embeddings are the patterns.
        only: Label of the class that is stored; empty for all.
        pairs: Rows that are stored; empty for all.
        query: Row of the pair that asks.
        asks: Its image, or its text.
        beta: Inverse temperature.
        words: What asks instead of the pair, for people; its embeddings are given beside this.
    """

    step: int | None = None
    dataset: str | None = None
    split: str | None = None
    stored: Side = "images"
    only: str = ""
    pairs: tuple[int, ...] = ()
    query: int = 0
    asks: Literal["image", "text"] = "image"
    beta: float = 8.0
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class Patterns(Shown):
    """One run's stored patterns, in memory: read once, asked at every move of the slider.

    Attributes:
        index: Place of the run among those asked for; decides its colour.
        rows: Rows of the snapshot that are stored.
        stored: Their embeddings in float32.
        image, text: All pairs of the snapshot.
        mean, axes: Of the plane on which the stored patterns are drawn (PCA); `shares`: its variance.
        points: The stored patterns on it, at most 3,000.
    """

    index: int
    pairs: int
    items: Items
    rows: Int[np.ndarray, " n"]
    stored: Float[np.ndarray, "n d"]
    side: Side
    image: Float[np.ndarray, "m d"] | None
    text: Float[np.ndarray, "m d"] | None
    mean: Float[np.ndarray, " d"]
    axes: Float[np.ndarray, "d 2"]
    shares: Float[np.ndarray, " 2"]
    points: Float[np.ndarray, "p 2"]

    @property
    def n(self) -> int:
        """Stored patterns."""
        return len(self.rows)

    def state(self, asked: Asked) -> Float[np.ndarray, " d"]:
        """The embedding of the pair that asks."""
        vectors = self.image if asked.asks == "image" else self.text
        if vectors is None:
            raise ChartError(f"Run {self.name} has no {asked.asks}s: ask with the other modality. {BOTH}")
        if not 0 <= asked.query < len(vectors):
            raise ChartError(f"There is no pair {asked.query}; the snapshot has 0 to {len(vectors) - 1}.")
        return exact(vectors[asked.query]).astype(np.float64)

    def place(self, states: Float[np.ndarray, "t d"]) -> Float[np.ndarray, "t 2"]:
        """States on the plane."""
        return (states - self.mean) @ self.axes


def patterns(workspace: Workspace, run: int | str, asked: Asked, index: int = 0) -> Patterns:
    """The run's stored patterns.

    Raises:
        ChartError: No such snapshot, nothing stored, or embeddings that are no numbers.
        StoreError: No such run.
    """
    row = workspace.run(run)
    chosen = choose_snapshot(workspace, row, step=asked.step, dataset=asked.dataset, split=asked.split)
    snapshot = read_snapshot(chosen.folder)
    vectors = snapshot.image if asked.stored == "images" else snapshot.text
    if vectors is None:
        raise ChartError(f"Run {row.name} embeds no {asked.stored}: store the other modality. {BOTH}")
    rows = _stored_rows(snapshot.items, asked, snapshot.n)
    stored = exact(vectors[rows])
    if not np.isfinite(stored).all():
        raise ChartError(
            f"The embeddings of {row.name} are not numbers: training has diverged. Choose an earlier step."
        )
    mean, axes, shares = principal_axes(stored, 2)
    drawn = _sample(len(stored), MOST_MAPPED)
    return Patterns(
        **shown(row, snapshot),
        index=index,
        pairs=snapshot.n,
        items=snapshot.items,
        rows=rows,
        stored=stored,
        side=asked.stored,
        image=snapshot.image,
        text=snapshot.text,
        mean=mean,
        axes=axes,
        shares=shares,
        points=(stored[drawn].astype(np.float64) - mean) @ axes,
    )


def hopfield(
    workspace: Workspace,
    runs: Sequence[int | str],
    asked: Asked,
    panel: str = "retrieval",
    *,
    vectors: Mapping[int, np.ndarray] | None = None,
    progress: Progress | None = None,
) -> Board:
    """A panel of the lab for one or two runs; `vectors` are each run's embedding of what asks instead of a pair."""
    gathered = [patterns(workspace, run, asked, index) for index, run in enumerate(runs)]
    return board(gathered, asked, panel, vectors=vectors, progress=progress)


def board(
    gathered: Sequence[Patterns],
    asked: Asked,
    panel: str,
    *,
    vectors: Mapping[int, np.ndarray] | None = None,
    progress: Progress | None = None,
) -> Board:
    """A panel of the lab, of patterns that are read already.

    Raises:
        ChartError: No such panel, or a run lacks what the panel compares.
    """
    if panel not in PANELS:
        raise ChartError(f"The Hopfield lab has no panel {panel!r}; choose one of {', '.join(PANELS)}.")
    if not 0.1 <= asked.beta <= 100:
        raise ChartError(f"Beta must be from 0.1 to 100, not {asked.beta:g}.")
    if panel == "retrieval":
        rows, notes = _retrieval(gathered, asked, vectors or {}, progress)
    elif panel == "pair":
        rows, notes = _pair(gathered, asked)
    elif panel == "phase":
        rows, notes = _phase(gathered, asked, progress)
    elif panel == "batch":
        rows, notes = _batch(gathered, asked)
    else:
        rows, notes = _spectrum(gathered, asked, progress)
    return Board("hopfield", panel, f"Hopfield lab: {TITLES[panel]}", _head(gathered, asked), rows, notes)


TITLES: Final = {
    "retrieval": "one retrieval",
    "pair": "four retrievals of a pair",
    "phase": "beta and query",
    "batch": "self-weight and batch size",
    "spectrum": "covariance before and after retrieval",
}


def _retrieval(
    gathered: Sequence[Patterns], asked: Asked, vectors: Mapping[int, np.ndarray], progress: Progress | None
) -> tuple[tuple, tuple[str, ...]]:
    strips, maps, lines, paths = [], [], [], []
    for run in gathered:
        state = np.asarray(vectors[run.run], np.float64) if run.run in vectors else run.state(asked)
        shares = retrieval_shares(state, run.stored, asked.beta).astype(np.float64)
        path = updates(state, run.stored, asked.beta, progress=progress)
        strips.append(_strip(run, asked, shares, path, external=run.run in vectors))
        maps.append(_map(run, path, state))
        paths.append(path)
        lines.append(_facts(run, asked, shares, path, external=run.run in vectors))
    numbers = _numbers("numbers", "This retrieval", gathered, lines)
    rows = (*((strip,) for strip in strips), (numbers, _energy(gathered, paths)), tuple(maps))
    return rows, (NOTE_KIND, "Energies and the path are of updates without normalising, as only then energy falls.")


def _facts(run: Patterns, asked: Asked, shares: np.ndarray, path: Trail, *, external: bool) -> dict[str, float | str]:
    own = np.flatnonzero(run.rows == asked.query)
    n, ends = run.n, float(path.numbers[-1])
    return {
        "Effective number": effective_number(shares),
        "of patterns": float(n),
        "Entropy (nats)": entropy(shares),
        "Largest weight": float(shares.max()),
        "Weight of its own pair": float(shares[own[0]]) if len(own) and not external else math.nan,
        "Fixed point": fixed_point_kind(ends, n),
        "Its effective number": ends,
        "Updates": float(len(path.states) - 1) if path.converged else f"> {len(path.states) - 1}",
        "Energy of the query": float(path.energies[0]),
        "Energy of the fixed point": float(path.energies[-1]),
    }


_LINES: Final = (
    ("Effective number", "Patterns that this retrieval averages: exp of the entropy, from 1 to n.", 2, True),
    ("of patterns", "n: how many are stored.", 0, False),
    ("Entropy (nats)", "Of the weights; at most ln n.", 3, False),
    ("Largest weight", "Of the nearest stored pattern.", 4, False),
    ("Weight of its own pair", "Where the pair that asks is stored, too; nothing masks it.", 4, False),
    ("Fixed point", NOTE_KIND, 0, True),
    ("Its effective number", "Patterns that the fixed point averages.", 2, False),
    ("Updates", "Until a state moved by less than 1e-5.", 0, False),
    ("Energy of the query", "Ramsauer et al., 2020, equation 1.", 4, False),
    ("Energy of the fixed point", "Never above that of the query.", 4, False),
)


def _numbers(key: str, title: str, gathered: Sequence[Patterns], facts: Sequence[dict]) -> Numbers:
    lines = tuple(
        Line(words, hint, tuple(run[words] for run in facts), digits, strong) for words, hint, digits, strong in _LINES
    )
    return Numbers(key, title, tuple(run.name for run in gathered), lines)


def _strip(run: Patterns, asked: Asked, shares: np.ndarray, path: Trail, *, external: bool) -> Strip:
    places, tops, rest = top_shares(shares, KEPT)
    cells = tuple(
        _cell(run, int(run.rows[place]), float(share), strong=run.rows[place] == asked.query and not external)
        for place, share in zip(places, tops, strict=True)
    )
    left = run.n - len(places)
    number, kind = effective_number(shares), fixed_point_kind(float(path.numbers[-1]), run.n)
    note = f"averages {number:,.1f} of {run.n:,} · updates end in a {kind}".replace(
        "a metastable", "a metastable state"
    )
    note += f" · {percent(rest)} in the other {left:,}" if left else ""
    return Strip(f"top-{run.index}", f"{run.name} · step {run.step:,}", RUN_TONES[run.index % 2], cells, note)


def _cell(run: Patterns, row: int, share: float, *, strong: bool) -> Cell:
    return Cell(row, run.items.path[row], run.items.caption[row], percent(share), share, strong)


def percent(share: float) -> str:
    """A share in percent, with as many digits as it needs: `98.2 %`, `0.07 %`."""
    return f"{100 * share:.1f} %" if share >= 0.001 else "< 0.1 %" if share > 0 else "0 %"


def _energy(gathered: Sequence[Patterns], paths: Sequence[Trail]) -> Plot:
    curves = [
        Curve(run.name, RUN_TONES[run.index % 2], np.arange(len(path.energies), dtype=float), path.energies)
        for run, path in zip(gathered, paths, strict=True)
    ]
    dots = tuple(
        Dot("", RUN_TONES[run.index % 2], float(step), float(value), size=6)
        for run, path in zip(gathered, paths, strict=True)
        for step, value in enumerate(path.energies)
    )
    low = min(float(p.energies.min()) for p in paths)
    high = max(float(p.energies.max()) for p in paths)
    pad = max(0.06 * (high - low), 0.002)
    most = max(len(p.energies) for p in paths) - 1
    x = Axis("update", -0.3, max(most, 1) + 0.3)
    return Plot("energy", "Energy", x, Axis("energy", low - pad, high + pad), tuple(curves), dots=dots)


def _map(run: Patterns, path: Trail, state: np.ndarray) -> Plot:
    trail = run.place(path.states)
    everything = np.concatenate([run.points, trail])
    low, high = everything.min(0), everything.max(0)
    pad = 0.06 * np.maximum(high - low, 1e-3)
    tone = RUN_TONES[run.index % 2]
    dots = (
        Dot("query", "second", *map(float, trail[0]), size=13, mark="diamond"),
        Dot("fixed point", tone, *map(float, trail[-1]), size=13, mark="ring"),
    )
    curve = Curve("path", tone, trail[:, 0], trail[:, 1])
    shares = f"PCA, {100 * float(run.shares.sum()):.0f} % of the variance"
    drawn = f"{len(run.points):,} of {run.n:,} drawn" if len(run.points) < run.n else f"n = {run.n:,}"
    x, y = (Axis("", float(low[i] - pad[i]), float(high[i] + pad[i])) for i in (0, 1))
    return Plot(
        f"map-{run.index}",
        f"Path of {run.name}",
        x,
        y,
        (curve,),
        dots=dots,
        note=f"{shares}, {drawn}",
        cloud=run.points,
    )


def _pair(gathered: Sequence[Patterns], asked: Asked) -> tuple[tuple, tuple[str, ...]]:
    lines: list[dict[str, float]] = []
    histograms, cells = [], []
    for run in gathered:
        image, text, rows = _both(run, asked)
        row = int(np.flatnonzero(rows == asked.query)[0])
        four = four_retrievals(image, text, row, asked.beta)
        before, images, texts = matched_after_retrieval(image, text, asked.beta)
        histograms.append(_matched(run, before, images, texts))
        names = ("U_x", "U_y", "V_x", "V_y")
        lines.append(
            {"cos(x, y)": four.before, "cos(U_x, U_y)": four.images, "cos(V_x, V_y)": four.texts}
            | {f"own weight in {name}": own for name, own in zip(names, four.own, strict=True)}
            | {f"patterns in {name}": number for name, number in zip(names, four.numbers, strict=True)}
            | {"n stored": float(len(rows))}
        )
        cells.append(_cells_of_pair(run, image, text, rows, row, asked.beta))
    numbers = Numbers(
        "pair",
        f"Pair {asked.query}",
        tuple(run.name for run in gathered),
        tuple(
            Line(
                name,
                _HINTS.get(name, ""),
                tuple(run[name] for run in lines),
                _pair_digits(name),
                name.startswith("cos"),
            )
            for name in lines[0]
        ),
    )
    strips = tuple((strip,) for pair in cells for strip in pair)
    note = (
        "U is retrieved from the images, V from the texts; x asks with the image, y with the text. CLOOB compares U_x "
        "with U_y and V_y with V_x instead of x with y. The pair itself is stored and not masked, as in training."
    )
    sampled = [
        f"{run.name}: {min(run.pairs, MOST_PAIRS):,} of {run.pairs:,} pairs, drawn at random."
        for run in gathered
        if run.pairs > MOST_PAIRS
    ]
    return ((numbers, *histograms), *strips), (note, *sampled)


_HINTS: Final = {
    "cos(x, y)": "Image and text before any retrieval.",
    "cos(U_x, U_y)": "What CLOOB's first InfoLOOB sees.",
    "cos(V_x, V_y)": "What CLOOB's second InfoLOOB sees.",
}


def _pair_digits(name: str) -> int:
    return 0 if name.startswith("n ") else 1 if name.startswith("patterns") else 3


def _cells_of_pair(
    run: Patterns, image: np.ndarray, text: np.ndarray, rows: np.ndarray, row: int, beta: float
) -> list[Strip]:
    """What each of the two askers retrieves from the images: pictures tell more than texts."""
    strips = []
    for name, asker in (("U_x: the image asks the images", image[row]), ("U_y: the text asks the images", text[row])):
        shares = retrieval_shares(asker.astype(np.float64), image, beta).astype(np.float64)
        places, tops, rest = top_shares(shares, KEPT)
        cells = tuple(
            _cell(run, int(rows[p]), float(s), strong=int(p) == row) for p, s in zip(places, tops, strict=True)
        )
        note = f"{percent(rest)} in the other {len(rows) - len(places):,}"
        title = f"{run.name} · {name}"
        strips.append(Strip(f"pair-{run.index}-{name[:3]}", title, RUN_TONES[run.index % 2], cells, note))
    return strips


def _matched(run: Patterns, before: np.ndarray, images: np.ndarray, texts: np.ndarray) -> Plot:
    edges = np.linspace(min(map(np.min, (before, images, texts))) - 0.01, 1.0 + 1e-6, 41)
    series = (("before", "quiet", before), ("U_x·U_y", "first", images), ("V_x·V_y", "second", texts))
    curves, top = [], 0.0
    for name, tone, values in series:
        share = 100 * np.histogram(np.clip(values, edges[0], 1.0), edges)[0] / len(values)
        top = max(top, float(share.max()))
        curves.append(Curve(f"{name}, mean {_minus(values.mean())}", tone, edges, share, stepped=True))
    x, y = Axis("cosine of matched pairs", float(edges[0]), 1.0), Axis("share of pairs (%)", 0, 1.05 * top)
    return Plot(f"matched-{run.index}", run.name, x, y, tuple(curves), note=f"n = {len(before):,} pairs")


def _phase(gathered: Sequence[Patterns], asked: Asked, progress: Progress | None) -> tuple[tuple, tuple[str, ...]]:
    grids, curves = [], []
    for run in gathered:
        vectors = run.image if asked.asks == "image" else run.text
        if vectors is None:
            raise ChartError(f"Run {run.name} has no {asked.asks}s: ask with the other modality. {BOTH}")
        rows = _sample(run.pairs, MOST_QUERIES)
        values = effective_grid(vectors[rows], run.stored, BETAS, progress)
        order = np.argsort(np.log(values).sum(1), kind="stable")
        grids.append(_grid(run, asked, values[order], rows[order]))
        curves.append((run, np.median(values, axis=0), *np.percentile(values, (10, 90), axis=0)))
    medians = tuple(
        curve
        for run, median, low, high in curves
        for curve in (
            Curve(f"{run.name}, median", RUN_TONES[run.index % 2], BETAS, median),
            Curve("", RUN_TONES[run.index % 2], BETAS, low, dashed=True, width=1),
            Curve("", RUN_TONES[run.index % 2], BETAS, high, dashed=True, width=1),
        )
    )
    most = max(run.n for run in gathered)
    x, y = Axis("beta", BETAS[0], BETAS[-1], log=True), Axis("effective number", 0.9, 1.15 * most, log=True)
    plot = Plot("medians", "Effective number over beta", x, y, medians, cursor=asked.beta, note="dashed: 10 % and 90 %")
    queries = "; ".join(f"{run.name}: {min(run.pairs, MOST_QUERIES):,} of {run.pairs:,} queries" for run in gathered)
    notes = (
        f"One retrieval of each query, ordered by the mean of the logarithm; {queries}, drawn at random.",
        "Dark: one pattern. Bright: the average of all. Click a row to ask with its pair.",
    )
    return (tuple(grids), (plot,)), notes


def _grid(run: Patterns, asked: Asked, values: np.ndarray, rows: np.ndarray) -> Grid:
    ticks = tuple(
        (float(np.interp(math.log(beta), np.log(BETAS), np.arange(len(BETAS)))), f"{beta:g}")
        for beta in (0.1, 1, 10, 100)
    )
    cursor = float(np.interp(math.log(asked.beta), np.log(BETAS), np.arange(len(BETAS))))
    captions = tuple(f"pair {row}: {run.items.caption[row]}" for row in rows.tolist())
    return Grid(
        f"phase-{run.index}",
        run.name,
        values,
        "beta",
        f"{asked.asks} that asks",
        ticks,
        (),
        1.0,
        float(run.n),
        "effective number",
        log=True,
        cursor=cursor,
        note=f"n = {run.n:,} {run.side} stored",
        rows=captions,
        columns=tuple(f"beta {beta:.3g}" for beta in BETAS),
        row_ids=tuple(rows.tolist()),
    )


def _batch(gathered: Sequence[Patterns], asked: Asked) -> tuple[tuple, tuple[str, ...]]:
    plots, lines = [], []
    for run in gathered:
        vectors = run.stored
        sizes = np.unique(np.geomspace(2, len(vectors), 25).round().astype(int)) if len(vectors) > 1 else np.array([1])
        rule = np.maximum(equal_self_weight_beta(sizes), 0.1)
        # More anchors would say the same to the second digit.
        constant = measured_self_weights(vectors, sizes, np.full(len(sizes), asked.beta), anchors=128)
        ruled = measured_self_weights(vectors, sizes, rule, anchors=128)
        cosine = _mean_cosine(vectors)
        far = np.geomspace(2, 65_536, 121)
        tone = RUN_TONES[run.index % 2]
        curves = (
            Curve(f"measured, β = {asked.beta:g}", tone, sizes.astype(float), constant, width=2.5),
            Curve("measured, β by the rule", "first", sizes.astype(float), ruled, width=2.5),
            Curve(f"formula, β = {asked.beta:g}, cosine 0", "quiet", far, self_weight(far, asked.beta)),
            Curve(
                f"formula, cosine {_minus(cosine, 2)}", "quiet", far, self_weight(far, asked.beta, cosine), dashed=True
            ),
        )
        x, y = Axis("batch size N", 2, 65_536, log=True), Axis("self-weight", 0, 1.04)
        title = f"Self-weight of {run.name}"
        plots.append(Plot(f"self-{run.index}", title, x, y, curves, note=f"n = {run.n:,} {run.side}, 128 anchors"))
        lines.append((constant[-1], ruled[-1], float(rule[-1]), cosine, float(len(vectors))))
    columns = tuple(run.name for run in gathered)
    words = (
        (f"Self-weight at N = n, β = {asked.beta:g}", "Mean share of a pattern in its own retrieval.", 3),
        ("Self-weight at N = n, β by the rule", "β = 8 + ln((N − 1) / 511): not from the paper.", 3),
        ("β by the rule at N = n", "8 + ln((N − 1) / 511), at least 0.1.", 2),
        ("Mean cosine of two patterns", "With all others at cosine c, β acts as β (1 − c).", 3),
        ("n", "Patterns drawn from.", 0),
    )
    table = tuple(Line(w, h, tuple(float(line[i]) for line in lines), d) for i, (w, h, d) in enumerate(words))
    notes = (
        "Measured: batches drawn from the stored patterns. Formula: e^β / (e^β + N − 1), which holds where the others "
        "lie at cosine 0. The rule keeps the self-weight that β = 8 has at N = 512 there; it is derived here and "
        "assumes cosine 0: where others lie near (in a cone, or in clusters), the measured curve falls below it.",
    )
    return (tuple(plots), (Numbers("batch", "At the whole snapshot", columns, table),)), notes


def _spectrum(gathered: Sequence[Patterns], asked: Asked, progress: Progress | None) -> tuple[tuple, tuple[str, ...]]:
    plots, facts = [], []
    for run in gathered:
        image, text, rows = _both(run, asked)
        own, other = (image, text) if run.side == "images" else (text, image)
        before = covariance_spectrum(own, progress)
        after = covariance_spectrum(hopfield_retrieval(own, own, asked.beta), progress)
        across = covariance_spectrum(hopfield_retrieval(other, own, asked.beta), progress)
        asker = "text" if run.side == "images" else "image"
        names = (f"{run.side} before", f"retrieved by the {run.side[:-1]}", f"retrieved by the {asker}")
        tone = RUN_TONES[run.index % 2]
        d = len(before)
        series = [
            Curve(name, t, np.arange(1, d + 1, dtype=float), np.maximum(shares_of(spectrum), 1e-9), dashed=dashed)
            for name, t, spectrum, dashed in (
                (names[0], "quiet", before, False),
                (names[1], tone, after, False),
                (names[2], tone, across, True),
            )
        ]
        x, y = Axis("direction", 1, d, log=True), Axis("share of the variance", 1e-6, 1.0, log=True)
        note = f"n = {len(rows):,} pairs" + (f" of {run.pairs:,}, sampled" if len(rows) < run.pairs else "")
        plots.append(Plot(f"spectrum-{run.index}", run.name, x, y, tuple(series), note=note))
        facts += [
            (run, name, spectrum) for name, spectrum in zip(("before", "after", "across"), (before, after, across))
        ]
    columns = tuple(f"{run.name}, {name}" for run, name, _ in facts)
    lines = (
        ("Effective directions (99 %)", "Directions that hold 99 % of the variance.", effective_directions, 0),
        ("Effective rank", "Exp of the entropy of the spectrum (Roy & Vetterli, 2007).", effective_rank, 2),
        ("Variance in the first direction (%)", "", lambda e: 100 * share_in_first(e, 1), 1),
        ("Variance in the first 10 (%)", "", lambda e: 100 * share_in_first(e, 10), 1),
        (
            "Total variance",
            "Sum of the eigenvalues; 1 would be spread all over the sphere.",
            lambda e: float(e.sum()),
            4,
        ),
    )
    table = tuple(Line(w, h, tuple(float(read(e)) for _, _, e in facts), digits) for w, h, read, digits in lines)
    notes = (
        "before: the stored embeddings; after: what each retrieves from them with this beta (U_x or V_y); across: what "
        "its partner of the other modality retrieves (U_y or V_x). One retrieval averages, so it narrows the spectrum "
        "of given embeddings; the paper's claim is that training with it enriches the embeddings themselves: compare "
        "the runs' spectra 'before'.",
    )
    return (tuple(plots), (Numbers("spectra", "Spectra", columns, table, badges=False),)), notes


def _both(run: Patterns, asked: Asked) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All pairs, or a sample that holds the pair which asks."""
    if run.image is None or run.text is None:
        raise ChartError(f"Run {run.name} embeds only one modality; this panel needs images and texts. {BOTH}")
    if not 0 <= asked.query < run.pairs:
        raise ChartError(f"There is no pair {asked.query}; the snapshot has 0 to {run.pairs - 1}.")
    rows = _sample(run.pairs, MOST_PAIRS)
    if asked.query not in rows:
        rows = np.sort(np.append(rows[1:], asked.query))
    return exact(run.image[rows]), exact(run.text[rows]), rows


def _sample(n: int, most: int) -> Int[np.ndarray, " k"]:
    return np.arange(n) if n <= most else np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def _stored_rows(items: Items, asked: Asked, n: int) -> Int[np.ndarray, " k"]:
    rows = np.arange(n)
    if asked.pairs:
        rows = np.unique(np.array([pair for pair in asked.pairs if 0 <= pair < n], dtype=np.int64))
    if asked.only:
        rows = rows[np.array([items.label[row] == asked.only for row in rows.tolist()], dtype=bool)]
    if not len(rows):
        there = ", ".join(sorted(set(items.label) - {""})[:12])
        raise ChartError(f"Nothing is stored: no pair of the class {asked.only!r}; there are {there or 'no classes'}.")
    return rows


def _mean_cosine(vectors: np.ndarray) -> float:
    """Mean over pairs of different rows, in O(n d)."""
    n = len(vectors)
    if n < 2:
        return 0.0
    total = vectors.sum(0, dtype=np.float64)
    own = float(np.einsum("nd,nd->", vectors, vectors, dtype=np.float64))
    return float((total @ total - own) / n / (n - 1))


def _head(gathered: Sequence[Patterns], asked: Asked) -> tuple[str, ...]:
    runs = "; ".join(f"{run.name}, step {run.step:,}, {run.dataset} {run.split}" for run in gathered)
    which = f"class {asked.only}" if asked.only else f"{len(asked.pairs):,} selected pairs" if asked.pairs else "all"
    asks = asked.words or f"{asked.asks} of pair {asked.query}"
    stored = ", ".join(sorted({f"{run.n:,}" for run in gathered}))
    return runs, f"stored: {asked.stored}, {which}, n = {stored} · asks: {asks} · beta = {asked.beta:g}"


def _minus(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}".replace("-", "−")
