"""The covariance before and after a retrieval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainer.analysis.losses import hopfield_retrieval
from trainer.analysis.progress import Progress
from trainer.analysis.spectra import (
    covariance_spectrum,
    effective_directions,
    effective_rank,
    share_in_first,
    shares_of,
)
from trainer.charts.hopfield.shared import Asked, Patterns, both_of
from trainer.charts.marks import RUN_TONES, Axis, NumberRow, NumberTable, Series, XYPlot


def spectrum(gathered: Sequence[Patterns], asked: Asked, progress: Progress | None) -> tuple[tuple, tuple[str, ...]]:
    """Spectra before, after and across: rows of pieces, and notes."""
    plots, facts = [], []
    for run in gathered:
        image, text, rows = both_of(run, asked)
        own, other = (image, text) if run.side == "images" else (text, image)
        before = covariance_spectrum(own, progress)
        after = covariance_spectrum(hopfield_retrieval(own, own, asked.beta), progress)
        across = covariance_spectrum(hopfield_retrieval(other, own, asked.beta), progress)
        asker = "text" if run.side == "images" else "image"
        names = (f"{run.side} before", f"retrieved by the {run.side[:-1]}", f"retrieved by the {asker}")
        tone = RUN_TONES[run.index % 2]
        d = len(before)
        series = [
            Series(name, t, np.arange(1, d + 1, dtype=float), np.maximum(shares_of(spectrum), 1e-9), dashed=dashed)
            for name, t, spectrum, dashed in (
                (names[0], "quiet", before, False),
                (names[1], tone, after, False),
                (names[2], tone, across, True),
            )
        ]
        x, y = Axis("direction", 1, d, log=True), Axis("share of the variance", 1e-6, 1.0, log=True)
        note = f"n = {len(rows):,} pairs" + (f" of {run.pairs:,}, sampled" if len(rows) < run.pairs else "")
        plots.append(XYPlot(f"spectrum-{run.index}", run.label, x, y, tuple(series), note=note))
        facts += [
            (run, name, spectrum) for name, spectrum in zip(("before", "after", "across"), (before, after, across))
        ]
    columns = tuple(f"{run.label}, {name}" for run, name, _ in facts)
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
    table = tuple(NumberRow(w, h, tuple(float(read(e)) for _, _, e in facts), digits) for w, h, read, digits in lines)
    notes = (
        "before: the stored embeddings; after: what each retrieves from them with this beta (U_x or V_y); across: what "
        "its partner of the other modality retrieves (U_y or V_x). One retrieval averages, so it narrows the spectrum "
        "of given embeddings; the paper's claim is that training with it enriches the embeddings themselves: compare "
        "the runs' spectra 'before'.",
    )
    return (tuple(plots), (NumberTable("spectra", "Spectra", columns, table, badges=False),)), notes
