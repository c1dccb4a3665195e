"""Find suspected mispairs, near-duplicates, leaks and outliers in a run's data, by embeddings and by pixels."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.image_neighbors import ImageNeighbors, image_neighbors, near_duplicates, outliers
from trainer.analysis.mispair_evidence import mispair_evidence
from trainer.analysis.planted_mispairs import training_advantage
from trainer.analysis.progress import Progress, between, silent
from trainer.analysis.sampling import at_most
from trainer.analysis.units import Units, units_of_numbers
from trainer.data import DataError, DataSplits, Pairs, load
from trainer.data.duplicates import Group, groups_of
from trainer.evaluation.heldout import Embedded, HeldOut
from trainer.evaluation.mispair_judges import (
    LEAST_JUDGED,
    MispairJudge,
    Run,
    chosen_judges,
    embedded_by,
    judge,
    not_learned,
    other_runs,
)
from trainer.inference.model_cache import ModelCache
from trainer.inference.open_model import OpenModel
from trainer.store import RunRow
from trainer.store.quality_reports import (
    KINDS,
    MOST_FINDINGS,
    Judgment,
    Measured,
    QualityFinding,
    QualityReport,
    pairs_words,
    write_quality,
)
from trainer.store.reviews import pair_keys

MOST_PAIRS: Final = 20_000
"""Pairs of a split that are compared; of more, so many are drawn at random (the same ones each time)."""


@dataclass(frozen=True)
class _Part:
    """Compared pairs of one split, and each run's embeddings of them."""

    pairs: Pairs
    whole: int
    rows: Int[np.ndarray, " n"]
    keys: list[str]
    heldout: HeldOut
    embedded: list[Embedded]


def check_data(
    models: ModelCache,
    runs: Sequence[int | str],
    steps: Sequence[int | None] = (),
    *,
    most: int = MOST_PAIRS,
    progress: Progress = silent,
) -> QualityReport:
    """Return the report on the data of the first run, and store it in that run's folder.

    A run that learned a mispair by heart does not see it. So some mispairs are planted in memory and searched for, and
    pairs are judged by the run that detects the most of those: the one named, or one that did not learn the pairs.

    Args:
        runs: One; or two: then a pair is suspected to be mispaired if each of them says so, and no other is asked.
        steps: Of their checkpoints; None is the newest.
        most: Pairs of a split that are compared.

    Raises:
        AnswerError: A run is not known or has no such checkpoint.
        DataError: The data cannot be read any more, or a run does not embed images and captions.
    """
    workspace = models.workspace
    # First, so that nothing is computed that cannot be kept.
    workspace.check_mine()
    rows = [workspace.runs.get(run) for run in runs]
    chosen = list(steps) or [None] * len(rows)
    progress(
        0.0, f"opening the {'models' if len(rows) > 1 else 'model'} of {' and '.join(row.short_name for row in rows)}"
    )
    opened = [models.get(row.id, step).opened for row, step in zip(rows, chosen, strict=True)]
    if any(model.model.visual is None or model.model.text is None for model in opened):
        raise DataError("Both runs have to embed images and captions. Choose a run of CLIP, CLOOB or another such one.")
    first = opened[0]
    if any((o.image_size, o.preprocessing) != (first.image_size, first.preprocessing) for o in opened):
        raise DataError("The two runs read images at different sizes. Choose runs with the same image size.")
    splits = load(
        workspace.runs.config_of(rows[0].id).data,
        image_size=first.image_size,
        preprocessing=first.preprocessing,
        workspace_folder=workspace.folder,
        progress=between(progress, 0.0, 0.3),
    )
    parts: dict[str, _Part] = {}
    for split, pairs in {"train": splits.train, **splits.heldout}.items():
        keys = pair_keys(pairs.paths, pairs.captions, workspace.folder)
        drawn = at_most(len(pairs), most)
        some = pairs if len(drawn) == len(pairs) else pairs.part(drawn, split=split)
        heldouts = [
            HeldOut(some, prefix=split, suite=None, tokenizer=o.tokenizer, context_length=o.context_length)
            for o in opened
        ]
        embedded: list[Embedded] = []
        for row, heldout, model in zip(rows, heldouts, opened, strict=True):
            share = 0.3 + 0.3 * (len(parts) + len(embedded) / len(rows)) / (1 + len(splits.heldout))
            alive = partial(progress, share, f"embedding {pairs_words(len(some), split)} with {row.short_name}")
            embedded.append(heldout.embed(model.model, model.device, alive=alive))
        parts[split] = _Part(some, len(pairs), drawn, [keys[row] for row in drawn], heldouts[0], embedded)
    named = [(row.id, row.short_name, model.step) for row, model in zip(rows, opened, strict=True)]
    judges = {split: [first] for split, first in _own_judges(models, named, parts, between(progress, 0.6, 0.7)).items()}
    if len(rows) == 1:
        _ask_others(models, rows[0], opened[0], parts, judges, between(progress, 0.7, 0.8))
    report = _report(named, splits, parts, judges, between(progress, 0.8, 1.0))
    write_quality(rows[0].folder, report)
    return report


def _own_judges(
    models: ModelCache, named: list[Run], parts: dict[str, _Part], progress: Progress
) -> dict[str, MispairJudge]:
    """Return what the named runs say of each split; held-out ones first, which tell what training gives a pair."""
    learns = [models.workspace.runs.config_of(run).optimizer.epochs > 0 for run, _, _ in named]
    judges: dict[str, MispairJudge] = {}
    for number, (split, part) in enumerate(sorted(parts.items(), key=lambda named_part: named_part[0] == "train")):
        trained = split == "train" and any(learns)
        embedded = [_both(embedding) for embedding in part.embedded]
        advantages = [0.0] * len(named)
        if trained:
            matching = part.heldout.matching
            for at, learned in enumerate(learns):
                if learned:
                    evidence = mispair_evidence(*embedded[at], matching)
                    advantages[at] = training_advantage(evidence, [heldout.evidence[at] for heldout in judges.values()])
        of_split = between(progress, number / len(parts), (number + 1) / len(parts))
        judged = judge(named, embedded, _units(part), advantages=advantages, trained=trained, progress=of_split)
        if trained:
            # A learned mispair hides at least as well as one that was never seen.
            weakest = min([judged, *judges.values()], key=lambda other: other.share)
            judged = replace(judged, planted=weakest.planted)
        judges[split] = judged
    return {split: judges[split] for split in parts}


def _ask_others(
    models: ModelCache,
    run_row: RunRow,
    opened: OpenModel,
    parts: dict[str, _Part],
    judges: dict[str, list[MispairJudge]],
    progress: Progress,
) -> None:
    """Add what other runs say of pairs that the own run learned, and they did not."""
    for row, other in other_runs(models, run_row):
        if (other.image_size, other.preprocessing) != (opened.image_size, opened.preprocessing):
            continue
        for split, part in parts.items():
            if not judges[split][0].trained:
                continue
            rows = np.flatnonzero(not_learned(models, row, part.pairs, other))
            if len(rows) >= LEAST_JUDGED:
                some = pairs_words(len(part.pairs), split)
                note = f"embedding {some} with {row.short_name}, which did not learn them"
                embedded = embedded_by(part.pairs, other, progress, note)
                runs = [(row.id, row.short_name, other.step)]
                judged = judge(
                    runs, [embedded], _units(part), rows=rows, advantages=[0.0], trained=False, progress=progress
                )
                judges[split].append(judged)


def _report(
    named: list[Run],
    splits: DataSplits,
    parts: dict[str, _Part],
    judges: dict[str, list[MispairJudge]],
    progress: Progress,
) -> QualityReport:
    findings: list[QualityFinding] = []
    judgments: list[Judgment] = []
    for split, part in parts.items():
        suspected, made = _mispairs(split, part, judges[split])
        findings += suspected
        judgments += made
    progress(0.0, "perceptual hashes")
    same, far = _pictures(splits, parts, between(progress, 0.4, 1.0))
    findings += [*same, *far]
    counts: dict[str, dict[str, int]] = {kind: {} for kind in KINDS}
    for finding in findings:
        counts[finding.kind][finding.split] = counts[finding.kind].get(finding.split, 0) + 1
    listed = [finding for kind in KINDS for finding in [f for f in findings if f.kind == kind][:MOST_FINDINGS]]
    measured = tuple(
        Measured(
            *run,
            {split: judged.evidence[at].mean for split, (judged, *_) in judges.items()},
            {split: judged.evidence[at].deviation for split, (judged, *_) in judges.items()},
            {split: judged.limits[at] for split, (judged, *_) in judges.items()},
        )
        for at, run in enumerate(named)
    )
    compared, totals = {s: len(p.pairs) for s, p in parts.items()}, {s: p.whole for s, p in parts.items()}
    name = splits.train.name
    return QualityReport(name, time.time(), measured, compared, totals, counts, tuple(listed), tuple(judgments))


def _mispairs(split: str, part: _Part, judges: list[MispairJudge]) -> tuple[list[QualityFinding], list[Judgment]]:
    """Return the suspected pairs of a split, each by the run that detects the most planted ones, and who judged."""
    chosen, pairs = chosen_judges(judges, len(part.pairs)), part.pairs
    ranked, judgments = [], []
    for number, judged in enumerate(judges):
        assigned = np.flatnonzero(chosen == number)
        if not len(assigned):
            continue
        judgments.append(judged.judgment(split, assigned))
        evidence, first = judged.evidence, judged.evidence[0]
        # The least suspicious run decides the order: what both find far too far comes first.
        worst = np.max([e.margin for e in evidence], axis=0)
        for at in np.flatnonzero(judged.wrong & np.isin(judged.rows, assigned)).tolist():
            caption, image = int(first.best_caption[at]), int(first.best_image[at])
            finding = replace(
                _finding("mispair", part, split, int(judged.rows[at])),
                margins=tuple(float(e.margin[at]) for e in evidence),
                ranks=tuple((int(e.caption_rank[at]), int(e.image_rank[at])) for e in evidence),
                other_path=pairs.paths[judged.rows[image]] if image >= 0 else "",
                other_caption=pairs.captions[judged.rows[caption]] if caption >= 0 else "",
                judge=judged.runs[0][0] if number else 0,
            )
            ranked.append((float(worst[at]), finding))
    ranked.sort(key=lambda scored: scored[0])
    return [finding for _, finding in ranked], judgments


def _units(part: _Part) -> Units:
    matching = part.heldout.matching
    return units_of_numbers(matching.images.place, matching.texts.place)


def _pictures(
    splits: DataSplits, parts: dict[str, _Part], progress: Progress
) -> tuple[list[QualityFinding], list[QualityFinding]]:
    """Return near duplicates and leaks, and outliers, among the distinct picture files of all compared pairs."""
    row_of: dict[str, tuple[str, int]] = {}
    for split, part in parts.items():
        for row, path in enumerate(part.pairs.paths):
            row_of.setdefault(path, (split, row))
    paths = list(row_of)
    if len(paths) < 2:
        return [], []
    image = np.stack([_both(parts[split].embedded[0])[0][row] for split, row in row_of.values()])
    neighbors = image_neighbors(image, progress=progress)
    near, _ = near_duplicates(neighbors)
    links: dict[tuple[str, str], set[str]] = {}
    for row in np.flatnonzero(near).tolist():
        links.setdefault(_ordered(paths[row], paths[int(neighbors.nearest[row])], row_of), set()).add("embedding")
    for first, second in _hashed(groups_of(_compared(splits, parts))):
        links.setdefault(_ordered(first, second, row_of), set()).add("hash")
    number = {path: row for row, path in enumerate(paths)}
    same = []
    for (gone, stays), by in links.items():
        cosine = float(np.dot(image[number[gone]].astype(np.float64), image[number[stays]].astype(np.float64)))
        split, row = row_of[gone]
        other_split, other_row = row_of[stays]
        kind = "leak" if (split == "train") != (other_split == "train") else "duplicate"
        same.append(
            replace(
                _finding(kind, parts[split], split, row, picture=True),
                other_path=stays,
                other_caption=parts[other_split].pairs.captions[other_row],
                other_split=other_split,
                by=", ".join(sorted(by)),
                distance=1.0 - cosine,
            )
        )
    same.sort(key=lambda link: (-len(link.by), link.distance))
    return same, _outliers(parts, row_of, neighbors)


def _outliers(
    parts: dict[str, _Part], row_of: dict[str, tuple[str, int]], neighbors: ImageNeighbors
) -> list[QualityFinding]:
    far, _ = outliers(neighbors)
    at = list(row_of.values())
    rows = np.flatnonzero(far)[np.argsort(-neighbors.mean[far], kind="stable")].tolist()
    return [
        replace(
            _finding("outlier", parts[at[row][0]], *at[row], picture=True),
            distance=float(neighbors.mean[row]),
            other_path=list(row_of)[int(neighbors.nearest[row])],
        )
        for row in rows
    ]


def _finding(kind: str, part: _Part, split: str, row: int, *, picture: bool = False) -> QualityFinding:
    """Return a finding about a pair, or about all pairs of its picture."""
    pairs = part.pairs
    path = pairs.paths[row]
    rows = [at for at, other in enumerate(pairs.paths) if other == path] if picture else [row]
    keys = tuple(part.keys[at] for at in rows)
    return QualityFinding(kind, split, int(part.rows[row]), keys, path, pairs.captions[row], pairs.labels[row])


def _ordered(first: str, second: str, row_of: dict[str, tuple[str, int]]) -> tuple[str, str]:
    """Return the picture that a cleaned list omits, and the one that it keeps: held-out pictures, else the earlier."""
    ordered = sorted((first, second), key=lambda path: (row_of[path][0] == "train", row_of[path]))
    return ordered[1], ordered[0]


def _hashed(groups: Sequence[Group]) -> list[tuple[str, str]]:
    """Return the first picture of each group with each other one; a held-out one comes first."""
    links = []
    for group in groups:
        first, *others = [*group.heldout, *group.train]
        links += [(first, other) for other in others]
    return links


def _compared(splits: DataSplits, parts: dict[str, _Part]) -> DataSplits:
    return replace(
        splits,
        train=parts["train"].pairs,
        heldout={split: part.pairs for split, part in parts.items() if split != "train"},
    )


def _both(embedded: Embedded) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d"]]:
    assert embedded.image is not None
    assert embedded.text is not None
    return embedded.image, embedded.text
