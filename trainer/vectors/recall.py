"""How often the right answer of opened vectors comes first: of a sample of questions at once, of all when asked.

A sample is of questions, each of which is compared with all answers: the share among them is unbiased. Fewer answers
would be another question.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Int

from trainer.analysis.distinct import DistinctItems, Matching
from trainer.analysis.geometry import modality_gap
from trainer.analysis.intervals import wilson
from trainer.analysis.progress import Progress, part_of
from trainer.analysis.quantities import time_left
from trainer.analysis.retrieval import both_question_ranks, ranks, retrieval_numbers
from trainer.analysis.sampling import at_most
from trainer.analysis.similarity import matched_cosines
from trainer.analysis.tiled_ranks import AheadCounts
from trainer.analysis.units import Units
from trainer.metrics import RECALL_HEADING
from trainer.store import RunLog, Snapshot
from trainer.store.question import Question, retrieval_question
from trainer.vectors.kept_counts import KeptCounts

EVERY_S: Final = 1.0
"""Between two reports of how far it is."""
FEWEST: Final = 100
"""Questions that are drawn however many answers there are."""
MAIN: Final = "image_to_text_R@1"


@dataclass(frozen=True)
class MeasuredRecall:
    """The recalls of a run's snapshot, and of how many questions they are."""

    numbers: dict[str, float]
    question: Question

    @property
    def main(self) -> float:
        """The share of images whose text comes first."""
        return self.numbers[MAIN]

    def words(self, run: int) -> str:
        """Return the sample of questions and its interval in words; empty where every question was asked."""
        if not self.question.drawn:
            return ""
        low, high = wilson(self.main, self.question.n)
        return (
            f"{RECALL_HEADING} of images is {self.main:.3f} (95 %: {low:.3f} to {high:.3f}), from "
            f"{self.question.n:,} questions drawn at random, each among all {self.question.gallery:,} texts. "
            f"`trainer evaluate {run}` asks all."
        )


def measure_step(log: RunLog, snapshot: Snapshot, units: Units, *, most: float = math.inf) -> MeasuredRecall:
    """Store recalls in both directions, the matched cosine and the gap, with their question.

    Where all questions of a direction would take more than `most` cosines, some of them are drawn.
    """
    measured = measured_recall(snapshot, units, reporting(log), most, log.folder.parents[1])
    by_task = {
        "retrieval": measured.question,
        "similarity": Question("similarity", snapshot.n, protocol="matched pairs"),
    }
    log.facts(heldout_questions={snapshot.split: measured.question.noted_counts})
    log.evaluation(snapshot.step, snapshot.dataset, snapshot.split, measured.numbers, by_task)
    log.scalars(snapshot.step, {f"val/{name}": value for name, value in measured.numbers.items()})
    return measured


def measured_recall(
    snapshot: Snapshot, units: Units, progress: Progress, most: float, workspace_folder: Path
) -> MeasuredRecall:
    """Return what `measure_step` stores; counts of an exact ranking are kept in the workspace meanwhile."""
    image, text, matching = snapshot.image, snapshot.text, units.matching
    assert image is not None
    assert text is not None
    numbers = {
        "matched_cosine": float(matched_cosines(image, text).mean()),
        "modality_gap": modality_gap(image, text, matching)[1],
    }
    texts, images = len(matching.texts), len(matching.images)
    drawn = {name: drawn_questions(answers, most) for name, answers in vars(matching).items()}
    if len(drawn["texts"]) == images and len(drawn["images"]) == texts:
        both = _all_ranks(snapshot, matching, progress, workspace_folder)
        drawn_count = 0
    else:
        both = (
            ranks(image, text, matching.texts, rows=drawn["texts"], progress=part_of(progress, 0, 2)),
            ranks(text, image, matching.images, rows=drawn["images"], progress=part_of(progress, 1, 2)),
        )
        drawn_count = min(map(len, both))
    for direction, placed in zip(("image_to_text", "text_to_image"), both, strict=True):
        numbers |= retrieval_numbers(direction, placed)
    return MeasuredRecall(numbers, retrieval_question(snapshot.n, texts=texts, images=images, drawn=drawn_count))


def _all_ranks(
    snapshot: Snapshot, matching: Matching, progress: Progress, workspace_folder: Path
) -> tuple[Int[np.ndarray, " i"], Int[np.ndarray, " t"]]:
    """Return the ranks of all questions; counts are kept in a file, and progress estimates the recall from them."""
    counts_file = KeptCounts(workspace_folder, snapshot, len(matching.images), len(matching.texts))
    so_far = ""

    def see(counts: AheadCounts, placed: Int[np.ndarray, " s"]) -> None:
        nonlocal so_far
        counts_file.see(counts)
        if len(placed):
            share = float((placed == 1).mean())
            low, high = wilson(share, len(placed))
            so_far = f", {RECALL_HEADING} of images so far {share:.3f} (95 %: {low:.3f} to {high:.3f}, "
            so_far += f"{len(placed):,} of {len(matching.images):,} questions)"

    assert snapshot.image is not None
    assert snapshot.text is not None
    both = both_question_ranks(
        *(snapshot.image, snapshot.text, matching),
        progress=lambda share, note: progress(share, f"{note}{so_far}"),
        counts=counts_file.read(),
        seen=see,
    )
    counts_file.remove()
    return both


def drawn_questions(answers: DistinctItems, most: float) -> Int[np.ndarray, " q"]:
    """Return the rows of all distinct questions, or of as many, drawn at random, as meet `most` answers."""
    rows = answers.asking()
    return rows if most == math.inf else at_most(rows, max(FEWEST, int(most // max(len(answers), 1))))


def reporting(log: RunLog) -> Progress:
    """Return what reports the share done, a note and the time left to a run, at most once a second.

    It raises KeyboardInterrupt once the run is asked to stop.
    """
    began = reported_at = time.monotonic()
    done_before: float | None = None

    def report(share: float, note: str) -> None:
        nonlocal reported_at, done_before
        now = time.monotonic()
        done_before = share if done_before is None else done_before
        if now - reported_at >= EVERY_S:
            reported_at = now
            if log.asked().startswith("stop"):
                raise KeyboardInterrupt
            done = share - done_before
            left = f", {time_left((now - began) * (1 - share) / done)}" if done > 0 else ""
            log.report(f"{note}: {100 * share:.0f} %{left}")

    return report
