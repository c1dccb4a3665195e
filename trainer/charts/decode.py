"""Decoded embeddings of each run: mean picture, samples over the same noises, and what is not kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float, UInt8
from msgspec import Struct

from trainer.charts.marks import ImageRow, Panel, RowImage, run_tone
from trainer.charts.settings import options
from trainer.config.fields import option

WHITE: Final = 0.3
"""The deviation over the noises that is shown white, of a pixel's range."""
STEPS: Final = 25
"""DDIM steps of a sample."""
NOISES: Final = 6
"""Samples of an embedding."""
MEASURED: Final = "decoded"
"""The fact of a run that says what comes back from its samples."""
MOST_DIRECTIONS: Final = 16
"""Principal directions that an embedding can be moved along; later ones hold too little to be seen."""
WAYS: Final = {"noisy": "The first noise on its way", "foreseen": "What is foreseen in it"}
_MOST_ATTRIBUTES: Final = 16
_MOST_BESIDE: Final = 12
"""Pictures of one row."""


@dataclass(frozen=True)
class DecodeSettings:
    """How an embedding is moved before it is decoded, and how it is decoded."""

    prior: Literal["mlp", "diffusion", "text", "gap", "ridge"] = option(
        "mlp",
        "From a sentence",
        "Two trained priors; three baselines.",
        named={"mlp": "MLP", "diffusion": "Diffusion", "text": "Text as is", "gap": "+ gap", "ridge": "Ridge"},
    )
    guidance: float = option(1.0, "Guidance", "1 samples what the decoder learned.", low=1.0, high=4.0)
    share: float = option(0.0, "To second picture", "Slerp between two embeddings.", low=0.0, high=1.0)
    strength: float = option(
        0.0, "Text difference", "How often the second text minus the first is added.", low=0.0, high=2.0
    )
    direction: int = option(0, "Principal direction", "Of the training images; 0: none.", low=0, high=MOST_DIRECTIONS)
    move: Literal["drop", "along"] = option(
        "drop", "With this direction", "Set to that of the mean image, or moved along.", named={"along": "Move along"}
    )
    distance: float = option(0.0, "Moved by", "Along the direction, in lengths of an embedding.", low=-1.5, high=1.5)
    close_gap: bool = option(False, "Close the gap first", "Move the mean text onto the mean image, without a prior.")
    reverse: bool = option(False, "Way from noise", "Show the first noise on its way to the picture.")


class ReverseStrip(Struct, frozen=True):
    """One noise on its way to a picture."""

    levels: tuple[int, ...]  # Noise levels t of 1,000, falling.
    noisy: UInt8[np.ndarray, "l s s 3"]  # x_t at each level, clipped to the range of a picture.
    foreseen: UInt8[np.ndarray, "l s s 3"]  # The x_0 that the decoder foresees in it.


@dataclass(frozen=True)
class NearPicture:
    """A training picture whose embedding is near the decoded one."""

    path: str
    caption: str
    cosine: float


@dataclass(frozen=True)
class MeasuredAttribute:
    """Shares of held-out pictures that an independent judge reads right."""

    name: str
    samples: float  # Off the decoder's samples.
    originals: float  # Off the pictures themselves.
    # Off samples of an equal decoder that is told the true attributes; None where it was not measured.
    limit: float | None = None


@dataclass(frozen=True, kw_only=True)
class DecodedRun:
    """What one decoder makes of an embedding."""

    index: int  # Place of the decoder among those asked for; decides its color.
    run: int  # Its number.
    name: str
    of_name: str  # Name of the run whose embedding is decoded.
    of_step: int  # Step of that run.
    step: int  # Updates that the decoder has made.
    mean: UInt8[np.ndarray, "s s 3"]  # The mean picture: E[picture | embedding] as far as the regression learned it.
    samples: UInt8[np.ndarray, "k s s 3"]  # One for each noise.
    spread: Float[np.ndarray, "s s"]  # Deviation over the noises of each pixel, mean over colors, in 0 to 1.
    nearest: tuple[NearPicture, ...]  # Training pictures, nearest first.
    nearest_of: int  # Among how many they were sought.
    # Share of the held-out pixels' variance that the mean picture explains; NaN where it was not measured.
    recovered: float = float("nan")
    recovered_of: int = 0  # Among how many held-out pictures.
    measured: tuple[MeasuredAttribute, ...] = ()  # What `trainer decode --measure` found at this step.
    measured_of: int = 0  # On how many held-out pictures.
    reverse: ReverseStrip | None = None  # The first noise on its way; None where it was not asked for.

    @property
    def not_kept(self) -> float:
        """The mean of the spread, in percent of the range of a pixel."""
        return 100 * float(self.spread.mean())

    @property
    def shade(self) -> UInt8[np.ndarray, "s s 3"]:
        """The spread as a gray picture, white at `WHITE`."""
        shade = np.rint(255 * np.clip(self.spread / WHITE, 0, 1)).astype(np.uint8)
        return np.repeat(shade[:, :, None], 3, axis=2)


@dataclass(frozen=True)
class DecodedChart:
    """One embedding decoded by one decoder or two."""

    title: str  # The name of the picture, or the sentence.
    original: UInt8[np.ndarray, "s s 3"] | None  # The picture as the decoders see it; None for a sentence.
    how: str  # Prior, steps, guidance and moves, in words.
    noises: tuple[int, ...]  # Seeds, the same for all runs.
    runs: tuple[DecodedRun, ...]

    @property
    def limits(self) -> str:
        """What these pictures cannot show, in words."""
        size = self.runs[0].mean.shape[0]
        shares = [f"{100 * run.recovered:.0f} %" for run in self.runs if run.recovered == run.recovered]
        explained = (
            f" The mean picture explains {', '.join(shares)} of the held-out pixels' variance." if shares else ""
        )
        return (
            f"The decoders are small, of {size} pixels: what they leave out may be in an embedding all the same, and "
            f"what stays over the noises may be what all pictures share; only differences between equal decoders speak "
            f"of the embeddings. The nearest is of {self.runs[0].nearest_of:,} training pictures."
            f"{explained} {_read(self.runs)}"
        )


def panel(chart: DecodedChart) -> Panel:
    """Return a row of pictures for each decoder: original, mean, nearest training picture, deviation, samples.

    Two more rows have the first noise on its way, and what is foreseen in it, where that was asked for.
    """
    rows: list[tuple[ImageRow, ...]] = []
    for run in chart.runs:
        title = f"{run.of_name} at step {run.of_step:,}, by {run.name} (step {run.step:,})"
        cells = [] if chart.original is None else [_cell("original", chart.original)]
        cells.append(_cell("mean", run.mean))
        cells += [RowImage(-1, near.path, near.caption, f"nearest · {near.cosine:.2f}") for near in run.nearest[:1]]
        cells.append(_cell(f"not kept · {run.not_kept:.1f} %", run.shade))
        cells += [_cell(f"noise {seed}", pixels) for seed, pixels in zip(chart.noises, run.samples, strict=True)]
        rows += _in_rows(run, "decoded", title, cells)
        if run.reverse is not None:
            for key, pictures in (("noisy", run.reverse.noisy), ("foreseen", run.reverse.foreseen)):
                levels = zip(run.reverse.levels, pictures, strict=True)
                rows += _in_rows(run, key, WAYS[key], [_cell(f"t = {level:,}", pixels) for level, pixels in levels])
    return Panel(title=f"Decoded: {chart.title}", rows=tuple(rows), notes=(f"{chart.how} {chart.limits}",))


def _cell(label: str, pixels: UInt8[np.ndarray, "s s 3"]) -> RowImage:
    return RowImage(-1, "", "", label, pixels=pixels)


def _in_rows(run: DecodedRun, key: str, title: str, cells: Sequence[RowImage]) -> Iterator[tuple[ImageRow, ...]]:
    across = -(-len(cells) // -(-len(cells) // _MOST_BESIDE))
    for at in range(0, len(cells), across):
        part = tuple(cells[at : at + across])
        yield (ImageRow(f"{key}-{run.index}-{at}", "" if at else title, run_tone(run.index), part, large=True),)


def request_words(request: Any) -> list[str]:
    """Return the arguments of `trainer decode` after the decoders that ask the same, without defaults.

    Args:
        request: A `trainer.messages.Decode`.
    """
    arguments = ["--image", request.image] if request.image else ["--text", request.text]
    arguments += [*(["--other", request.other] if request.other else []), *options(request)]
    arguments += ["--noises", str(len(request.noises))] if len(request.noises) != NOISES else []
    if request.direction and request.distance is not None:
        arguments += ["--along", str(request.direction), f"--distance={request.distance:g}"]
    elif request.direction:
        arguments += ["--drop", str(request.direction)]
    return arguments


def measured_of(facts: Mapping[str, Any], step: int) -> tuple[tuple[MeasuredAttribute, ...], int]:
    """Return what a run remembers of its measures at this step, and of how many pictures; nothing if it is unsound."""
    measures: Any = facts.get(MEASURED)
    try:
        if measures["step"] != step:
            return (), 0
        attributes = [
            MeasuredAttribute(str(name)[:40], *(_share_in(shares, part) for part in ("samples", "originals", "limit")))
            for name, shares in list(measures["attributes"].items())[:_MOST_ATTRIBUTES]
        ]
        sound = (each for each in attributes if each.samples is not None and each.originals is not None)
        return tuple(sound), int(measures["n"])
    except (TypeError, KeyError, AttributeError, ValueError, OverflowError):
        return (), 0


def _share_in(measures: Mapping[str, Any], part: str) -> Any:
    value = measures.get(part)
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else None


def _read(runs: Sequence[DecodedRun]) -> str:
    """Say what a judge reads off samples, off those of a decoder of true attributes, and off the originals."""
    measured = [run for run in runs if run.measured]
    if not measured:
        return "What comes back was not measured."
    first = measured[0]
    names = [run.of_name for run in measured]
    columns = [
        f"samples of {run.of_name}{f' at step {run.of_step:,}' if names.count(run.of_name) > 1 else ''}"
        for run in measured
    ]
    columns += ["of true attributes"] if all(attribute.limit is not None for attribute in first.measured) else []
    parts = []
    for index, attribute in enumerate(first.measured):
        shares = [run.measured[index].samples for run in measured if len(run.measured) > index]
        shares += [] if attribute.limit is None else [attribute.limit]
        parts.append(f"{attribute.name.replace('_', ' ')} {', '.join(f'{100 * share:.0f}' for share in shares)} "
                     f"of {100 * attribute.originals:.0f}")  # fmt: skip
    return (
        f"A judge reads right, % of {first.measured_of:,} {', '.join(columns)}, of the originals: {'; '.join(parts)}."
    )
