"""Saliency of a caption in an image for each run, and the differences."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8
from msgspec import Struct

from trainer.charts import objective_label
from trainer.charts.marks import HeatMap, Panel, run_tone
from trainer.charts.settings import options


def request_words(question: Any) -> list[str]:
    """Return the arguments of `trainer saliency` after the runs that ask the same, without defaults.

    Args:
        question: A `trainer.messages.Saliency`.
    """
    return ["--image", question.image, "--caption", question.caption, *options(question)]


class SaliencyRun(Struct, frozen=True, kw_only=True):
    """One run's map."""

    index: int  # Place of the run among those asked for; decides its color.
    run: int
    name: str
    objective: str
    step: int
    cells: Float[np.ndarray, "grid grid"]  # What each cell adds to the cosine of image and caption.
    cosine: float  # Of the whole image with the caption.

    @property
    def standard(self) -> Float[np.ndarray, "grid grid"]:
        """The cells divided by their RMS, since cosines of two runs have different scales."""
        scale = float(np.sqrt(np.mean(np.square(self.cells, dtype=np.float64))))
        return self.cells / scale if scale > 0 else np.zeros_like(self.cells)


@dataclass(frozen=True)
class SaliencyChart:
    """Maps of one caption in one image."""

    path: str  # Of the image file.
    image: UInt8[np.ndarray, "s s 3"]  # The square that the runs see.
    caption: str
    method: str  # `occlusion` or `gradient`.
    runs: tuple[SaliencyRun, ...]

    @property
    def difference(self) -> Float[np.ndarray, "grid grid"] | None:
        """`standard` of run B minus that of run A; None without two runs."""
        if len(self.runs) < 2:
            return None
        return self.runs[1].standard - self.runs[0].standard

    @property
    def agreement(self) -> float | None:
        """The correlation of A's and B's cells in [-1, 1]; None without two runs or if a map is constant."""
        if len(self.runs) < 2 or any(float(np.std(run.cells)) == 0 for run in self.runs[:2]):
            return None
        return float(np.corrcoef(self.runs[0].cells.ravel(), self.runs[1].cells.ravel())[0, 1])


def panel(chart: SaliencyChart) -> Panel:
    """Return the image, and each run's cells over it; the last map is the difference of two."""
    maps = [_map(chart, "image", "Image", np.empty((0, 0)), "", note=Path(chart.path).name)]
    for run in chart.runs:
        facts = f"{objective_label(run.objective)}, step {run.step:,}, cosine {run.cosine:.3f}"
        more: dict[str, Any] = {"note": facts, "tone": run_tone(run.index)}
        more |= {"tones": ("against", run_tone(run.index)), "ends": ("against", "for")}
        maps.append(_map(chart, f"map-{run.index}", run.name, run.cells, "Share of the cosine", **more))
    if (difference := chart.difference) is not None:
        more = {"note": "" if chart.agreement is None else f"correlation {chart.agreement:.2f}"}
        more |= {"tones": (run_tone(0), run_tone(1)), "ends": ("A more", "B more")}
        maps.append(_map(chart, "difference", "Difference, B against A", difference, "B minus A, RMS", **more))
    how = "covering parts of the image" if chart.method == "occlusion" else "integrated gradients"
    grid = len(chart.runs[0].cells)
    notes = [f"The maps of “{chart.caption}” were computed by {how}, in {grid} × {grid} cells."]
    notes += ["The difference compares maps divided by their root mean square."] if difference is not None else []
    return Panel(title="Saliency map", rows=(tuple(maps),), notes=tuple(notes))


def _map(
    chart: SaliencyChart, key: str, title: str, cells: Float[np.ndarray, "g g"], unit: str, **more: Any
) -> HeatMap:
    reach = float(np.abs(cells).max(initial=1e-9))
    return HeatMap(key, title, cells, "", "", (), (), -reach, reach, unit, centered=True, picture=chart.image, **more)
