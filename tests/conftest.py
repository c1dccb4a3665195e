"""What all tests share: the folder of real data sets beside the checkout, or a reason to skip."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

# CI tries the same examples every time, so that what lands does not depend on luck; at a desk they are new each time.
hypothesis.settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    hypothesis.settings.load_profile("ci")

# One process a core: threads of torch would only wait for each other.
if os.environ.get("PYTEST_XDIST_WORKER"):
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# Set before any Qt import: tests never need a screen, and a window of theirs must not pop up on a person's.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets; tests that use it skip where it is absent."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data sets (../shared/data) are not beside this checkout")
    return folder
