"""Pairs of a snapshot with equal captions or images, so that rankings count each only once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.distinct import Matching, apart, equal_rows, matching, numbered
from trainer.store.columns import StoredColumn
from trainer.store.snapshot_files import Items, Snapshot


def matching_of(snapshot: Snapshot, rows: Int[np.ndarray, " k"] | None = None) -> Matching:
    """Return which of these pairs (None: all) are correct for which; equal captions and images count once.

    Pictures are one where their pixels are, as the snapshot says. One that does not say, of an older version or from
    elsewhere, has one picture where the file and the embedding are the same.
    """
    captions, images = caption_numbers(snapshot.items.caption), image_numbers(snapshot.items, snapshot.image)
    return matching(captions, images) if rows is None else matching(captions[rows], images[rows])


def caption_numbers(captions: Sequence[str]) -> Int[np.ndarray, " n"]:
    """Return integers that are equal exactly for equal captions; an empty caption equals no other.

    Of a column as stored Arrow finds them: Python would stop other threads for a million.
    """
    if not isinstance(captions, StoredColumn) or (coded := captions.coded()) is None:
        return numbered(captions)
    places, values = coded
    empty = [place for place, value in enumerate(values) if not value]
    return apart(places, np.isin(places, empty))


def image_numbers(items: Items, image: Float[np.ndarray, "n d"] | None) -> Int[np.ndarray, " n"]:
    """Return integers that are equal exactly for equal images, as far as known."""
    if len(items.content):
        return caption_numbers(items.content)
    files = caption_numbers(items.path)
    return files if image is None else equal_rows(files, image)
