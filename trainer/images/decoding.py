"""The only decoder of untrusted image files; returns pixels or a reason for any content."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Final

import numpy as np
from jaxtyping import Shaped, UInt8
from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError, features

from trainer.errors import UserError
from trainer.images.location import Location, NoFile, location, opened
from trainer.images.preprocessing import Preprocessing

_HEIF: Final = (".heic", ".heif", ".hif")


def _has_heif() -> bool:
    """Return whether Pillow's optional plugin for HEIC, the image format of iPhones, is installed."""
    if importlib.util.find_spec("pillow_heif") is None:
        return False
    try:
        importlib.import_module("pillow_heif").register_heif_opener()
    except Exception:  # of somebody else, in whatever state
        return False
    return True


_PLUGGED: Final = _has_heif()
_AVIF: Final = features.check("avif")

FORMATS: Final = (
    *("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM"),
    *(("AVIF",) if _AVIF else ()),
    *(("HEIF",) if _PLUGGED else ()),
)
"""Decoders a file may reach. No EPS (runs Ghostscript), no PSD, nothing that only old programs write."""

SUFFIXES: Final = frozenset(
    (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm")
    + ((".avif",) if _AVIF else ())
    + (_HEIF if _PLUGGED else ())
)
"""Names taken for images when a folder is searched; the decoder itself looks at the content."""

NOT_READ: Final = {
    **{ending: "HEIC" for ending in _HEIF if ending not in SUFFIXES},
    **{ending: "AVIF" for ending in (".avif",) if ending not in SUFFIXES},
    **dict.fromkeys((".jp2", ".j2k", ".jpf", ".jpx"), "JPEG 2000"),
    **dict.fromkeys((".cr2", ".cr3", ".nef", ".arw", ".dng", ".orf", ".rw2"), "The raw data of a camera"),
    ".jxl": "JPEG XL",
    ".ico": "ICO",
    ".svg": "SVG",
    ".psd": "PSD",
    ".eps": "EPS",
    ".tga": "TGA",
}
"""Ending -> name of formats that are images and are not read."""


def not_read(name: str) -> str:
    """Return why an image with this name is not supported, with the next step; empty if it is, or is not an image."""
    format_ = NOT_READ.get(f".{name.lower().rpartition('.')[2]}", "")
    return f"{format_} is not a supported format. Save it as JPEG or PNG." if format_ else ""


LARGEST: Final = 64_000_000
"""Pixels. Checked in the header: a small file can unfold to gigabytes."""


_BAND: Final = 1 << 21
"""Pixels that are changed at a time."""

_DARK: Final = 64
"""A quarter of the range, where 14 bits of 16 end."""

_ORIENTATION: Final = 0x0112
"""Of EXIF: how the camera was held."""


class UnreadableImage(UserError):
    """An image file that cannot be used; the message is the reason, without the path."""


def read_image(
    image_location: Location | str,
    size: int,
    remarks: list[str] | None = None,
    *,
    preprocessing: Preprocessing | None = None,
) -> UInt8[np.ndarray, "size size 3"]:
    """Return the center square of the first frame, upright, on white where transparent; resized bicubic.

    Args:
        size: Side of the result, in pixels.
        remarks: Receives a sentence for everything odd that was put right.
        preprocessing: Of a published model, which decides about the square, and what comes of the decoded picture.

    Raises:
        UnreadableImage: The file is missing, damaged, too large, or no image of a known kind.
    """
    if preprocessing is not None:
        return preprocessing.pixels(open_image(image_location, remarks=remarks, as_stored=True))
    return _middle_square(open_image(image_location, smallest=size, remarks=remarks), size)


def pixels_of(
    image: Image.Image, size: int, preprocessing: Preprocessing | None = None
) -> UInt8[np.ndarray, "size size 3"]:
    """Return the pixels of an image in memory, equal to `read_image` of the same image in a lossless file.

    Raises:
        UnreadableImage: The image is too large.
    """
    _check_size(image)
    upright = ImageOps.exif_transpose(image)
    if preprocessing is not None and not (_is_deep(upright) or upright.has_transparency_data):
        return preprocessing.pixels(upright)
    rgb = _in_rgb(upright)
    return preprocessing.pixels(rgb) if preprocessing is not None else _middle_square(rgb, size)


def _middle_square(image: Image.Image, size: int) -> UInt8[np.ndarray, "size size 3"]:
    side = min(image.size)
    left, top = (image.width - side) / 2, (image.height - side) / 2
    box = (left, top, left + side, top + side)
    return np.array(image.resize((size, size), Image.Resampling.BICUBIC, box, reducing_gap=3.0))


def open_image(
    image_location: Location | str, *, smallest: int = 0, remarks: list[str] | None = None, as_stored: bool = False
) -> Image.Image:
    """Return the first frame in RGB, upright, 16-bit and float values scaled to 0..255, white where transparent.

    Args:
        smallest: If given, a JPEG may be decoded at a fraction of its size with both sides at least twice this.
        remarks: Receives a sentence for everything odd that was put right.
        as_stored: Leave print colors, palettes and gray as they are in the file: somebody converts them later.

    Raises:
        UnreadableImage: As `read_image`.
    """
    # A module-wide switch of Pillow that other packages turn on.
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    try:
        source = opened(location(image_location) if isinstance(image_location, str) else image_location)
        with Image.open(source, formats=FORMATS) as image:
            _check_size(image)
            wide = _is_wide(image)  # until it is decoded
            if remarks is not None:
                remarks += _oddities(image)
            if smallest:
                image.draft("RGB", (2 * smallest, 2 * smallest))
            image.load()
            turned = image.getexif().get(_ORIENTATION, 1) in range(2, 9)
            upright = ImageOps.exif_transpose(image) if turned else image
            is_plain = not (_is_deep(image) or image.has_transparency_data)
            decoded = upright if as_stored and is_plain else _in_rgb(upright)
            if remarks is not None and wide:
                remarks += _darkness(decoded)
            return decoded
    except UnreadableImage:
        raise
    except FileNotFoundError:
        raise UnreadableImage("The file does not exist.") from None
    except PermissionError:
        raise UnreadableImage("The file may not be read; change its permissions.") from None
    except NoFile as error:
        raise UnreadableImage(str(error)) from None
    except MemoryError as error:
        raise UnreadableImage("Opening it needs more memory than there is.") from error
    except UnidentifiedImageError:
        formats = f"{', '.join(FORMATS[:-1])} and {FORMATS[-1]}"
        raise UnreadableImage(f"The file is not an image of a supported format. {formats} work.") from None
    except Image.DecompressionBombError:
        raise UnreadableImage(
            f"The image has more than {LARGEST // 1_000_000} million pixels, which is more than are read; save a "
            "smaller copy."
        ) from None
    except Exception as error:
        # Pillow raises eight kinds for damaged files, SyntaxError and struct.error among them.
        reason = str(error).rstrip(".") or type(error).__name__
        raise UnreadableImage(f"The image is damaged: {reason}.") from error


def _check_size(image: Image.Image) -> None:
    width, height = image.size
    if width * height > LARGEST:
        raise UnreadableImage(
            f"The image has {width:,} x {height:,} pixels, more than the {LARGEST // 1_000_000} million that are read; "
            "save a smaller copy."
        )


def _oddities(image: Image.Image) -> list[str]:
    """Return a sentence for each property that viewers might show differently."""
    remarks = []
    if _is_deep(image):
        depth = "Floating-point" if image.mode == "F" else "16-bit or deeper"
        remarks.append(f"{depth} values are scaled to 8 bits.")
    if image.mode == "CMYK":
        remarks.append("CMYK colors are converted to RGB.")
    if image.has_transparency_data:
        remarks.append("Transparent parts are composited on white.")
    if image.getexif().get(_ORIENTATION, 1) in range(2, 9):
        remarks.append("The image was rotated to its EXIF orientation.")
    if getattr(image, "n_frames", 1) > 1:
        remarks.append(f"The first of {image.n_frames} frames is used.")
    return remarks


def _darkness(image: Image.Image) -> list[str]:
    """Return a sentence for a picture whose values, once in 8 bits, fill less than a quarter of the range."""
    peak = max(np.ravel(image.getextrema()).tolist())
    if not 0 < peak <= _DARK:
        return []
    return [
        f"Its values reach {100 * peak / 255:.0f} % of the range that its file has for them, as those of 10 or 12 bits "
        "in a file of 16 do, so it comes out dark: stretch them to the whole range if that is not meant."
    ]


def _is_wide(image: Image.Image) -> bool:
    """Return whether the file has more than 8 bits for a value; Pillow reads colors of 16 bits as 8."""
    return _is_deep(image) or any("16" in str(tile[3]) for tile in getattr(image, "tile", ()))


def _is_deep(image: Image.Image) -> bool:
    """Return whether its values are wider than bytes."""
    return image.mode.startswith("I") or image.mode == "F"


def _in_rgb(image: Image.Image) -> Image.Image:
    """Return a new RGB image, using little additional memory."""
    if _is_deep(image):
        limits = _limits(image)
        return _by_bands(image, lambda band: Image.fromarray(_to_bytes(np.asarray(band), *limits)))
    if image.has_transparency_data:
        return _by_bands(image, _on_white)
    return image.convert("RGB")


def _by_bands(image: Image.Image, changed: Callable[[Image.Image], Image.Image]) -> Image.Image:
    """Convert to RGB a few lines at a time, because wider intermediate types would take gigabytes."""
    height = max(1, _BAND // image.width)
    if height >= image.height:
        return changed(image).convert("RGB")
    made = Image.new("RGB", image.size)
    for top in range(0, image.height, height):
        band = image.crop((0, top, image.width, min(top + height, image.height)))
        made.paste(changed(band).convert("RGB"), (0, top))
    return made


def _on_white(image: Image.Image) -> Image.Image:
    above = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", above.size, "white"), above)


def _limits(image: Image.Image) -> tuple[float, float]:
    """Return the values that become 0 and 255: by the range of the type, or if unclear by the values present.

    16-bit: the whole range. 32-bit integers hold 16-bit (or 8-bit) values in all but rare files. Floats: 0..1, or
    0..255. Anything else is stretched from its least to its largest value.
    """
    if image.mode.startswith("I;16"):
        return 0.0, 65535.0
    ranges: list[tuple[float, float]] = []
    height = max(1, _BAND // image.width)
    for top in range(0, image.height, height):
        values = np.asarray(image.crop((0, top, image.width, min(top + height, image.height))))
        ranges.append((float(values.min()), float(values.max())))
    # Of one band the extremes would hide what is not finite elsewhere: min() of Python passes over NaN.
    low, high = (float(extreme) for extreme in (np.min(ranges), np.max(ranges)))
    if not np.isfinite([low, high]).all():
        raise UnreadableImage("The image holds values that are not finite numbers.")
    usual = (1.0, 255.0) if image.mode == "F" else (255.0, 65535.0)
    return next(((0.0, limit) for limit in usual if low >= 0 and high <= limit), (low, high))


def _to_bytes(values: Shaped[np.ndarray, "h w"], low: float, high: float) -> UInt8[np.ndarray, "h w"]:
    """Scale values so that `low` becomes 0 and `high` 255."""
    if values.dtype.itemsize == 2:
        return np.rint(values / 257.0).astype(np.uint8)
    if low:
        values = values - np.float64(low)
    return np.rint(values * (255.0 / ((high - low) or 1.0))).astype(np.uint8)
