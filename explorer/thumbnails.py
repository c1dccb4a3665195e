"""Small pictures of image files for lists and cards: opened by the trainer's decoder, never by Qt or its thread."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtGui import QImage

from trainer.problem import Problem

if TYPE_CHECKING:
    from PIL import Image


class NoThumbnail(Problem):
    """An image that cannot be shown; the message says why."""


def thumbnail(path: Path | str, edge: int) -> QImage:
    """The image, upright, on white where it is transparent, its longer side `edge` pixels or its own size if smaller.

    Safe on any thread; the first frame of an animation.

    Args:
        path: A file, or the text of a `trainer.pictures.Location` inside a tar or a table.
        edge: Pixels.

    Raises:
        NoThumbnail: The file is missing, no image, damaged, or larger than 64 megapixels.
    """
    from PIL.Image import Resampling

    from trainer.pictures import UnreadableImage, open_image

    try:
        image = open_image(path if isinstance(path, Path) else str(path), smallest=edge)
    except UnreadableImage as error:
        raise NoThumbnail(f"{Path(path).name} cannot be shown. {error}") from error
    image.thumbnail((edge, edge), Resampling.BICUBIC)
    return _to_qt(image)


def _to_qt(image: Image.Image) -> QImage:
    data = image.tobytes()
    return QImage(data, image.width, image.height, 3 * image.width, QImage.Format.Format_RGB888).copy()
