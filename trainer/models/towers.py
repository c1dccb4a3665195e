"""Two towers into one space, built from open_clip's own classes."""

from __future__ import annotations

from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float, Int
from open_clip.modified_resnet import ModifiedResNet
from open_clip.transformer import TextTransformer, VisionTransformer
from torch import Tensor, nn

from trainer import config
from trainer.images import Preprocessing
from trainer.models import published
from trainer.models.blueprint import Blueprint, ModelError
from trainer.models.word_vectors import WordVectors

Which = Literal["both", "image", "words"]
Architecture = config.TinyTowers | Blueprint
"""What two towers are built from; all of them tell `image_size`, `context_length` and `embed_dim`."""


class TwoTowers(nn.Module):
    """An image tower and a text tower whose unit embeddings can be compared; objectives may train one alone.

    Attributes:
        visual: Normalized images (n 3 s s) to vectors (n d); None where only captions are learned from.
        text: Token rows (n length) to vectors (n d); None where only images are learned from.
        colors: Turns pixels normalized as CLIP's into the model's own scale; None where it is the same.
    """

    def __init__(self, visual: nn.Module | None, text: nn.Module | None, colors: nn.Module | None = None) -> None:
        super().__init__()
        self.visual = visual
        self.text = text
        self.colors = colors
        self._frozen: list[nn.Module] = []

    def freeze(self, what: published.Freeze) -> None:
        """Leaves towers as they are from now on, their batch norms included."""
        self._frozen = published.froze(self.visual, self.text, what)
        self.train(self.training)

    def train(self, mode: bool = True) -> TwoTowers:
        """Training mode, but for towers that are frozen."""
        super().train(mode)
        for tower in self._frozen:
            tower.eval()
        return self

    def encode_image(self, images: Float[Tensor, "n 3 s s"]) -> Float[Tensor, "n d"]:
        """Unit embeddings, in float32 whatever the towers compute in.

        Raises:
            ModelError: There is no image tower.
        """
        return F.normalize(self.features(images).float(), dim=1)

    def features(self, images: Float[Tensor, "n 3 s s"]) -> Float[Tensor, "n d"]:
        """Embeddings of whatever length the image tower gives them.

        Raises:
            ModelError: There is no image tower.
        """
        if self.visual is None:
            raise ModelError(
                "This model has no image tower: its objective learns from captions alone. "
                "Choose a run that was trained on images."
            )
        return _pooled(self.visual(images if self.colors is None else self.colors(images)))

    def encode_text(self, tokens: Int[Tensor, "n length"]) -> Float[Tensor, "n d"]:
        """Unit embeddings, in float32 whatever the towers compute in.

        Raises:
            ModelError: There is no text tower.
        """
        if self.text is None:
            raise ModelError(
                "This model has no text tower: its objective learns from images alone. "
                "Choose a run of CLIP, CLOOB or another objective of image-text pairs."
            )
        return F.normalize(_pooled(self.text(tokens)).float(), dim=1)


def build(model: Architecture, *, vocabulary: int, towers: Which = "both") -> TwoTowers:
    """Freshly initialized towers; torch's generator decides the weights.

    Args:
        model: Their sizes.
        vocabulary: Ids of the tokenizer.
        towers: `both`; `image`: no text tower; `words`: no image tower, and a vector a token for texts.

    Raises:
        ModelError: No such model can be built here.
    """
    if isinstance(model, Blueprint):
        text = published.text_tower(model) if towers == "both" else None
        return TwoTowers(published.image_tower(model), text, published.colors(model))
    if towers == "words":
        return TwoTowers(None, WordVectors(vocabulary, model.embed_dim))
    visual = _image_tower(model)
    return TwoTowers(visual, _text_tower(model, vocabulary=vocabulary) if towers == "both" else None)


def preprocessing_of(model: Architecture) -> Preprocessing | None:
    """How a published model reads pictures; None for towers of our own, which take the middle square."""
    return model.preprocessing if isinstance(model, Blueprint) else None


def _pooled(answer: Tensor | tuple[Tensor, ...]) -> Float[Tensor, "n d"]:
    """The vectors of a tower that may return its tokens, too (CoCa)."""
    return answer[0] if isinstance(answer, tuple) else answer


def has_batch_norm(module: nn.Module) -> bool:
    """Whether a row's embedding depends on the other rows of the batch while training."""
    return any(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in module.modules())


def _image_tower(model: config.TinyTowers) -> nn.Module:
    if model.image_tower == "vit":
        return VisionTransformer(
            image_size=model.image_size,
            patch_size=model.patch_size,
            width=model.image_width,
            layers=model.image_layers,
            heads=_heads(model.image_width, channels=32),
            mlp_ratio=4.0,
            output_dim=model.embed_dim,
        )
    return ModifiedResNet(
        layers=[model.image_layers] * 4,
        output_dim=model.embed_dim,
        heads=_heads(32 * model.image_width, channels=64),
        image_size=model.image_size,
        width=model.image_width,
    )


def _text_tower(model: config.TinyTowers, *, vocabulary: int) -> nn.Module:
    # pool_type "argmax" reads the answer at the largest token id, which our tokenizer gives to the end token.
    return TextTransformer(
        context_length=model.context_length,
        vocab_size=vocabulary,
        width=model.text_width,
        heads=model.text_heads,
        layers=model.text_layers,
        output_dim=model.embed_dim,
        pool_type="argmax",
    )


def _heads(width: int, *, channels: int) -> int:
    """As many heads of about `channels` as divide the width."""
    return next(heads for heads in range(max(1, width // channels), 0, -1) if width % heads == 0)
