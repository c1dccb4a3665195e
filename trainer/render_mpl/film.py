"""Frames as a film: GIF by Pillow, MP4 by ffmpeg if available."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, cast

import numpy as np
from jaxtyping import UInt8
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from trainer.errors import UserError
from trainer.store.files import write_for_user
from trainer.untrusted import safe_subprocess

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES: Final = (".gif", ".mp4")
FRAME: Final = ".png"
"""Suffix of a picture of the last frame."""
RATE: Final = 25
"""Frames a second of an MP4; a GIF keeps the milliseconds of each frame."""
_MOST_ERRORS: Final = 1 << 16
_NO_FFMPEG: Final = (
    "An MP4 needs ffmpeg, which is not installed: install it with `uv sync --extra film` (or "
    "`pip install contrastive-explorer[film]`, or your system's ffmpeg), or choose a name that ends in .gif."
)


@dataclass(frozen=True)
class FilmFrame:
    """One frame of a film, and its duration."""

    pixels: UInt8[np.ndarray, "h w 3"]
    milliseconds: int


def pixels_of(figure: Figure) -> UInt8[np.ndarray, "h w 3"]:
    """Return a figure as it is drawn now."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def check_film(file: Path) -> None:
    """Check that a film with this suffix can be written here; to be called before anything slow.

    Raises:
        UserError: Another ending, or no ffmpeg.
    """
    if file.suffix.lower() not in (*SUFFIXES, FRAME):
        raise UserError(f"{file.name}: an animation's name ends in {', '.join(SUFFIXES)}.")
    if file.suffix.lower() == ".mp4":
        ffmpeg()


def ffmpeg() -> str:
    """Return the ffmpeg program: that of imageio-ffmpeg, else the one on the PATH.

    Raises:
        UserError: There is none.
    """
    try:
        import imageio_ffmpeg

        return imageio_ffmpeg.get_ffmpeg_exe()
    except (ImportError, RuntimeError):
        program = safe_subprocess.find("ffmpeg")
    if program is None:
        raise UserError(_NO_FFMPEG)
    return program


def write_film(file: Path, frames: Sequence[FilmFrame], *, command: str, title: str = "") -> None:
    """Write the film, or its last frame, atomically, with its command in the metadata.

    Raises:
        UserError: An ending we do not write, no ffmpeg, or a place that cannot be written.
    """
    check_film(file)
    ways = {".gif": _gif, ".mp4": _mp4, FRAME: _frame}
    write_for_user(file, lambda draft: ways[file.suffix.lower()](draft, frames, command, title))


def _gif(draft: Path, frames: Sequence[FilmFrame], command: str, title: str) -> None:
    # One palette for all: with one a frame, colors that do not change would flicker.
    chosen = frames[:: max(1, len(frames) // 4)]
    sheet = np.concatenate([frame.pixels[::2, ::2] for frame in (*chosen, frames[-1])])
    palette = Image.fromarray(sheet).quantize(colors=255, method=Image.Quantize.FASTOCTREE)
    pictures = [Image.fromarray(f.pixels).quantize(palette=palette, dither=Image.Dither.NONE) for f in frames]
    pictures[0].save(
        draft,
        format="GIF",
        save_all=True,
        append_images=pictures[1:],
        duration=[frame.milliseconds for frame in frames],
        loop=0,
        comment=f"{title}: {command}".encode("ascii", "replace"),
        disposal=1,
    )


def _frame(draft: Path, frames: Sequence[FilmFrame], command: str, title: str) -> None:
    metadata = PngInfo()
    metadata.add_itxt("Title", title)
    metadata.add_itxt("Description", command)
    Image.fromarray(frames[-1].pixels).save(draft, format="PNG", pnginfo=metadata)


def _mp4(draft: Path, frames: Sequence[FilmFrame], command: str, title: str) -> None:
    height, width = (side // 2 * 2 for side in frames[0].pixels.shape[:2])  # the codec wants even sides
    line = [ffmpeg(), "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}"]
    line += ["-r", str(RATE), "-i", "-", "-an", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "18"]
    line += ["-metadata", f"title={title}", "-metadata", f"comment={command}", "-movflags", "+faststart"]
    arguments = [*line, "-f", "mp4", str(draft.absolute())]
    process = safe_subprocess.start(arguments, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    raw = (
        np.ascontiguousarray(frame.pixels[:height, :width]).tobytes()
        for frame in frames
        for _ in range(max(1, round(frame.milliseconds * RATE / 1000)))
    )
    assert process.stderr is not None
    # Read while the pictures are written: with errors that nobody reads, it would wait forever.
    errors = safe_subprocess.PipeReader(process.stderr, _MOST_ERRORS)
    try:
        for picture in raw:
            cast("IO[bytes]", process.stdin).write(picture)
    except BrokenPipeError:
        pass  # it says below why it ended
    with contextlib.suppress(BrokenPipeError):
        cast("IO[bytes]", process.stdin).close()
    if process.wait():
        lines = errors.content().decode("utf-8", "replace").strip().splitlines()
        raise UserError(f"ffmpeg could not write the animation: {lines[-1] if lines else process.returncode}.")
