"""Embed image files and sentences with the model of one checkpoint, in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.progress import Progress

if TYPE_CHECKING:
    from trainer.inference.open_model import OpenModel

IMAGES_AT_ONCE: Final = 64
TEXTS_AT_ONCE: Final = 256


@dataclass(frozen=True)
class ImageVectors:
    """Unit embeddings of the readable image files.

    Attributes:
        vectors: Row i belongs to `images[i]`.
        images: The paths that were read, in the order asked.
        unreadable: Path -> why it could not be read.
    """

    vectors: Float[np.ndarray, "n d"]
    images: tuple[str, ...]
    unreadable: dict[str, str]


def embed_files(model: OpenModel, paths: Sequence[str], progress: Progress | None = None) -> ImageVectors:
    """Read and embed image files; unreadable ones are reported and skipped."""
    from trainer.images import read_pictures

    rows, images, unreadable = [], [], {}
    for start in range(0, len(paths), IMAGES_AT_ONCE):
        part = paths[start : start + IMAGES_AT_ONCE]
        pixels, answers = read_pictures(part, model.image_size, model.file_preprocessing)
        unreadable |= {path: answer.reason for path, answer in zip(part, answers, strict=True) if answer.reason}
        read = [not answer.reason for answer in answers]
        images += [path for path, good in zip(part, read, strict=True) if good]
        if any(read):
            rows.append(model.embed_images(pixels[read]))
        if progress:
            progress(min(1.0, (start + IMAGES_AT_ONCE) / len(paths)), "embedding images")
    vectors = np.concatenate(rows) if rows else np.zeros((0, 0), np.float32)
    return ImageVectors(vectors, tuple(images), unreadable)


def embed_sentences(
    model: OpenModel, texts: Sequence[str], progress: Progress | None = None
) -> Float[np.ndarray, "n d"]:
    """Return unit embeddings of `texts`, row i of the i-th."""
    rows = []
    for start in range(0, len(texts), TEXTS_AT_ONCE):
        rows.append(model.embed_texts(list(texts[start : start + TEXTS_AT_ONCE])))
        if progress:
            progress(min(1.0, (start + TEXTS_AT_ONCE) / len(texts)), "embedding texts")
    return np.concatenate(rows) if rows else np.zeros((0, 0), np.float32)
