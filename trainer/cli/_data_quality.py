"""The actions `quality`, `review`, `cleaned` and `helped` of `trainer data`."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trainer.errors import UserError
from trainer.store.quality_reports import KINDS, QualityFinding, QualityReport
from trainer.untrusted import shell
from trainer.untrusted.escaping import cell
from trainer.untrusted.files import spelled
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer.store import Workspace

_LISTED: Final = 10
TITLES: Final = {
    "mispair": "Suspected mispairs",
    "duplicate": "Near-duplicate images",
    "leak": "Held-out images that are also trained on",
    "outlier": "Outliers",
}


def add_actions(actions: Any) -> list[argparse.ArgumentParser]:
    """Add the actions and return their parsers."""
    quality = actions.add_parser("quality", help="suspected mispairs, near-duplicates, leaks and outliers by a run")
    quality.add_argument("runs", nargs="+", metavar="RUN", help="one run, or two that must both suspect a pair")
    quality.add_argument("--step", type=int, nargs="+", default=[], metavar="N", help="of each run (last)")
    quality.add_argument("--out", type=Path, metavar="FILE", help="write the findings to a .csv or .parquet")
    review = actions.add_parser("review", help="flag, ignore or mark pairs as reviewed, by their keys")
    review.add_argument("run", metavar="RUN", help="whose data are reviewed")
    for name, help_text in (
        ("flag", "left out of cleaned lists"),
        ("ignore", "fine as they are"),
        ("reviewed", "reviewed, no decision"),
        ("clear", "without a state again"),
    ):
        review.add_argument(f"--{name}", nargs="+", default=[], metavar="KEY", help=help_text)
    review.add_argument("--flag-suspected", choices=KINDS, action="append", default=[], help="all new ones of a kind")
    review.add_argument("--note", default="", help="kept with these pairs")
    cleaned = actions.add_parser("cleaned", help="write the training pairs without flagged ones, to train on")
    cleaned.add_argument("run", metavar="RUN", help="whose data are cleaned")
    cleaned.add_argument("--out", type=Path, metavar="FILE", help=".parquet or .csv (default: in the workspace)")
    helped = actions.add_parser("helped", help="paired test of a run and its retrained copy on the same held-out pairs")
    helped.add_argument("old", metavar="OLD", help="run on the original data")
    helped.add_argument("new", metavar="NEW", help="run on the cleaned data")
    return [quality, review, cleaned, helped]


def quality(args: argparse.Namespace, progress: Callable[[float, str], None]) -> int:
    """Check the data and print the report."""
    from trainer.evaluation.data_quality import check_data
    from trainer.inference.model_cache import ModelCache
    from trainer.render_mpl.files import json_text
    from trainer.render_mpl.import_report import write_table

    if len(args.runs) > 2 or len(args.step) > len(args.runs):
        raise UserError("Name one or two runs, and at most one step for each.")
    steps = [*args.step, *[None] * (len(args.runs) - len(args.step))]
    report = check_data(ModelCache(args.workspace), args.runs, steps, progress=progress)
    if args.out:
        write_table(args.out.expanduser(), HEADER, [_record(finding) for finding in report.findings])
    if args.json:
        say_json(json_text(dataclasses.asdict(report)))
    else:
        _print_report(report)
    return 0


def review(args: argparse.Namespace, _progress: Callable[[float, str], None]) -> int:
    """Store the states, and print how many pairs have which."""
    from trainer.render_mpl.files import json_text
    from trainer.store.reviews import Review

    row = args.workspace.runs.get(args.run)
    report = newest_report(args.workspace, row.id)
    finding_of = {key: entry for entry in report.findings for key in entry.keys}
    review_of = {entry.pair: entry for entry in args.workspace.reviews.all(report.dataset)}
    keys_by_state = {"flagged": [*args.flag], "ignored": args.ignore, "reviewed": args.reviewed}
    for kind in args.flag_suspected:
        fresh = (key for entry in report.of_kind(kind) for key in entry.keys if key not in review_of)
        keys_by_state["flagged"] += fresh
    for key in [key for keys in (*keys_by_state.values(), args.clear) for key in keys]:
        if key not in finding_of and key not in review_of:
            raise UserError(f"No finding and no review has the key {key!r}. trainer data quality --json lists them.")
    for state, keys in keys_by_state.items():
        about = [(key, finding_of.get(key)) for key in dict.fromkeys(keys)]
        if about:  # without any it only counts, which is possible in a workspace that is look only
            args.workspace.reviews.put(
                Review(
                    report.dataset, key, state, args.note, entry.path if entry else "", entry.caption if entry else ""
                )
                for key, entry in about
            )
    if args.clear:
        args.workspace.reviews.take_back(report.dataset, args.clear)
    states = [entry.state for entry in args.workspace.reviews.all(report.dataset)]
    counts = {state: states.count(state) for state in keys_by_state}
    if args.json:
        say_json(json_text({"dataset": report.dataset} | counts))
    else:
        say(f"{report.dataset}: " + ", ".join(f"{count:,} {state}" for state, count in counts.items()))
    return 0


def cleaned(args: argparse.Namespace, progress: Callable[[float, str], None]) -> int:
    """Write the cleaned list and print the command that trains on it."""
    from trainer.evaluation.cleaned_list import write_cleaned_list
    from trainer.render_mpl.files import json_text

    file = args.out.expanduser() if args.out else None
    written = write_cleaned_list(args.workspace, args.run, file, progress)
    if args.json:
        say_json(json_text(dataclasses.asdict(written)))
        return 0
    row = args.workspace.runs.get(args.run)
    command = ["trainer", "fit", "--config", str(row.folder / "config.toml"), "--name", f"{row.name}-cleaned"]
    for change in ("data=table", f"data.path={written.file}", f"data.heldout_path={written.heldout}"):
        command += ["--set", change]
    say(f"{written.kept:,} pairs in {spelled(written.file)}; {written.left_out:,} flagged ones are left out.")
    say(f"Train on it: {shell.join(command)}")
    return 0


def helped(args: argparse.Namespace, _progress: Callable[[float, str], None]) -> int:
    """Print the paired test."""
    from trainer.charts.retrained import CORRECTION, retrained, retrained_lines
    from trainer.render_mpl.files import json_text

    comparison = retrained(args.workspace, args.old, args.new)
    if args.json:
        say_json(json_text(dataclasses.asdict(comparison) | {"correction": CORRECTION}))
    else:
        say("\n".join(retrained_lines(comparison)))
    return 0


def newest_report(workspace: Workspace, run: int) -> QualityReport:
    """Return the newest report made with this run, alone or with another.

    Raises:
        UserError: There is none.
    """
    from trainer.store.quality_reports import read_reports

    row = workspace.runs.get(run)
    if not (reports := read_reports(row.folder)):
        raise UserError(
            f"The data of {row.short_name} were not checked yet: trainer data quality {shell.quote(row.name)}"
        )
    return max(reports, key=lambda report: report.created_at)


HEADER: Final = (
    "kind", "split", "row", "keys", "path", "caption", "label", "margins", "ranks", "other_path", "other_caption",
    "other_split", "by", "distance", "judge",
)  # fmt: skip


def _record(finding: QualityFinding) -> list[str]:
    values = dataclasses.asdict(finding)
    values["keys"] = " ".join(finding.keys)
    values["margins"] = " ".join(f"{margin:.4f}" for margin in finding.margins)
    values["ranks"] = " ".join(f"{a}/{b}" for a, b in finding.ranks)
    return [str(values[name]) for name in HEADER]


def _print_report(report: QualityReport) -> None:
    for split, n in report.pairs.items():
        total = report.whole.get(split, n)
        drawn = f" of {total:,}, drawn at random" if n < total else ""
        say(f"{split:<14}{n:>9,} pairs{drawn}")
    for kind in KINDS:
        listed = report.of_kind(kind)
        where = ", ".join(f"{count:,} of {report.pairs[s]:,} in {s}" for s, count in report.counts[kind].items())
        say(f"\n{TITLES[kind]}: {report.count(kind):,}{f' ({where})' if where else ''}")
        if kind == "mispair":
            for judgment in report.judgments:
                say(spelled(f"  {judgment.words}"))
        for finding in listed[:_LISTED]:
            say("  " + spelled(f"{finding.keys[0]}  {cell(finding.path)}  {_evidence(finding)}"))
        if report.count(kind) > _LISTED:
            say(f"  and {report.count(kind) - _LISTED:,} more; --json lists them.")


def _evidence(finding: QualityFinding) -> str:
    if finding.kind == "mispair":
        sides = zip(finding.margins, finding.ranks, strict=True)
        evidence = "; ".join(f"margin {m:.2f}, caption rank {a:,}, image rank {b:,}" for m, (a, b) in sides)
        judged = f"; judged by run {finding.judge}" if finding.judge else ""
        return f"{finding.caption!r}: {evidence}; better: {finding.other_caption!r}{judged}"
    if finding.kind == "outlier":
        return f"{finding.caption!r}: mean distance {finding.distance:.3f}"
    return f"= {finding.other_path} ({finding.other_split}), by {finding.by}"


WAYS: Final = {"quality": quality, "review": review, "cleaned": cleaned, "helped": helped}
