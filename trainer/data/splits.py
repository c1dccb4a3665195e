"""Load pairs for training from a data configuration."""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import numpy as np

from trainer import config
from trainer.analysis.progress import Progress, between
from trainer.analysis.sampling import at_most
from trainer.data import scenes
from trainer.data.dataset_index import DatasetIndex, listing
from trainer.data.kept_pairs import HEX, column, once, taken
from trainer.data.pairs import DataError, DataSplits, ImportLog, ImportReport, Pairs, Source
from trainer.data.prepared import Loading, digests_of, listed_images, prepare
from trainer.data.query_balance import balanced, read_queries
from trainer.data.streamed_images import StreamedImages
from trainer.images import Preprocessing
from trainer.prompt_suites import prompt_suites

MOST_HELD_OUT: Final = 10_000
"""Pictures that a share holds out at the most: what is measured again and again must not grow with the data."""

_DRAWING: Final = 0.8
"""Share of the work on Scenes that is drawing, on data sets by name that is downloading; the rest is decoding."""


@contextmanager
def _without_garbage_collector() -> Iterator[None]:
    """Pause the collector: a million pairs hold no cycle, and looking for one took a third of the time to list them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_without_garbage_collector()
def load(
    data: config.Data,
    *,
    image_size: int,
    workspace_folder: Path,
    progress: Progress,
    loading: Loading = "auto",
    preprocessing: Preprocessing | None = None,
    most_training: int | None = None,
    prepared_first: int | None = None,
) -> DataSplits:
    """Return the pairs of a data set, decoded at `image_size`, from the workspace's caches if up to date.

    Args:
        image_size: Side of the images, in pixels.
        workspace_folder: Holds `data/` (Scenes) and `cache/` (decoded images).
        progress: Told the share done and a note for the person. May raise to stop; nothing half-written is kept.
        loading: Whether the training images are kept decoded, as `prepare` says. Held-out ones, which are read over and
            over, are wherever they fit.
        preprocessing: Of the published model that the images are for; None for towers of our own.
        most_training: How many training pairs are prepared, drawn as `at_most` does; None for all.
        prepared_first: How many training images are prepared at the most; of more they are but listed. None: all are.

    Raises:
        DataError: There is nothing to train on or to measure with, or the workspace cannot be written.
    """
    start = _DRAWING if data.is_drawn or data.is_downloaded else 0.05
    listed = listing(data, workspace_folder, between(progress, 0.0, start))
    parts = parts_of(data, listed)
    _check_not_empty(listed.name, parts, listed.problems)
    drawn = len(parts["train"])
    if most_training is not None:
        parts = {**parts, "train": taken(parts["train"], at_most(drawn, most_training))}
    total, done = sum(map(len, parts.values())), 0
    problems, remarks = list(listed.problems), list(listed.log.remarks)
    splits: dict[str, Pairs] = {}
    digests: dict[str, list[bytes]] = {}
    prepared_as: dict[str, Any] = {
        "size": image_size,
        "cache": workspace_folder / "cache",
        "preprocessing": preprocessing,
    }
    for split, sources in parts.items():
        low, high = (start + (1 - start) * part / total for part in (done, done + len(sources)))
        lists = prepared_first is not None and split == "train" and len(sources) > prepared_first
        how: dict[str, Any] = {
            "progress": between(progress, low, high),
            "loading": loading if split == "train" else "auto",
        }
        how |= prepared_as
        prepared = listed_images(sources, **how) if lists else prepare(sources, **how)
        digests[split] = [] if lists else digests_of(sources, **prepared_as)
        problems += prepared.problems
        remarks += prepared.remarks
        usable = sources if lists else [sources[row] for row in prepared.rows]
        splits[split] = _pairs(listed.name, split, usable, prepared.images, prepared.fingerprint)
        done += len(sources)
    _check_not_empty(listed.name, splits, problems)
    report = ImportReport(
        sum(map(len, splits.values())),
        problems,
        remarks,
        listed.log.notes,
        split_sentence(data, listed),
        listed.log.other_parts,
    )
    training = splits.pop("train")
    count = drawn if drawn > len(parts["train"]) else len(training)
    return DataSplits(training, splits, listed.suite, report, count, digests)


def load_untrained(
    data: config.Data, *, image_size: int, workspace_folder: Path, progress: Progress
) -> Iterator[DataSplits]:
    """Yield held-out pairs as soon as a split is drawn, with training pairs whose pictures are black.

    They suffice to measure the untrained model, which no training picture has a part in: first by the split that
    curves are drawn of, then by all.

    Args:
        image_size: Side of the images, in pixels.
        workspace_folder: As in `load`.
        progress: As in `load`.

    Yields:
        Nothing where nothing is gained: the training pictures exist, or the data are not drawn.

    Raises:
        DataError: As `load`.
    """
    if not isinstance(data, config.Scenes):
        return
    folder = scenes.folder_of(data, workspace_folder)
    if scenes.is_drawn(folder, "train"):
        return
    planned = _share_of(scenes.planned_sources(data, folder, "train"), data.train_share)
    black = np.broadcast_to(np.uint8(0), (len(planned), image_size, image_size, 3))
    training = _pairs("scenes", "train", planned, black, "")
    held = [split for split in scenes.SPLITS if split != "train"]
    splits: dict[str, Pairs] = {}
    for number, split in enumerate(held):
        low, drawn, high = ((number + share) / len(held) for share in (0, _DRAWING, 1))
        scenes.write(data, folder, between(progress, low, drawn), splits=[split])
        sources = scenes.sources(folder, split)
        within = between(progress, drawn, high)
        prepared = prepare(sources, size=image_size, cache=workspace_folder / "cache", progress=within)
        usable = [sources[row] for row in prepared.rows]
        splits[split] = _pairs("scenes", split, usable, prepared.images, prepared.fingerprint)
        _check_not_empty("scenes", splits, [])
        report = ImportReport(sum(map(len, splits.values())), [])
        yield DataSplits(training, dict(splits), prompt_suites().get("scenes"), report, len(training))


def load_planned(
    data: config.Data,
    *,
    image_size: int,
    workspace_folder: Path,
    needed: Callable[[int], Iterable[int]],
    progress: Progress,
) -> tuple[Pairs, int] | None:
    """Return the training pairs with the pictures of some rows, while they are not drawn, and how many are held out.

    They suffice to measure what a run takes, which only the pictures of its first steps have a part in. Nothing is
    written.

    Args:
        image_size: Side of the images, in pixels.
        workspace_folder: As in `load`.
        needed: Number of training pairs -> rows whose pictures are drawn; the others are black.
        progress: As in `load`.

    Returns:
        None where nothing is gained: the training pictures exist, or the data are not drawn.
    """
    if not isinstance(data, config.Scenes):
        return None
    folder = scenes.folder_of(data, workspace_folder)
    if scenes.is_drawn(folder, "train"):
        return None
    progress(0.0, "Planning Scenes")
    planned = _share_of(scenes.planned_sources(data, folder, "train"), data.train_share)
    images, rows = np.zeros((len(planned), image_size, image_size, 3), np.uint8), [*needed(len(planned))]
    numbers = [int(Path(planned[row].relative).stem) for row in rows]
    for done, (row, picture) in enumerate(zip(rows, scenes.pictures(data, "train", numbers), strict=True), start=1):
        images[row] = np.asarray(picture.resize((image_size, image_size)))
        if done % 16 == 0 or done == len(rows):
            progress(done / len(rows), f"Drawing the pictures of the first steps: {done:,} of {len(rows):,}")
    return _pairs("scenes", "train", planned, images, ""), data.heldout_pairs * (len(scenes.SPLITS) - 1)


def parts_of(data: config.Data, listed: DatasetIndex) -> Mapping[str, Sequence[Source]]:
    """Return the training split `train` and held-out splits: the data set's own, or a share."""
    parts = listed.splits
    if len(parts) == 1:
        parts = _shared_out(parts["train"], getattr(data, "heldout_share", 0.0))
    training = _balanced(data, parts["train"], listed.log)
    return {**parts, "train": _share_of(training, getattr(data, "train_share", 1.0))}


def _balanced(data: config.Data, sources: Sequence[Source], log: ImportLog) -> Sequence[Source]:
    most, path = getattr(data, "most_per_query", 0), getattr(data, "queries", "").strip()
    if not most:
        return sources
    left = balanced(sources, most, read_queries(path) if path else None)
    if left.sentence not in log.notes:
        log.notes.append(left.sentence)
    return left.sources


def split_sentence(data: config.Data, listed: DatasetIndex) -> str:
    """Return how the split was chosen, as a sentence; empty for data that are drawn or named with their splits."""
    share = getattr(data, "heldout_share", None)
    if listed.log.split or len(listed.splits) > 1 or share is None:
        count = len(listed.log.other_parts)
        unit = data.unit
        units = f"{count:,} {unit}s of other parts are" if count > 1 else f"1 {unit} of another part is"
        return f"{listed.log.split} {units} not used." if count else listed.log.split
    why = "data.split_from is share" if getattr(data, "split_from", "") == "share" else "No split is stated"
    pairs = sum(map(len, listed.splits.values()))
    most = f", {MOST_HELD_OUT:,} at the most" if share * pairs > MOST_HELD_OUT else ""
    return f"{why}: about {100 * share:g} % of the pictures{most} are held out, chosen by their paths."


def _share_of(sources: Sequence[Source], share: float) -> Sequence[Source]:
    """Return a share of the pictures with all their captions, by a hash of their paths; smaller shares lie in it."""
    if share >= 1 or not sources:
        return sources
    pictures = sorted({source.relative for source in sources}, key=lambda name: _place(f"train share {name}"))
    chosen = set(pictures[: max(1, round(share * len(pictures)))])
    return [source for source in sources if source.relative in chosen]


def scenes_folder(data: config.Scenes, workspace_folder: Path, progress: Progress) -> Path:
    """Return the folder of Scenes in a workspace, drawing it if it does not exist yet.

    Raises:
        DataError: As `scenes.write`.
    """
    return scenes.write(data, scenes.folder_of(data, workspace_folder), progress)


def _shared_out(sources: Sequence[Source], share: float) -> dict[str, Sequence[Source]]:
    """Split by a hash of each path, so that a pair stays in its split when others are added or removed."""
    what = f"rows that a share of {share!r} holds out, {MOST_HELD_OUT} pictures at the most"
    row = Annotated[int, msgspec.Meta(ge=0, lt=len(sources))]
    is_held = np.zeros(len(sources), bool)
    is_held[once(sources, what, list[row], lambda: _held_out(sources, share))] = True  # type: ignore[valid-type]
    return {"train": taken(sources, np.flatnonzero(~is_held)), "heldout": taken(sources, np.flatnonzero(is_held))}


def _held_out(sources: Sequence[Source], share: float) -> list[int]:
    shares = [_place(source.relative) for source in sources]
    # In a small set the hash may leave a split empty; then the nearest picture changes sides, with all its captions.
    limit = max(share, min(shares, default=0.0))
    if len(distinct := sorted(set(shares))) > 1:
        limit = min(limit, distinct[-2], distinct[min(MOST_HELD_OUT, len(distinct)) - 1])
    return [row for row, at_share in enumerate(shares) if at_share <= limit]


def _place(relative: str) -> float:
    """Return a number evenly distributed over 0..1, by the path alone."""
    digest = hashlib.blake2b(relative.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2.0**64


def _pairs(
    name: str, split: str, sources: Sequence[Source], images: np.ndarray | StreamedImages, content: str
) -> Pairs:
    named = once(sources, "names of metadata", list[str], lambda: _names_of_metadata(sources))
    return Pairs(
        name=name,
        split=split,
        images=images,
        captions=column(sources, lambda source: source.caption),
        labels=column(sources, lambda source: source.label),
        paths=column(sources, lambda source: str(source.path)),
        metadata={name: column(sources, partial(_metadata, name=name)) for name in named},
        fingerprint=once(sources, f"pairs of {content}", HEX, lambda: fingerprint(content, sources)),
    )


def _names_of_metadata(sources: Sequence[Source]) -> list[str]:
    return [*dict.fromkeys(name for source in sources for name in source.metadata)]


def _metadata(source: Source, name: str) -> str:
    return source.metadata.get(name, "")


def fingerprint(content: str, sources: Sequence[Source]) -> str:
    """Return a hash of pairs: equal on any machine with the same images (hash `content`), captions and labels."""
    return _hash(content, ((source.caption, source.label) for source in sources))


def _hash(content: str, texts: Iterable[tuple[str, str]]) -> str:
    digest = hashlib.blake2b(content.encode(), digest_size=16)
    for caption, label in texts:
        digest.update(f"{caption}\0{label}\0".encode("utf-8", "replace"))
    return digest.hexdigest()


def _check_not_empty(name: str, splits: Mapping[str, Sequence[Source] | Pairs], problems: list) -> None:
    counts = {split: len(pairs) for split, pairs in splits.items()}
    for split, count in counts.items():
        if count == 0:
            first = f" The first of {len(problems):,} problems: {problems[0][0]}: {problems[0][1]}" if problems else ""
            what = "to validate on"
            if split == "train":
                what = f"to train on{_where(sum(counts.values()))}"
            raise DataError(
                f"{name} has no pair {what}. Add pairs, or change what is held out.{first}", problems, counts
            )


def _where(held: int) -> str:
    """Return why no pairs are left to train on."""
    if not held:
        return ""
    return ": the only one is held out" if held == 1 else f": all {held:,} are held out"
