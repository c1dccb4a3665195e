"""Reports on the quality of a data set in the folder of the run that they were made with."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta

from trainer.analysis.intervals import wilson
from trainer.metrics import split_label
from trainer.store.files import write_text
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.documents import convert, nan_for_null, null_for_nan

KINDS: Final = ("mispair", "duplicate", "leak", "outlier")
"""What may be wrong with a pair: its caption, a picture that is there twice, in both splits, or like no other."""
MOST_FINDINGS: Final = 5_000
"""Of each kind; the worst are kept, and the counts tell of all."""
TELLS: Final = 0.5
"""A run can tell where the 95 % interval of the share of planted mispairs that it detects lies above this."""
_FOLDER: Final = "quality"
_MOST: Final = 32
"""Reports of a run that are read, the newest: of one run they have a name a step."""
_LARGEST: Final = 1 << 24
"""Bytes of a report: 20,000 findings."""


@dataclass(frozen=True)
class Measured:
    """One run's embeddings that a report was made with."""

    run: int
    name: str
    step: int
    mean: dict[str, float]  # Split -> mean of the unmatched cosines.
    deviation: dict[str, float]  # Split -> their standard deviation.
    limit: dict[str, float]  # Split -> margin below which a pair is suspected.


@dataclass(frozen=True)
class Judgment:
    """Who judged pairs of a split, and how many planted mispairs were detected among them in the same way."""

    split: str
    runs: tuple[tuple[int, str, int], ...]  # Number, name and step of each run; with two, both had to suspect a pair.
    trained: bool  # Whether a run was trained on these pairs.
    pairs: int
    suspected: int  # How many of them are suspected.
    # How many captions were exchanged in memory; 0 where nothing was planted. Of learned pairs, among these or
    # among held-out ones, where fewer are detected.
    planted: int
    detected: int  # How many of those are suspected.

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share of planted mispairs that is detected (Wilson); NaN where none was planted."""
        return wilson(self.detected / self.planted if self.planted else math.nan, self.planted)

    @property
    def can_tell(self) -> bool:
        """Whether more than half of the planted mispairs are surely detected."""
        return self.planted > 0 and self.interval[0] > TELLS

    @property
    def words(self) -> str:
        """What was judged, by whom, and what that is worth, in one line."""
        by = " and ".join(f"{name} (step {step:,})" for _, name, step in self.runs)
        which = "which learned them" if self.trained else "which did not learn them"
        line = f"{self.suspected:,} of {pairs_words(self.pairs, self.split)} suspected by {by}, {which}"
        if self.planted:
            low, high = (100 * share for share in self.interval)
            share = f"{100 * self.detected / self.planted:.0f} %, {low:.0f} to {high:.0f}"
            line += f"; of {self.planted:,} planted mispairs {self.detected:,} detected ({share})"
        else:
            line += f"; too few pairs{' are held out' * self.trained} to plant mispairs"
        each = "these runs" if len(self.runs) > 1 else "this run"
        return line if self.can_tell else f"{line}: {each} cannot tell which pairs are mispaired"


def judgments_in_short(judgments: Sequence[Judgment]) -> str:
    """Return in one line how many pairs of all splits are suspected, and how far that can be trusted."""
    suspected, pairs, detected, planted = (
        sum(getattr(judgment, name) for judgment in judgments) for name in ("suspected", "pairs", "detected", "planted")
    )
    line = f"{suspected:,} of {pairs:,} pairs are suspected"
    if planted:
        line += f"; of {planted:,} captions exchanged as a test, the check found {detected:,}"
    blind = [judgment for judgment in judgments if not judgment.can_tell]
    return f"{line}. Among {splits_words(blind)} it misses too many to tell." if blind else f"{line}."


def splits_words(judgments: Sequence[Judgment]) -> str:
    """Return `training pairs and unseen renderings` of the splits that were judged."""
    names = [split_label(judgment.split) for judgment in judgments]
    names = [f"{name} pairs" if name in ("training", "held-out") else name for name in names]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def pairs_words(n: int, split: str) -> str:
    """Return `3,520 training pairs`, or `1,024 pairs of unseen renderings`."""
    name = split_label(split)
    return f"{n:,} {name} pairs" if name in ("training", "held-out") else f"{n:,} pairs of {name}"


@dataclass(frozen=True)
class QualityFinding:
    """A pair, or a picture, that may be wrong."""

    kind: Annotated[str, Meta(pattern=f"^({'|'.join(KINDS)})$")]  # One of `KINDS`.
    split: str  # `train`, or a held-out one.
    row: int
    # Keys of the pair, or of all pairs of the picture, as `trainer.store.reviews.pair_keys` makes them.
    keys: Annotated[tuple[str, ...], Meta(min_length=1)]
    path: str
    caption: str  # Of the (first) pair.
    label: str = ""  # Its class; empty without one.
    margins: tuple[float, ...] = ()  # Of a mispair, one for each run, in deviations of that run's unmatched cosines.
    ranks: tuple[tuple[int, int], ...] = ()  # Of a mispair, one (caption rank, image rank) for each run.
    other_path: str = ""  # The picture that fits the caption better, or the near duplicate.
    other_caption: str = ""  # The caption that fits the picture better, or that of the near duplicate.
    other_split: str = ""  # Of the near duplicate.
    by: str = ""  # How a near duplicate was found: `hash`, `embedding` or both, with a comma.
    # 1 - cosine to the near duplicate, or an outlier's mean distance to its neighbors; NaN if unknown.
    distance: float = math.nan
    judge: int = 0  # Of a mispair, the run that judged it where that is not the report's own; else 0.


@dataclass(frozen=True)
class QualityReport:
    """What one or two runs find about the data that the first one was trained on."""

    dataset: str  # Name of the data set.
    created_at: float  # Unix seconds.
    runs: Annotated[tuple[Measured, ...], Meta(min_length=1, max_length=2)]  # One or two.
    pairs: dict[str, int]  # Split -> pairs compared.
    whole: dict[str, int]  # Split -> pairs it has; more where they were drawn at random.
    counts: dict[str, dict[str, int]]  # Kind -> split -> findings, also those beyond `MOST_FINDINGS`.
    findings: tuple[QualityFinding, ...]  # The worst first, within each kind.
    judgments: tuple[Judgment, ...] = ()  # Who judged which pairs, and what planted mispairs say of that.

    def of_kind(self, kind: str) -> list[QualityFinding]:
        """Return the findings of one kind, worst first."""
        return [finding for finding in self.findings if finding.kind == kind]

    def count(self, kind: str) -> int:
        """Return the number of findings of one kind in all splits."""
        return sum(self.counts.get(kind, {}).values())

    @property
    def blind(self) -> list[Judgment]:
        """The splits in which too few planted mispairs were found to say that there is none."""
        return [judgment for judgment in self.judgments if not judgment.can_tell]


def write_quality(run_folder: Path, report: QualityReport) -> Path:
    """Write the report to the first run's folder, replacing one of the same runs and steps."""
    folder = confined.make_in_run(run_folder, _FOLDER)
    file = folder / _name([(measured.run, measured.step) for measured in report.runs])
    write_text(file, json.dumps({"format": 1} | null_for_nan(dataclasses.asdict(report)), ensure_ascii=False) + "\n")
    return file


def read_quality(run_folder: Path, runs: list[tuple[int, int | None]], *, others: bool = False) -> QualityReport | None:
    """Return the newest report of exactly these runs at these steps (None: any); None if there is none.

    With `others` further runs may have had a part in it.
    """
    reports = [report for report in read_reports(run_folder) if _is_of(report, runs, others=others)]
    return max(reports, key=lambda report: (report.runs[0].step, report.created_at), default=None)


def read_reports(run_folder: Path) -> list[QualityReport]:
    """Return the reports in a run's folder; unreadable ones are skipped, since they can be made again."""
    reports = []
    for file in untrusted_files.newest(run_folder / _FOLDER, "*.json", _MOST):
        with contextlib.suppress(OSError, ValueError):
            report = convert(nan_for_null(untrusted_files.read_record(file, _LARGEST)), QualityReport)
            _check(report)
            reports.append(dataclasses.replace(report, counts={kind: report.counts.get(kind, {}) for kind in KINDS}))
    return reports


def _is_of(report: QualityReport, runs: list[tuple[int, int | None]], *, others: bool) -> bool:
    measured = [part for part in report.runs if not others or part.run in dict(runs)]
    if [part.run for part in measured] != [run for run, _ in runs]:
        return False
    return all(step in (None, part.step) for part, (_, step) in zip(measured, runs, strict=True))


def _name(runs: list[tuple[int, int]]) -> str:
    return "-".join(f"run_{run:04d}_step_{step:06d}" for run, step in runs) + ".json"


def _check(report: QualityReport) -> None:
    """Check that a stored report agrees with itself.

    Raises:
        ValueError: It does not.
    """
    runs = len(report.runs)
    if any(len(values) not in (0, runs) for finding in report.findings for values in (finding.margins, finding.ranks)):
        raise ValueError("a finding is not of these runs")
    for judgment in report.judgments:
        if not (0 <= judgment.detected <= judgment.planted and 0 <= judgment.suspected <= judgment.pairs):
            raise ValueError("a judgment counts more than there is")
