"""Each cost is measured on the same vectors, and the table has a line for each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks import scale_of_data
from tests.benchmarks.scale_of_data import MEASURES, made, once, table

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", ["mixture", "manifold"])
def test_pairs_are_nearer_than_others(tmp_path: Path, kind: str):
    made(tmp_path, 200, 32, kind)
    image, text = (scale_of_data._Data(tmp_path).side(side) for side in ("image", "text"))
    assert image.dtype == np.float32
    assert np.mean((image @ text.T).argmax(axis=1) == np.arange(200)) > 0.2


def test_the_table_says_time_memory_and_growth(tmp_path: Path):
    made(tmp_path, 300, 16, "mixture")
    names = ("open", "bare product", "exact ranks both ways, margins", "near duplicates", "chart changes")
    text = table({name: {300: once(name, tmp_path)} for name in names})
    assert "| what | grows with | 300 pairs | note |" in text
    assert "| exact ranks both ways, margins | n^2 | " in text
    assert set(names) < set(MEASURES)
