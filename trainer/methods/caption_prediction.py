"""Caption prediction: the words of a caption, in their order, from the image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from trainer import config
from trainer.data.tokenizer import Tokenizer
from trainer.data.tokenizers import ClipTokenizer
from trainer.errors import UserError
from trainer.losses import caption_prediction
from trainer.methods.batch import Batch
from trainer.methods.method import Material, Method, needed
from trainer.models import TwoTowers
from trainer.models.caption_decoder import CaptionDecoder


class CaptionPrediction(Method):
    """Learns the image tower with a decoder that predicts the caption from the image's embedding."""

    reads_texts: ClassVar[bool] = True

    def __init__(self, choice: config.CaptionPrediction, material: Material | None) -> None:
        super().__init__()
        material = needed(material)
        if not isinstance(material.tokenizer, Tokenizer | ClipTokenizer):
            raise UserError(
                "Captions are predicted up to their end token, which this tokenizer does not name. Choose "
                "model.tokenizer '' (trained on the captions) or clip."
            )
        self._tokenizer = material.tokenizer
        self._length = material.sizes.context_length
        sizes = {"width": choice.decoder_width, "layers": choice.decoder_layers, "heads": choice.decoder_heads}
        self.decoder = CaptionDecoder(material.sizes.embed_dim, material.tokenizer.size, self._length, **sizes)

    def encoded(self, sentences: Sequence[str]) -> Int[Tensor, "n length"]:
        """Return sentences as token rows, cut behind the longest one: a causal decoder cannot see what follows."""
        tokens = self._tokenizer.encode(sentences, self._length)
        return tokens[:, : int(self.said(tokens).sum(dim=1).max()) + 1]

    def said(self, tokens: Int[Tensor, "n length"]) -> Bool[Tensor, "n length-1"]:
        """Return which tokens but the first belong to the caption: all up to its end, and the end itself."""
        ends = (tokens == self._tokenizer.eot).int().argmax(dim=1)
        return torch.arange(1, tokens.shape[1], device=tokens.device) <= ends[:, None]

    def embed(self, towers: TwoTowers, batch: Batch) -> tuple[Float[Tensor, "n length-1 vocabulary"]]:
        """Return the logits of each token but the first."""
        assert batch.images is not None
        return (self.decoder(towers.features(batch.images), batch.tokens),)

    def compare(self, embedded: tuple[Float[Tensor, "n length-1 vocabulary"], ...], batch: Batch) -> Float[Tensor, ""]:
        """Return the cross-entropy of the captions' tokens."""
        assert batch.tokens is not None
        return caption_prediction(embedded[0], batch.tokens[:, 1:], self.said(batch.tokens))
