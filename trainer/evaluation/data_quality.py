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
from trainer.analysis.mispair_evidence import MispairEvidence, mispair_evidence, suspected
from trainer.analysis.progress import Progress, between, silent
from trainer.analysis.sampling import at_most
from trainer.data import DataError, DataSplits, Pairs, load
from trainer.data.duplicates import Group, groups_of
from trainer.evaluation.heldout import Embedded, HeldOut
from trainer.inference.model_cache import OpenModels
from trainer.store import RunRow
from trainer.store.quality_files import KINDS, MOST_FINDINGS, Measured, QualityFinding, QualityReport, write_quality
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
    models: OpenModels,
    runs: Sequence[int | str],
    steps: Sequence[int | None] = (),
    *,
    most: int = MOST_PAIRS,
    progress: Progress = silent,
) -> QualityReport:
    """Return the report on the data of the first run, and store it in that run's folder.

    Args:
        models: Of the workspace.
        runs: One or two; a pair is suspected to be mispaired if each of them says so.
        steps: Of their checkpoints; None is the newest.
        most: Pairs of a split that are compared.
        progress: Told the share done; may raise to cancel.

    Raises:
        AnswerError: A run is not known or has no such checkpoint.
        DataError: The data cannot be read any more, or a run does not embed images and captions.
    """
    workspace = models.workspace
    # First, so that nothing is computed that cannot be kept.
    workspace.check_mine()
    rows = [workspace.runs.get(run) for run in runs]
    chosen = list(steps) or [None] * len(rows)
    progress(0.0, f"opening the {'models' if len(rows) > 1 else 'model'} of {' and '.join(row.name for row in rows)}")
    opened = [models.get(row.id, step).opened for row, step in zip(rows, chosen, strict=True)]
    if any(one.model.visual is None or one.model.text is None for one in opened):
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
        for row, heldout, one in zip(rows, heldouts, opened, strict=True):
            share = 0.3 + 0.3 * (len(parts) + len(embedded) / len(rows)) / (1 + len(splits.heldout))
            alive = partial(progress, share, f"embedding {len(some):,} pairs of {split} with {row.name}")
            embedded.append(heldout.embed(one.model, one.device, alive=alive))
        parts[split] = _Part(some, len(pairs), drawn, [keys[row] for row in drawn], heldouts[0], embedded)
    report = _report(rows, [o.step for o in opened], splits, parts, between(progress, 0.6, 1.0))
    write_quality(rows[0].folder, report)
    return report


def _report(
    rows: list[RunRow], steps: list[int], splits: DataSplits, parts: dict[str, _Part], progress: Progress
) -> QualityReport:
    evidence: dict[str, list[MispairEvidence]] = {}
    for place, (split, part) in enumerate(parts.items()):
        of_split = between(progress, 0.5 * place / len(parts), 0.5 * (place + 1) / len(parts))
        matching = part.heldout.matching
        evidence[split] = [mispair_evidence(*_both(e), matching, of_split) for e in part.embedded]
    limits: dict[str, list[float]] = {}
    findings: list[QualityFinding] = []
    for split, part in parts.items():
        found, limits[split] = _mispairs(split, part, evidence[split])
        findings += found
    progress(0.5, "perceptual hashes")
    same, far = _pictures(splits, parts, between(progress, 0.7, 1.0))
    findings += [*same, *far]
    counts: dict[str, dict[str, int]] = {kind: {} for kind in KINDS}
    for one in findings:
        counts[one.kind][one.split] = counts[one.kind].get(one.split, 0) + 1
    kept = [one for kind in KINDS for one in [f for f in findings if f.kind == kind][:MOST_FINDINGS]]
    measured = tuple(
        Measured(
            row.id,
            row.name,
            step,
            {split: found[at].mean for split, found in evidence.items()},
            {split: found[at].deviation for split, found in evidence.items()},
            {split: found[at] for split, found in limits.items()},
        )
        for at, (row, step) in enumerate(zip(rows, steps, strict=True))
    )
    compared, whole = {s: len(p.pairs) for s, p in parts.items()}, {s: p.whole for s, p in parts.items()}
    name = splits.train.name
    return QualityReport(name, time.time(), measured, compared, whole, counts, tuple(kept))


def _mispairs(split: str, part: _Part, evidence: list[MispairEvidence]) -> tuple[list[QualityFinding], list[float]]:
    judged = [suspected(e.margin, e.caption_rank, e.image_rank) for e in evidence]
    wrong = np.logical_and.reduce([one for one, _ in judged])
    # The least suspicious run decides the order: what both find far too far comes first.
    worst = np.max([e.margin for e in evidence], axis=0)
    first, pairs = evidence[0], part.pairs
    found = []
    for row in np.flatnonzero(wrong)[np.argsort(worst[wrong], kind="stable")].tolist():
        caption, image = int(first.best_caption[row]), int(first.best_image[row])
        found.append(
            replace(
                _finding("mispair", part, split, row),
                margins=tuple(float(e.margin[row]) for e in evidence),
                ranks=tuple((int(e.caption_rank[row]), int(e.image_rank[row])) for e in evidence),
                other_path=pairs.paths[image] if image >= 0 else "",
                other_caption=pairs.captions[caption] if caption >= 0 else "",
            )
        )
    return found, [limit for _, limit in judged]


def _pictures(
    splits: DataSplits, parts: dict[str, _Part], progress: Progress
) -> tuple[list[QualityFinding], list[QualityFinding]]:
    """Return near duplicates and leaks, and outliers, among the distinct picture files of all compared pairs."""
    places: dict[str, tuple[str, int]] = {}
    for split, part in parts.items():
        for row, path in enumerate(part.pairs.paths):
            places.setdefault(path, (split, row))
    paths = list(places)
    if len(paths) < 2:
        return [], []
    image = np.stack([_image(parts[split])[row] for split, row in places.values()])
    found = image_neighbors(image, progress=progress)
    near, _ = near_duplicates(found)
    links: dict[tuple[str, str], set[str]] = {}
    for row in np.flatnonzero(near).tolist():
        links.setdefault(_ordered(paths[row], paths[int(found.nearest[row])], places), set()).add("embedding")
    for one, other in _hashed(groups_of(_compared(splits, parts))):
        links.setdefault(_ordered(one, other, places), set()).add("hash")
    number = {path: row for row, path in enumerate(paths)}
    same = []
    for (gone, stays), by in links.items():
        cosine = float(np.dot(image[number[gone]].astype(np.float64), image[number[stays]].astype(np.float64)))
        split, row = places[gone]
        other_split, other_row = places[stays]
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
    same.sort(key=lambda one: (-len(one.by), one.distance))
    return same, _outliers(parts, places, found)


def _outliers(
    parts: dict[str, _Part], places: dict[str, tuple[str, int]], found: ImageNeighbors
) -> list[QualityFinding]:
    far, _ = outliers(found)
    at = list(places.values())
    rows = np.flatnonzero(far)[np.argsort(-found.mean[far], kind="stable")].tolist()
    return [
        replace(
            _finding("outlier", parts[at[row][0]], *at[row], picture=True),
            distance=float(found.mean[row]),
            other_path=list(places)[int(found.nearest[row])],
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


def _ordered(one: str, other: str, places: dict[str, tuple[str, int]]) -> tuple[str, str]:
    """Return the picture that a cleaned list omits, and the one that it keeps: held-out pictures, else the earlier."""
    kept = sorted((one, other), key=lambda path: (places[path][0] == "train", places[path]))
    return kept[1], kept[0]


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


def _image(part: _Part) -> Float[np.ndarray, "n d"]:
    return _both(part.embedded[0])[0]


def _both(embedded: Embedded) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d"]]:
    assert embedded.image is not None
    assert embedded.text is not None
    return embedded.image, embedded.text
