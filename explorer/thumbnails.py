"""Small pictures of image files for lists and cards. Pillow decodes, never Qt, and never on the GUI thread.

The file may come from anywhere, so only formats without programs inside are opened, the size is read off the header
before anything is decoded, and what Pillow shows wrongly without saying so (16-bit grey, floats, transparency) is
converted by hand. The trainer's `read_image` keeps the same rules; the explorer may not import it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtGui import QImage

from trainer.problem import Problem

if TYPE_CHECKING:
    from PIL import Image

FORMATS: Final = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF")
MOST_PIXELS: Final = 64_000_000


class NoThumbnail(Problem):
    """An image that cannot be shown; the message says why."""


def thumbnail(path: Path | str, edge: int) -> QImage:
    """The image, upright, on white where it is transparent, its longer side `edge` pixels or its own size if smaller.

    Safe on any thread; the first frame of an animation.

    Raises:
        NoThumbnail: The file is missing, no image, damaged, or larger than 64 megapixels.
    """
    from PIL import Image, ImageOps

    name = Path(path).name
    try:
        with Image.open(path, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                megapixels = image.width * image.height / 1e6
                raise NoThumbnail(f"{name} has {megapixels:.0f} megapixels; at most 64 are opened. Make it smaller.")
            image.draft("RGB", (2 * edge, 2 * edge))
            upright = ImageOps.exif_transpose(image)
            flat = _eight_bits(upright)
            flat.thumbnail((edge, edge), Image.Resampling.BICUBIC)
            return _to_qt(flat)
    except NoThumbnail:
        raise
    except Exception as error:  # damaged files raise eight kinds of exception, among them a bare zlib.error
        raise NoThumbnail(f"{name} cannot be read as an image ({_reason(error)}).") from error


def _eight_bits(image: Image.Image) -> Image.Image:
    """RGB with every mode's full range on 0..255; `convert` alone turns 16-bit grey white and floats black."""
    from PIL import Image

    if image.mode.startswith(("I", "F")):
        values = np.nan_to_num(np.asarray(image, np.float64))
        top = 65535.0 if image.mode.startswith("I") else max(float(values.max(initial=0.0)), 1.0)
        return Image.fromarray((255 * np.clip(values / top, 0, 1)).round().astype(np.uint8), "L").convert("RGB")
    if "A" in image.getbands() or "transparency" in image.info:
        shown = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", shown.size, "white"), shown).convert("RGB")
    return image.convert("RGB")


def _to_qt(image: Image.Image) -> QImage:
    data = image.tobytes()
    return QImage(data, image.width, image.height, 3 * image.width, QImage.Format.Format_RGB888).copy()


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "the file is not there any more"
    if isinstance(error, PermissionError):
        return "no permission to read it"
    if type(error).__name__ == "UnidentifiedImageError":
        return "not one of the known formats"
    return str(error) or type(error).__name__
