"""The covariance spectrum before and after a Hopfield retrieval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Float
from msgspec import Struct

from trainer.analysis.losses import hopfield_retrieval
from trainer.analysis.spectra import covariance_spectrum, shares_of
from trainer.analysis.units import UNIT_OF
from trainer.charts.hopfield_patterns import (
    Patterns,
    StoredSettings,
    beta_setting,
    beta_words,
    both_of,
    head,
    patterns,
    stored_setting,
    stored_words,
)
from trainer.charts.marks import Axis, Panel, Series, Tone, XYPlot, run_tone
from trainer.charts.measure import Measure, measure_table
from trainer.charts.snapshot_measures import spectrum_measures
from trainer.charts.spec import Chart, PerRun, Progress, Request, Target, per_run
from trainer.store import Workspace

NOTE: Final = (
    "before: the stored embeddings; after: what each retrieves from them with this beta (U_x or V_y); across: what "
    "its partner of the other modality retrieves (U_y or V_x). One retrieval averages, so it narrows the spectrum "
    "of given embeddings; the paper's claim is that training with it enriches the embeddings themselves: compare "
    "the runs' spectra 'before'."
)
_LINES: Final = spectrum_measures(
    "Variance in the first direction (%)",
    Measure("Total variance", "Sum of the eigenvalues; 1 would be spread all over the sphere.", np.sum, 4),
)


@dataclass(frozen=True)
class SpectrumSettings:
    """The stored modality, and beta."""

    stored: Literal["images", "texts"] = stored_setting()
    beta: float = beta_setting()


class Spectra(Struct, frozen=True):
    """Descending eigenvalues of one run: of `n` stored patterns, and of their retrievals."""

    run: Patterns
    n: int
    before: Float[np.ndarray, " d"]
    after: Float[np.ndarray, " d"]
    across: Float[np.ndarray, " d"]


def spectra(
    workspace: Workspace, target: Target, request: Request, settings: SpectrumSettings, progress: Progress
) -> Spectra:
    """Return spectra before, after and across; more than 4,096 pairs are sampled.

    Raises:
        ChartError: The run embeds only one modality.
    """
    run = patterns(workspace, target, request, StoredSettings(settings.stored), progress=progress)
    image, text, rows = both_of(run, unit=UNIT_OF[settings.stored[:-1]])
    # What is retrieved of a narrow cone differs by less than single precision holds.
    image, text = image.astype(np.float64), text.astype(np.float64)
    stored, other = (image, text) if settings.stored == "images" else (text, image)
    before = covariance_spectrum(stored, progress)
    after = covariance_spectrum(hopfield_retrieval(stored, stored, settings.beta), progress)
    across = covariance_spectrum(hopfield_retrieval(other, stored, settings.beta), progress)
    return Spectra(run, len(rows), before, after, across)


def draw(data: PerRun[Spectra], settings: SpectrumSettings) -> Panel:
    """Draw one plot per run, and the measures of all spectra."""
    runs = [run_spectra.run for run_spectra in data.found]
    each = {f"{name}, {part}": getattr(run_spectra, part) for run_spectra, _, name in data.named for part in _PARTS}
    table = measure_table("spectra", "Spectra", list(each), _LINES, list(each.values()), badges=False)
    return Panel(
        title="Covariance before and after a Hopfield retrieval",
        head=head(runs, stored_words(runs, StoredSettings(settings.stored)), beta_words(settings.beta)),
        rows=(tuple(_plot(*of_run) for of_run in data.named), (table,)),
        notes=(NOTE,),
    )


_PARTS: Final = ("before", "after", "across")


def _plot(run_spectra: Spectra, index: int, name: str) -> XYPlot:
    side, other = ("image", "text") if run_spectra.run.side == "images" else ("text", "image")
    d = len(run_spectra.before)
    parts: tuple[tuple[str, Tone, np.ndarray, bool], ...] = (
        (f"{run_spectra.run.side} before", "quiet", run_spectra.before, False),
        (f"retrieved by the {side}", run_tone(index), run_spectra.after, False),
        (f"retrieved by the {other}", run_tone(index), run_spectra.across, True),
    )
    curves = tuple(
        Series(label, tone, np.arange(1, d + 1, dtype=float), np.maximum(shares_of(part), 1e-9), dashed=dashed)
        for label, tone, part, dashed in parts
    )
    x, y = Axis("direction", 1, d, log=True), Axis("share of variance", 1e-6, 1.0, log=True)
    note = f"n = {run_spectra.n:,} pairs" + (
        f" of {run_spectra.run.pairs:,}, sampled" if run_spectra.n < run_spectra.run.pairs else ""
    )
    return XYPlot(f"spectrum-{index}", name, x, y, curves, note=note, tone=run_tone(index))


CHART: Final = Chart(
    view="hopfield",
    label="Spectrum",
    question="What does a Hopfield retrieval do to the covariance?",
    cost="Grows with the square of the stored pairs, at most 4,096.",
    settings=SpectrumSettings,
    compute=per_run(spectra),
    draw=draw,
)
