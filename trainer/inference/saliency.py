"""Saliency of one caption in one image, for several runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float, UInt8

from trainer.analysis.progress import Progress, silent
from trainer.inference.model_cache import AnswerError, CachedModel, ModelCache
from trainer.messages import Saliency

if TYPE_CHECKING:
    from torch import Tensor

METHODS: Final = ("occlusion", "gradient")
GRIDS: Final = (2, 64)
"""Least and most cells a side."""


@dataclass(frozen=True)
class SaliencyMaps:
    """The result of `saliency_of`."""

    # Of each run, how much each cell adds to the cosine of image and caption.
    maps: Float[np.ndarray, "runs grid grid"]
    # As the first run sees it: the middle square, or what its model was published with.
    image: UInt8[np.ndarray, "s s 3"]
    cosines: tuple[float, ...]  # Of the whole image with the caption, one a run.
    steps: tuple[int, ...]  # Of each run's checkpoint.


def saliency_of(models: ModelCache, question: Saliency, progress: Progress = silent) -> SaliencyMaps:
    """Return each run's saliency map of the caption.

    Raises:
        AnswerError: As `ModelCache.get`; the image cannot be read, the caption is empty, the method or the grid is
            unknown, or a run compares no images with texts.
    """
    from trainer.images import read_pictures

    method, grid, runs = question.method, question.grid, question.runs
    if method not in METHODS or not GRIDS[0] <= grid <= GRIDS[1]:
        raise AnswerError("bad_question", f"There is no {method} of {grid} cells.", f"Choose {' or '.join(METHODS)}.")
    if not question.caption.strip() or not runs:
        raise AnswerError("bad_question", "A caption or a run is missing.", "Write a caption and choose a run.")
    maps, cosines, seen_at, seen = [], [], [], None
    for index, run in enumerate(runs):

        def report(share: float, note: str, index: int = index) -> None:
            progress((index + share) / len(runs), note)

        report(0.0, "opening the model")
        model = models.get(run, question.steps[index] if question.steps else None)
        (pixels,), (read,) = read_pictures([question.image], model.opened.image_size, model.opened.file_preprocessing)
        if read.reason:
            raise AnswerError("unreadable", read.reason)
        cells, cosine = _map(model, pixels, question.caption, method, grid, report)
        maps.append(cells)
        cosines.append(cosine)
        seen_at.append(model.opened.step)
        seen = pixels if seen is None else seen
    return SaliencyMaps(np.stack(maps).astype(np.float32), seen, tuple(cosines), tuple(seen_at))


def _map(
    model: CachedModel, pixels: np.ndarray, caption: str, method: str, grid: int, report: Progress
) -> tuple[np.ndarray, float]:
    import torch

    from trainer.data.augment import normalized
    from trainer.inference.attribution import gradient, occlusion

    _ = model.inv_tau  # raises for a run that compares no images with texts
    opened = model.opened
    text = opened.embed_texts([caption])[0].astype(np.float64)

    def score(images: np.ndarray) -> np.ndarray:
        return opened.embed_images(images).astype(np.float64) @ text

    cosine = float(score(pixels[None])[0])
    if method == "occlusion":
        return occlusion(pixels, score, grid=grid, progress=report), cosine
    where = opened.device
    caption_vector = torch.from_numpy(text).float().to(where)
    batch = normalized(torch.from_numpy(np.array(pixels[None])).to(where))[0]

    def differentiable(images: Tensor) -> Tensor:
        return opened.model.encode_image(images).float() @ caption_vector

    return gradient(batch, differentiable, grid=grid, progress=report), cosine
