"""Small versions of image files for lists and cards, decoded by the trainer's helper process only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PySide6.QtGui import QImage

from trainer.errors import UserError, reason_words


class NoThumbnail(UserError):
    """An image that cannot be shown; the message says why."""


def thumbnail(path: Path | str, edge: int) -> QImage:
    """Return the image, upright and on white, with its longer side at most `edge` pixels.

    Safe on any thread; the first frame of an animation.

    Args:
        path: A file, or the text of a `trainer.images.Location` inside a tar or a table.
        edge: Pixels.

    Raises:
        NoThumbnail: The file is missing, no image, damaged, larger than 64 megapixels, or takes too long to open.
    """
    from trainer.images import HelperError, UnreadableImage, read_picture

    try:
        return image_of(read_picture(path, edge))
    except (UnreadableImage, HelperError, OSError) as error:
        raise NoThumbnail(f"{Path(path).name} cannot be shown. {reason_words(error)}") from error


def image_of(pixels: UInt8[np.ndarray, "h w 3"]) -> QImage:
    """Return an image that has its own copy of the pixels."""
    height, width, _ = pixels.shape
    return QImage(pixels.tobytes(), width, height, 3 * width, QImage.Format.Format_RGB888).copy()
