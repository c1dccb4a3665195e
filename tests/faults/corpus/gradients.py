"""The same ramp in every common image mode and format, and its expected appearance."""

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

SIDE = 64
RAMP = np.tile(np.linspace(0, 1, SIDE), (SIDE, 1))
"""Dark on the left, bright on the right."""
GREY = np.rint(RAMP * 255).astype(np.uint8)
COLOUR = np.stack([GREY, GREY.T, 255 - GREY], axis=-1)
HALF = np.rint(128 * np.ones_like(RAMP)).astype(np.uint8)


def rgb(grey: np.ndarray) -> np.ndarray:
    return np.repeat(grey[..., None], 3, axis=-1)


def on_white(colour: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    share = alpha[..., None] / 255.0
    return np.rint(colour * share + 255.0 * (1 - share))


@dataclass(frozen=True)
class Gradient:
    """An image.

    Attributes:
        write: Puts it into a file.
        seen: 64 x 64 x 3 values from 0 to 255 that a person sees.
    """

    name: str
    suffix: str
    write: Callable[[Path], None]
    seen: np.ndarray


def saved(image: Image.Image, **options: Any) -> Callable[[Path], None]:
    return lambda path: image.save(path, **options)


def png(samples: np.ndarray, kind: int, depth: int = 16, *chunks: tuple[bytes, bytes]) -> Callable[[Path], None]:
    """Return a PNG writer with 16 bits, or 1, 2 or 4 bits per pixel, which Pillow does not write."""

    def write(path: Path) -> None:
        if depth == 16:
            rows = [bytes(1) + row.astype(">u2").tobytes() for row in samples]
        else:
            bits = np.unpackbits(samples[..., None], axis=-1)[..., -depth:]
            rows = [bytes(1) + np.packbits(row.reshape(-1)).tobytes() for row in bits]
        head = struct.pack(">IIBBBBB", SIDE, SIDE, depth, kind, 0, 0, 0)
        parts = [(b"IHDR", head), *chunks, (b"IDAT", zlib.compress(b"".join(rows))), (b"IEND", b"")]
        chunked = (struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in parts)
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunked))

    return write


def tiff(samples: np.ndarray, form: int, photometric: int, order: str = "<") -> Callable[[Path], None]:
    """Return an uncompressed TIFF writer for samples of any type: form 1 unsigned, 2 signed, 3 float."""

    def write(path: Path) -> None:
        planes = samples if samples.ndim == 3 else samples[..., None]
        count, body = planes.shape[2], planes.astype(planes.dtype.newbyteorder(order)).tobytes()
        bits = 8 * planes.dtype.itemsize
        entries = [
            (256, 4, 1, SIDE),
            (257, 4, 1, SIDE),
            (258, 3, count, bits),
            (259, 3, 1, 1),
            (262, 3, 1, photometric),
        ]
        entries += [
            (273, 4, 1, 512),
            (277, 3, 1, count),
            (278, 4, 1, SIDE),
            (279, 4, 1, len(body)),
            (339, 3, count, form),
        ]
        tail, rows = b"", b""
        for tag, kind, n, value in sorted(entries):
            content = struct.pack(order + ("H" if kind == 3 else "I") * n, *[value] * n)
            if len(content) > 4:
                place = 256 + len(tail)
                tail, content = tail + content.ljust(16, b"\0"), struct.pack(order + "I", place)
            rows += struct.pack(order + "HHI", tag, kind, n) + content.ljust(4, b"\0")
        start = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IH", 8, len(entries)) + rows + bytes(4)
        path.write_bytes(start.ljust(256, b"\0") + tail.ljust(256, b"\0") + body)

    return write


def orientated(orientation: int) -> tuple[Image.Image, Image.Exif]:
    """Return the color ramp as a rotated camera stores it, with its orientation tag."""
    back = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}  # of Image.Transpose
    image, exif = Image.fromarray(COLOUR), Image.Exif()
    exif[0x0112] = orientation
    return (image.transpose(Image.Transpose(back[orientation])) if orientation in back else image), exif


def _all() -> list[Gradient]:
    grey, colour = Image.fromarray(GREY), Image.fromarray(COLOUR)
    deep, fine = np.rint(RAMP * 65535).astype(np.uint16), RAMP.astype(np.float32)
    wide = np.rint(COLOUR / 255 * 65535).astype(np.uint16)
    with_alpha = Image.merge("RGBA", [*colour.split(), Image.fromarray(GREY.T)])
    palette = colour.quantize(256)
    table = np.asarray(palette.convert("RGB"))
    four = (GREY >> 4).astype(np.uint8)
    ink = Image.merge("CMYK", [Image.fromarray(255 - COLOUR[..., c]) for c in range(3)] + [Image.new("L", grey.size)])
    black = Image.merge("CMYK", [Image.new("L", grey.size)] * 3 + [Image.fromarray(255 - GREY)])
    mask = Image.fromarray(np.where(GREY > 127, 255, 0).astype(np.uint8)).convert("1")
    two = rgb(np.asarray(mask.convert("L")))
    found = [
        Gradient("L", ".png", saved(grey), rgb(GREY)),
        Gradient("L", ".tif", saved(grey), rgb(GREY)),
        Gradient("L", ".bmp", saved(grey), rgb(GREY)),
        Gradient("L", ".gif", saved(grey), rgb(GREY)),
        Gradient("L", ".webp", saved(grey, lossless=True), rgb(GREY)),
        Gradient("L", ".jpg", saved(grey, quality=100), rgb(GREY)),
        Gradient("L", ".ppm", saved(grey), rgb(GREY)),
        Gradient("L, LZW", ".tif", saved(grey, compression="tiff_lzw"), rgb(GREY)),
        Gradient("LA", ".png", saved(Image.merge("LA", [grey, Image.fromarray(HALF)])), on_white(rgb(GREY), HALF)),
        Gradient("LA", ".tif", saved(Image.merge("LA", [grey, Image.fromarray(HALF)])), on_white(rgb(GREY), HALF)),
        Gradient("4-bit grey", ".png", png(four, 0, 4), rgb(four.astype(int) * 17)),
        Gradient("2-bit grey", ".png", png(four >> 2, 0, 2), rgb((four >> 2).astype(int) * 85)),
        Gradient("black and white", ".png", saved(mask), two),
        Gradient("black and white", ".tif", saved(mask), two),
        Gradient("black and white", ".bmp", saved(mask), two),
        Gradient("RGB", ".png", saved(colour), COLOUR),
        Gradient("RGB", ".tif", saved(colour), COLOUR),
        Gradient("RGB, deflated", ".tif", saved(colour, compression="tiff_adobe_deflate"), COLOUR),
        Gradient("RGB", ".bmp", saved(colour), COLOUR),
        Gradient("RGB", ".ppm", saved(colour), COLOUR),
        Gradient("RGB", ".webp", saved(colour, lossless=True), COLOUR),
        Gradient("RGBA", ".png", saved(with_alpha), on_white(COLOUR, GREY.T)),
        Gradient("RGBA", ".tif", saved(with_alpha), on_white(COLOUR, GREY.T)),
        Gradient("RGBA", ".webp", saved(with_alpha, lossless=True, exact=True), on_white(COLOUR, GREY.T)),
        Gradient("palette", ".png", saved(palette), table),
        Gradient("palette", ".gif", saved(palette), table),
        Gradient("palette", ".bmp", saved(palette), table),
        Gradient("palette", ".tif", saved(palette), table),
        Gradient("one colour clear", ".png", saved(colour, transparency=(0, 0, 255)), _cleared(COLOUR)),
        Gradient("16-bit grey", ".png", saved(Image.fromarray(deep)), rgb(GREY)),
        Gradient("16-bit grey", ".tif", saved(Image.fromarray(deep)), rgb(GREY)),
        Gradient("16-bit grey, big end first", ".tif", tiff(deep, 1, 1, ">"), rgb(GREY)),
        Gradient("16-bit grey and alpha", ".png", png(np.stack([deep, deep * 0 + 65535], -1), 4), rgb(GREY)),
        Gradient("16-bit RGB", ".png", png(wide, 2), COLOUR),
        Gradient("16-bit RGB", ".tif", tiff(wide, 1, 2), COLOUR),
        Gradient("16-bit RGBA", ".png", png(np.dstack([wide, deep * 0 + 65535]), 6), COLOUR),
        Gradient("16-bit grey", ".ppm", _pgm(deep), rgb(GREY)),
        Gradient("32-bit whole numbers", ".tif", saved(Image.fromarray(deep.astype(np.int32))), rgb(GREY)),
        Gradient("32-bit whole numbers, unsigned", ".tif", tiff(deep.astype(np.uint32), 1, 1), rgb(GREY)),
        Gradient("float 0..1", ".tif", saved(Image.fromarray(fine)), rgb(GREY)),
        Gradient("float 0..1, big end first", ".tif", tiff(fine, 3, 1, ">"), rgb(GREY)),
        Gradient("float 0..255", ".tif", saved(Image.fromarray(fine * 255)), rgb(GREY)),
        Gradient("float -1..1", ".tif", saved(Image.fromarray(fine * 2 - 1)), rgb(GREY)),
        Gradient("CMYK, colours", ".tif", saved(ink), COLOUR),
        Gradient("CMYK, black", ".tif", saved(black), rgb(GREY)),
        Gradient("CMYK, black", ".jpg", saved(black, quality=100), rgb(GREY)),
        Gradient("animated", ".gif", _animated(grey), rgb(GREY)),
        Gradient("animated", ".webp", _animated(grey, lossless=True), rgb(GREY)),
        Gradient("animated", ".png", _animated(grey), rgb(GREY)),
        Gradient("two pages", ".tif", _animated(grey), rgb(GREY)),
    ]
    for orientation in (2, 3, 4, 5, 6, 7, 8, 99):
        image, exif = orientated(orientation)
        found.append(Gradient(f"orientation {orientation}", ".png", saved(image, exif=exif), COLOUR))
    for suffix, options in ((".tif", {}), (".webp", {"lossless": True})):
        image, exif = orientated(6)
        found.append(Gradient("orientation 6", suffix, saved(image, exif=exif, **options), COLOUR))
    return found


def _cleared(colour: np.ndarray) -> np.ndarray:
    return np.where((colour == (0, 0, 255)).all(-1, keepdims=True), 255, colour)


def _pgm(deep: np.ndarray) -> Callable[[Path], None]:
    head = f"P5 {SIDE} {SIDE} 65535\n".encode()
    return lambda path: path.write_bytes(head + deep.astype(">u2").tobytes()) and None


def _animated(first: Image.Image, **options: Any) -> Callable[[Path], None]:
    others = [Image.fromarray(255 - GREY), Image.fromarray(GREY.T.copy())]
    return lambda path: first.save(path, save_all=True, append_images=others, **options)


GRADIENTS = _all()
