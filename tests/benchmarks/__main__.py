"""`python -m tests.benchmarks NAME`: the measurements quoted in the READMEs, one module each, from a checkout.

A benchmark is a module with `HELP`, `add_arguments` and `run`. Each is imported only when it is chosen, so that
`losses` runs where torch is all there is.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Final

NAMES: Final = (
    "companion",
    "coverage",
    "data",
    "experiments",
    "explaining_away",
    "losses",
    "many_pairs",
    "many_pictures",
    "many_runs",
    "map",
    "objectives",
    "ranks",
    "row_shares",
    "scale",
    "scale_of_data",
    "softmaxes",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one benchmark and return its exit code: 0 success, 2 invalid arguments or data."""
    words = list(sys.argv[1:] if argv is None else argv)
    chosen = importlib.import_module(f"tests.benchmarks.{words[0]}") if words and words[0] in NAMES else None
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="Measure what the READMEs quote.")
    parser.add_argument("benchmark", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    if chosen is not None:
        parser.description = chosen.HELP.replace("%%", "%")
        chosen.add_arguments(parser)
        parser.add_argument("--json", action="store_true", help="print the result as JSON")
    args = parser.parse_args(words)
    from trainer.errors import UserError

    try:
        return chosen.run(args)
    except UserError as problem:
        print(f"{args.benchmark}: {problem}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
