"""What each augmentation of a view makes of one picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, UInt8
from msgspec import Struct

from trainer.analysis import view_pictures as effects
from trainer.charts import ChartError
from trainer.charts.marks import ImageRow, Panel, RowImage
from trainer.charts.settings import held
from trainer.charts.spec import Chart, Progress, Request
from trainer.config import default_paths
from trainer.config.fields import option
from trainer.errors import UserError
from trainer.images import read_pictures
from trainer.store import Workspace

METHOD: Final = """\
Augmentations, one at a time, at the strength of the sliders and with numbers drawn from the seed. An objective of \
two views applies crop, color, gray, rotation, edges, noise and cutout together, each with its share or strength \
(SimCLR, figure 4 and appendix A: Chen et al., 2020). Cutout erases a square with the mean color of CLIP's \
normalization (DeVries and Taylor, 2017). What all views of a picture have in common is what such an objective can \
keep: a view without color teaches it to forget color."""

SIZE: Final = 128
DRAWS: Final = 3
"""Examples of a random augmentation."""
RATIO: Final = 4 / 3
MEAN: Final = np.array([0.48145466, 0.4578275, 0.40821073])
"""Of CLIP's training images, as every CLIP model normalizes them."""
JITTER: Final = 0.8
"""Change of brightness, contrast and saturation at a strength of 1."""
Example = tuple[str, Float[np.ndarray, "h w 3"]]
"""What an augmentation is called, and what it makes of the picture."""


@dataclass(frozen=True)
class AugmentationsSettings:
    """The picture, and how strongly it is changed."""

    picture: str = option("", "Picture", "Path of an image; empty: a drawn scene.")
    smallest_crop: float = option(0.2, "Smallest crop", "Share of the image that a crop keeps.", low=0.05, high=1.0)
    color: float = option(0.5, "Color jitter", "Strength of the changes of brightness, contrast, saturation, hue.",
                          low=0.0, high=1.0)  # fmt: skip
    blur: float = option(1.5, "Blur", "Standard deviation.", low=0.1, high=2.0, unit="px")
    noise: float = option(0.15, "Noise", "Standard deviation, of pixels of 0 to 1.", low=0.0, high=1.0)
    cutout: float = option(0.4, "Cutout", "Side of the erased square, of the image's.", low=0.0, high=1.0)
    seed: int = option(0, "Seed", "Of the random numbers.", low=0, high=9999)


class Augmented(Struct, frozen=True):
    """What each augmentation makes of the picture: a name and an example each."""

    crop: tuple[Example, ...]
    turn: tuple[Example, ...]
    color: tuple[Example, ...]


def augmented(
    _workspace: Workspace | None, _request: Request, settings: AugmentationsSettings, _progress: Progress
) -> Augmented:
    """Return the picture under each augmentation.

    Raises:
        ChartError: The picture cannot be read.
    """
    picture = read_picture_option(settings.picture)
    generator = np.random.default_rng(settings.seed)
    return Augmented(
        tuple(_crops(picture, settings, generator)),
        tuple(_turns(picture, settings, generator)),
        tuple(_colors(picture, settings, generator)),
    )


def read_picture_option(path: str) -> Float[np.ndarray, "h w 3"]:
    """Return the center square of a picture in 0 to 1, `SIZE` pixels wide; without a path, a drawn scene.

    Raises:
        ChartError: It cannot be read.
    """
    path = path or str(default_paths.assets_dir() / "pictures" / "scene.png")
    try:
        pixels, (answer,) = read_pictures([path], SIZE)
    except (UserError, OSError) as error:
        raise ChartError(f"{path} cannot be read: {error}") from error
    if answer.reason:
        raise ChartError(f"{answer.reason} Choose another picture, or none for a drawn scene.")
    return pixels[0] / 255


def _crops(
    picture: Float[np.ndarray, "h w 3"], settings: AugmentationsSettings, generator: np.random.Generator
) -> Iterator[Example]:
    yield "original", picture
    for _ in range(DRAWS):
        area, ratio, left, top = generator.random(4)
        side = np.sqrt(settings.smallest_crop + (1 - settings.smallest_crop) * area)
        stretch = np.exp((ratio - 0.5) * np.log(RATIO))
        width, height = min(side * stretch, 1.0), min(side / stretch, 1.0)
        yield "crop, resize", effects.crop_and_resize(picture, left * (1 - width), top * (1 - height), width, height)
    yield "mirror", effects.mirrored(picture)


def _turns(
    picture: Float[np.ndarray, "h w 3"], settings: AugmentationsSettings, generator: np.random.Generator
) -> Iterator[Example]:
    for quarters in (1, 2, 3):
        yield f"rotate {90 * quarters}°", np.rot90(picture, quarters)
    yield "cutout", effects.cut_out(picture, settings.cutout, generator.random(), generator.random(), MEAN)


def _colors(
    picture: Float[np.ndarray, "h w 3"], settings: AugmentationsSettings, generator: np.random.Generator
) -> Iterator[Example]:
    yield "color drop", effects.without_color(picture)
    for _ in range(DRAWS):
        factors = 1 + JITTER * settings.color * (2 * generator.random(3) - 1)
        hue = 0.2 * settings.color * (2 * generator.random() - 1)
        yield "color jitter", effects.jittered(picture, factors[0], factors[1], factors[2], hue)
    yield "Gaussian noise", effects.noisy(picture, settings.noise, generator)
    yield "Gaussian blur", effects.blurred(picture, settings.blur)
    yield "Sobel edges", effects.edges(picture)


def draw(data: Augmented, settings: AugmentationsSettings) -> Panel:
    """Draw the picture with what changes its shape, and what changes its colors."""
    path = settings.picture
    strips = (
        ImageRow("crop", "Crop and mirror", "quiet", tuple(_cell(pixels, name, path) for name, pixels in data.crop)),
        ImageRow("turn", "Rotate and cut out", "quiet", tuple(_cell(pixels, name, path) for name, pixels in data.turn)),
        ImageRow("color", "Color", "quiet", tuple(_cell(pixels, name, path) for name, pixels in data.color)),
    )
    return Panel(title="Augmentations", head=(held(settings),), rows=tuple((strip,) for strip in strips))


def _cell(pixels: Float[np.ndarray, "h w 3"], name: str, path: str) -> RowImage:
    return RowImage(-1, path, "", name, pixels=bytes_of(pixels))


def bytes_of(pixels: Float[np.ndarray, "h w 3"]) -> UInt8[np.ndarray, "h w 3"]:
    """Return pixels of 0 to 1 as bytes."""
    return np.ascontiguousarray(np.rint(255 * pixels).astype(np.uint8))


CHART: Final = Chart(
    view="losslab",
    label="Augmentations",
    question="How does each augmentation change a picture?",
    cost="Computed from its settings alone: no data are read.",
    method=METHOD,
    settings=AugmentationsSettings,
    needs="none",
    compute=augmented,
    draw=draw,
)
