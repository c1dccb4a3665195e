"""Every kind of picture: right pixels or a clear refusal, whatever its mode, depth, turn or damage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from corpus.gradients import GRADIENTS, SIDE

from trainer.pictures import UnreadableImage, read_image

pytestmark = pytest.mark.faults


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
