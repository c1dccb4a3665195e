"""A file that takes what a small disk has left, to its last byte."""

import contextlib
from pathlib import Path


def fill(ballast: Path) -> None:
    """Write the file until its disk is full."""
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(2**16)):
            pass
