"""`trainer decode`: pictures from the embeddings of runs, by their decoders."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.cli.export import add_out_argument, add_step_argument, step_words
from trainer.errors import UserError
from trainer.untrusted import shell
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer.charts.decode import DecodedChart
    from trainer.messages import Decode
    from trainer.store import Workspace

GROUP = "Look"
HELP = "decode a picture's or a sentence's embedding: what does it keep?"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add decoders, what is decoded, the options of the question, and output."""
    from trainer.charts.settings import add_options
    from trainer.messages import Decode

    parser.add_argument(
        "runs", nargs="+", metavar="DECODER", help="decoders of runs: numbers, names or folders; A first"
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--image", type=Path, metavar="FILE", help="an image file")
    what.add_argument("--text", metavar="TEXT", help="a sentence, through the prior")
    what.add_argument(
        "--measure", action="store_true", help="held-out pictures: what comes back by encoders, a judge, and in bits"
    )
    parser.add_argument(
        "--limits",
        action="store_true",
        help="with --measure: train an equal decoder of the true attributes, whose losses are the decoder's own",
    )
    parser.add_argument("--most", type=int, default=256, metavar="N", help="with --measure: held-out pictures (256)")
    add_options(parser, Decode)
    parser.add_argument("--noises", type=int, default=6, metavar="K", help="samples of each decoder (6)")
    parser.add_argument("--other", type=Path, metavar="FILE", help="a second picture to interpolate to (slerp)")
    parser.add_argument("--drop", type=int, default=0, metavar="K", help="drop the K-th principal direction of images")
    parser.add_argument("--along", type=int, default=0, metavar="K", help="move along the K-th principal direction")
    parser.add_argument("--distance", type=float, default=0.5, metavar="X", help="with --along: how far (0.5)")
    add_step_argument(parser, "checkpoints")
    add_out_argument(
        parser,
        "figures: .svg, .pdf, .png; numbers: .csv; over the steps of a run: .gif, .mp4 (needs ffmpeg); "
        "with --measure: recovered attributes by step or run",
    )


def run(args: argparse.Namespace) -> int:
    """Print the measures of what is kept; write files if requested."""
    from trainer.charts.decode import panel, request_words
    from trainer.charts.snapshot_label import document_with_full_names
    from trainer.cli._progress import report
    from trainer.render_mpl import film
    from trainer.render_mpl.decode import frames
    from trainer.render_mpl.files import check_suffixes, json_text
    from trainer.render_mpl.panel import write_panel

    if args.measure:
        return _measure(args)
    films = [file for file in args.out if file.suffix.lower() in film.SUFFIXES]
    still = [file for file in args.out if file not in films]
    for file in films:
        film.check_film(file)
    check_suffixes(still)
    request = request_of(args)
    chart = collect(args.workspace, request)
    arguments = ["trainer", "decode", *map(str, args.runs), *request_words(request), *step_words(args.step)]
    line = shell.join([*arguments, "--out", *(file.name for file in args.out)])
    if films:
        drawn = list(frames(chart, report))
        for file in films:
            film.write_film(file, drawn, command=line, title="Decoded over training")
    if still:
        write_panel(still, panel(chart), "decode", line)
    values = document_with_full_names(args.workspace, document(chart))
    say_json(json_text(values, indent=1)) if args.json else say(as_text(chart))
    return 0


def _measure(args: argparse.Namespace) -> int:
    from trainer.charts.spec import targets_of
    from trainer.cli._progress import report
    from trainer.evaluation import decode_measures
    from trainer.render_mpl.files import check_suffixes, json_text
    from trainer.render_mpl.panel import write_panel
    from trainer.training.decoder_limits import attribute_decoder

    check_suffixes(args.out)
    if not 2 <= args.most <= 100_000:
        raise UserError(f"--most {args.most}: choose 2 to 100,000 held-out pictures.")
    targets = [(target.run, target.step) for target in targets_of(args.runs, args.step)]
    request = decode_measures.MeasureRequest(most=args.most, steps=args.steps)
    alike = attribute_decoder if args.limits else None
    measures = decode_measures.measure_decoders(args.workspace, targets, request, report, alike)
    _remember(args.workspace, decode_measures.facts_of(measures))
    if args.out:
        arguments = ["trainer", "decode", *args.runs, "--measure", "--most", str(args.most), "--steps", str(args.steps)]
        command = shell.join([*arguments, *step_words(args.step), "--out", *(file.name for file in args.out)])
        write_panel(args.out, decode_measures.recovery(measures), "decoder-recovery", command)
    if args.json:
        say_json(json_text(decode_measures.document(measures), indent=1))
    else:
        say(decode_measures.as_text(measures))
    return 0


def _remember(workspace: Workspace, facts: Mapping[int, dict[str, Any]]) -> None:
    """Store what was measured with each decoder, where the workspace may be written to; Decode says it then."""
    from trainer.charts.decode import MEASURED

    if workspace.look_only:
        return
    for run, measured in facts.items():
        workspace.runs.add_facts(run, {MEASURED: measured})


def request_of(args: argparse.Namespace) -> Decode:
    """Return the request of the arguments.

    Raises:
        UserError: Two of them contradict each other.
    """
    from trainer.charts.settings import from_options
    from trainer.charts.spec import targets_of
    from trainer.messages import Decode

    if bool(args.before) != bool(args.after):
        raise UserError("A difference of texts needs both: --before 'a red star' --after 'a blue star'.")
    if args.drop and args.along:
        raise UserError("A principal direction is dropped or moved along: give --drop or --along.")
    if args.share and args.other is None:
        raise UserError("--share says how far to go to a second picture: name it with --other FILE.")
    targets = targets_of(args.runs, args.step)
    return from_options(
        Decode,
        args,
        runs=tuple(args.workspace.runs.get(target.run).id for target in targets),
        checkpoints=tuple(target.step for target in targets),
        image=str(args.image.absolute()) if args.image else "",
        text=args.text or "",
        other=str(args.other.absolute()) if args.other else "",
        direction=args.drop or args.along,
        distance=args.distance if args.along else None,
        noises=tuple(range(args.noises)),
    )


def collect(workspace: Workspace, request: Decode) -> DecodedChart:
    """Return what the decoders make of the request.

    Raises:
        AnswerError: It cannot be answered, or the decoders do not compare.
    """
    from trainer.cli._progress import report
    from trainer.inference.decode import OpenDecoders, chart_of, decode

    return chart_of(request, *decode(OpenDecoders(workspace), request, report))


def document(chart: DecodedChart) -> dict[str, Any]:
    """Return the output of `--json`."""
    runs = [
        {
            "run": run.run,
            "name": run.name,
            "of": run.of_name,
            "of_step": run.of_step,
            "step": run.step,
            "not_kept_percent": run.not_kept,
            "spread": run.spread.tolist(),
            "mean": run.mean.tolist(),
            "samples": run.samples.tolist(),
            "nearest": [dataclasses.asdict(neighbor) for neighbor in run.nearest],
            "nearest_of": run.nearest_of,
            "levels": [] if run.reverse is None else list(run.reverse.levels),
        }
        for run in chart.runs
    ]
    return {
        "decoded": chart.title,
        "how": chart.how,
        "noises": list(chart.noises),
        "limits": chart.limits,
        "runs": runs,
    }


def as_text(chart: DecodedChart) -> str:
    """Format what numbers tell, for a terminal."""
    lines = [f"{chart.title}: {chart.how}"]
    for run in chart.runs:
        lines.append(
            f"  {run.name} (step {run.step:,}) of {run.of_name} at step {run.of_step:,}: deviation over "
            f"{len(chart.noises)} noises {run.not_kept:.1f} % of a pixel's range"
        )
        near = "; ".join(f"{neighbor.caption} ({neighbor.cosine:.3f})" for neighbor in run.nearest)
        lines.append(f"    nearest of {run.nearest_of:,} training pictures: {near}")
    how = "" if any(run.measured for run in chart.runs) else " Measure it: trainer decode DECODER --measure --limits"
    return "\n".join([*lines, f"  {chart.limits}{how}"])
