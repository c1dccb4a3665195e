"""Explaining away and saturation: what runs encode, in how many directions, and how hard they still learn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis import batches
from trainer.analysis.probes import Probe, probe
from trainer.analysis.retrieval import groups_of
from trainer.analysis.spectra import (
    covariance_spectrum,
    effective_directions,
    effective_rank,
    is_collapsed,
    share_in_first,
    shares_of,
)
from trainer.analysis.tiles import exact
from trainer.charts import BOTH, ChartError, objective_label
from trainer.charts.board import RUN_TONES, Board, Cell, Grid, Line, Numbers, Piece, Strip
from trainer.charts.lab.pieces import Axis, Curve, Dot, Plot, Table, Tone
from trainer.charts.snapshots import choose_snapshot
from trainer.config.ablation import PRESET
from trainer.store import RunRow, SnapshotRow, Workspace, read_snapshot
from trainer.store.snapshot_files import Snapshot

Progress = Callable[[float, str], None]

PANELS: Final = ("spectrum", "saturation", "batch", "attributes")
TITLES: Final = {
    "spectrum": "in how many directions do the embeddings vary?",
    "saturation": "how much of the gradient is left?",
    "batch": "a batch under the glass",
    "attributes": "which attributes does each run encode?",
}

MOST_PAIRS: Final = 20_000
MOST_BATCH: Final = 256
LEAST_ALIKE: Final = 0.9
_TONES: Final[tuple[Tone, ...]] = ("first", "second", "third", "fourth")
_ATTRIBUTES: Final = {
    "subject_colour": "colour",
    "subject_shape": "shape",
    "object_colour": "colour 2",
    "object_shape": "shape 2",
    "relation": "relation",
    "ground": "ground",
}
"""Columns of Scenes in words: the subject is the larger thing; `2` is the object."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is looked at.

    Attributes:
        step, dataset, split: Of the snapshots; None is chosen as for every chart.
        size: Pairs of the batch under the glass.
        number: Which batch, in an order drawn from a fixed seed.
        anchor: Place of the anchor in the batch whose negatives are shown.
        ablation: Whether the attributes of all runs of the ablation are shown, too.
    """

    step: int | None = None
    dataset: str | None = None
    split: str | None = None
    size: int = 32
    number: int = 0
    anchor: int = 0
    ablation: bool = True


@dataclass(frozen=True)
class Temperatures:
    """What the run compared with at a step: 1/tau, and beta where there is a retrieval."""

    inv_tau: float
    beta: float | None


def diagnosis(
    workspace: Workspace,
    runs: Sequence[int | str],
    asked: Asked,
    panel: str = "spectrum",
    *,
    progress: Progress | None = None,
) -> Board:
    """A panel for one or two runs; `attributes` adds the runs of the ablation.

    Raises:
        ChartError: No such panel, or a run lacks what the panel needs.
        StoreError: No such run.
    """
    if panel not in PANELS:
        raise ChartError(f"The diagnosis has no panel {panel!r}; choose one of {', '.join(PANELS)}.")
    rows = [workspace.run(ref) for ref in runs]
    make = {"spectrum": _spectrum, "saturation": _saturation, "batch": _batch, "attributes": _attributes}[panel]
    return make(workspace, rows, asked, progress)


def temperatures(workspace: Workspace, run: RunRow, step: int) -> Temperatures:
    """1/tau as it was logged at the step (learned ones move), and the beta of the retrieval."""
    objective = workspace.config_of(run.id).objective
    steps, values, _ = workspace.series(run.id, "train/inv_tau")
    before = np.flatnonzero((steps <= step) & np.isfinite(values))
    default = float(getattr(objective, "inv_tau", 1 / 0.07))
    inv_tau = float(values[before[-1]]) if len(before) else default
    beta = getattr(objective, "scale_hopfield", None)
    return Temperatures(inv_tau, None if beta is None else float(beta))


# -- spectrum --------------------------------------------------------------------------------------------------


def _spectrum(workspace: Workspace, runs: Sequence[RunRow], asked: Asked, progress: Progress | None) -> Board:
    chosen = [(i, run, _choose(workspace, run, asked)) for i, run in enumerate(runs)]
    spectra: dict[tuple[int, str], np.ndarray] = {}
    warnings: list[str] = []
    measured: list[tuple[int, RunRow, int]] = []
    for i, run, row in chosen:
        snapshot = read_snapshot(row.folder)
        for side, vectors in _sides(snapshot):
            sample = vectors[_sample(len(vectors), MOST_PAIRS)]
            spectra[i, side] = covariance_spectrum(_finite(sample, run), progress)
            measured.append((i, run, len(sample)))
            if is_collapsed(spectra[i, side], len(sample)):
                number = effective_directions(spectra[i, side])
                possible = min(snapshot.d, max(len(sample) - 1, 1))
                warnings.append(
                    f"Dimensional collapse: the {side}s of {run.name} vary in {number} of {possible} directions only."
                )
    plots = [_spectrum_plot(side, chosen, spectra) for side in ("image", "text") if any(s == side for _, s in spectra)]
    over = _over_steps(workspace, chosen, progress)
    columns = tuple(
        f"{run.name}, {side}s" for i, run, _ in chosen for side in ("image", "text") if (i, side) in spectra
    )
    ordered = [spectra[i, side] for i, _, _ in chosen for side in ("image", "text") if (i, side) in spectra]
    counts = [n for i, _, _ in chosen for j, _, n in measured if i == j]
    table = (
        ("Effective directions (99 %)", "Directions that hold 99 % of the variance.", effective_directions, 0),
        ("Effective rank", "Exp of the entropy of the spectrum (Roy & Vetterli, 2007).", effective_rank, 2),
        ("Variance in the first (%)", "", lambda e: 100 * share_in_first(e, 1), 1),
        ("Variance in the first 10 (%)", "", lambda e: 100 * share_in_first(e, 10), 1),
        ("Total variance", "1 would be spread all over the sphere.", lambda e: float(e.sum()), 3),
    )
    written = [Line(w, h, tuple(float(read(e)) for e in ordered), digits) for w, h, read, digits in table]
    written += [
        Line("Width d", "Directions there are.", tuple(float(len(e)) for e in ordered), 0),
        Line("n", "Rows measured; a centred cloud spans n − 1 directions at most.", tuple(map(float, counts)), 0),
    ]
    notes = (
        "Spectrum of the covariance of the unit rows, their mean taken off. Solid: images; dashed: texts.",
        *_sampled_note(chosen, MOST_PAIRS),
    )
    numbers = Numbers("spectra", "At this step", columns, tuple(written), badges=False)
    return Board(
        "diagnosis",
        "spectrum",
        _title("spectrum"),
        _head(chosen),
        (tuple(plots), over, (numbers,)),
        notes,
        tuple(warnings),
    )


def _spectrum_plot(side: str, chosen: Sequence[tuple[int, RunRow, SnapshotRow]], spectra: dict) -> Plot:
    there = [(i, run, spectra[i, side]) for i, run, _ in chosen if (i, side) in spectra]
    curves = tuple(
        Curve(
            run.name,
            RUN_TONES[i % 2],
            np.arange(1, len(spectrum) + 1, dtype=float),
            np.maximum(shares_of(spectrum), 1e-9),
        )
        for i, run, spectrum in there
    )
    d = max(len(spectrum) for *_, spectrum in there)
    x, y = Axis("direction", 1, d, log=True), Axis("share of the variance", 1e-6, 1.0, log=True)
    return Plot(f"spectrum-{side}", f"Spectrum of the {side}s", x, y, curves)


def _over_steps(
    workspace: Workspace, chosen: Sequence[tuple[int, RunRow, SnapshotRow]], progress: Progress | None
) -> tuple[Plot, ...]:
    curves: dict[str, list[Curve]] = {"rank": [], "directions": [], "first": []}
    for i, run, row in chosen:
        rows = [s for s in workspace.snapshots(run.id) if (s.dataset, s.split) == (row.dataset, row.split)]
        for side in ("image", "text"):
            points = []
            for place, snapshot_row in enumerate(sorted(rows, key=lambda s: s.step)):
                vectors = getattr(read_snapshot(snapshot_row.folder), side)
                if vectors is None or not np.isfinite(vectors[:1]).all():
                    continue
                spectrum = covariance_spectrum(vectors[_sample(len(vectors), MOST_PAIRS)])
                points.append(
                    (
                        snapshot_row.step,
                        effective_rank(spectrum),
                        effective_directions(spectrum),
                        100 * share_in_first(spectrum, 10),
                    )
                )
                if progress:
                    progress((place + 1) / len(rows), f"Spectra of {run.name}")
            if points:
                steps, *values = np.array(points, dtype=float).T
                for key, series in zip(("rank", "directions", "first"), values[:3], strict=True):
                    name = f"{run.name}, {side}s"
                    curves[key].append(Curve(name, RUN_TONES[i % 2], steps, series, dashed=side == "text"))
    titles = {
        "rank": ("Effective rank", "effective rank"),
        "directions": ("Effective directions (99 %)", "directions"),
        "first": ("Variance in the first 10", "share (%)"),
    }
    return tuple(_steps_plot(f"steps-{key}", *titles[key], series) for key, series in curves.items())


def _steps_plot(key: str, title: str, label: str, curves: Sequence[Curve]) -> Plot:
    last = max((float(c.x.max()) for c in curves), default=1.0)
    top = max((float(np.nanmax(c.y)) for c in curves), default=1.0)
    dots = tuple(Dot("", c.tone, float(x), float(y), size=5) for c in curves for x, y in zip(c.x, c.y, strict=True))
    return Plot(
        key,
        title,
        Axis("step", 0, max(last, 1) * 1.02),
        Axis(label, 0, max(top, 1e-6) * 1.08),
        tuple(curves),
        dots=dots,
    )


# -- saturation ------------------------------------------------------------------------------------------------


def _saturation(workspace: Workspace, runs: Sequence[RunRow], asked: Asked, progress: Progress | None) -> Board:
    chosen = [(i, run, _choose(workspace, run, asked)) for i, run in enumerate(runs)]
    factors, pulls, steps, lines, notes = [], [], [], [], []
    for i, run, row in chosen:
        snapshot = _pairs_of(row, run)
        warm = temperatures(workspace, run, row.step)
        size = batch_size(workspace, run, snapshot.n)
        left, ours, loob = unsaturated(snapshot, warm, size)
        factors.append((i, run, left))
        pulls.append(_pull_plot(i, run, ours, loob))
        steps.append(_left_over_steps(workspace, i, run, row, size, progress))
        seen = "after its retrieval" if warm.beta is not None else "of image and text"
        notes.append(
            f"{run.name}: batches of {size:,} held-out pairs, {len(left):,} anchors, 1/tau = {warm.inv_tau:.3g}, "
            f"cosines {seen}" + (f", beta = {warm.beta:g}." if warm.beta is not None else ".")
        )
        share = [float(np.mean(left < 10.0**-k)) for k in (1, 2, 3)]
        lines.append(
            {
                "Mean of 1 − p": float(left.mean()),
                "Median of 1 − p": float(np.median(left)),
                "Anchors below 0.1 (%)": 100 * share[0],
                "Anchors below 0.01 (%)": 100 * share[1],
                "Anchors below 0.001 (%)": 100 * share[2],
                "Mean pull, InfoNCE": float(ours.mean()),
                "Mean pull, InfoLOOB": float(loob.mean()),
                "1/tau": warm.inv_tau,
                "Anchors": float(len(left)),
            }
        )
    table = Numbers(
        "saturation",
        "Of one update",
        tuple(run.name for _, run, _ in chosen),
        tuple(
            Line(
                words,
                "",
                tuple(line[words] for line in lines),
                0 if words == "Anchors" else 1 if "%" in words else 4,
                words.startswith("Mean of"),
            )
            for words in lines[0]
        ),
    )
    notes = [
        "InfoNCE keeps the match in its own denominator, so its gradient is 1 − p times that of InfoLOOB: it saturates "
        "as p nears 1. InfoLOOB's factor is 1 for every anchor. Pull: length of tau times the gradient on an anchor.",
        "The batches are drawn from held-out pairs of the snapshot, as large as the run's own.",
        *notes,
    ]
    over = _steps_plot("steps-left", "Mean of 1 − p over training", "mean of 1 − p", steps)
    rows: tuple[tuple[Piece, ...], ...] = ((_factor_plot(factors), over), tuple(pulls), (table,))
    return Board("diagnosis", "saturation", _title("saturation"), _head(chosen), rows, tuple(notes))


def batch_size(workspace: Workspace, run: RunRow, n: int) -> int:
    """The run's own batch size, as far as there are pairs."""
    return max(2, min(workspace.config_of(run.id).optimiser.batch_size, n, 1024))


def unsaturated(
    snapshot: Snapshot, warm: Temperatures, size: int, *, most: int = 2048
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """1 - p and both pulls of every anchor of as many whole batches as fit into `most` pairs, both ways round."""
    order = np.random.default_rng(0).permutation(snapshot.n)
    lefts, ours, loobs = [], [], []
    sides: tuple[batches.Side, ...] = ("pairs",) if warm.beta is None else ("images", "texts")
    for start in range(0, max(min(len(order), most) - size + 1, 1), size):
        rows = np.sort(order[start : start + size])
        image, text = snapshot.image[rows], snapshot.text[rows]
        for side in sides:
            anchors, samples = batches.seen_by(image, text, warm.beta, side)
            # CLOOB asks one way only on each side; CLIP asks both ways.
            for x, y in ((anchors, samples), (samples, anchors)) if warm.beta is None else ((anchors, samples),):
                found = batches.batch(x, y, warm.inv_tau)
                left, (ours_here, loob_here) = found.unsaturated, batches.pull_lengths(found, y)
                lefts.append(left)
                ours.append(ours_here)
                loobs.append(loob_here)
    return np.concatenate(lefts), np.concatenate(ours), np.concatenate(loobs)


def _factor_plot(factors: Sequence[tuple[int, RunRow, np.ndarray]]) -> Plot:
    edges = np.linspace(-6, 0, 49)
    curves = []
    for i, run, left in factors:
        share = 100 * np.histogram(np.log10(np.clip(left, 1e-6, 1)), edges)[0] / len(left)
        curves.append(Curve(run.name, RUN_TONES[i % 2], 10.0**edges, share, stepped=True))
    top = max(float(c.y.max()) for c in curves)
    curves.append(Curve("InfoLOOB: always 1", "first", np.array([1.0, 1.0]), np.array([0, 1.08 * top]), width=3))
    x, y = Axis("1 − p: share of the gradient that is left", 1e-6, 1.3, log=True), Axis("anchors (%)", 0, 1.08 * top)
    return Plot(
        "factor", "What saturation leaves of InfoNCE", x, y, tuple(curves), note="smaller ones in the first bar"
    )


def _pull_plot(i: int, run: RunRow, ours: np.ndarray, loob: np.ndarray) -> Plot:
    edges = np.linspace(0, max(float(loob.max()), 0.1) * 1.001, 41)
    tone = RUN_TONES[i % 2]
    shares = [100 * np.histogram(values, edges)[0] / len(values) for values in (ours, loob)]
    curves = (
        Curve(f"InfoNCE, mean {ours.mean():.3f}", tone, edges, shares[0], stepped=True),
        Curve(f"InfoLOOB, mean {loob.mean():.3f}", "first", edges, shares[1], stepped=True),
    )
    # The first bar of a saturated run towers over all others: the axis would show nothing else.
    top = max(float(np.sort(s)[-2]) if s.max() > 60 else float(s.max()) for s in shares)
    x, y = Axis("pull on an anchor", 0, float(edges[-1])), Axis("anchors (%)", 0, max(1.1 * top, 5))
    return Plot(f"pull-{i}", f"Pull of both bounds on {run.name}", x, y, curves)


def _left_over_steps(
    workspace: Workspace, i: int, run: RunRow, row: SnapshotRow, size: int, progress: Progress | None
) -> Curve:
    rows = [s for s in workspace.snapshots(run.id) if (s.dataset, s.split) == (row.dataset, row.split)]
    points = []
    for place, at in enumerate(sorted(rows, key=lambda s: s.step)):
        left, _, _ = unsaturated(read_snapshot(at.folder), temperatures(workspace, run, at.step), size, most=size)
        points.append((at.step, float(left.mean())))
        if progress:
            progress((place + 1) / len(rows), f"Saturation of {run.name}")
    steps, values = np.array(points, dtype=float).T
    return Curve(run.name, RUN_TONES[i % 2], steps, values)


# -- batch -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BatchFacts:
    """What the view needs to know of the batch: its rows in the snapshot, and the anchor's."""

    rows: tuple[int, ...]
    anchor: int


def _batch(workspace: Workspace, runs: Sequence[RunRow], asked: Asked, progress: Progress | None) -> Board:
    if not 2 <= asked.size <= MOST_BATCH:
        raise ChartError(f"A batch under the glass has 2 to {MOST_BATCH} pairs, not {asked.size}.")
    chosen = [(i, run, _choose(workspace, run, asked)) for i, run in enumerate(runs)]
    lines: list[tuple[Piece, ...]] = []
    strips: list[tuple[Piece, ...]] = []
    notes, facts = [], None
    for i, run, row in chosen:
        snapshot = _pairs_of(row, run)
        rows = batch_rows(snapshot, asked.size, asked.number)
        anchor = min(max(asked.anchor, 0), len(rows) - 1)
        facts = facts or BatchFacts(tuple(rows.tolist()), anchor)
        warm = temperatures(workspace, run, row.step)
        image, text = exact(snapshot.image[rows]), exact(snapshot.text[rows])
        side: batches.Side = "pairs" if warm.beta is None else "images"
        found = batches.batch(*batches.seen_by(image, text, warm.beta, side), warm.inv_tau)
        lines.append(_grids(i, run, snapshot, rows, found, warm, anchor))
        strips.append((_negatives(i, run, snapshot, rows, found, anchor),))
        strips.append((_false_negatives(i, run, snapshot, rows, found, image, text),))
        seen = f"U_x against U_y at beta = {warm.beta:g}" if warm.beta is not None else "images against texts"
        notes.append(f"{run.name}: {seen}, 1/tau = {warm.inv_tau:.3g}, mean of 1 − p {found.unsaturated.mean():.4f}.")
        if progress:
            progress((i + 1) / len(chosen), "Weighing the negatives")
    notes = [
        "Rows are anchors, columns their samples, ordered by class. Weights: share of each sample in the gradient on "
        "the anchor; InfoNCE's diagonal is p, and its negatives together only weigh 1 − p. Click a row for its anchor.",
        "A batch of held-out pairs of the snapshot, drawn from a fixed seed. Likely false negatives: the same caption, "
        f"or a cosine of at least {LEAST_ALIKE:g} between the two texts or the two images.",
        *notes,
    ]
    head = (*_head(chosen), f"batch {asked.number} of {asked.size} pairs")
    return Board("diagnosis", "batch", _title("batch"), head, (*lines, *strips), tuple(notes), facts=facts)


def batch_rows(snapshot: Snapshot, size: int, number: int) -> Int[np.ndarray, " b"]:
    """Rows of the batch, ordered by class and caption so that alike pairs stand side by side."""
    size = min(size, snapshot.n)
    order = np.random.default_rng(0).permutation(snapshot.n)
    start = (number * size) % max(snapshot.n - size + 1, 1)
    rows = order[start : start + size].tolist()
    items = snapshot.items
    return np.array(sorted(rows, key=lambda row: (items.label[row], items.caption[row], row)))


def _grids(
    i: int, run: RunRow, snapshot: Snapshot, rows: np.ndarray, found: batches.Batch, warm: Temperatures, anchor: int
) -> tuple[Grid, ...]:
    names = tuple(f"{row}: {snapshot.items.caption[row]}" for row in rows.tolist())
    parts = (
        ("logits", "Logits", found.logits, float(found.logits.min()), float(found.logits.max()), "logit", False),
        ("infonce", "Weights of InfoNCE", found.infonce, 1e-4, 1.0, "weight", True),
        ("infoloob", "Weights of InfoLOOB", found.infoloob, 1e-4, 1.0, "weight", True),
    )
    tick = ((float(anchor), "▸"),)
    return tuple(
        Grid(
            f"{key}-{i}",
            f"{run.name}: {title}" if key == "logits" else title,
            values,
            "sample (text)" if warm.beta is None else "sample (U_y)",
            "anchor (image)" if warm.beta is None else "anchor (U_x)",
            (),
            tick,
            low,
            high,
            unit,
            log=log,
            rows=names,
            columns=names,
            row_ids=tuple(range(len(rows))),
        )
        for key, title, values, low, high, unit, log in parts
    )


def _negatives(i: int, run: RunRow, snapshot: Snapshot, rows: np.ndarray, found: batches.Batch, anchor: int) -> Strip:
    order = np.argsort(-found.infoloob[anchor], kind="stable")[:10]
    own = int(rows[anchor])
    cells = [
        Cell(
            own,
            snapshot.items.path[own],
            snapshot.items.caption[own],
            f"anchor, p = {_share(found.infonce[anchor, anchor])}",
            strong=True,
        )
    ]
    for j in order.tolist():
        row = int(rows[j])
        words = f"{_share(found.infonce[anchor, j])} · {_share(found.infoloob[anchor, j])}"
        share = float(found.infoloob[anchor, j])
        cells.append(Cell(row, snapshot.items.path[row], snapshot.items.caption[row], words, share))
    title = f"{run.name}: what pushes the anchor most"
    return Strip(f"negatives-{i}", title, RUN_TONES[i % 2], tuple(cells), "weight in InfoNCE · in InfoLOOB")


def _false_negatives(
    i: int, run: RunRow, snapshot: Snapshot, rows: np.ndarray, found: batches.Batch, image: np.ndarray, text: np.ndarray
) -> Strip:
    items = snapshot.items
    groups = groups_of([items.caption[row] for row in rows.tolist()])
    likely = batches.likely_false_negatives(found, image, text, groups, least=LEAST_ALIKE)
    cells = []
    for place, (first, second, weight, cosine, reason) in enumerate(likely[:6], start=1):
        cosines = "" if reason == "same caption" else f" {cosine:.2f}"
        for j, words in ((first, f"{place}a · {reason}{cosines}"), (second, f"{place}b · weight {_share(weight)}")):
            row = int(rows[j])
            cells.append(Cell(row, items.path[row], items.caption[row], words))
    note = f"{len(likely)} likely" + (", the 6 heaviest shown" if len(likely) > 6 else "")
    return Strip(f"false-{i}", f"{run.name}: likely false negatives", RUN_TONES[i % 2], tuple(cells), note)


def _share(value: float) -> str:
    return f"{100 * value:.1f} %" if value >= 0.0005 else "< 0.1 %"


# -- attributes ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Probed:
    """One run's probes: attribute -> its probe, of images and of texts."""

    run: RunRow
    row: SnapshotRow
    cooccurrence: float | None
    images: dict[str, Probe]
    texts: dict[str, Probe]
    others: dict[str, float]


def ablation_runs(workspace: Workspace) -> list[RunRow]:
    """The newest 8 runs of ablations that have a snapshot, oldest first: four with and four without co-occurrence."""
    rows = [run for run in workspace.runs() if run.preset == PRESET and workspace.snapshots(run.id)]
    return rows[-8:]


def attributes_of(snapshot: Snapshot) -> dict[str, list[str]]:
    """The attributes that can be probed: columns of words with 2 to 50 values; else the class."""
    found = {}
    for name, values in snapshot.items.metadata.items():
        if all(isinstance(value, str) for value in values) and 2 <= len(set(values)) <= 50:
            found[_ATTRIBUTES.get(name, name.replace("_", " "))] = list(values)
    if not found and 2 <= len(set(snapshot.items.label)) <= 200:
        found["class"] = list(snapshot.items.label)
    return found


def probed(workspace: Workspace, run: RunRow, row: SnapshotRow, progress: Progress | None = None) -> Probed:
    """All probes of one snapshot; at most 20,000 rows, drawn at random.

    Raises:
        ChartError: Its items have no attributes.
    """
    snapshot = read_snapshot(row.folder)
    rows = _sample(snapshot.n, MOST_PAIRS)
    named = {name: np.array(values, dtype=str)[rows] for name, values in attributes_of(snapshot).items()}
    if not named:
        raise ChartError(f"The pairs of {row.dataset}-{row.split} have no attributes to probe; Scenes has.")
    sides: dict[str, dict[str, Probe]] = {"image": {}, "text": {}}
    others: dict[str, float] = {}
    done, total = 0, len(named) * 3
    for name, words in named.items():
        for side, vectors in _sides(snapshot):
            sides[side][name] = probe(_finite(vectors[rows], run), words, progress=progress)
            done += 1
            if progress:
                progress(done / total, f"Probing {run.name}: {name}")
        rest = [values for other, values in named.items() if other != name]
        others[name] = probe(_one_hot(rest), words).accuracy if rest else math.nan
        done += 1
    data = workspace.config_of(run.id).data
    return Probed(run, row, getattr(data, "cooccurrence", None), sides["image"], sides["text"], others)


def _attributes(workspace: Workspace, runs: Sequence[RunRow], asked: Asked, progress: Progress | None) -> Board:
    wanted = list(runs)
    if asked.ablation:
        wanted += [run for run in ablation_runs(workspace) if run.id not in {r.id for r in runs}]
    chosen = [(i, run, _choose_like(workspace, run, asked, first=i < len(runs))) for i, run in enumerate(wanted)]
    chosen = [(i, run, row) for i, run, row in chosen if row is not None]
    if not chosen:
        raise ChartError("There is nothing to probe yet: choose a run, or start the ablation.")
    found = [(i, probed(workspace, run, row, progress)) for i, run, row in chosen]
    names = list(dict.fromkeys(name for _, each in found for name in (*each.images, *each.texts)))
    pieces: list[tuple[Piece, ...]] = []
    both = [(i, each) for i, each in found if i < len(runs)]
    if both:
        pieces.append(tuple(_attribute_plot(side, both, names) for side in ("images", "texts")))
    pieces.append(tuple(_attribute_table(side, found, names) for side in ("images", "texts")))
    pieces.append((_ablation_table(workspace, found, names),))
    if (effect := _effect(found, names)) is not None:
        pieces.append((effect,))
    notes = (
        "Linear probes: multinomial logistic regression on the embeddings, fitted on 70 % of the pairs and tried on "
        "the rest; intervals are Wilson's at 95 %. An attribute that a run explains away is read off it no better "
        "than by guessing.",
        "'From the others' is a probe on the pair's other attributes alone: where training data are correlated, "
        "held-out renderings are, too, and an attribute can be guessed from its companions. Only what lies above it is "
        "read off the embedding itself.",
        "; ".join(
            f"{each.run.name}: n = {next(iter(each.images.values() or each.texts.values())).tried:,} tried"
            for _, each in found
        )
        + ".",
    )
    return Board("diagnosis", "attributes", _title("attributes"), _head(chosen), tuple(pieces), notes)


def _attribute_plot(side: str, found: Sequence[tuple[int, Probed]], names: Sequence[str]) -> Plot:
    dots, curves = [], []
    for place, (i, each) in enumerate(found):
        offset = 0.16 * (place - (len(found) - 1) / 2)
        for at, name in enumerate(names):
            value = getattr(each, side).get(name)
            if value is None:
                continue
            tone = RUN_TONES[i % 2]
            dots.append(Dot(each.run.name, tone, at + offset, 100 * value.accuracy, size=9))
            x = np.full(2, at + offset)
            curves.append(Curve("", tone, x, 100 * np.array([value.low, value.high])))
    first = found[0][1]
    for at, name in enumerate(names):
        value = getattr(first, side).get(name)
        if value is not None:
            for level, dashed in ((value.chance, False), (first.others[name], True)):
                if level == level:
                    x = np.array([at - 0.35, at + 0.35])
                    curves.append(Curve("", "quiet", x, np.full(2, 100 * level), dashed=dashed, width=1.5))
    x, y = Axis("", -0.6, len(names) - 0.4), Axis("read rightly (%)", 0, 104)
    note = "grey: guessing; dashed: from the others"
    return Plot(
        f"probes-{side}", f"Probes of the {side}", x, y, tuple(curves), dots=tuple(dots), names=tuple(names), note=note
    )


def _attribute_table(side: str, found: Sequence[tuple[int, Probed]], names: Sequence[str]) -> Table:
    lines = [
        (
            each.run.name,
            [100 * getattr(each, side)[n].accuracy if n in getattr(each, side) else math.nan for n in names],
        )
        for _, each in found
    ]
    first = found[0][1]
    chances = [100 * getattr(first, side)[n].chance if n in getattr(first, side) else math.nan for n in names]
    lines.append(("guessing", chances))
    for level in sorted({each.cooccurrence for _, each in found if each.cooccurrence is not None}):
        one = next(each for _, each in found if each.cooccurrence == level)
        lines.append((f"from the others, co-occurrence {level:g}", [100 * one.others.get(n, math.nan) for n in names]))
    values = np.array([numbers for _, numbers in lines])
    rows = tuple(name for name, _ in lines)
    return Table(f"table-{side}", f"Read off the {side} (%)", rows, tuple(names), values, 1, top=100.0)


def _ablation_table(workspace: Workspace, found: Sequence[tuple[int, Probed]], names: Sequence[str]) -> Numbers:
    columns = ("objective", "co-occ.", "step", "R@1 (%)", "dirs image", "dirs text", "rank image", "rank text")
    lines = []
    for _, each in found:
        snapshot = read_snapshot(each.row.folder)
        spectra = {
            side: covariance_spectrum(vectors[_sample(len(vectors), MOST_PAIRS)]) for side, vectors in _sides(snapshot)
        }
        none = np.zeros(0)
        r1 = workspace.series(each.run.id, "val/image_to_text_R@1")
        at = np.flatnonzero(r1[0] <= each.row.step)
        recall = f"{100 * float(r1[1][at[-1]]):.1f}" if len(at) else "–"
        values = [effective_directions(spectra.get(s, none)) if s in spectra else math.nan for s in ("image", "text")]
        ranks = [effective_rank(spectra[s]) if s in spectra else math.nan for s in ("image", "text")]
        level = "–" if each.cooccurrence is None else f"{each.cooccurrence:g}"
        cells = (
            objective_label(each.run.objective),
            level,
            f"{each.row.step:,}",
            recall,
            *(f"{v:,.0f}" if v == v else "–" for v in values),
            *(f"{v:.1f}" if v == v else "–" for v in ranks),
        )
        lines.append(Line(each.run.name, "", cells))
    title = "What was trained: recall, effective directions (99 %), effective rank"
    return Numbers("runs", title, columns, tuple(lines), badges=False)


def _effect(found: Sequence[tuple[int, Probed]], names: Sequence[str]) -> Table | None:
    """Accuracy with minus without co-occurrence, of each objective that was trained both ways."""
    by: dict[tuple[str, float], Probed] = {
        (each.run.objective, each.cooccurrence): each for _, each in found if each.cooccurrence is not None
    }
    lines = []
    for objective in dict.fromkeys(kind for kind, _ in by):
        with_ = max((level for kind, level in by if kind == objective), default=0.0)
        if with_ > 0 and (objective, 0.0) in by:
            correlated, free = by[objective, with_], by[objective, 0.0]
            row = [
                100 * (correlated.images[n].accuracy - free.images[n].accuracy)
                if n in correlated.images and n in free.images
                else math.nan
                for n in names
            ]
            lines.append((f"{objective_label(objective)}, {with_:g} − 0", row))
    if not lines:
        return None
    title = "Images: with minus without co-occurrence (points)"
    values = np.array([row for _, row in lines])
    return Table("effect", title, tuple(name for name, _ in lines), tuple(names), values, 1, top=50.0)


def _one_hot(columns: Sequence[np.ndarray]) -> Float[np.ndarray, "n d"]:
    blocks = []
    for words in columns:
        values, codes = np.unique(words, return_inverse=True)
        blocks.append(np.eye(len(values), dtype=np.float32)[codes.reshape(-1)])
    return np.concatenate(blocks, axis=1)


# -- shared ----------------------------------------------------------------------------------------------------


def _choose(workspace: Workspace, run: RunRow, asked: Asked) -> SnapshotRow:
    return choose_snapshot(workspace, run, step=asked.step, dataset=asked.dataset, split=asked.split)


def _choose_like(workspace: Workspace, run: RunRow, asked: Asked, *, first: bool) -> SnapshotRow | None:
    """The asked step of the runs looked at; the last one of the others, which may have trained longer or shorter."""
    if first:
        return _choose(workspace, run, asked)
    try:
        return choose_snapshot(workspace, run, dataset=asked.dataset, split=asked.split)
    except ChartError:
        return None


def _pairs_of(row: SnapshotRow, run: RunRow) -> Snapshot:
    snapshot = read_snapshot(row.folder)
    if snapshot.image is None or snapshot.text is None:
        raise ChartError(f"Run {run.name} embeds only one modality; this panel needs images and texts. {BOTH}")
    if snapshot.n < 2:
        raise ChartError(f"The snapshot of {run.name} has a single pair; a batch needs at least 2.")
    if not (np.isfinite(snapshot.image).all() and np.isfinite(snapshot.text).all()):
        raise ChartError(
            f"The embeddings of {run.name} are not numbers: training has diverged. Choose an earlier step."
        )
    return snapshot


def _sides(snapshot: Snapshot) -> list[tuple[Literal["image", "text"], Any]]:
    return [(side, part) for side, part in (("image", snapshot.image), ("text", snapshot.text)) if part is not None]


def _finite(vectors: np.ndarray, run: RunRow) -> np.ndarray:
    if not np.isfinite(vectors).all():
        raise ChartError(
            f"The embeddings of {run.name} are not numbers: training has diverged. Choose an earlier step."
        )
    return vectors


def _sample(n: int, most: int) -> Int[np.ndarray, " k"]:
    return np.arange(n) if n <= most else np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def _sampled_note(chosen: Sequence[tuple[int, RunRow, SnapshotRow]], most: int) -> list[str]:
    return [f"{run.name}: {most:,} of {row.n:,} rows, drawn at random." for _, run, row in chosen if row.n > most]


def _title(panel: str) -> str:
    return f"Explaining away: {TITLES[panel]}"


def _head(chosen: Sequence[tuple[int, RunRow, SnapshotRow]]) -> tuple[str, ...]:
    return ("; ".join(f"{run.name}, step {row.step:,}, {row.dataset} {row.split}" for _, run, row in chosen[:4]),)
