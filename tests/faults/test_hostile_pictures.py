"""Every kind of image: correct pixels or a clear refusal, for any mode, depth, rotation or damage."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pytest
from corpus.damage import damaged
from corpus.gradients import GRADIENTS, SIDE

from trainer import config
from trainer.data import load
from trainer.images import UnreadableImage, read_image

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]


def test_every_mode_of_every_format_shows_its_gradient(faults, tmp_path: Path) -> None:
    wrong, refused = [], []
    for number, gradient in enumerate(GRADIENTS):
        path = tmp_path / f"{number}{gradient.suffix}"
        gradient.write(path)
        try:
            pixels = read_image(path, SIDE)
        except UnreadableImage as error:
            refused.append(f"{gradient.name}{gradient.suffix}: {error}")
            continue
        error = int(np.abs(pixels.astype(int) - gradient.seen.astype(int)).max())
        if error > 1:
            wrong.append(f"{gradient.name}{gradient.suffix}: off by {error}")

    tried = len(GRADIENTS)
    faults.row(10, "an odd picture is read", "off by at most 1/255, or refused in words", tried, tried - len(wrong))
    print(f"refused: {refused}")
    assert tried >= 40
    assert not wrong
    assert len(refused) <= 3, refused


@contextmanager
def watched() -> Iterator[list[int]]:
    """Record the peak memory of this process's helpers, in bytes."""
    most, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            for child in psutil.Process().children(recursive=True):
                try:
                    if "trainer.images.helper" in child.cmdline():
                        most[0] = max(most[0], child.memory_info().rss)
                except psutil.Error:
                    continue

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()


def test_damaged_pictures_are_used_or_named(faults, tmp_path: Path) -> None:
    tried = faults.times(1_000)
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number in range(tried):
        ending, content = damaged(number)
        (folder / f"{number:04}.{ending}").write_bytes(content)
        (folder / f"{number:04}.txt").write_text(f"number {number}")
    began = time.monotonic()
    with watched() as most:
        splits = load(
            config.Folder(path=str(folder), heldout_share=0.3),
            image_size=32,
            workspace_folder=tmp_path / "workspace",
            progress=lambda share, note: None,
        )
    took = time.monotonic() - began

    report = splits.report
    named = {place for place, reason in report.problems if len(reason) > 10}
    used = {Path(path).name for part in (splits.train, *splits.heldout.values()) for path in part.paths}
    good = len(named | used) if not named & used else 0
    late = [place for place, reason in report.problems if "second" in reason]
    told = f"used ({len(used):,}) or named with a reason ({len(named):,}); helper at {most[0] / 1e6:.0f} MB at most"
    faults.row(8, "a damaged picture is imported", told, tried, good)
    print(f"{took:.1f} s, {len(late)} took too long")
    assert good == tried == report.used + len(report.problems)
    assert used
    assert named
    assert most[0] <= 1_000_000_000
