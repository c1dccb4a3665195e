"""`explorer bench ...`: what the window can do, measured without one. One module a subject."""

from __future__ import annotations

import argparse
from collections.abc import Sequence


def main(argv: Sequence[str]) -> int:
    """Runs `explorer bench SUBJECT ...`."""
    from explorer.bench import map as map_bench

    parser = argparse.ArgumentParser(prog="explorer bench", description="Measure what the window can do.")
    subjects = parser.add_subparsers(dest="subject", required=True, metavar="SUBJECT")
    map_bench.add_arguments(subjects.add_parser("map", help=map_bench.HELP, description=map_bench.HELP))
    return map_bench.run(parser.parse_args(argv))
