"""All numbers in the contrastive loss of a tiny batch, to follow by hand."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from msgspec import Struct

from trainer.analysis.unit_rows import normalized


class ToyBatch(Struct, frozen=True):
    """One worked batch; row i of images and texts is pair i."""

    logits: Float[np.ndarray, "n n"]  # Similarity of image i (row) and text j (column), over the temperature.
    to_text: Float[np.ndarray, "n n"]  # Softmax of each row: which text an image takes for its own.
    to_image: Float[np.ndarray, "n n"]  # Softmax of each column: which image a text takes for its own.
    image_losses: Float[np.ndarray, " n"]  # Cross-entropy of each row, image to text.
    text_losses: Float[np.ndarray, " n"]  # Cross-entropy of each column, text to image.

    @property
    def total(self) -> float:
        """The mean of both directions: the objective of CLIP."""
        return float(self.image_losses.mean() + self.text_losses.mean()) / 2


def toy_batch(
    image: Float[np.ndarray, "n d"], text: Float[np.ndarray, "n d"], temperature: float, *, cosine: bool = False
) -> ToyBatch:
    """Return the symmetric cross-entropy of a batch with all intermediate numbers.

    Figure 3 of Radford et al., Learning Transferable Visual Models From Natural Language Supervision, 2021,
    https://arxiv.org/abs/2103.00020

    Args:
        image: Image vectors, of any length.
        text: Text vectors; row k belongs to image k.
        temperature: Divides the similarities, > 0.
        cosine: Similarity is the cosine, as in the paper; the plain dot product otherwise. The cosine of a zero
            vector is 0.
    """
    if cosine:
        image, text = normalized(image), normalized(text)
    logits = (image @ text.T) / temperature
    to_text, to_image = log_softmax(logits, axis=1), log_softmax(logits, axis=0)
    return ToyBatch(logits, np.exp(to_text), np.exp(to_image), -np.diag(to_text), -np.diag(to_image))


def log_softmax(logits: Float[np.ndarray, "n m"], *, axis: int) -> Float[np.ndarray, "n m"]:
    """Return the log-softmax along `axis`; finite for any finite logits."""
    shifted = logits - logits.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))
