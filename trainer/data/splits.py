"""From a choice of data to pairs ready to train on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from trainer import config
from trainer.catalog import PromptSuite, prompt_suites
from trainer.data import scenes
from trainer.data.folder import folder_sources
from trainer.data.pairs import DataError, DataSplits, ImportReport, Pairs, Source
from trainer.data.prepared import prepare
from trainer.data.table import table_sources

Progress = Callable[[float, str], None]

_DRAWING: Final = 0.8
"""Share of the work on Scenes that is drawing; the rest is decoding."""


@dataclass(frozen=True)
class _Listing:
    """What a data set consists of, before any image is decoded."""

    name: str
    splits: dict[str, list[Source]]
    problems: list[tuple[str, str]]
    suite: PromptSuite | None


def load(data: config.Data, *, image_size: int, workspace_folder: Path, progress: Progress) -> DataSplits:
    """The pairs of a data set, decoded at `image_size`; from the workspace's caches where these are up to date.

    Args:
        data: Which pairs.
        image_size: Side of the images, in pixels.
        workspace_folder: Holds `data/` (Scenes) and `cache/` (decoded images).
        progress: Told the share done and a note for the person. May raise to stop; nothing half-written is kept.

    Raises:
        DataError: There is nothing to train on or to measure with, or the workspace cannot be written.
    """
    start = _DRAWING if isinstance(data, config.Scenes) else 0.0
    listing = _listing(data, workspace_folder, _within(progress, 0.0, start))
    _check_not_empty(listing.name, listing.splits, listing.problems)
    total, done = sum(map(len, listing.splits.values())), 0
    problems = list(listing.problems)
    splits: dict[str, Pairs] = {}
    for split, sources in listing.splits.items():
        low, high = (start + (1 - start) * part / total for part in (done, done + len(sources)))
        prepared = prepare(
            sources, size=image_size, cache=workspace_folder / "cache", progress=_within(progress, low, high)
        )
        problems += prepared.problems
        kept = [sources[row] for row in prepared.rows]
        splits[split] = _pairs(listing.name, split, kept, prepared.images, prepared.fingerprint)
        done += len(sources)
    _check_not_empty(listing.name, splits, problems)
    report = ImportReport(sum(map(len, splits.values())), problems)
    return DataSplits(splits.pop("train"), splits, listing.suite, report)


def scenes_folder(data: config.Scenes, workspace_folder: Path, progress: Progress) -> Path:
    """The folder of Scenes in a workspace, drawn if it is not there yet.

    Raises:
        DataError: As `scenes.write`.
    """
    return scenes.write(data, scenes.folder_of(data, workspace_folder), progress)


def _listing(data: config.Data, workspace_folder: Path, progress: Progress) -> _Listing:
    if isinstance(data, config.Scenes):
        folder = scenes_folder(data, workspace_folder, progress)
        splits = {split: scenes.sources(folder, split) for split in scenes.SPLITS}
        return _Listing("scenes", splits, [], prompt_suites().get("scenes"))
    found, problems = folder_sources(data.path) if isinstance(data, config.Folder) else table_sources(data)
    name = _name(Path(data.path))
    if isinstance(data, config.Folder) and data.heldout_path.strip():
        heldout, more = folder_sources(data.heldout_path)
        return _Listing(name, {"train": found, "heldout": heldout}, problems + more, None)
    splits = _shared_out(found, data.heldout_share)
    return _Listing(name, splits, problems, _suite_of_labels(name, splits["heldout"]))


def _shared_out(sources: Sequence[Source], share: float) -> dict[str, list[Source]]:
    """Train and held-out by a hash of each path, so that a pair stays where it is when others come or go."""
    place = [_place(source.relative) for source in sources]
    # In a small set the hash may leave a split empty; then the nearest pair changes sides.
    limit = max(share, min(place, default=0.0))
    if len(place) > 1:
        limit = min(limit, sorted(place)[-2])
    splits: dict[str, list[Source]] = {"train": [], "heldout": []}
    for source, at in zip(sources, place, strict=True):
        splits["heldout" if at <= limit else "train"].append(source)
    return splits


def _place(relative: str) -> float:
    """Evenly spread over 0..1, by the path alone."""
    digest = hashlib.blake2b(relative.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2.0**64


def _suite_of_labels(name: str, heldout: Sequence[Source]) -> PromptSuite | None:
    """A zero-shot task of the labels themselves, if the held-out pairs have at least two."""
    classes = tuple(sorted({source.label for source in heldout} - {""}))
    if len(classes) < 2:
        return None
    return PromptSuite(name, classes, ("{}", "a picture of a {}"), f"labels of {name}", "")


def _pairs(name: str, split: str, sources: Sequence[Source], images: np.ndarray, content: str) -> Pairs:
    digest = hashlib.blake2b(content.encode(), digest_size=16)
    for source in sources:
        digest.update(f"{source.caption}\0{source.label}\0".encode("utf-8", "replace"))
    columns = dict.fromkeys(column for source in sources for column in source.metadata)
    return Pairs(
        name=name,
        split=split,
        images=images,
        captions=[source.caption for source in sources],
        labels=[source.label for source in sources],
        paths=[str(source.path) for source in sources],
        metadata={column: [source.metadata.get(column, "") for source in sources] for column in columns},
        fingerprint=digest.hexdigest(),
    )


def _check_not_empty(name: str, splits: dict[str, list[Source]] | dict[str, Pairs], problems: list) -> None:
    for split, pairs in splits.items():
        if len(pairs) == 0:
            first = f" The first of {len(problems):,} problems: {problems[0][0]}: {problems[0][1]}" if problems else ""
            what = "to train on" if split == "train" else "to validate on"
            raise DataError(f"{name} has no pair {what}. Add pairs, or change what is held out.{first}")


def _name(path: Path) -> str:
    """Stem of a table, name of a folder; a name that a snapshot's folder may bear."""
    path = path.expanduser().absolute()
    return re.sub(r"[^\w.-]+", "-", path.stem if path.suffix and not path.is_dir() else path.name).strip("-.") or "data"


def _within(progress: Progress, low: float, high: float) -> Progress:
    """Reports a part of the work as that part of the whole."""
    return lambda share, note: progress(low + (high - low) * share, note)
