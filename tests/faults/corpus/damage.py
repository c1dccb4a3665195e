"""Images damaged from a seed, like those from broken disks, partial downloads and attackers."""

import io
import random
import struct
import zlib
from collections.abc import Callable
from functools import cache

import numpy as np
from PIL import Image

KINDS = ("png", "jpg", "webp", "gif", "tif", "bmp")


@cache
def sound() -> tuple[tuple[str, bytes], ...]:
    """Return (suffix, content) of valid images in many formats."""
    rng = np.random.default_rng(0)
    ramp = np.linspace(0, 255, 96 * 64).reshape(64, 96)
    colour = Image.fromarray(np.stack([ramp, ramp[::-1], rng.integers(0, 255, ramp.shape)], -1).astype(np.uint8))
    grey, deep = colour.convert("L"), Image.fromarray((ramp * 257).astype(np.uint16))
    alpha = colour.convert("RGBA")
    alpha.putalpha(grey)
    frames = {"save_all": True, "append_images": [colour.rotate(90), colour.rotate(180)]}
    exif = Image.Exif()
    exif[0x0112] = 6
    made = [
        ("png", colour, {}),
        ("png", alpha, {}),
        ("png", deep, {}),
        ("png", colour.quantize(64), {}),
        ("jpg", colour, {"quality": 90, "exif": exif}),
        ("jpg", colour, {"progressive": True}),
        ("jpg", colour.convert("CMYK"), {}),
        ("webp", colour, {}),
        ("webp", alpha, {"lossless": True}),
        ("webp", colour, frames),
        ("gif", colour.quantize(32), {}),
        ("gif", colour, frames),
        ("tif", colour, {}),
        ("tif", deep, {"compression": "tiff_lzw"}),
        ("tif", colour, {"compression": "tiff_adobe_deflate"}),
        ("tif", colour, {"compression": "jpeg"}),
        ("tif", grey, frames),
        ("bmp", colour, {}),
        ("bmp", colour.quantize(16), {}),
    ]
    formats = {"jpg": "JPEG", "tif": "TIFF"}
    contents = []
    for ending, image, options in made:
        buffer = io.BytesIO()
        image.save(buffer, formats.get(ending, ending.upper()), **options)
        contents.append((ending, buffer.getvalue()))
    return tuple(contents)


def damaged(number: int, seed: int = 0) -> tuple[str, bytes]:
    """Return suffix and content of one damaged image."""
    rng = random.Random(f"{seed} {number}")
    ending, content = rng.choice([one for one in sound() if one[0] == KINDS[number % len(KINDS)]])
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        content = rng.choice(DAMAGES)(rng, content)
    return ending, content


def _truncated(rng: random.Random, content: bytes) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _flipped(rng: random.Random, content: bytes) -> bytes:
    found = bytearray(content)
    for _ in range(min(len(found), rng.choice((1, 1, 3, 30)))):
        found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return bytes(found)


def _overwritten(rng: random.Random, content: bytes) -> bytes:
    at, length = rng.randrange(len(content) + 1), rng.choice((4, 64, 512))
    return content[:at] + bytes([rng.choice((0, 255, rng.randrange(256)))]) * length + content[at + length :]


def _sized(rng: random.Random, content: bytes) -> bytes:
    """Replace a number near the beginning, where sizes are stored, by a large one."""
    at = rng.randrange(min(128, len(content) + 1))
    form = rng.choice(("<H", ">H", "<I", ">I"))
    most = 0xFFFF if form.endswith("H") else 0xFFFFFFFF
    number = struct.pack(form, rng.choice((0, 1, most, most // 2, most // 2 + 1, rng.randrange(most))))
    return content[:at] + number + content[at + len(number) :]


def _swapped(rng: random.Random, content: bytes) -> bytes:
    """Swap chunks of a PNG or RIFF, else any two parts."""
    cuts = sorted(rng.randrange(len(content) + 1) for _ in range(4))
    if content.startswith(b"\x89PNG"):
        cuts = sorted(rng.choice(_chunks(content)) for _ in range(4))
    a, b, c, d = cuts
    return content[:a] + content[c:d] + content[b:c] + content[a:b] + content[d:]


def _chunks(content: bytes) -> list[int]:
    places, at = [8], 8
    while at + 8 <= len(content):
        at += 12 + int.from_bytes(content[at : at + 4], "big")
        places.append(min(at, len(content)))
    return places


def _repeated(rng: random.Random, content: bytes) -> bytes:
    at = rng.randrange(len(content) + 1)
    part = content[at : at + rng.choice((8, 100, 2000))]
    return content[:at] + part * rng.choice((2, 50)) + content[at:]


def _spliced(rng: random.Random, content: bytes) -> bytes:
    other = rng.choice(sound())[1]
    return content[: rng.randrange(len(content) + 1)] + other[rng.randrange(len(other)) :]


def _longer(rng: random.Random, content: bytes) -> bytes:
    return content + rng.randbytes(rng.choice((1, 100, 5000)))


def _huge(rng: random.Random, content: bytes) -> bytes:
    """Make the image claim, or really have, far larger dimensions."""
    if not content.startswith(b"\x89PNG"):
        return _sized(rng, _sized(rng, content))
    side = rng.choice((7_900, 8_100, 30_000, 2**31 - 1))
    body = zlib.compress(bytes((side + 1) * side), 1) if side == 7_900 else b"x"
    parts = ((b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)), (b"IDAT", body), (b"IEND", b""))
    return content[:8] + b"".join(
        struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in parts
    )


Damage = Callable[[random.Random, bytes], bytes]
DAMAGES: tuple[Damage, ...] = (
    _truncated,
    _truncated,
    _flipped,
    _flipped,
    _overwritten,
    _sized,
    _sized,
    _swapped,
    _repeated,
    _spliced,
    _longer,
    _huge,
)
