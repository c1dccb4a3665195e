"""Hashes of image contents, equal exactly for equal pixels."""

from __future__ import annotations

import hashlib

import numpy as np
from jaxtyping import UInt8

from trainer.data.lazy_images import StreamedImages


def pixel_digests(images: UInt8[np.ndarray, "n s s 3"] | StreamedImages) -> list[str]:
    """Return a hash of sixteen letters per image; streamed images use a stored one or none ("")."""
    if isinstance(images, StreamedImages):
        return [digest.hex()[:16] for digest in images.digests] or [""] * len(images)
    return [hashlib.blake2b(np.ascontiguousarray(image).data, digest_size=8).hexdigest() for image in images]
