"""Two towers into one space, built from open_clip's own classes."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float, Int
from open_clip.modified_resnet import ModifiedResNet
from open_clip.transformer import TextTransformer, VisionTransformer
from torch import Tensor, nn

from trainer import config


class TwoTowers(nn.Module):
    """An image tower and a text tower whose unit embeddings can be compared.

    Attributes:
        visual: Normalised images (n 3 s s) to vectors (n d).
        text: Token rows (n length) to vectors (n d).
    """

    def __init__(self, visual: nn.Module, text: nn.Module) -> None:
        super().__init__()
        self.visual = visual
        self.text = text

    def encode_image(self, images: Float[Tensor, "n 3 s s"]) -> Float[Tensor, "n d"]:
        """Unit embeddings, in float32 whatever the towers compute in."""
        return F.normalize(self.visual(images).float(), dim=1)

    def encode_text(self, tokens: Int[Tensor, "n length"]) -> Float[Tensor, "n d"]:
        """Unit embeddings, in float32 whatever the towers compute in."""
        return F.normalize(self.text(tokens).float(), dim=1)


def build(model: config.Model, *, vocabulary: int) -> TwoTowers:
    """Freshly initialised towers; torch's generator decides the weights."""
    return TwoTowers(_image_tower(model), _text_tower(model, vocabulary=vocabulary))


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
