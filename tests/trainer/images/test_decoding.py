"""The decoder: right pixels from every kind of image, and a reason for every file it refuses."""

import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from trainer.images import UnreadableImage, open_image, read_image

SIDE = 64
RAMP = np.tile(np.linspace(0, 1, SIDE), (SIDE, 1))
"""Dark on the left, bright on the right."""
GRAY = np.rint(RAMP * 255).astype(np.uint8)
COLOR = np.stack([GRAY, GRAY.T, 255 - GRAY], axis=-1)


def saved(path: Path, image: Image.Image, **options: object) -> Path:
    image.save(path, **options)
    return path


def decoded(path: Path) -> np.ndarray:
    return read_image(path, SIDE).astype(int)


def gray_rgb(values: np.ndarray) -> np.ndarray:
    return np.repeat(values[..., None], 3, axis=-1).astype(int)


GRAYS: list[tuple[str, str, Callable[[], Image.Image]]] = [
    ("L", "png", lambda: Image.fromarray(GRAY)),
    ("L", "bmp", lambda: Image.fromarray(GRAY)),
    ("L", "webp", lambda: Image.fromarray(GRAY)),
    ("P", "png", lambda: Image.fromarray(GRAY).convert("P")),
    ("P", "gif", lambda: Image.fromarray(GRAY).convert("P")),
    ("LA", "png", lambda: Image.merge("LA", [Image.fromarray(GRAY), Image.new("L", (SIDE, SIDE), 255)])),
    ("16-bit", "png", lambda: Image.fromarray(np.rint(RAMP * 65535).astype(np.uint16))),
    ("16-bit", "tiff", lambda: Image.fromarray(np.rint(RAMP * 65535).astype(np.uint16))),
    ("32-bit of 16", "tiff", lambda: Image.fromarray(np.rint(RAMP * 65535).astype(np.int32))),
    ("32-bit of 8", "tiff", lambda: Image.fromarray(np.rint(RAMP * 255).astype(np.int32))),
    ("float 0..1", "tiff", lambda: Image.fromarray(RAMP.astype(np.float32))),
    ("float 0..255", "tiff", lambda: Image.fromarray((RAMP * 255).astype(np.float32))),
    ("float -1..1", "tiff", lambda: Image.fromarray((RAMP * 2 - 1).astype(np.float32))),
    ("RGB", "png", lambda: Image.fromarray(GRAY).convert("RGB")),
    ("RGB", "ppm", lambda: Image.fromarray(GRAY).convert("RGB")),
]


@pytest.mark.parametrize(("mode", "suffix", "make"), GRAYS, ids=[f"{mode}-{suffix}" for mode, suffix, _ in GRAYS])
def test_a_gray_ramp_survives(mode: str, suffix: str, make: Callable[[], Image.Image], tmp_path: Path) -> None:
    options = {"lossless": True} if suffix == "webp" else {}
    pixels = decoded(saved(tmp_path / f"ramp.{suffix}", make(), **options))
    assert np.abs(pixels - gray_rgb(GRAY)).max() <= 1


def test_black_and_white(tmp_path: Path) -> None:
    image = Image.fromarray(GRAY).point(lambda value: 255 * (value > 127)).convert("1")
    assert (decoded(saved(tmp_path / "a.png", image)) == gray_rgb(np.where(GRAY > 127, 255, 0))).all()


@pytest.mark.parametrize("suffix", ["png", "bmp", "tiff", "ppm"])
def test_colors_survive(suffix: str, tmp_path: Path) -> None:
    assert (decoded(saved(tmp_path / f"a.{suffix}", Image.fromarray(COLOR))) == COLOR).all()


def test_lossy_formats_come_close(tmp_path: Path) -> None:
    for name, options in {"a.jpg": {"quality": 95, "subsampling": 0}, "a.webp": {"quality": 95}}.items():
        error = np.abs(decoded(saved(tmp_path / name, Image.fromarray(COLOR), **options)) - COLOR)
        assert error.mean() < 4


def test_print_colors_become_screen_colors(tmp_path: Path) -> None:
    inks = Image.fromarray(COLOR).convert("CMYK")
    assert np.abs(decoded(saved(tmp_path / "a.tiff", inks)) - COLOR).max() <= 2
    assert np.abs(decoded(saved(tmp_path / "a.jpg", inks, quality=98, subsampling=0)) - COLOR).mean() < 4


def test_transparency_lies_on_white(tmp_path: Path) -> None:
    rgba = np.dstack([COLOR, GRAY])
    share = GRAY[..., None] / 255
    expected = np.rint(COLOR * share + 255 * (1 - share))
    assert np.abs(decoded(saved(tmp_path / "a.png", Image.fromarray(rgba))) - expected).max() <= 2
    palette = Image.new("P", (SIDE, SIDE), 0)
    palette.putpalette([200, 0, 0])
    assert (decoded(saved(tmp_path / "b.png", palette, transparency=0)) == 255).all()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_of_a_turned_camera_stand_upright(orientation: int, tmp_path: Path) -> None:
    undo = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    stored = Image.fromarray(COLOR)
    stored = stored.transpose(undo[orientation]) if orientation in undo else stored
    exif = Image.Exif()
    exif[0x0112] = orientation
    assert (decoded(saved(tmp_path / "a.png", stored, exif=exif)) == COLOR).all()


def test_the_first_frame_of_an_animation_is_taken(tmp_path: Path) -> None:
    first, second = Image.new("RGB", (SIDE, SIDE), (250, 10, 10)), Image.new("RGB", (SIDE, SIDE), (10, 10, 250))
    for name in ("a.gif", "a.webp"):
        path = saved(tmp_path / name, first, save_all=True, append_images=[second], duration=100)
        assert np.abs(decoded(path) - (250, 10, 10)).max() <= 12


def test_the_middle_square_is_kept(tmp_path: Path) -> None:
    wide = np.hstack([np.zeros_like(COLOR), COLOR, np.full_like(COLOR, 255)])
    assert (decoded(saved(tmp_path / "wide.png", Image.fromarray(wide))) == COLOR).all()
    tall = np.vstack([np.zeros_like(COLOR), COLOR, np.full_like(COLOR, 255)])
    assert (decoded(saved(tmp_path / "tall.png", Image.fromarray(tall))) == COLOR).all()


@pytest.mark.parametrize(("width", "height"), [(1, 1), (1, 900), (900, 1), (31, 17)])
def test_any_size_becomes_the_asked_one(width: int, height: int, tmp_path: Path) -> None:
    path = saved(tmp_path / "a.png", Image.new("RGB", (width, height), (10, 200, 30)))
    assert (read_image(path, 48) == (10, 200, 30)).all()
    assert read_image(path, 48).shape == (48, 48, 3)


def test_a_large_photo_is_the_same_whether_decoded_whole_or_at_a_fraction(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.jpg", Image.fromarray(COLOR).resize((1600, 1200)), quality=95)
    whole = open_image(path).crop((200, 0, 1400, 1200)).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    assert open_image(path, smallest=SIDE).size < (1600, 1200)
    assert np.abs(decoded(path) - np.asarray(whole, int)).max() <= 6


def png_of(width: int, height: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress(b"\0" * 1000)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def jpeg_of(image: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "JPEG")
    return buffer.getvalue()


NO_IMAGE = "not an image of a supported format. JPEG, PNG, .* and AVIF work"
REFUSED = {
    "empty": (b"", NO_IMAGE),
    "text": (b"hello, I am no image" * 9, NO_IMAGE),
    "postscript": (
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n",
        NO_IMAGE,
    ),
    "photoshop": (b"8BPS\0\1" + b"\0" * 40, NO_IMAGE),
    "cut-off": (jpeg_of(COLOR)[:700], "damaged"),
    "bomb": (png_of(9000, 9000), r"9,000 x 9,000 pixels, more than the 64 million"),
    "larger bomb": (png_of(60_000, 60_000), "damaged|more than (the )?64 million"),
    "unfinished rows": (png_of(100, 100), "damaged"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_good_image_is_refused_with_a_reason(name: str, tmp_path: Path) -> None:
    content, reason = REFUSED[name]
    path = tmp_path / "a.png"
    path.write_bytes(content)
    with pytest.raises(UnreadableImage, match=reason) as caught:
        read_image(path, SIDE)
    assert str(caught.value).endswith(".")


def test_missing_files_and_folders_are_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(UnreadableImage, match="does not exist"):
        read_image(tmp_path / "nothing.png", SIDE)
    with pytest.raises(UnreadableImage):
        read_image(tmp_path, SIDE)


def test_values_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.tiff", Image.fromarray(np.full((SIDE, SIDE), np.nan, np.float32)))
    with pytest.raises(UnreadableImage, match="not finite"):
        read_image(path, SIDE)


def wide_png(values: np.ndarray) -> bytes:
    """Return colors of 16 bits as a PNG, which Pillow reads and does not write."""

    def part(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    lines = b"".join(b"\0" + line.astype(">u2").tobytes() for line in values)
    head = struct.pack(">IIBBBBB", values.shape[1], values.shape[0], 16, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(part(*one) for one in parts)


@pytest.mark.parametrize(("bits", "dark"), [(10, True), (12, True), (14, True), (16, False)])
@pytest.mark.parametrize("kind", ["gray", "int32", "color"])
def test_values_of_fewer_bits_than_their_file_has_are_remarked_on(tmp_path: Path, bits: int, dark: bool, kind: str):
    values = np.linspace(0, 2**bits - 1, 48 * 3).astype(np.uint16).reshape(6, 8, 3)
    file = tmp_path / ("one.tif" if kind == "int32" else "one.png")
    if kind == "color":
        file.write_bytes(wide_png(values))
    else:
        gray = values[..., 0] if kind == "gray" else values[..., 0].astype(np.int32)
        gray[0, 0] = 2**bits - 1
        Image.fromarray(gray).save(file)
    remarks: list[str] = []
    open_image(str(file), remarks=remarks)
    assert any("so it comes out dark" in one for one in remarks) == dark
    assert bits != 12 or "reach 6 %" in remarks[-1]
