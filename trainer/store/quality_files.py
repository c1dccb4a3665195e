"""Reports on the quality of a data set in the folder of the run that they were made with."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trainer.analysis.intervals import wilson
from trainer.store.files import write_text
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files

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
    """One run's embeddings that a report was made with.

    Attributes:
        run: Number.
        name: Of the run.
        step: Of its checkpoint.
        mean: Split -> mean of the unmatched cosines.
        deviation: Split -> their standard deviation.
        limit: Split -> margin below which a pair is suspected.
    """

    run: int
    name: str
    step: int
    mean: dict[str, float]
    deviation: dict[str, float]
    limit: dict[str, float]


@dataclass(frozen=True)
class Judgment:
    """Who judged pairs of a split, and how many planted mispairs were detected among them in the same way.

    Attributes:
        split: Of the pairs.
        runs: Number, name and step of each run; with two, both had to suspect a pair.
        trained: Whether a run was trained on these pairs.
        pairs: How many were judged.
        suspected: How many of them are suspected.
        planted: How many captions were exchanged in memory; 0 where nothing was planted. Of learned pairs, among these
            or among held-out ones, where fewer are detected.
        detected: How many of those are suspected.
    """

    split: str
    runs: tuple[tuple[int, str, int], ...]
    trained: bool
    pairs: int
    suspected: int
    planted: int
    detected: int

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
        split = {"train": "training", "heldout": "held-out"}.get(self.split, self.split)
        by = " and ".join(f"{name} (step {step:,})" for _, name, step in self.runs)
        which = "which learned them" if self.trained else "which did not learn them"
        line = f"{self.suspected:,} of {self.pairs:,} {split} pairs suspected by {by}, {which}"
        if self.planted:
            low, high = (100 * share for share in self.interval)
            share = f"{100 * self.detected / self.planted:.0f} %, {low:.0f} to {high:.0f}"
            line += f"; of {self.planted:,} planted mispairs {self.detected:,} detected ({share})"
        else:
            line += f"; too few pairs{' are held out' * self.trained} to plant mispairs"
        each = "these runs" if len(self.runs) > 1 else "this run"
        return line if self.can_tell else f"{line}: {each} cannot tell which pairs are mispaired"


@dataclass(frozen=True)
class QualityFinding:
    """A pair, or a picture, that may be wrong.

    Attributes:
        kind: One of `KINDS`.
        split: `train`, or a held-out one.
        row: Of the pair in its split.
        keys: Keys of the pair, or of all pairs of the picture, as `trainer.store.reviews.pair_keys` makes them.
        path: Of the picture.
        caption: Of the (first) pair.
        label: Its class; empty without one.
        margins: Of a mispair, one for each run, in deviations of that run's unmatched cosines.
        ranks: Of a mispair, one (caption rank, image rank) for each run.
        other_path: The picture that fits the caption better, or the near duplicate.
        other_caption: The caption that fits the picture better, or that of the near duplicate.
        other_split: Of the near duplicate.
        by: How a near duplicate was found: `hash`, `embedding` or both, with a comma.
        distance: 1 - cosine to the near duplicate, or an outlier's mean distance to its neighbors; NaN if unknown.
        judge: Of a mispair, the run that judged it where that is not the report's own; else 0.
    """

    kind: str
    split: str
    row: int
    keys: tuple[str, ...]
    path: str
    caption: str
    label: str = ""
    margins: tuple[float, ...] = ()
    ranks: tuple[tuple[int, int], ...] = ()
    other_path: str = ""
    other_caption: str = ""
    other_split: str = ""
    by: str = ""
    distance: float = math.nan
    judge: int = 0


@dataclass(frozen=True)
class QualityReport:
    """What one or two runs find about the data that the first one was trained on.

    Attributes:
        dataset: Name of the data set.
        created_at: Unix seconds.
        runs: One or two.
        pairs: Split -> pairs compared.
        whole: Split -> pairs it has; more where they were drawn at random.
        counts: Kind -> split -> findings, also those beyond `MOST_FINDINGS`.
        findings: The worst first, within each kind.
        judgments: Who judged which pairs, and what planted mispairs say of that.
    """

    dataset: str
    created_at: float
    runs: tuple[Measured, ...]
    pairs: dict[str, int]
    whole: dict[str, int]
    counts: dict[str, dict[str, int]]
    findings: tuple[QualityFinding, ...]
    judgments: tuple[Judgment, ...] = ()

    def of_kind(self, kind: str) -> list[QualityFinding]:
        """Return the findings of one kind, worst first."""
        return [one for one in self.findings if one.kind == kind]

    def count(self, kind: str) -> int:
        """Return the number of findings of one kind in all splits."""
        return sum(self.counts.get(kind, {}).values())


def write_quality(run_folder: Path, report: QualityReport) -> Path:
    """Write the report to the first run's folder, replacing one of the same runs and steps."""
    folder = confined.make_in_run(run_folder, _FOLDER)
    file = folder / _name([(one.run, one.step) for one in report.runs])
    write_text(file, json.dumps({"format": 1} | _plain(dataclasses.asdict(report)), ensure_ascii=False) + "\n")
    return file


def read_quality(run_folder: Path, runs: list[tuple[int, int | None]]) -> QualityReport | None:
    """Return the newest report of exactly these runs at these steps (None: any); None if there is none."""
    found = []
    for report in read_reports(run_folder):
        made = [(one.run, one.step) for one in report.runs]
        if len(made) == len(runs) and all(
            a == b and wanted in (None, step) for (a, step), (b, wanted) in zip(made, runs, strict=True)
        ):
            found.append(report)
    return max(found, key=lambda one: (one.runs[0].step, one.created_at), default=None)


def read_reports(run_folder: Path) -> list[QualityReport]:
    """Return the reports in a run's folder; unreadable ones are skipped, since they can be made again."""
    found = []
    for file in untrusted_files.newest(run_folder / _FOLDER, "*.json", _MOST):
        try:
            found.append(_report(untrusted_files.read_record(file, _LARGEST)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
            continue
    return found


def _name(runs: list[tuple[int, int]]) -> str:
    return "-".join(f"run_{run:04d}_step_{step:06d}" for run, step in runs) + ".json"


def _plain(value: Any) -> Any:
    """Return the value with None in place of what JSON has no number for."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _report(plain: Any) -> QualityReport:
    runs = tuple(
        Measured(
            int(one["run"]),
            str(one["name"]),
            int(one["step"]),
            *(_numbers(one[name]) for name in ("mean", "deviation", "limit")),
        )
        for one in plain["runs"]
    )
    if not 1 <= len(runs) <= 2:
        raise ValueError("it is about one or two runs")
    findings = tuple(_finding(one, len(runs)) for one in plain["findings"][: len(KINDS) * MOST_FINDINGS])
    counts = {kind: {str(s): int(n) for s, n in plain["counts"].get(kind, {}).items()} for kind in KINDS}
    pairs, whole = ({str(s): int(n) for s, n in plain[name].items()} for name in ("pairs", "whole"))
    judgments = tuple(_judgment(one) for one in plain.get("judgments", [])[:_MOST])
    name, created_at = str(plain["dataset"]), float(plain["created_at"])
    return QualityReport(name, created_at, runs, pairs, whole, counts, findings, judgments)


def _judgment(plain: Any) -> Judgment:
    runs = tuple((int(number), str(name), int(step)) for number, name, step in plain["runs"])
    pairs, suspected, planted, detected = (int(plain[name]) for name in ("pairs", "suspected", "planted", "detected"))
    if not (0 <= detected <= planted and 0 <= suspected <= pairs):
        raise ValueError("a judgment counts more than there is")
    return Judgment(str(plain["split"]), runs, bool(plain["trained"]), pairs, suspected, planted, detected)


def _finding(plain: Any, runs: int) -> QualityFinding:
    kind, margins = str(plain["kind"]), tuple(_number(one) for one in plain["margins"])
    ranks = tuple((int(a), int(b)) for a, b in plain["ranks"])
    keys = tuple(str(one) for one in plain["keys"])
    if kind not in KINDS or not keys or any(len(one) not in (0, runs) for one in (margins, ranks)):
        raise ValueError("a finding is of no kind, of no pair, or not of these runs")
    words = ("path", "caption", "label", "other_path", "other_caption", "other_split", "by")
    texts = {name: str(plain[name]) for name in words}
    return QualityFinding(
        kind,
        str(plain["split"]),
        int(plain["row"]),
        keys,
        margins=margins,
        ranks=ranks,
        distance=_number(plain["distance"]),
        judge=int(plain.get("judge", 0)),
        **texts,
    )


def _numbers(plain: Any) -> dict[str, float]:
    return {str(name): _number(value) for name, value in plain.items()}


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
