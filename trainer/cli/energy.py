"""`trainer energy`: what runs have used, and what that costs by the user's own tariff."""

from __future__ import annotations

import argparse
import dataclasses
import json

from trainer.untrusted.files import spelled
from trainer.untrusted.terminal import say, say_json

GROUP = "Maintain"
HELP = "tell the energy that graphics cards have used for runs, and its price by your own tariff"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the runs and the tariff."""
    parser.add_argument("runs", nargs="*", metavar="RUN", help="number, name or folder (default: all)")
    parser.add_argument(
        "--tariff", nargs=2, metavar=("PRICE", "CURRENCY"), help="of a kilowatt-hour, kept in your settings: 0.32 EUR"
    )


def run(args: argparse.Namespace) -> int:
    """Print the energy of each run whose cards tell it."""
    from trainer.errors import UserError
    from trainer.scheduling import energy

    if args.tariff:
        try:
            price = float(args.tariff[0])
        except ValueError as error:
            raise UserError(f"{args.tariff[0][:20]!r} is not a number. Write it like --tariff 0.32 EUR.") from error
        energy.set_tariff(price, args.tariff[1])
    workspace, tariff = args.workspace, energy.tariff()
    rows = [workspace.runs.get(name) for name in args.runs] if args.runs else workspace.runs.all()
    used = {row.id: workspace.results.last_values(row.id).get(energy.METRIC) for row in rows}
    measured = [(row, wh) for row in rows if (wh := used[row.id]) is not None]
    if args.json:
        listed = [
            {"id": row.id, "name": row.name, "wh": wh, "price": tariff and tariff.price * wh / 1000}
            for row, wh in measured
        ]
        say_json(json.dumps({"runs": listed, "tariff": tariff and dataclasses.asdict(tariff)}))
        return 0
    for row, wh in measured:
        say(spelled(f"{row.id:>5}  {row.name:<32} {energy.words(wh)}"))
    if len(measured) > 1:
        say(f"{'':>5}  {'together':<32} {energy.words(sum(wh for _, wh in measured))}")
    if len(measured) < len(rows):
        say(f"Of {len(rows) - len(measured)} runs nothing is known: no card measured it while they trained.")
    return 0
