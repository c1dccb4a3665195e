"""Embed image files and sentences with the model of one checkpoint, in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.progress import Progress, silent

if TYPE_CHECKING:
    from trainer.inference.open_model import OpenModel

TEXTS_AT_ONCE: Final = 256


@dataclass(frozen=True)
class ImageVectors:
    """Unit embeddings of the readable image files."""

    vectors: Float[np.ndarray, "n d"]  # Row i belongs to `images[i]`.
    images: tuple[str, ...]  # The paths that were read, in the order asked.
    unreadable: dict[str, str]  # Path -> why it could not be read.


def embed_files(model: OpenModel, paths: Sequence[str], progress: Progress = silent) -> ImageVectors:
    """Read and embed image files; unreadable ones are reported and skipped."""
    from trainer.data.streamed_images import pictures_ahead

    rows, images, unreadable = [], [], {}
    for part, pixels, reasons, _ in pictures_ahead(paths, model.image_size, model.file_preprocessing):
        unreadable |= {path: reason for path, reason in zip(paths[part], reasons, strict=True) if reason}
        read = [not reason for reason in reasons]
        images += [path for path, good in zip(paths[part], read, strict=True) if good]
        if any(read):
            rows.append(model.embed_images(pixels[read]))
        progress(part.stop / len(paths), "embedding images")
    vectors = np.concatenate(rows) if rows else np.zeros((0, 0), np.float32)
    return ImageVectors(vectors, tuple(images), unreadable)


def embed_sentences(model: OpenModel, texts: Sequence[str], progress: Progress = silent) -> Float[np.ndarray, "n d"]:
    """Return unit embeddings of `texts`, row i of the i-th."""
    rows = []
    for start in range(0, len(texts), TEXTS_AT_ONCE):
        rows.append(model.embed_texts(list(texts[start : start + TEXTS_AT_ONCE])))
        progress(min(1.0, (start + TEXTS_AT_ONCE) / len(texts)), "embedding texts")
    return np.concatenate(rows) if rows else np.zeros((0, 0), np.float32)
