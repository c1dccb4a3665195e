"""The option `--version` of the two programs."""

from __future__ import annotations

import argparse
from typing import Any

from trainer.untrusted.terminal import say


class VersionOption(argparse.Action):
    """Prints name and version of this program and ends it; what is installed is read only then."""

    def __init__(self, option_strings: list[str], dest: str, **_: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help="print the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print to standard output and exit with 0."""
        from trainer.distribution.installed import NAME, version

        say(f"{NAME} {version()}")
        parser.exit()
