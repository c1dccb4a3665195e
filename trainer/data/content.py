"""Hashes of image contents, equal exactly for equal pixels."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import UInt8

from trainer.analysis.distinct import Matching, in_order, matching, numbered
from trainer.data.pairs import Pairs
from trainer.data.streamed_images import StreamedImages


def pixel_digests(images: UInt8[np.ndarray, "n s s 3"] | StreamedImages) -> list[str]:
    """Return a hash of sixteen letters per image; streamed images use a stored one or none ("")."""
    if isinstance(images, StreamedImages):
        return [digest.hex()[:16] for digest in images.digests] or [""] * len(images)
    return [_digest(image) for image in images]


def distinct_pictures(pairs: Pairs) -> Pairs:
    """Return the first pair of each distinct picture: what is drawn and counted where captions do not matter.

    Streamed images stay so.
    """
    rows = in_order(matching_of(pairs).images.place)[1]
    if len(rows) == len(pairs):
        return pairs
    images = pairs.images
    if not isinstance(images, StreamedImages):
        return pairs.part(rows, split=pairs.split)
    digests = [images.digests[row] for row in rows] if images.digests else ()
    locations = [images.locations[row] for row in rows]
    streamed = StreamedImages(locations, images.size, images.why, digests=digests, preprocessing=images.preprocessing)
    captions, labels, paths = ([of[row] for row in rows] for of in (pairs.captions, pairs.labels, pairs.paths))
    metadata = {name: [values[row] for row in rows] for name, values in pairs.metadata.items()}
    return replace(pairs, images=streamed, captions=captions, labels=labels, paths=paths, metadata=metadata)


def matching_of(pairs: Pairs, content: Sequence[str] | None = None) -> Matching:
    """Return the right answers of a split: equal captions are one text, pictures of equal pixels are one.

    Training masks these, evaluation counts these as right. Pictures of which no hash is stored are decoded; of listed
    ones, which are decoded only as they are trained on, the same file is the same picture.
    """
    images = pairs.images
    if isinstance(images, StreamedImages) and images.listed:
        return matching(numbered(pairs.captions), numbered(images.locations))
    pictures = list(pixel_digests(pairs.images) if content is None else content)
    if pictures and not any(pictures):
        pictures = [_digest(image) for image in pairs.images]
    return matching(numbered(pairs.captions), numbered(pictures))


def _digest(image: UInt8[np.ndarray, "s s 3"]) -> str:
    return hashlib.blake2b(np.ascontiguousarray(image).data, digest_size=8).hexdigest()
