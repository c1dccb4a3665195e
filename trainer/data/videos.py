"""Videos as images: the middle frame of each, extracted once. Needs the optional ffmpeg."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from trainer.analysis.progress import Progress
from trainer.data.pairs import DataError, Source
from trainer.data.stored_pairs import StoredPair, Unusable, kept
from trainer.data.workers import processes
from trainer.untrusted import files as untrusted_files
from trainer.untrusted import safe_subprocess

SUFFIXES: Final = frozenset((".avi", ".mp4", ".mkv", ".webm", ".mov", ".m4v"))
"""Names taken for films."""

_KINDS: Final = "avi,mov,mp4,m4a,3gp,3g2,mj2,matroska,webm"
"""What ffmpeg may take a film for: a playlist would make it open other files and addresses."""
_LIMIT_S: Final = 60.0
_MOST_OUTPUT: Final = 1 << 28
_FRAMES: Final = re.compile(rb"frame=\s*(\d+)")


def middle_frames(
    films: Sequence[Path], root: Path, kept_at: Path, progress: Progress
) -> tuple[dict[str, Source], list[tuple[str, str]]]:
    """Return film relative to `root` -> its middle frame, and (film, reason) for the others.

    Args:
        films: Files below `root`.
        kept_at: Folder whose folders keep pictures.

    Raises:
        DataError: ffmpeg is missing, or the folder cannot be written.
    """
    program = _ffmpeg()
    state = "\0".join(map(_state, films))
    folder = kept_at / f"frames-{hashlib.blake2b(state.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"
    sources, problems = kept(folder, lambda: _frames(films, root, program, progress))
    return {source.caption: source for source in sources}, problems


def _state(film: Path) -> str:
    try:
        stat = film.stat()
    except OSError:
        return f"{film}\0missing"
    return f"{film}\0{stat.st_size}\0{stat.st_mtime_ns}"


def _ffmpeg() -> str:
    try:
        import imageio_ffmpeg

        return imageio_ffmpeg.get_ffmpeg_exe()
    except (ImportError, RuntimeError) as error:
        raise DataError(
            "This folder contains videos, and ffmpeg is needed to extract their middle frames: install it with "
            "`uv sync --extra film`, or `pip install imageio-ffmpeg`; or put images of the frames there."
        ) from error


def _frames(films: Sequence[Path], root: Path, program: str, progress: Progress) -> Iterator[StoredPair | Unusable]:
    """Yield each film's middle frame with the film's name as caption, which its class replaces later."""
    with ThreadPoolExecutor(processes()) as threads:
        pictures = threads.map(lambda film: _frame(program, film), films)
        try:
            for number, (film, picture) in enumerate(zip(films, pictures, strict=True)):
                progress(number / len(films), f"Extracting middle frames of videos: {number:,} of {len(films):,}")
                name = film.relative_to(root).as_posix()
                if isinstance(picture, bytes):
                    yield StoredPair(f"{number:06}.png", picture, (name,))
                else:
                    yield Unusable(name, picture)
        finally:
            threads.shutdown(wait=True, cancel_futures=True)


def _frame(program: str, film: Path) -> bytes | str:
    """Return the middle frame as PNG, or why there is none."""
    try:
        untrusted_files.check_ordinary(film)
        counted = _run(program, film, "-c", "copy", "-f", "null", "-")
        counts = _FRAMES.findall(counted.stderr)
        if counted.returncode or not counts or not int(counts[-1]):
            return "It is not a readable video, or has no frames."
        chosen = ["-vf", rf"select=eq(n\,{int(counts[-1]) // 2})", "-frames:v", "1"]
        taken = _run(program, film, *chosen, "-f", "image2pipe", "-c:v", "png", "-")
    except subprocess.TimeoutExpired:
        return f"Reading it took more than {_LIMIT_S:.0f} seconds."
    except safe_subprocess.OutputTooLong:
        return "Its middle frame is too large."
    except OSError as error:
        return f"It cannot be read: {error.strerror or error}."
    if taken.returncode or not taken.stdout:
        return "Its middle frame is damaged."
    return taken.stdout


def _run(program: str, film: Path, *options: str) -> subprocess.CompletedProcess[bytes]:
    safe = ["-protocol_whitelist", "file", "-format_whitelist", _KINDS, "-max_alloc", str(500_000_000)]
    command = [program, "-hide_banner", "-nostdin", "-threads", "1", *safe, "-i", f"file:{film.absolute()}"]
    return safe_subprocess.run([*command, "-map", "0:v:0", *options], timeout=_LIMIT_S, most=_MOST_OUTPUT)
