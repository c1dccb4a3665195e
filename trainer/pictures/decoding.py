"""The one decoder of foreign image files. Whatever the file holds, it returns pixels or says why not."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Shaped, UInt8
from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from trainer.pictures.location import Location, location, opened
from trainer.problem import Problem

FORMATS: Final = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF")
"""Decoders a file may reach. No EPS (runs Ghostscript), no PSD, nothing that only old programs write."""

SUFFIXES: Final = frozenset(
    (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm", ".avif")
)
"""Names taken for images when a folder is searched; the decoder itself looks at the content."""

LARGEST: Final = 64_000_000
"""Pixels. Checked in the header: a small file can unfold to gigabytes."""


_ORIENTATION: Final = 0x0112
"""Of EXIF: how the camera was held."""


class UnreadableImage(Problem):
    """An image file that cannot be used; the message is the reason, without the path."""


def read_image(place: Location | str, size: int, remarks: list[str] | None = None) -> UInt8[np.ndarray, "size size 3"]:
    """The middle square of the first frame, upright, on white where transparent; resized bicubic.

    Args:
        place: Where the picture lies.
        size: Side of the result, in pixels.
        remarks: Receives a sentence for everything odd that was put right.

    Raises:
        UnreadableImage: The file is missing, damaged, too large, or no image of a known kind.
    """
    image = open_image(place, smallest=size, remarks=remarks)
    side = min(image.size)
    left, top = (image.width - side) / 2, (image.height - side) / 2
    box = (left, top, left + side, top + side)
    return np.array(image.resize((size, size), Image.Resampling.BICUBIC, box, reducing_gap=3.0))


def open_image(place: Location | str, *, smallest: int = 0, remarks: list[str] | None = None) -> Image.Image:
    """The first frame in RGB, upright, 16-bit and float values scaled to 0..255, white where transparent.

    Args:
        place: Where the picture lies.
        smallest: If given, a JPEG may be decoded at a fraction of its size with both sides at least twice this.
        remarks: Receives a sentence for everything odd that was put right.

    Raises:
        UnreadableImage: As `read_image`.
    """
    # A module-wide switch of Pillow that other packages turn on.
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    try:
        source = opened(location(place) if isinstance(place, str) else place)
        with Image.open(source, formats=FORMATS) as image:
            _check_size(image)
            if remarks is not None:
                remarks += _oddities(image)
            if smallest:
                image.draft("RGB", (2 * smallest, 2 * smallest))
            image.load()
            return _in_rgb(ImageOps.exif_transpose(image))
    except UnreadableImage:
        raise
    except FileNotFoundError:
        raise UnreadableImage("The file does not exist.") from None
    except PermissionError:
        raise UnreadableImage("The file may not be read; change its permissions.") from None
    except UnidentifiedImageError:
        raise UnreadableImage(f"This is no {', '.join(FORMATS[:-1])} or {FORMATS[-1]} image.") from None
    except Exception as error:
        # Pillow raises eight kinds for damaged files, SyntaxError and struct.error among them.
        raise UnreadableImage(f"The image is damaged: {str(error) or type(error).__name__}.") from error


def _check_size(image: Image.Image) -> None:
    width, height = image.size
    if width * height > LARGEST:
        raise UnreadableImage(
            f"The image has {width:,} x {height:,} pixels, more than the {LARGEST // 1_000_000} million that are read; "
            "save a smaller copy."
        )


def _oddities(image: Image.Image) -> list[str]:
    """What a viewer might show otherwise, a sentence each."""
    found = []
    if image.mode.startswith("I") or image.mode == "F":
        depth = "Floating-point" if image.mode == "F" else "16-bit or deeper"
        found.append(f"{depth} values are scaled to 8 bits.")
    if image.mode == "CMYK":
        found.append("Print colours (CMYK) are turned into screen colours.")
    if image.has_transparency_data:
        found.append("Transparent parts lie on white.")
    if image.getexif().get(_ORIENTATION, 1) in range(2, 9):
        found.append("The camera was turned; the picture is set upright.")
    if getattr(image, "n_frames", 1) > 1:
        found.append(f"Of {image.n_frames} frames the first is taken.")
    return found


def _in_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I") or image.mode == "F":
        return Image.fromarray(_to_bytes(np.asarray(image))).convert("RGB")
    if image.has_transparency_data:
        above = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", above.size, "white"), above).convert("RGB")
    return image.convert("RGB")


def _to_bytes(values: Shaped[np.ndarray, "h w"]) -> UInt8[np.ndarray, "h w"]:
    """Values of wider types scaled to 0..255: by the range of the type, or, where the type does not tell, of its use.

    16-bit: the whole range. 32-bit integers hold 16-bit (or 8-bit) values in all but rare files. Floats: 0..1, or
    0..255. Anything else is stretched from its least to its largest value.
    """
    if values.dtype.itemsize == 2:
        return np.rint(values / 257.0).astype(np.uint8)
    low, high = float(values.min()), float(values.max())
    if not np.isfinite([low, high]).all():
        raise UnreadableImage("The image holds values that are not finite numbers.")
    limits = (1.0, 255.0) if values.dtype.kind == "f" else (255.0, 65535.0)
    top = next((limit for limit in limits if low >= 0 and high <= limit), None)
    if top is None:
        values, top = values - np.float64(low), high - low
    return np.rint(values * (255.0 / top)).astype(np.uint8)
