"""Pictures in a `.npz`, as MedMNIST keeps them: `train_images` and `train_labels`, and those of `val` and `test`."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image

from trainer.analysis.progress import Progress
from trainer.data.folder import TOLD_EVERY
from trainer.data.pairs import DataError, Source
from trainer.data.stored_pairs import Problems, StoredPair, kept
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.bounded import Unreadable
from trainer.untrusted.bounded.arrays import load_npz

ARRAYS: Final = ".npz"
_IMAGES: Final = "_images"


def array_sources(spec: str, workspace_folder: Path, progress: Progress) -> tuple[list[Source], Problems]:
    """Return the pictures of all splits, with the split in their metadata; captions are the numbers of the classes.

    Raises:
        DataError: There is no such file, or it holds no pictures with classes.
    """
    path = untrusted_files.expanded(spec)
    try:
        about = path.stat()
        state = f"{path.resolve()} {about.st_size} {about.st_mtime_ns}"
        folder = workspace_folder / "data" / "kept" / f"arrays-{zlib.crc32(state.encode()):08x}"
        return kept(folder, lambda: _pairs(path, progress))
    except (OSError, Unreadable) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _pairs(path: Path, progress: Progress) -> Iterator[StoredPair]:
    arrays = load_npz(path)
    splits = [name.removesuffix(_IMAGES) for name in arrays if name.endswith(_IMAGES)]
    if not splits:
        raise DataError(f"{path.name} holds no pictures: arrays train_images and train_labels are needed.")
    for split in splits:
        images, labels = arrays[split + _IMAGES], arrays.get(f"{split}_labels")
        is_picture = images.ndim == 3 or (images.ndim == 4 and images.shape[3] == 3)
        if images.dtype != np.uint8 or not is_picture or 0 in images.shape[1:]:
            shape = " x ".join(map(str, images.shape))
            raise DataError(
                f"{split}_images of {path.name} is {shape} of {images.dtype}; n x height x width (x 3) of uint8 is."
            )
        if labels is None or labels.dtype.kind not in "iu" or labels.ndim > 2 or labels.shape[:1] != images.shape[:1]:
            raise DataError(f"{path.name} has no {split}_labels: a whole number for each of {len(images):,} pictures.")
        for row, (pixels, classes) in enumerate(zip(images, labels.reshape(len(labels), -1), strict=True)):
            if row % TOLD_EVERY == 0:
                progress(row / len(images), f"Caching the images of {split}: {row:,} of {len(images):,}")
            # Several columns say of each class whether it is there.
            numbers = classes if len(classes) == 1 else np.flatnonzero(classes)
            label = ", ".join(map(str, numbers.tolist())) or "none"
            buffer = io.BytesIO()
            Image.fromarray(pixels).save(buffer, "PNG", compress_level=1)
            yield StoredPair(f"{split}{row:07}.png", buffer.getvalue(), (f"class {label}",), label, split)
