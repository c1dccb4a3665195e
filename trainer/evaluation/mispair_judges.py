"""Runs that judge which pairs of a split are mispaired, and how well: those that did not learn the pairs, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from trainer.analysis.mispair_evidence import MispairEvidence, mispair_evidence, suspected
from trainer.analysis.planted_mispairs import PlantedMispairs, planted_mispairs
from trainer.analysis.progress import Progress, between
from trainer.analysis.units import Units
from trainer.checkpoints import checkpoint
from trainer.data import DataError, Pairs
from trainer.data.content import pixel_digests
from trainer.data.prepared import digests_of
from trainer.errors import UserError
from trainer.evaluation.heldout import HeldOut
from trainer.evaluation.learned_pairs import learned_pairs, place_of
from trainer.inference.model_cache import ModelCache
from trainer.inference.open_model import OpenModel
from trainer.store import RunRow
from trainer.store.quality_reports import Judgment

MOST_OTHERS: Final = 3
"""Other runs that are asked, the newest."""
LEAST_JUDGED: Final = 100
"""Pairs that another run did not learn, from which it is asked: of fewer, ten planted ones say nothing."""

Run = tuple[int, str, int]
"""Number, name and step."""


@dataclass(frozen=True)
class MispairJudge:
    """What one run, or two together, say of some pairs of a split."""

    runs: tuple[Run, ...]
    rows: Int[np.ndarray, " k"]  # Of the pairs, ascending.
    trained: bool  # Whether the run learned these pairs.
    wrong: Bool[np.ndarray, " k"]
    evidence: tuple[MispairEvidence, ...]  # Of each run.
    limits: tuple[float, ...]  # Margin of each run below which a pair is suspected.
    planted: PlantedMispairs  # What planted mispairs say of it.

    @property
    def share(self) -> float:
        """The share of planted mispairs that it detects; -1 where nothing was planted."""
        return float(self.planted.detected.mean()) if len(self.planted.rows) else -1.0

    def judgment(self, split: str, rows: Int[np.ndarray, " j"]) -> Judgment:
        """Return what is stored of its judgment of some of its rows."""
        wrong = int(self.wrong[np.isin(self.rows, rows)].sum())
        planted, detected = len(self.planted.rows), int(self.planted.detected.sum())
        return Judgment(split, self.runs, self.trained, len(rows), wrong, planted, detected)


def judge(
    runs: Sequence[Run],
    embedded: Sequence[tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d"]]],
    units: Units,
    *,
    rows: Int[np.ndarray, " k"] | None = None,
    advantages: Sequence[float],
    trained: bool,
    progress: Progress,
) -> MispairJudge:
    """Return which pairs every one of the runs suspects, and which planted ones.

    Args:
        embedded: Unit images and texts of all pairs of the split, by each run.
        units: Of all pairs of the split.
        rows: The pairs to judge; None: all.
        advantages: What training gave these pairs, as `planted_mispairs` wants it, for each run.
        trained: Whether the run learned these pairs.
    """
    chosen = np.arange(len(units)) if rows is None else rows
    judged_units = units if rows is None else units.taken(rows)
    evidence, limits, planted = [], [], []
    wrong = np.ones(len(chosen), bool)
    for number, ((image, text), advantage) in enumerate(zip(embedded, advantages, strict=True)):
        low, middle, high = ((number + part / 2) / len(embedded) for part in range(3))
        image, text = image[chosen], text[chosen]
        measured = mispair_evidence(image, text, judged_units.matching, between(progress, low, middle))
        judged, limit = suspected(measured.margin, measured.caption_rank, measured.image_rank)
        more = between(progress, middle, high)
        planted.append(planted_mispairs(image, text, judged_units, advantage=advantage, progress=more))
        wrong &= judged
        evidence.append(measured)
        limits.append(limit)
    least = min(planted, key=lambda tried: len(tried.rows))
    detected = np.logical_and.reduce([tried.detected for tried in planted]) if len(least.rows) else least.detected
    both = PlantedMispairs(least.rows, detected)
    return MispairJudge(tuple(runs), chosen, trained, wrong, tuple(evidence), tuple(limits), both)


def chosen_judges(judges: Sequence[MispairJudge], n: int) -> Int[np.ndarray, " n"]:
    """Return for each of n pairs which judge detects the most planted mispairs, the later of equals.

    The first one judges all pairs: the run whose data these are.
    """
    best, share = np.zeros(n, np.int64), np.full(n, -np.inf)
    for number, judged in enumerate(judges):
        better = judged.rows[judged.share >= share[judged.rows]]
        best[better], share[better] = number, judged.share
    return best


def other_runs(models: ModelCache, run_row: RunRow) -> Iterator[tuple[RunRow, OpenModel]]:
    """Yield the newest other runs of images and texts that have a model, `MOST_OTHERS` at most."""
    runs = models.workspace.runs
    count = 0
    for row in reversed(runs.all()):
        if count == MOST_OTHERS:
            return
        if row.id == run_row.id or not checkpoint.steps(row.folder / "checkpoints"):
            continue
        try:
            if not runs.config_of(row.id).objective.compares_pairs:
                continue
            opened = models.get(row.id).opened
        except UserError:
            continue
        if opened.model.visual is not None and opened.model.text is not None:
            count += 1
            yield row, opened


def not_learned(models: ModelCache, row: RunRow, pairs: Pairs, opened: OpenModel) -> Bool[np.ndarray, " n"]:
    """Return which pairs a run was surely not trained on: no training picture of it lies there or has their pixels.

    None of them where its training data are not known any more.
    """
    choice, folder = models.workspace.runs.config_of(row.id), models.workspace.folder
    if not choice.optimizer.epochs:
        return np.ones(len(pairs), bool)
    learned = learned_pairs(choice.data, folder, lambda _share, _note: None)
    if not len(learned):
        return np.zeros(len(pairs), bool)
    learned_locations = {place_of(str(source.path)) for source in learned.sources}
    away = np.array([place_of(path) not in learned_locations for path in pairs.paths], bool)
    prepared = digests_of(
        learned.sources, size=opened.image_size, cache=Path(folder) / "cache", preprocessing=opened.preprocessing
    )
    digests = {digest.hex()[:16] for digest in prepared}
    if digests and away.any():
        away &= np.array([content not in digests for content in pixel_digests(pairs.images)], bool)
    return away


def embedded_by(pairs: Pairs, opened: OpenModel, progress: Progress, note: str) -> tuple[np.ndarray, np.ndarray]:
    """Return unit images and texts of a split by another run.

    Raises:
        DataError: It embeds no images or no texts.
    """
    split = HeldOut(
        pairs, prefix=pairs.split, suite=None, tokenizer=opened.tokenizer, context_length=opened.context_length
    )
    embedded = split.embed(opened.model, opened.device, alive=lambda: progress(0.0, note))
    if embedded.image is None or embedded.text is None:
        raise DataError("It embeds no images and captions.")
    return embedded.image, embedded.text
